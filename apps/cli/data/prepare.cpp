// filigree prepare: text files of any size to token shards for training.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>

#include "apps/cli/commands.h"
#include "apps/cli/data/tokenizer_training.h"
#include "apps/cli/program/input.h"
#include "apps/cli/program/program.h"
#include "apps/cli/program/stopwatch.h"
#include "apps/cli/program/table.h"
#include "filigree/base/error.h"
#include "filigree/base/strings.h"
#include "filigree/text/shard_checksum.h"
#include "filigree/text/shard_preparation.h"

namespace filigree::cli {
namespace {

struct PrepareOptions {
  std::vector<std::string> texts;
  std::vector<std::string> validation_texts;
  std::string out;
  std::string tokenizer;
  std::int64_t vocabulary = 0;
  std::int64_t max_digits = 0;
  double val_fraction = 0.01;
  std::int64_t shard_tokens = std::int64_t{1} << 24;
  bool replace_invalid = false;
  bool force = false;
};

// Sizes on the disk, for the progress; a pipe has none, and then the total is unknown.
std::uint64_t total_bytes(const std::vector<std::filesystem::path>& files) {
  std::uint64_t bytes = 0;
  for (const std::filesystem::path& file : files) {
    std::error_code failure;
    const std::uintmax_t size = std::filesystem::file_size(file, failure);
    if (failure) return 0;
    bytes += size;
  }
  return bytes;
}

// A bar of the bytes read, with the speed of the unpacked text.
class PreparationBar {
 public:
  PreparationBar(const Session& session, const std::string& label, std::uint64_t bytes)
      : unit_(bytes >= 10000000 ? 1000000 : 1000),
        progress_(std::cerr, session.progress(label, unit_ == 1000000 ? "MB" : "kB",
                                              static_cast<std::int64_t>(bytes / unit_))) {}

  void update(const PreparationProgress& state) {
    throw_if_interrupted();
    std::string metric = fmt::format(
        "text {:.1f} MB/s", static_cast<double>(state.text_bytes) / 1e6 / watch_.seconds());
    if (state.tokens > 0) metric += fmt::format(", {} tokens", with_thousands(state.tokens));
    progress_.update(static_cast<std::int64_t>(state.file_bytes / unit_), metric);
  }

  void finish() { progress_.finish(); }

