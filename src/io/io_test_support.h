// Shared by the tests of this module only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "support/errors.h"
#include "support/files.h"

namespace filigree::io_test {

namespace fs = std::filesystem;

inline std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

// A safetensors file of the given header text and data, whatever they say.
inline std::string safetensors_bytes(std::string_view header, std::string_view data) {
  std::string file;
  for (std::size_t i = 0; i < 8; ++i)
    file += static_cast<char>((static_cast<std::uint64_t>(header.size()) >> (8 * i)) & 0xFF);
  file += header;
  file += data;
  return file;
}

}  // namespace filigree::io_test
