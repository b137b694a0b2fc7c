#include "base/checksum.h"

#include <fmt/format.h>
#include <xxhash.h>

namespace filigree {

std::uint64_t xxh64(std::span<const std::byte> bytes, std::uint64_t seed) {
  return XXH64(bytes.data(), bytes.size(), seed);
}

std::uint64_t xxh64(std::string_view bytes, std::uint64_t seed) {
  return xxh64(std::as_bytes(std::span(bytes)), seed);
}

std::string checksum_text(std::uint64_t checksum) { return fmt::format("{:016x}", checksum); }

}  // namespace filigree
