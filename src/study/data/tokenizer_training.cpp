#include <fmt/format.h>

#include <optional>

#include "base/file_status.h"
#include "base/stopwatch.h"
#include "filigree/error.h"
#include "filigree/model_study.h"
#include "filigree/names.h"
#include "study/data/byte_progress.h"
#include "study/output.h"
#include "text/bpe_trainer.h"

namespace filigree::study {
namespace {

namespace fs = std::filesystem;

// Sizes of the files, so that mistakes show before the work and the progress has a total.
std::uint64_t checked_bytes(const std::vector<fs::path>& files) {
  std::uint64_t bytes = 0;
  for (const fs::path& file : files) {
    bytes += bytes_of_file(file);
  }
  require(bytes > 0, "the texts are empty; there is nothing to learn from");
  return bytes;
}

void check_folder(const TokenizerTrainingRequest& request) {
  for (const char* name : {"tokenizer.json", "vocab.json", "merges.txt"}) {
    const fs::path file = request.out / name;
    require(request.force || !is_there(file),
            "'{}' is there already; choose another folder, or force its replacement",
            printable(file.string()));
  }
}

}  // namespace

TrainedTokenizer run(const TokenizerTrainingRequest& request, Models, const Context& context) {
  if (request.out.empty()) throw RequestError("there is no folder to write the tokenizer to");
  const std::unique_ptr<OutputFolder> out = open_output(request.out, context);
  check_folder(request);
  TrainedTokenizer result;
  result.out = request.out;
  result.bytes = checked_bytes(request.texts);
  const Stopwatch watch;

  std::uint64_t bytes_before = 0;  // of the files already counted
  ByteProgress counting(context, "read", result.bytes);
  std::unique_ptr<WorkReport> merging;
  BpeTrainingOptions options;
  options.vocab_size = static_cast<std::size_t>(request.vocabulary);
  options.min_frequency = static_cast<std::uint64_t>(request.min_frequency);
  options.max_digits = static_cast<std::size_t>(request.max_digits);
  options.progress = [&](const BpeTrainingProgress& state) {
    if (state.stage == BpeTrainingProgress::Stage::kCountingWords) {
      counting.update(bytes_before + state.done);
    } else {
      context.throw_if_stopped();
      merging->update(static_cast<std::int64_t>(state.done));
    }
  };
  BpeTrainer trainer(options);
  for (const fs::path& file : request.texts) {
    trainer.add_file(file);
    bytes_before += bytes_of_file(file);
  }
  counting.finish();
  merging = context.begin({"learn", "tokens", request.vocabulary});
  const Tokenizer tokenizer = trainer.train();
  result.vocabulary = tokenizer.vocab_size();
  merging->update(static_cast<std::int64_t>(result.vocabulary));
  merging->finish();
  tokenizer.save(request.out);

  result.seconds = watch.seconds();
  if (result.vocabulary < options.vocab_size)
    context.say(
        fmt::format("the texts gave only {} of {} tokens", result.vocabulary, options.vocab_size));
  return result;
}

Json to_json(const TrainedTokenizer& trained) {
  return {{"out", trained.out.string()},
          {"vocabulary", trained.vocabulary},
          {"bytes", trained.bytes},
          {"seconds", trained.seconds}};
}

}  // namespace filigree::study
