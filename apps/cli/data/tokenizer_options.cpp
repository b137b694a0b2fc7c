#include "apps/cli/data/tokenizer_options.h"

#include <CLI/CLI.hpp>

#include "apps/cli/program/values.h"

namespace filigree::cli {

void add_training_options(CLI::App& app, study::TokenizerTrainingRequest& training) {
  const std::string group = "Training";
  app.add_option("--train", training.texts, "train a tokenizer on these UTF-8 texts")
      ->type_name("FILE")
      ->group(group);
  app.add_option("--vocab", training.vocabulary, "tokens of the new vocabulary")
      ->check(whole_number(257, 1 << 24))
      ->type_name("N")
      ->capture_default_str()
      ->group(group);
  app.add_option("--min-frequency", training.min_frequency,
                 "pairs that occur less often are not joined")
      ->check(whole_number(1, INT64_MAX))
      ->type_name("N")
      ->capture_default_str()
      ->group(group);
  add_digits_option(app, training.max_digits)->group(group);
  app.add_option("--out", training.out, "folder of the new tokenizer")
      ->type_name("DIR")
      ->group(group);
  app.add_flag("--force", training.force, "replace a tokenizer that is there")->group(group);
}

CLI::Option* add_digits_option(CLI::App& app, std::int64_t& max_digits) {
  return app
      .add_option(
          "--max-digits", max_digits,
          "a new tokenizer's tokens have so many digits at most, so that 2 cuts years in the "
          "middle; 0: any number")
      ->check(whole_number(0, 1000))
      ->type_name("N")
      ->capture_default_str();
}

}  // namespace filigree::cli
