// The functions of filigree/activation.h in double precision, for tests.
#pragma once

#include <cmath>

#include "filigree/activation.h"

namespace filigree {

inline constexpr Activation kActivations[] = {Activation::kGeluNew, Activation::kGelu,
                                              Activation::kRelu, Activation::kSilu};

inline const char* text_of(Activation f) {
  constexpr const char* kTexts[] = {"none", "gelu_new", "gelu", "relu", "silu"};
  return kTexts[static_cast<int>(f)];
}

inline double exactly(Activation f, double x) {
  switch (f) {
    case Activation::kNone: return x;
    case Activation::kGeluNew:
      return 0.5 * x * (1.0 + std::tanh(std::sqrt(2.0 / M_PI) * (x + 0.044715 * x * x * x)));
    case Activation::kGelu: return 0.5 * x * std::erfc(-x / std::sqrt(2.0));
    case Activation::kRelu: return x > 0.0 ? x : 0.0;
    case Activation::kSilu: return x / (1.0 + std::exp(-x));
  }
  return x;
}

}  // namespace filigree
