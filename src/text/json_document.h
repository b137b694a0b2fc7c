// Reads an untrusted JSON document whole. Stricter than the JSON library by itself: a key that
// occurs twice in an object is an error rather than a silent overwrite, and nesting, number of
// values and size are bounded, so that memory stays within a small multiple of the input.
#pragma once

#include <nlohmann/json.hpp>

#include <cstddef>
#include <string_view>

namespace filigree {

inline constexpr std::size_t kMaxJsonBytes = std::size_t{256} << 20;
inline constexpr std::size_t kMaxJsonValues = std::size_t{4} << 20;
inline constexpr std::size_t kMaxJsonDepth = 64;

// Throws Error with `name`, line and column. `name` is what messages call the document.
nlohmann::json parse_json_document(std::string_view text, std::string_view name);

}  // namespace filigree
