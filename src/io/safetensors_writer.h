// Writing safetensors files: the header and then one tensor after the other, through a file beside
// the target that is renamed at the end. A failure on the way (a full disk, data of the wrong size)
// throws Error and leaves the previous file as it was.
//
// The bytes are those of the format's reference implementation: tensors by TensorKind, widest
// first, then by name; no holes; the header padded with spaces so that the data begins at a
// multiple of 8.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "io/tensor_kind.h"

namespace filigree {

struct TensorToWrite {
  std::string name;
  TensorKind kind = TensorKind::kF32;
  std::vector<std::int64_t> shape;
  // Called once, when the tensor's turn comes; what it returns must stay valid until the next
  // tensor's. So at most one tensor has to be converted or fetched at a time.
  std::function<std::span<const std::byte>()> data;
};

// For bytes that are in memory anyway; they must outlive the writing.
TensorToWrite tensor_to_write(std::string name, TensorKind kind, std::vector<std::int64_t> shape,
                              std::span<const std::byte> bytes);

using SafetensorsMetadata = std::map<std::string, std::string>;

// What transformers writes, and expects when it loads.
inline const SafetensorsMetadata kTransformersMetadata = {{"format", "pt"}};

// Throws Error on doubled or reserved names, names that are not UTF-8, impossible shapes, a header
// beyond the format's limit, data whose size is not that of its shape, and failed writes.
void write_safetensors(const std::filesystem::path& path, std::vector<TensorToWrite> tensors,
                       const SafetensorsMetadata& metadata = kTransformersMetadata);

// Length bytes and padded JSON for tensors in the order given, which is the order of their data.
// `source` is the file name that messages carry.
std::string safetensors_header(const std::string& source, std::span<const TensorToWrite> tensors,
                               const SafetensorsMetadata& metadata);

}  // namespace filigree
