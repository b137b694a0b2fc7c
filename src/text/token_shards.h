// A folder of token shards: text that was turned into tokens once, to be trained on many times.
//
// The writer keeps one shard of each split in memory and writes the index last, so that an
// interrupted run leaves a folder that does not open rather than one that lacks text. The reader
// maps the shards: a split is one long sequence of tokens that needs no memory of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/shard_file.h"
#include "text/shard_index.h"
#include "text/token_id.h"

namespace filigree {

class TokenShardsWriter {
 public:
  struct Options {
    std::uint64_t vocabulary = 0;
    TokenId end_of_text = 0;
    std::uint64_t tokenizer = 0;                          // tokenizer_fingerprint()
    std::optional<std::uint64_t> tokenizer_rules = {};    // Tokenizer::rules_fingerprint()
    std::uint64_t shard_tokens = std::uint64_t{1} << 24;  // the last shard of a split may have less
    std::vector<std::string> splits = {"train", "held-out"};
  };

  // Makes the folder when it is missing, and removes the index and the shards of an earlier run.
  // Throws Error when that fails or the options make no sense.
  TokenShardsWriter(std::filesystem::path folder, Options options);

  // Appends to a split; `split` counts in the order of the options. Throws Error for an id outside
  // the vocabulary and when a shard cannot be written.
  void add_tokens(std::size_t split, std::span<const TokenId> ids);
  // What the index says about where the tokens came from.
  void add_documents(std::size_t split, std::uint64_t documents, std::uint64_t text_bytes);

  // The tokenizer's files, which are in the folder by now: the index gets their checksums.
  void add_tokenizer_files(const std::vector<std::string>& names);

  // Writes what is left and the index. At most once; without it the folder does not open.
  ShardIndex finish();

 private:
  void flush(std::size_t split);

  std::filesystem::path folder_;
  Options options_;
  ShardIndex index_;
  std::vector<std::vector<std::byte>> pending_;  // of each split, the shard being filled
};

enum class ShardCheck {
  kSizes,     // headers, counts and sizes
  kContents,  // and every checksum and id, which reads everything once, and the tokenizer beside
              // the shards, which must be the one that made them
};

// One split as one sequence. Copies share the maps; any number of threads may read.
class TokenSplit {
 public:
  std::string_view name() const { return entry_->name; }
  std::uint64_t tokens() const { return entry_->tokens; }
  const SplitEntry& entry() const { return *entry_; }

  // Tokens [begin, begin + out.size()) across shard borders. Throws Error when they are not all
  // there.
  void read(std::uint64_t begin, std::span<TokenId> out) const;

  // The same for equal tokens: a run that resumes checks that its data is what it was.
  std::uint64_t fingerprint() const;

 private:
  friend class TokenShards;
  TokenSplit() = default;

  std::shared_ptr<const SplitEntry> entry_;
  std::shared_ptr<const std::vector<ShardFile>> shards_;
  std::vector<std::uint64_t> ends_;  // of each shard in the sequence
};

class TokenShards {
 public:
  // Throws Error naming the file and what is wrong with it.
  static TokenShards open(const std::filesystem::path& folder,
                          ShardCheck check = ShardCheck::kContents);

  const ShardIndex& index() const { return index_; }
  bool has_split(std::string_view name) const;
  // Throws Error that lists the splits there are.
  const TokenSplit& split(std::string_view name) const;

 private:
  TokenShards() = default;

  ShardIndex index_;
  std::vector<TokenSplit> splits_;
};

}  // namespace filigree
