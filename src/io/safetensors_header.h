// The JSON header of a safetensors file, read event by event into a list of entries. No document is
// built: what is kept is proportional to the tensors described.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "io/tensor_kind.h"

namespace filigree {

// Not a tensor's name.
inline constexpr std::string_view kMetadataKey = "__metadata__";

struct SafetensorsEntry {
  std::string name;
  TensorKind kind = TensorKind::kF32;
  std::vector<std::int64_t> shape;
  std::uint64_t begin = 0;  // bytes from the start of the data
  std::uint64_t end = 0;
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;  // as the text lists them
  std::map<std::string, std::string> metadata;
};

// Checks each entry by itself: all three fields once, a known dtype, begin <= end, and a size that
// is that of shape and dtype. How entries lie to each other and to the data is the caller's part.
SafetensorsHeader read_safetensors_header(const std::string& label, std::string_view text);

}  // namespace filigree
