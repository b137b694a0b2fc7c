// index.json of a folder of token shards: which tokenizer made them, and the shards of each split
// with their sizes and checksums. docs/file_formats.md describes the file. It is written last, so a
// folder that has one is whole; it is untrusted when read.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/token_id.h"
#include "text/tokenizer.h"

namespace filigree {

inline constexpr std::string_view kShardIndexFile = "index.json";

struct ShardEntry {
  std::string file;  // name within the folder
  std::uint64_t tokens = 0;
  std::uint64_t checksum = 0;  // of the tokens' bytes
};

struct SplitEntry {
  std::string name;  // "train", "held-out"
  std::uint64_t tokens = 0;
  std::uint64_t documents = 0;
  std::uint64_t text_bytes = 0;
  std::vector<ShardEntry> shards;
};

// A file of the tokenizer that made the shards, beside them.
struct TokenizerFileEntry {
  std::string file;
  std::uint64_t bytes = 0;
  std::uint64_t checksum = 0;
};

struct ShardIndex {
  std::uint64_t vocabulary = 0;  // ids are below it
  TokenId end_of_text = 0;
  std::uint64_t tokenizer = 0;                      // tokenizer_fingerprint()
  std::optional<std::uint64_t> tokenizer_rules;     // its rules_fingerprint(); older shards lack it
  std::vector<TokenizerFileEntry> tokenizer_files;  // and these
  std::vector<SplitEntry> splits;

  // 2 where ids fit, else 4.
  int token_bytes() const { return vocabulary <= 65536 ? 2 : 4; }

  // Throws Error that lists the splits there are.
  const SplitEntry& split(std::string_view name) const;
};

std::string write_shard_index(const ShardIndex& index);

// Throws Error for anything that is not a well-formed index; `name` begins the messages.
ShardIndex parse_shard_index(std::string_view text, const std::string& name);

// A number that tells vocabularies apart: the checksum of every id's name and of which ids are
// special.
std::uint64_t tokenizer_fingerprint(const Tokenizer& tokenizer);

// Whether one tokenizer made both, as far as the indices tell.
bool same_tokenizer(const ShardIndex& one, const ShardIndex& other);
// Whether the tokenizer makes the shards' tokens of their texts, as far as the index tells.
bool made_by(const ShardIndex& index, const Tokenizer& tokenizer);

}  // namespace filigree
