// The nonlinear functions of MLPs. Light enough for nvcc and for kernels.
#pragma once

#include <cstdint>

namespace filigree {

enum class Activation : std::uint8_t {
  kNone,
  kGeluNew,  // x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))): what GPT-2 was trained with
  kGelu,     // x P(N < x), by the error function
  kRelu,     // x, and 0 below 0
  kSilu,     // x / (1 + e^-x)
};

}  // namespace filigree
