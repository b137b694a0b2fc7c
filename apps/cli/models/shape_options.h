// The options that choose the size of a model with random weights.
#pragma once

#include <CLI/App.hpp>

#include <cstdint>

#include "filigree/training_study.h"

namespace filigree::cli {

// --layers, --layer-heads and --width, with the shape's values as defaults.
void add_size_options(CLI::App& app, study::ModelShape& shape);
// The same and --vocab.
void add_shape_options(CLI::App& app, study::ModelShape& shape);
// One more number of the model's shape.
CLI::Option* add_shape_option(CLI::App& app, const char* name, std::int64_t& value,
                              const char* what, std::int64_t most);

}  // namespace filigree::cli
