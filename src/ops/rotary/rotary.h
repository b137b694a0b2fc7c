// Rotary positions (Su et al. 2021): pairs of a head's elements turned by an angle that grows with
// the position, so that scores depend on distances.
#pragma once

#include "autograd/variable.h"

namespace filigree {

// x [B, T, H, D]; cos and sin [T, R] in f32, of each position's angles, on x's device, with
// 2 R <= D. Pair i is elements i and i + R of each head,
//
//   y[i] = x[i] cos[i] - x[i + R] sin[i]      y[i + R] = x[i + R] cos[i] + x[i] sin[i],
//
// as Llama and GPT-NeoX store them; elements from 2 R on stay as they are. The gradient flows to
// x. Throws Error for shapes that do not fit.
Variable rotary(const Variable& x, const Tensor& cos, const Tensor& sin);

}  // namespace filigree
