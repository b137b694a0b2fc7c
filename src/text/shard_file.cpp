#include "text/shard_file.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/atomic_file.h"
#include "base/checksum.h"
#include "filigree/error.h"
#include "filigree/names.h"

namespace filigree {
namespace {

constexpr char kMagic[8] = {'F', 'G', 'T', 'O', 'K', 'E', 'N', 'S'};
constexpr std::uint32_t kVersion = 1;

struct ShardHeader {
  char magic[8];
  std::uint32_t version;
  std::uint32_t token_bytes;
  std::uint64_t tokens;
  std::uint64_t checksum;
};
static_assert(sizeof(ShardHeader) == 32);
static_assert(std::endian::native == std::endian::little, "shards are read as they lie in memory");

template <typename Stored>
Stored stored_at(std::span<const std::byte> payload, std::uint64_t index) {
  Stored value;
  std::memcpy(&value, payload.data() + index * sizeof(Stored), sizeof(Stored));
  return value;
}

template <typename Stored>
void widen(std::span<const std::byte> payload, std::uint64_t begin, std::span<TokenId> out) {
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = static_cast<TokenId>(stored_at<Stored>(payload, begin + i));
}

// Place of the first id that is too large, or `count`.
template <typename Stored>
std::uint64_t first_beyond(std::span<const std::byte> payload, std::uint64_t count,
                           std::uint64_t vocabulary) {
  for (std::uint64_t i = 0; i < count; ++i)
    if (stored_at<Stored>(payload, i) >= vocabulary) return i;
  return count;
}

}  // namespace

std::uint64_t write_shard_file(const std::filesystem::path& path,
                               std::span<const std::byte> payload, int token_bytes) {
  ShardHeader header = {};
  std::memcpy(header.magic, kMagic, sizeof(kMagic));
  header.version = kVersion;
  header.token_bytes = static_cast<std::uint32_t>(token_bytes);
  header.tokens = payload.size() / static_cast<std::size_t>(token_bytes);
  header.checksum = xxh64(payload);
  AtomicFile file(path);
  file.write(std::as_bytes(std::span(&header, 1)));
  file.write(payload);
  file.commit();
  return header.checksum;
}

ShardFile::ShardFile(const std::filesystem::path& path, const ShardEntry& entry, int token_bytes)
    : name_("token shard '" + printable(path.string(), 400) + "'"),
      file_(MappedFile::open(path, WhileMapped::kMustNotChange)),
      tokens_(entry.tokens),
      checksum_(entry.checksum),
      token_bytes_(token_bytes) {
  const std::span<const std::byte> bytes = file_->bytes();
  require(bytes.size() >= sizeof(ShardHeader), "{}: it has {} bytes, fewer than a header's {}",
          name_, bytes.size(), sizeof(ShardHeader));
  ShardHeader header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  require(std::memcmp(header.magic, kMagic, sizeof(kMagic)) == 0,
          "{}: it does not begin like a token shard", name_);
  require(header.version == kVersion, "{}: version {} of the format; this program reads version {}",
          name_, header.version, kVersion);
  require(header.token_bytes == static_cast<std::uint32_t>(token_bytes),
          "{}: it has {} bytes a token, but the index says {}", name_, header.token_bytes,
          token_bytes);
  require(header.tokens == tokens_, "{}: it has {} tokens, but the index says {}", name_,
          header.tokens, tokens_);
  payload_ = bytes.subspan(sizeof(ShardHeader));
  // Divided rather than multiplied: the count is untrusted and the product might overflow.
  const auto width = static_cast<std::uint64_t>(token_bytes);
  require(payload_.size() % width == 0 && payload_.size() / width == tokens_,
          "{}: {} tokens take {} bytes, but the file has {}; it is truncated or damaged", name_,
          tokens_, sizeof(ShardHeader) + tokens_ * width, bytes.size());
  require(header.checksum == checksum_,
          "{}: its checksum {} is not the one of the index, {}; the files do not belong together",
          name_, checksum_text(header.checksum), checksum_text(checksum_));
}

void ShardFile::read(std::uint64_t begin, std::span<TokenId> out) const {
  require(begin <= tokens_ && out.size() <= tokens_ - begin,
          "{}: tokens {} to {} are not all inside its {}", name_, begin, begin + out.size(),
          tokens_);
  if (token_bytes_ == 2)
    widen<std::uint16_t>(payload_, begin, out);
  else
    widen<std::uint32_t>(payload_, begin, out);
}

void ShardFile::verify(std::uint64_t vocabulary) const {
  const std::uint64_t checksum = xxh64(payload_);
  require(checksum == checksum_,
          "{}: the checksum of its tokens is {} and should be {}; it is damaged", name_,
          checksum_text(checksum), checksum_text(checksum_));
  const std::uint64_t beyond = token_bytes_ == 2
                                   ? first_beyond<std::uint16_t>(payload_, tokens_, vocabulary)
                                   : first_beyond<std::uint32_t>(payload_, tokens_, vocabulary);
  if (beyond < tokens_) {
    const std::uint64_t id = token_bytes_ == 2 ? stored_at<std::uint16_t>(payload_, beyond)
                                               : stored_at<std::uint32_t>(payload_, beyond);
    fail("{}: token {} is {}, beyond the vocabulary of {}", name_, beyond, id, vocabulary);
  }
}

}  // namespace filigree
