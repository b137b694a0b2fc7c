// The options of commands that train tokenizers.
#pragma once

#include <CLI/App.hpp>

#include <cstdint>

#include "filigree/model_study.h"

namespace filigree::cli {

// --train and what goes with it.
void add_training_options(CLI::App& app, study::TokenizerTrainingRequest& training);
// --max-digits.
CLI::Option* add_digits_option(CLI::App& app, std::int64_t& max_digits);

}  // namespace filigree::cli
