// The features of each row that are active: h = x W^T + b, of which few pass.
//
//   threshold    a = h where h > theta, else 0; theta is 0 without one (ReLU)
//   top-k        the k largest of each row, those above 0
//   batch-top-k  the k * rows largest of all, those above 0
//
// Of values that are equal all pass or none; of batch-top-k none where all of them would make it
// more than (k + 1) * rows.
//
// Gradients flow from a to x, W and b where a is not 0, and with a bandwidth e to the threshold as
// if the step were a slope of width e (straight-through):
//
//   da/dtheta = -(theta / e) 1[|h - theta| < e / 2]
//
// Only what passes is kept (with a bandwidth also what might have, where gradients are wanted), so
// that everything behind this operation, and its own backward pass, costs what is active.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "base/names.h"
#include "ops/sparse_code/sparse_code.h"

namespace filigree {

enum class Selection { kThreshold, kTopK, kBatchTopK };
template <>
inline constexpr auto kNames<Selection> =
    std::to_array<Named<Selection>>({{Selection::kThreshold, "threshold"},
                                     {Selection::kTopK, "top-k"},
                                     {Selection::kBatchTopK, "batch-top-k"}});

struct SparseEncodeOptions {
  Selection selection = Selection::kThreshold;
  std::int64_t k = 0;             // of the last two
  float bandwidth = 0.0f;         // e; 0: the threshold gets no gradient through a
  DType precision = DType::kF32;  // of the weight that the product reads
  // Where several processes have some of the features each: adds up numbers over them, in place.
  // Top-k of such is found on the CPU only.
  std::function<void(std::span<double>)> sum = {};
  int process = 0, processes = 1;
};

struct EncoderWeights {
  Variable weight;     // [features, width]
  Variable bias;       // [features]
  Variable threshold;  // [features], not negative, or undefined
};

struct Encoded {
  SparseCode code;
  // [features]: the sum over the rows of max(theta - h, 0), if it was asked for. Differentiable.
  Variable below;
  float bound = 0.0f;  // of batch-top-k: what passed is above it
};

// x [rows, width]. Throws Error for shapes that do not fit, or options that make no sense.
Encoded sparse_encode(const Variable& x, const EncoderWeights& encoder,
                      const SparseEncodeOptions& options, bool with_below = false);

// The same of several layers, x [layers, rows, width], each with weights of its own. Where
// batch-top-k is recorded on a GPU nothing waits for it: codes have room for more entries than
// there are, and the bound is not told. Otherwise a GPU is waited for once for as many layers as
// have their h in 1 GiB.
std::vector<Encoded> sparse_encode_layers(const Tensor& x, std::span<const EncoderWeights> encoders,
                                          const SparseEncodeOptions& options,
                                          bool with_below = false);

// h itself, f32 [rows, features] on x's device; not differentiated.
Tensor pre_activations(const Tensor& x, const EncoderWeights& encoder,
                       DType precision = DType::kF32);

}  // namespace filigree
