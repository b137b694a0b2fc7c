#pragma once

#include <cstdint>

#include "filigree/activation.h"

namespace filigree {

template <typename T = float>
struct ActivationArgs {
  Activation f = Activation::kNone;
  std::int64_t count = 0;
  const T* x = nullptr;
  T* y = nullptr;
};

template <typename T = float>
struct ActivationGradArgs {
  Activation f = Activation::kNone;
  std::int64_t count = 0;
  const T* x = nullptr;
  const T* dy = nullptr;
  T* dx = nullptr;  // dy f'(x)
};

template <typename T = float>
struct GatedProductArgs {
  Activation f = Activation::kNone;
  std::int64_t count = 0;
  const T* gate = nullptr;
  const T* up = nullptr;
  T* y = nullptr;  // f(gate) up
};

template <typename T = float>
struct GatedProductGradArgs {
  Activation f = Activation::kNone;
  std::int64_t count = 0;
  const T* gate = nullptr;
  const T* up = nullptr;
  const T* dy = nullptr;
  T* dgate = nullptr;  // dy up f'(gate), or null
  T* dup = nullptr;    // dy f(gate), or null
};

namespace cpu {
void activate(const ActivationArgs<>& args);
void activation_grad(const ActivationGradArgs<>& args);
void gated_product(const GatedProductArgs<>& args);
void gated_product_grad(const GatedProductGradArgs<>& args);
}  // namespace cpu

namespace cuda {
template <typename T>
void activate(const ActivationArgs<T>& args);
template <typename T>
void activation_grad(const ActivationGradArgs<T>& args);
template <typename T>
void gated_product(const GatedProductArgs<T>& args);
template <typename T>
void gated_product_grad(const GatedProductGradArgs<T>& args);
}  // namespace cuda
}  // namespace filigree
