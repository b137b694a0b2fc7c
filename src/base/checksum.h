// The 64-bit checksum of everything that is stored: XXH64 (Collet's xxHash, 64-bit variant) with
// seed 0, which tools of many languages compute. It reads memory at many GB/s, finds accidental
// damage, and is no protection against someone who forges a file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace filigree {

std::uint64_t xxh64(std::span<const std::byte> bytes, std::uint64_t seed = 0);
std::uint64_t xxh64(std::string_view bytes, std::uint64_t seed = 0);

// 16 hexadecimal digits, as JSON holds it (its numbers are not good for 64 bits).
std::string checksum_text(std::uint64_t checksum);

}  // namespace filigree
