// filigree tokenize --train: a byte-level BPE tokenizer from text files.
#pragma once

#include <CLI/App.hpp>

#include <cstdint>
#include <string>
#include <vector>

#include "apps/cli/program/session.h"

namespace filigree::cli {

struct TokenizerTraining {
  std::vector<std::string> files;
  std::int64_t vocabulary = 8192;
  std::int64_t min_frequency = 2;
  std::int64_t max_digits = 0;
  std::string out;
  bool force = false;
};

void add_training_options(CLI::App& app, TokenizerTraining& training);
// --max-digits, for every command that trains tokenizers.
CLI::Option* add_digits_option(CLI::App& app, std::int64_t& max_digits);

// Trains, writes the folder and prints what came out. Throws UsageError without --out and Error
// when the folder already has a tokenizer, unless forced.
void train_tokenizer(const TokenizerTraining& training, const Session& session);

}  // namespace filigree::cli
