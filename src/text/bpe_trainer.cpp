#include "text/bpe_trainer.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <limits>
#include <mutex>
#include <utility>

#include "base/mapped_file.h"
#include "base/utf8.h"
#include "filigree/error.h"
#include "filigree/names.h"
#include "filigree/runtime.h"
#include "text/byte_level.h"
#include "text/merge_learner.h"
#include "text/pre_tokenizer.h"
#include "text/tokenizer_files.h"

namespace filigree {
namespace {

constexpr std::size_t kAlphabetSize = 256;
constexpr std::size_t kMaxVocabSize = std::size_t{1} << 24;
// Small enough to share work evenly, large enough that handing it out costs nothing.
constexpr std::size_t kPieceBytes = std::size_t{1} << 20;

// Cuts `text` at special tokens and then into pieces of about kPieceBytes that together have the
// same words as the whole.
std::vector<std::string_view> cut_into_pieces(std::string_view text,
                                              const AddedTokens& special_tokens) {
  std::vector<std::string_view> pieces;
  std::deque<std::string> storage;  // nothing is normalized
  for (const TextSegment& segment : special_tokens.split(text, true, storage)) {
    if (segment.id != TextSegment::kText) continue;
    std::string_view rest = segment.text;
    while (!rest.empty()) {
      const std::size_t end = pre_token_border(rest, kPieceBytes);
      pieces.push_back(rest.substr(0, end));
      rest.remove_prefix(end);
    }
  }
  return pieces;
}

std::vector<AddedToken> as_special_tokens(const BpeTrainingOptions& options) {
  std::vector<AddedToken> tokens;
  for (const std::string& content : options.special_tokens) {
    if (const auto bytes = from_byte_level(content); bytes && bytes->size() == 1)
      fail("BPE training: the special token '{}' is how the vocabulary writes byte 0x{:02X}",
           content, static_cast<unsigned char>((*bytes)[0]));
    tokens.push_back({.content = content, .id = static_cast<TokenId>(tokens.size())});
  }
  return tokens;
}

}  // namespace

BpeTrainer::BpeTrainer(BpeTrainingOptions options)
    : options_(std::move(options)), special_tokens_(as_special_tokens(options_)) {
  const std::size_t smallest = kAlphabetSize + options_.special_tokens.size();
  if (options_.vocab_size < smallest || options_.vocab_size > kMaxVocabSize)
    fail(
        "BPE training: a vocabulary of {} tokens; it must be between {} ({} bytes and {} special "
        "tokens) and {}",
        options_.vocab_size, smallest, kAlphabetSize, options_.special_tokens.size(),
        kMaxVocabSize);
}

void BpeTrainer::add_text(std::string_view text, std::string_view name) {
  const std::vector<std::string_view> pieces = cut_into_pieces(text, special_tokens_);
  const std::size_t workers =
      std::clamp<std::size_t>(pieces.size(), 1, static_cast<std::size_t>(num_threads()));
  if (counts_.size() < workers) counts_.resize(workers);

  std::atomic<std::size_t> next_piece{0};
  std::mutex mutex;  // guards the two below and the calls of progress
  std::size_t bytes_done = 0;
  std::size_t first_invalid = text.size();
  parallel_for(static_cast<std::int64_t>(workers), 1, [&](std::int64_t worker, std::int64_t) {
    WordCounts& counts = counts_[static_cast<std::size_t>(worker)];
    while (true) {
      const std::size_t index = next_piece.fetch_add(1);
      if (index >= pieces.size()) return;
      const std::string_view piece = pieces[index];
      const std::size_t valid = first_invalid_utf8(piece);
      if (valid == piece.size()) {
        PreTokenScanner scanner(piece);
        for (std::string_view word; scanner.next(word);) counts.add(word);
      }
      std::lock_guard lock(mutex);
      bytes_done += piece.size();
      if (valid != piece.size())
        first_invalid =
            std::min(first_invalid, static_cast<std::size_t>(piece.data() - text.data()) + valid);
      if (options_.progress)
        options_.progress({BpeTrainingProgress::Stage::kCountingWords, bytes_done, text.size()});
    }
  });
  if (first_invalid != text.size())
    fail("BPE training: {} has invalid UTF-8 at byte {}", name, first_invalid);
}

void BpeTrainer::add_file(const std::filesystem::path& file) {
  add_text(MappedFile::open(file)->text(), fmt::format("'{}'", file.string()));
}

Tokenizer BpeTrainer::train() const {
  WordCounts words;
  for (const WordCounts& counts : counts_) words.add(counts);

  MergeLearnerOptions learning;
  learning.vocab_size = options_.vocab_size;
  learning.first_byte_id = static_cast<TokenId>(options_.special_tokens.size());
  learning.min_frequency = options_.min_frequency;
  learning.max_digits = options_.max_digits;
  // A joined token that is written like a special one would share its entry in the vocabulary.
  for (const std::string& content : options_.special_tokens)
    if (auto bytes = from_byte_level(content)) learning.forbidden.push_back(*std::move(bytes));
  const LearnedMerges learned = learn_merges(words, learning, [&](std::size_t tokens) {
    if (options_.progress)
      options_.progress({BpeTrainingProgress::Stage::kMerging, tokens, options_.vocab_size});
  });

  TokenizerSpec spec;
  spec.added_tokens = special_tokens_.tokens();
  for (const AddedToken& token : spec.added_tokens)
    spec.vocabulary.push_back({token.content, token.id});
  for (const std::string& bytes : learned.tokens)
    spec.vocabulary.push_back({to_byte_level(bytes), static_cast<TokenId>(spec.vocabulary.size())});
  for (const auto& [left, right] : learned.rules)
    spec.rules.push_back({spec.vocabulary[static_cast<std::size_t>(left)].token,
                          spec.vocabulary[static_cast<std::size_t>(right)].token,
                          spec.rules.size()});
  return Tokenizer(spec);
}

}  // namespace filigree
