#include "text/shard_preparation.h"

#include <cmath>
#include <string>
#include <utility>

#include "base/checksum.h"
#include "filigree/error.h"
#include "filigree/names.h"
#include "filigree/runtime.h"
#include "text/text_source.h"
#include "text/tokenizer_files.h"

namespace filigree {
namespace {

constexpr std::size_t kTrain = 0;
constexpr std::size_t kVal = 1;
// Large enough to keep all threads busy, small enough to forget about.
constexpr std::size_t kBlockBytes = std::size_t{8} << 20;
constexpr std::size_t kBlockPieces = 1 << 14;

// The pieces of several files in blocks.
class BlockSource {
 public:
  BlockSource(const std::vector<std::filesystem::path>& files, bool replace_invalid_utf8)
      : files_(files), options_{.replace_invalid_utf8 = replace_invalid_utf8} {}

  // Empty at the end of the last file.
  std::vector<TextPiece> next() {
    std::vector<TextPiece> block;
    std::size_t bytes = 0;
    while (bytes < kBlockBytes && block.size() < kBlockPieces) {
      if (source_ == nullptr) {
        if (opened_ == files_.size()) break;
        source_ = std::make_unique<TextSource>(files_[opened_++], options_);
      }
      TextPiece piece;
      if (source_->next(piece)) {
        bytes += piece.text.size();
        block.push_back(std::move(piece));
      } else {
        file_bytes_before_ += source_->file_position();
        source_.reset();
      }
    }
    return block;
  }

  std::uint64_t file_bytes() const {
    return file_bytes_before_ + (source_ == nullptr ? 0 : source_->file_position());
  }

 private:
  const std::vector<std::filesystem::path>& files_;
  TextSourceOptions options_;
  std::unique_ptr<TextSource> source_;
  std::size_t opened_ = 0;
  std::uint64_t file_bytes_before_ = 0;
};

// Which split a document goes to.
class SplitChoice {
 public:
  explicit SplitChoice(const PreparationOptions& options)
      : limit_(options.held_out_texts.empty() ? std::ldexp(options.held_out_share, 53) : 0.0),
        seed_(options.seed) {}

  // By its first piece, so that the others follow.
  std::size_t of(const std::string& text) const {
    return static_cast<double>(xxh64(text, seed_) >> 11) < limit_ ? kVal : kTrain;
  }

 private:
  double limit_;  // of the upper 53 bits, which a double holds exactly
  std::uint64_t seed_;
};

class ShardPreparation {
 public:
  ShardPreparation(const Tokenizer& tokenizer, TokenId end_of_text, TokenShardsWriter& writer,
                   const PreparationReport& report)
      : tokenizer_(tokenizer), end_of_text_(end_of_text), writer_(writer), report_(report) {}

  template <typename Choose>
  void add(BlockSource source, const Choose& choose) {
    const std::uint64_t file_bytes_before = progress_.file_bytes;
    std::size_t split = kTrain;
    while (true) {
      const std::vector<TextPiece> block = source.next();
      if (block.empty()) break;
      const std::vector<std::vector<TokenId>> tokens = encode(block);
      for (std::size_t i = 0; i < block.size(); ++i) {
        if (block[i].begins_document) split = choose(block[i].text);
        writer_.add_tokens(split, tokens[i]);
        if (block[i].ends_document) writer_.add_tokens(split, {&end_of_text_, 1});
        writer_.add_documents(split, block[i].ends_document ? 1 : 0, block[i].text.size());
        progress_.text_bytes += block[i].text.size();
        progress_.tokens += tokens[i].size() + (block[i].ends_document ? 1 : 0);
      }
      progress_.file_bytes = file_bytes_before + source.file_bytes();
      if (report_) report_(progress_);
    }
  }

  std::uint64_t tokens() const { return progress_.tokens; }

 private:
  std::vector<std::vector<TokenId>> encode(const std::vector<TextPiece>& block) const {
    std::vector<std::vector<TokenId>> tokens(block.size());
    parallel_for(
        static_cast<std::int64_t>(block.size()), 1, [&](std::int64_t begin, std::int64_t end) {
          for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i)
            // Documents end where the source says, whatever tokens the text names.
            tokens[i] = tokenizer_.encode(block[i].text, {.special_tokens = false});
        });
    return tokens;
  }

  const Tokenizer& tokenizer_;
  TokenId end_of_text_;
  TokenShardsWriter& writer_;
  const PreparationReport& report_;
  PreparationProgress progress_;
};

}  // namespace

ShardIndex prepare_shards(const PreparationOptions& options, const Tokenizer& tokenizer,
                          const std::filesystem::path& folder, const PreparationReport& report) {
  const std::optional<TokenId> end_of_text = tokenizer.eos_id();
  require(end_of_text.has_value(),
          "prepare: the tokenizer has no end-of-text token (such as {}) to put between documents",
          kEndOfText);
  require(options.held_out_share >= 0 && options.held_out_share < 1,
          "prepare: a held-out share of {} is not from 0 to below 1", options.held_out_share);
  // Opened once before any work, so that a missing last file does not show after hours.
  for (const auto* files : {&options.texts, &options.held_out_texts})
    for (const std::filesystem::path& file : *files) TextBytes::open(file);

  TokenShardsWriter writer(folder, {.vocabulary = tokenizer.vocab_size(),
                                    .end_of_text = *end_of_text,
                                    .tokenizer = tokenizer_fingerprint(tokenizer),
                                    .tokenizer_rules = tokenizer.rules_fingerprint(),
                                    .shard_tokens = options.shard_tokens});
  ShardPreparation preparation(tokenizer, *end_of_text, writer, report);
  const SplitChoice choice(options);
  preparation.add(BlockSource(options.texts, options.replace_invalid_utf8),
                  [&](const std::string& text) { return choice.of(text); });
  preparation.add(BlockSource(options.held_out_texts, options.replace_invalid_utf8),
                  [](const std::string&) { return kVal; });
  require(preparation.tokens() > 0, "prepare: the texts are empty; there is nothing to write");
  writer.add_tokenizer_files(tokenizer.save(folder));
  return writer.finish();
}

Tokenizer train_tokenizer_for(const PreparationOptions& options, BpeTrainingOptions training,
                              const PreparationReport& report) {
  BpeTrainer trainer(std::move(training));
  BlockSource source(options.texts, options.replace_invalid_utf8);
  PreparationProgress progress;
  while (true) {
    const std::vector<TextPiece> block = source.next();
    if (block.empty()) break;
    // The separator keeps words from reaching across documents and is itself not learned from.
    std::string text;
    for (const TextPiece& piece : block) {
      text += piece.text;
      if (piece.ends_document) text += kEndOfText;
    }
    trainer.add_text(text);
    progress.file_bytes = source.file_bytes();
    progress.text_bytes += text.size();
    if (report) report(progress);
  }
  require(progress.text_bytes > 0, "prepare: the texts are empty; there is nothing to learn from");
  return trainer.train();
}

}  // namespace filigree
