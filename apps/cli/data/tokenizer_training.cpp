#include "apps/cli/data/tokenizer_training.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <filesystem>
#include <iostream>
#include <optional>

#include "apps/cli/program/program.h"
#include "apps/cli/program/stopwatch.h"
#include "apps/cli/program/table.h"
#include "filigree/base/error.h"
#include "filigree/base/strings.h"
#include "filigree/text/bpe_trainer.h"

namespace filigree::cli {
namespace {

// Sizes of the files, so that mistakes show before the work and the progress has a total.
std::uint64_t total_bytes(const std::vector<std::string>& files) {
  std::uint64_t bytes = 0;
  for (const std::string& file : files) {
    std::error_code failure;
    const std::uintmax_t size = std::filesystem::file_size(file, failure);
    require(!failure, "cannot read '{}': {}", printable(file), failure.message());
    bytes += size;
  }
  require(bytes > 0, "the texts are empty; there is nothing to learn from");
  return bytes;
}

void check_folder(const TokenizerTraining& training) {
  if (training.out.empty()) throw UsageError("--train needs --out DIR, where to write");
  std::error_code ignored;
  for (const char* name : {"tokenizer.json", "vocab.json", "merges.txt"}) {
    const std::filesystem::path file = std::filesystem::path(training.out) / name;
    require(training.force || !std::filesystem::exists(file, ignored),
            "'{}' is there already; choose another --out, or replace it with --force",
            printable(file.string()));
  }
}

}  // namespace

void add_training_options(CLI::App& app, TokenizerTraining& training) {
  const std::string group = "Training";
  app.add_option("--train", training.files, "train a tokenizer on these UTF-8 texts")
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
  app.add_option("--out", training.out, "folder to write the tokenizer to")
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

void train_tokenizer(const TokenizerTraining& training, const Session& session) {
  check_folder(training);
  const std::uint64_t bytes = total_bytes(training.files);
  const Stopwatch watch;

  std::uint64_t bytes_before = 0;  // of the files already counted
  const bool large = bytes >= 10000000;
  const std::uint64_t unit = large ? 1000000 : 1000;
  std::optional<Progress> counting(
      std::in_place, std::cerr,
      session.progress("read", large ? "MB" : "kB", static_cast<std::int64_t>(bytes / unit)));
  std::optional<Progress> merging;
  BpeTrainingOptions options;
  options.vocab_size = static_cast<std::size_t>(training.vocabulary);
  options.min_frequency = static_cast<std::uint64_t>(training.min_frequency);
  options.max_digits = static_cast<std::size_t>(training.max_digits);
  options.progress = [&](const BpeTrainingProgress& state) {
    throw_if_interrupted();
    if (state.stage == BpeTrainingProgress::Stage::kCountingWords)
      counting->update(static_cast<std::int64_t>((bytes_before + state.done) / unit));
    else
      merging->update(static_cast<std::int64_t>(state.done));
  };
  BpeTrainer trainer(options);
  for (const std::string& file : training.files) {
    trainer.add_file(file);
    bytes_before += std::filesystem::file_size(file);
  }
  counting->finish();
  merging.emplace(std::cerr, session.progress("learn", "tokens", training.vocabulary));
  const Tokenizer tokenizer = trainer.train();
  merging->update(static_cast<std::int64_t>(tokenizer.vocab_size()));
  merging->finish();
  tokenizer.save(training.out);

  const double seconds = watch.seconds();
  if (tokenizer.vocab_size() < options.vocab_size)
    session.note(fmt::format("the texts gave only {} of {} tokens", tokenizer.vocab_size(),
                             options.vocab_size));
  if (session.json()) {
    session.print_json({{"out", training.out},
                        {"vocabulary", tokenizer.vocab_size()},
                        {"bytes", bytes},
                        {"seconds", seconds}});
    return;
  }
  Table table({{""}, {""}});
  table.add({"tokenizer", training.out});
  table.add({"vocabulary", fmt::format("{} tokens", with_thousands(tokenizer.vocab_size()))});
  table.add({"learned from", fmt::format("{} in {}", human_bytes(bytes), format_seconds(seconds))});
  session.print(table.text());
}

}  // namespace filigree::cli
