// Arithmetic on whole arrays that tensors and gradients need themselves.
#pragma once

#include <cstdint>

#include "filigree/device.h"

namespace filigree::cuda {

void fill(float* to, float value, std::int64_t count);

void convert(const float* from, Bf16* to, std::int64_t count);  // to nearest, ties to even
void convert(const Bf16* from, float* to, std::int64_t count);

// sum += add; in f32, rounded once.
void add_into(float* sum, const float* add, std::int64_t count);
void add_into(float* sum, const Bf16* add, std::int64_t count);
void add_into(Bf16* sum, const Bf16* add, std::int64_t count);
void add_into(Bf16* sum, const float* add, std::int64_t count);

}  // namespace filigree::cuda
