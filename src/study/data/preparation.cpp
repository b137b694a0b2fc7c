#include <fmt/format.h>

#include "base/checksum.h"
#include "base/file_status.h"
#include "base/stopwatch.h"
#include "filigree/error.h"
#include "filigree/model_study.h"
#include "filigree/names.h"
#include "filigree/study.h"
#include "study/data/byte_progress.h"
#include "study/output.h"
#include "text/shard_preparation.h"

namespace filigree::study {
namespace {

namespace fs = std::filesystem;

// Sizes on the disk, for the progress; a pipe has none, and then the total is unknown.
std::uint64_t total_bytes(const std::vector<fs::path>& files) {
  std::uint64_t bytes = 0;
  for (const fs::path& file : files) {
    const std::optional<FileStatus> status = status_of(file);
    if (!status || status->kind != FileKind::kFile) return 0;
    bytes += status->bytes;
  }
  return bytes;
}

// The bytes read, with the speed of the unpacked text.
class PreparationBar {
 public:
  PreparationBar(const Context& context, const std::string& label, std::uint64_t bytes)
      : progress_(context, label, bytes) {}

  void update(const PreparationProgress& state) {
    std::string metric = fmt::format(
        "text {:.1f} MB/s", static_cast<double>(state.text_bytes) / 1e6 / watch_.seconds());
    if (state.tokens > 0) metric += fmt::format(", {} tokens", with_thousands(state.tokens));
    progress_.update(state.file_bytes, metric);
  }

  void finish() { progress_.finish(); }

 private:
  Stopwatch watch_;
  ByteProgress progress_;
};

void check_request(const PreparationRequest& request) {
  if (request.texts.empty()) throw RequestError("there is no text to prepare");
  if (request.tokenizer.empty() == (request.vocabulary == 0))
    throw RequestError(
        "give either a tokenizer or the size of a vocabulary, which trains one on the texts");
  if (request.held_out_share && !request.held_out_texts.empty())
    throw RequestError("give held-out texts or a share of the documents, not both");
}

void check_output(const PreparationRequest& request) {
  require(!is_there(request.out / "config.json"),
          "'{}' holds a model, whose tokenizer would be replaced; choose another folder",
          printable(request.out.string(), 400));
  const fs::path index = request.out / kShardIndexFile;
  require(request.force || !is_there(index),
          "'{}' is there already; choose another folder, or force its replacement",
          printable(index.string(), 400));
}

Tokenizer tokenizer_of(const PreparationRequest& request, const PreparationOptions& options,
                       const Context& context) {
  if (!request.tokenizer.empty()) return open_tokenizer(request.tokenizer);
  for (const fs::path& file : options.texts)
    require(is_file(file),
            "'{}' cannot be read twice, to train a tokenizer and to encode; give a tokenizer",
            printable(file.string(), 400));
  PreparationBar reading(context, "read", total_bytes(options.texts));
  std::unique_ptr<WorkReport> merging;
  BpeTrainingOptions training;
  training.vocab_size = static_cast<std::size_t>(request.vocabulary);
  training.max_digits = static_cast<std::size_t>(request.max_digits);
  training.progress = [&](const BpeTrainingProgress& state) {
    context.throw_if_stopped();
    if (state.stage != BpeTrainingProgress::Stage::kMerging) return;
    if (!merging) {
      reading.finish();
      merging = context.begin({"learn", "tokens", request.vocabulary});
    }
    merging->update(static_cast<std::int64_t>(state.done));
  };
  Tokenizer tokenizer =
      train_tokenizer_for(options, std::move(training),
                          [&](const PreparationProgress& state) { reading.update(state); });
  if (merging) merging->finish();
  if (tokenizer.vocab_size() < static_cast<std::size_t>(request.vocabulary))
    context.say(fmt::format("the texts gave only {} of {} tokens", tokenizer.vocab_size(),
                            request.vocabulary));
  return tokenizer;
}

}  // namespace

double Preparation::megabytes_per_second() const {
  std::uint64_t bytes = 0;
  for (const SplitEntry& split : index.splits) bytes += split.text_bytes;
  return static_cast<double>(bytes) / 1e6 / seconds;
}

Preparation run(const PreparationRequest& request, Models, const Context& context) {
  check_request(request);
  const std::unique_ptr<OutputFolder> out = open_output(request.out, context);
  check_output(request);
  PreparationOptions options;
  options.texts = request.texts;
  options.held_out_texts = request.held_out_texts;
  options.held_out_share = request.held_out_share.value_or(options.held_out_share);
  options.shard_tokens = static_cast<std::uint64_t>(request.shard_tokens);
  options.seed = context.seed;
  options.replace_invalid_utf8 = request.replace_invalid;

  const Tokenizer tokenizer = tokenizer_of(request, options, context);
  const Stopwatch watch;
  PreparationBar bar(context, "encode",
                     total_bytes(options.texts) + total_bytes(options.held_out_texts));
  Preparation result;
  result.out = request.out;
  result.index = prepare_shards(options, tokenizer, request.out,
                                [&](const PreparationProgress& state) { bar.update(state); });
  bar.finish();
  result.seconds = watch.seconds();
  for (const char* split : {"train", "held-out"})
    if (result.index.split(split).tokens == 0)
      context.say(
          fmt::format("no document went to the split '{}'; give another fraction of the documents, "
                      "or held-out texts",
                      split));
  return result;
}

Json to_json(const Preparation& preparation) {
  const ShardIndex& index = preparation.index;
  Json splits = Json::object();
  for (const SplitEntry& split : index.splits)
    splits[split.name] = {{"tokens", split.tokens},
                          {"documents", split.documents},
                          {"text_bytes", split.text_bytes},
                          {"shards", split.shards.size()}};
  return {{"out", preparation.out.string()},
          {"vocabulary", index.vocabulary},
          {"end_of_text", index.end_of_text},
          {"tokenizer", checksum_text(index.tokenizer)},
          {"splits", splits},
          {"seconds", preparation.seconds},
          {"megabytes_per_second", preparation.megabytes_per_second()}};
}

Knobs knobs_of(PreparationRequest& request) {
  Knobs knobs;
  knobs.section("Shards");
  knobs.number({.name = "held-out-share",
                .what = "share of the documents that is held out of training",
                .otherwise = "0.01 where no text is held out"},
               request.held_out_share, {.min = 0.0, .max = 0.99});
  knobs.count({.name = "shard-tokens", .what = "tokens in a shard"}, request.shard_tokens,
              {.min = 1, .max = 1 << 28});
  knobs.section("New tokenizer");
  knobs.count({.name = "max-digits",
               .what = "digits that a token may have, so that 2 cuts years in the middle; 0 any "
                       "number"},
              request.max_digits, {.min = 0, .max = 1000});
  return knobs;
}

}  // namespace filigree::study
