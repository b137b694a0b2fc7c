// A GPT-2 of a chosen size with random weights, for measuring and for showing.
#pragma once

#include <CLI/App.hpp>

#include <cstdint>
#include <string>

#include "model/config.h"

namespace filigree::cli {

// The smallest GPT-2 that was published, with 124M parameters.
struct ModelShape {
  std::int64_t layers = 12;
  std::int64_t heads = 12;
  std::int64_t width = 768;
  std::int64_t vocabulary = 50257;
  static constexpr std::int64_t kContext = 1024;

  ModelConfig config() const;  // throws Error when the width is not a multiple of the heads
  std::string text() const;    // "GPT-2 with 12 layers, 12 heads, width 768, ..."
};

void add_shape_options(CLI::App& app, ModelShape& shape);

}  // namespace filigree::cli
