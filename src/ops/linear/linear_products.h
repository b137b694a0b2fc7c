// The products of a linear layer and of its backward pass, for the operations made of them.
#pragma once

#include "filigree/ops.h"
#include "ops/matmul/gemm.h"

namespace filigree {

// Throws Error unless x and the weight fit.
void check_linear(const Variable& x, const LinearWeight& w);
// Of x W: x's with the last extent replaced.
Shape linear_shape(const Variable& x, const LinearWeight& w);

// y = f(x W + b [+ y]), and what f is applied to in `pre`, unless undefined.
void multiply_linear(const Variable& x, const LinearWeight& w, Tensor& y, bool accumulate,
                     Activation f = Activation::kNone, Tensor pre = Tensor());

// dW += X^T dY and db += column sums of dY, where they require gradients.
void add_parameter_gradients(const Tensor& x, const LinearWeight& w, const Tensor& dy);
// dX [+]= dY W^T; with `pre`, dX = f'(pre) dY W^T.
void input_gradient(const LinearWeight& w, const Tensor& dy, Tensor& dx, bool accumulate,
                    Activation f = Activation::kNone, Tensor pre = Tensor());
// Both, where they are wanted.
void add_gradients(const Variable& x, const LinearWeight& w, const Tensor& dy);

}  // namespace filigree
