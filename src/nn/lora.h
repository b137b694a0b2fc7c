// Low-rank adaptation of linear layers (LoRA, Hu et al. 2021):
//
//   y = x W + b + (alpha / rank) (x A) B        A [in, rank] "down", B [rank, out] "up"
//
// W is frozen and A and B are trained. The product A B is never formed while training; merging adds
// it to W once.
#pragma once

#include <cstdint>

#include "autograd/variable.h"
#include "ops/linear/linear.h"

namespace filigree {

struct LoraOptions {
  std::int64_t rank = 8;
  double alpha = 16.0;

  friend bool operator==(const LoraOptions&, const LoraOptions&) = default;
};

struct LoraAdapter {
  Variable down, up;   // undefined: no adapter
  float scale = 0.0f;  // alpha / rank

  bool on() const { return down.defined(); }
};

// Throws Error unless the rank is at least 1 and alpha finite and positive.
void check_lora(const LoraOptions& options);

// An adapter for the outputs that `w` chooses. A is uniform within 1 / sqrt(in), as the authors'
// code draws it, and B zero, so that the layer's function does not change. Throws Error for options
// that make no sense or a rank above the layer's smaller side.
LoraAdapter make_lora(const LinearWeight& w, const LoraOptions& options, std::uint64_t seed,
                      std::uint64_t stream);

// The layer with its adapter; the plain layer when there is none.
Variable linear(const Variable& x, const LinearWeight& w, const LoraAdapter& adapter);

// Adds the adapter's product to the weight, which is f32 then. Memory that is read-only or that
// another tensor shares is copied first.
void merge_lora(const LinearWeight& w, const LoraAdapter& adapter);

}  // namespace filigree
