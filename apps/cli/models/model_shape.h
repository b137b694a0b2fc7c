// A GPT-2 of a chosen size with random weights, for measuring, for showing and for training.
#pragma once

#include <CLI/App.hpp>

#include <cstdint>
#include <string>

#include "filigree/model/config.h"

namespace filigree::cli {

// The smallest GPT-2 that was published, with 124M parameters.
struct ModelShape {
  std::int64_t layers = 12;
  std::int64_t heads = 12;
  std::int64_t width = 768;
  std::int64_t vocabulary = 50257;
  std::int64_t context = 1024;

  ModelConfig config() const;  // throws Error when the width is not a multiple of the heads
  std::string text() const;    // "GPT-2 with 12 layers, 12 heads, width 768, ..."
};

// --layers, --heads and --width, with the shape's values as defaults.
void add_size_options(CLI::App& app, ModelShape& shape);
// The same and --vocab.
void add_shape_options(CLI::App& app, ModelShape& shape);
// One more number of the model's shape.
CLI::Option* add_shape_option(CLI::App& app, const char* name, std::int64_t& value,
                              const char* what, std::int64_t most);

}  // namespace filigree::cli
