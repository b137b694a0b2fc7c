// The linear layer y = x W + b, optionally followed by an activation in the same pass, and two of
// them: one after the other or summed.
#pragma once

#include <cstdint>

#include "autograd/variable.h"
#include "runtime/activation.h"

namespace filigree {

// A weight matrix as a linear layer reads it. The whole of a [in, out] matrix by default; with
// `out_in` the storage is [out, in] (as torch.nn.Linear keeps it); `begin` and `count` choose a
// range of the outputs, so that a layer can read its part of a fused matrix without a copy.
struct LinearWeight {
  Variable weight;
  Variable bias;  // [all outputs] or undefined
  bool out_in = false;
  std::int64_t begin = 0;
  std::int64_t count = -1;  // -1: all

  std::int64_t inputs() const { return weight.size(out_in ? 1 : 0); }
  std::int64_t outputs() const { return count >= 0 ? count : weight.size(out_in ? 0 : 1); }
};

// x [..., in] -> [..., out]. Gradients flow to x, weight and bias. With an activation,
// `pre_activation` receives the value before it (a constant) when not null. Throws Error for shapes
// that do not fit.
Variable linear(const Variable& x, const LinearWeight& w, Activation f = Activation::kNone,
                Tensor* pre_activation = nullptr);

// f(x W + b) U + c: two layers whose hidden values nobody else reads, so that the gradient of the
// activation is formed in a product. Throws Error for shapes that do not fit.
Variable feed_forward(const Variable& x, const LinearWeight& in, const LinearWeight& out,
                      Activation f);

// x W + b + h U + c as one result: x [..., in] and h [..., rank] share their leading axes, and w
// and u have equally many outputs. The sum is formed in the products, so that no summand takes
// memory of its own. Throws Error for shapes that do not fit.
Variable linear_sum(const Variable& x, const LinearWeight& w, const Variable& h,
                    const LinearWeight& u);

}  // namespace filigree