 private:
  std::uint64_t unit_;
  Stopwatch watch_;
  Progress progress_;
};

void check_options(const PrepareOptions& options, bool fraction_given) {
  if (options.out.empty()) throw UsageError("--out DIR is required");
  if (options.texts.empty()) throw UsageError("give at least one TEXT");
  if (options.tokenizer.empty() == (options.vocabulary == 0))
    throw UsageError("give either --tokenizer DIR or --vocab N, which trains one on the texts");
  if (fraction_given && !options.validation_texts.empty())
    throw UsageError("give --val-fraction or --val, not both");
  std::error_code ignored;
  const std::filesystem::path index = std::filesystem::path(options.out) / kShardIndexFile;
  require(options.force || !std::filesystem::exists(index, ignored),
          "'{}' is there already; choose another --out, or replace it with --force",
          printable(index.string(), 400));
}

Tokenizer tokenizer_of(const PrepareOptions& options, const PreparationOptions& preparation,
                       const Session& session) {
  if (!options.tokenizer.empty()) return open_tokenizer(options.tokenizer);
  for (const std::filesystem::path& file : preparation.texts)
    require(std::filesystem::is_regular_file(file),
            "'{}' cannot be read twice, to train a tokenizer and to encode; give --tokenizer",
            printable(file.string(), 400));
  PreparationBar reading(session, "read", total_bytes(preparation.texts));
  std::optional<Progress> merging;
  BpeTrainingOptions training;
  training.vocab_size = static_cast<std::size_t>(options.vocabulary);
  training.max_digits = static_cast<std::size_t>(options.max_digits);
  training.progress = [&](const BpeTrainingProgress& state) {
    throw_if_interrupted();
    if (state.stage != BpeTrainingProgress::Stage::kMerging) return;
    if (!merging) {
      reading.finish();
      merging.emplace(std::cerr, session.progress("learn", "tokens", options.vocabulary));
    }
    merging->update(static_cast<std::int64_t>(state.done));
  };
  Tokenizer tokenizer =
      train_tokenizer_for(preparation, std::move(training),
                          [&](const PreparationProgress& state) { reading.update(state); });
  if (merging) merging->finish();
  if (tokenizer.vocab_size() < static_cast<std::size_t>(options.vocabulary))
    session.note(fmt::format("the texts gave only {} of {} tokens", tokenizer.vocab_size(),
                             options.vocabulary));
  return tokenizer;
}

void report(const PrepareOptions& options, const ShardIndex& index, double seconds,
            const Session& session) {
  std::uint64_t text_bytes = 0;
  for (const SplitEntry& split : index.splits) text_bytes += split.text_bytes;
  const double speed = static_cast<double>(text_bytes) / 1e6 / seconds;
  if (session.json()) {
    Json splits = Json::object();
    for (const SplitEntry& split : index.splits)
      splits[split.name] = {{"tokens", split.tokens},
                            {"documents", split.documents},
                            {"text_bytes", split.text_bytes},
                            {"shards", split.shards.size()}};
    session.print_json({{"out", options.out},
                        {"vocabulary", index.vocabulary},
                        {"end_of_text", index.end_of_text},
                        {"tokenizer", checksum_text(index.tokenizer)},
                        {"splits", splits},
                        {"seconds", seconds},
                        {"megabytes_per_second", speed}});
    return;
  }
  Table table({{"split"},
               {"tokens", Align::kRight},
               {"documents", Align::kRight},
               {"text", Align::kRight},
               {"bytes/token", Align::kRight},
               {"shards", Align::kRight}});
  for (const SplitEntry& split : index.splits)
    table.add({split.name, with_thousands(split.tokens), with_thousands(split.documents),
               human_bytes(split.text_bytes),
               split.tokens == 0 ? "-"
                                 : fmt::format("{:.2f}", static_cast<double>(split.text_bytes) /
                                                             static_cast<double>(split.tokens)),
               std::to_string(split.shards.size())});
  session.print(fmt::format("{}\n{}: vocabulary of {}; encoded in {}, {:.1f} MB/s\n", table.text(),
                            printable(options.out), with_thousands(index.vocabulary),
                            format_seconds(seconds), speed));
}

void run_prepare(const PrepareOptions& options, bool fraction_given, const Session& session) {
  check_options(options, fraction_given);
  PreparationOptions preparation;
  for (const std::string& text : options.texts)
    preparation.texts.emplace_back(text == "-" ? "/dev/stdin" : text);
  preparation.validation_texts.assign(options.validation_texts.begin(),
                                      options.validation_texts.end());
  preparation.val_fraction = options.val_fraction;
  preparation.shard_tokens = static_cast<std::uint64_t>(options.shard_tokens);
  preparation.seed = session.options().seed;
  preparation.replace_invalid_utf8 = options.replace_invalid;

  const Tokenizer tokenizer = tokenizer_of(options, preparation, session);
  const Stopwatch watch;
  PreparationBar bar(session, "encode",
                     total_bytes(preparation.texts) + total_bytes(preparation.validation_texts));
  const ShardIndex index =
      prepare_shards(preparation, tokenizer, options.out,
                     [&](const PreparationProgress& state) { bar.update(state); });
  bar.finish();
  if (index.split("train").tokens == 0 || index.split("val").tokens == 0)
    session.note(
        fmt::format("no document went to the split '{}'; change --val-fraction or give "
                    "--val FILE",
                    index.split("train").tokens == 0 ? "train" : "val"));
  report(options, index, watch.seconds(), session);
}

}  // namespace

void add_prepare(Program& program) {
  const auto options = std::make_shared<PrepareOptions>();
  const auto fraction = std::make_shared<CLI::Option*>();
  CLI::App& app = program.add(
      {"prepare",
       "Turn text files into token shards for training.",
       {"filigree prepare books.txt.xz wiki.txt --vocab 8192 --out shards",
        "filigree prepare train.txt --val val.txt --tokenizer gpt2 --out shards",
        "zstdcat big.zst | filigree prepare - --tokenizer gpt2 --out shards"}},
      [=](Session& session) { run_prepare(*options, (*fraction)->count() > 0, session); });
  app.add_option("TEXT", options->texts,
                 "UTF-8 texts, plain, .xz or .zst, documents separated by <|endoftext|>; - is "
                 "stdin");
  app.add_option("--out", options->out, "folder to write the shards and the tokenizer to")
      ->type_name("DIR");
  app.add_option("--tokenizer", options->tokenizer,
                 "folder of a tokenizer or of a model, or a model's name")
      ->type_name("DIR");
  app.add_option("--vocab", options->vocabulary, "train a tokenizer of so many tokens on the texts")
      ->check(whole_number(257, 1 << 24))
      ->type_name("N");
  add_digits_option(app, options->max_digits);
  app.add_option("--val", options->validation_texts, "texts of the validation split")
      ->type_name("FILE");
  *fraction = app.add_option("--val-fraction", options->val_fraction,
                             "share of the documents that goes to the validation split")
                  ->check(number(0, 0.99))
                  ->type_name("X")
                  ->capture_default_str();
  app.add_option("--shard-tokens", options->shard_tokens, "tokens in a shard")
      ->check(whole_number(1, 1 << 28))
      ->type_name("N")
      ->capture_default_str();
  app.add_flag("--replace-invalid", options->replace_invalid,
               "read invalid UTF-8 as U+FFFD instead of failing");
  app.add_flag("--force", options->force, "replace shards that are there");
}

}  // namespace filigree::cli
