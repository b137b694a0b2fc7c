// The nonlinear functions of MLPs (runtime/activation.h), alone and as a gate.
#pragma once

#include "autograd/variable.h"
#include "runtime/activation.h"

namespace filigree {

// f of each element.
Variable activate(const Variable& x, Activation f);

// f(gate) * up, element by element: what a gated MLP makes of its two projections. Gradients flow
// to both. Throws Error when their shapes differ.
Variable gated_product(const Variable& gate, const Variable& up, Activation f);

// For operations that compute f themselves: grad * f'(x).
Tensor activation_gradient(Activation f, const Tensor& x, const Tensor& grad);

}  // namespace filigree
