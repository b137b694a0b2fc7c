// One shard: a header of 32 bytes and the tokens, all little-endian.
//
//   0  "FGTOKENS"     8  version, u32     12  bytes a token, u32 (2 or 4)
//   16  number of tokens, u64             24  XXH64 of the tokens' bytes, u64
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "base/mapped_file.h"
#include "filigree/data.h"
#include "filigree/tokenizer.h"

namespace filigree {

// Writes the file atomically; `payload` is the tokens' bytes. Returns their checksum.
std::uint64_t write_shard_file(const std::filesystem::path& path,
                               std::span<const std::byte> payload, int token_bytes);

// A shard mapped into memory. Any number of threads may read it.
class ShardFile {
 public:
  // Throws Error naming the shard when it is missing, has another size than its header or the index
  // says, or is no shard of this version. Does not read the tokens.
  ShardFile(const std::filesystem::path& path, const ShardEntry& entry, int token_bytes);

  std::uint64_t tokens() const { return tokens_; }

  // Tokens [begin, begin + out.size()), which must lie inside.
  void read(std::uint64_t begin, std::span<TokenId> out) const;

  // Reads everything. Throws Error naming the shard when the checksum is wrong or an id is not
  // below `vocabulary`.
  void verify(std::uint64_t vocabulary) const;

 private:
  std::string name_;
  std::shared_ptr<const MappedFile> file_;
  std::span<const std::byte> payload_;
  std::uint64_t tokens_;
  std::uint64_t checksum_;
  int token_bytes_;
};

}  // namespace filigree
