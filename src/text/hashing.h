// Hash functions of the module's tables. They are keyed by a number drawn once per process, so that
// crafted input cannot make all entries collide. Nothing may depend on the order of hash values.
#pragma once

#include <cstdint>
#include <cstring>
#include <random>
#include <string_view>

namespace filigree {

inline std::uint64_t hash_key() {
  static const std::uint64_t key = [] {
    std::random_device source;
    return (std::uint64_t{source()} << 32) | source() | 1;
  }();
  return key;
}

// Both halves of the 128-bit product, folded: every input bit reaches every output bit.
inline std::uint64_t fold_product(std::uint64_t a, std::uint64_t b) {
  const auto product = static_cast<unsigned __int128>(a) * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

inline std::uint64_t hash_number(std::uint64_t value, std::uint64_t key) {
  return fold_product(value ^ key, 0x9E3779B97F4A7C15u ^ (key << 1));
}

inline std::uint64_t hash_bytes(std::string_view bytes, std::uint64_t key) {
  std::uint64_t hash = key ^ bytes.size();
  const char* at = bytes.data();
  std::size_t left = bytes.size();
  for (; left >= 8; left -= 8, at += 8) {
    std::uint64_t eight;
    std::memcpy(&eight, at, 8);
    hash = fold_product(hash ^ eight, 0xD6E8FEB86659FD93u ^ key);
  }
  std::uint64_t rest = 0;
  if (left > 0) std::memcpy(&rest, at, left);
  return hash_number(hash ^ rest, key);
}

}  // namespace filigree
