// The arithmetic of optimisers, on whole tensors in place. train/adamw.h keeps the state.
#pragma once

#include <cstdint>
#include <vector>

#include "tensor/tensor.h"

namespace filigree {

struct AdamWStep {
  float learning_rate = 0.0f;
  float beta1 = 0.9f, beta2 = 0.95f;
  float epsilon = 1e-8f;
  float weight_decay = 0.0f;
  float gradient_scale = 1.0f;  // clipping and accumulation: g is multiplied by it first
  std::int64_t step = 1;        // counted from 1, for the bias corrections
};

// Decoupled weight decay (Loshchilov & Hutter):
//   w *= 1 - lr * decay      m = b1 m + (1 - b1) g      v = b2 v + (1 - b2) g^2
//   w -= lr * (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + epsilon)
struct AdamWUpdate {
  AdamWStep step = {};
  Tensor gradient;
  Tensor weight, first_moment, second_moment;  // changed
  Tensor bf16_copy = {};  // on the GPU: receives the new weight rounded; may be undefined
};

// The tensors of an update have one shape and device. Throws Error otherwise.
void adamw_steps(std::vector<AdamWUpdate> updates);

// Square root of the sum of squares over all tensors, in double precision, the same for every
// thread count. All lie on one device.
double global_norm(const std::vector<Tensor>& tensors);

}  // namespace filigree
