#include "io/safetensors_writer.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/atomic_file.h"
#include "base/utf8.h"
#include "filigree/error.h"
#include "filigree/names.h"
#include "io/safetensors.h"
#include "io/safetensors_header.h"

namespace filigree {
namespace {

constexpr std::size_t kAlignment = 8;

std::string tensor_label(const std::string& source, const TensorToWrite& tensor) {
  return fmt::format("safetensors: cannot write '{}': tensor '{}'", source, printable(tensor.name));
}

std::string quoted(const std::string& source, const std::string& text) {
  if (!is_valid_utf8(text))
    fail("safetensors: cannot write '{}': '{}' is not UTF-8", source, printable(text));
  return nlohmann::json(text).dump();
}

std::string quoted(const std::string& source, const SafetensorsMetadata& metadata) {
  std::vector<std::string> members;
  for (const auto& [key, value] : metadata)
    members.push_back(fmt::format("{}:{}", quoted(source, key), quoted(source, value)));
  return fmt::format("{{{}}}", join(members, ","));
}

}  // namespace

TensorToWrite tensor_to_write(std::string name, TensorKind kind, std::vector<std::int64_t> shape,
                              std::span<const std::byte> bytes) {
  return {std::move(name), kind, std::move(shape), [bytes] { return bytes; }};
}

std::string safetensors_header(const std::string& source, std::span<const TensorToWrite> tensors,
                               const SafetensorsMetadata& metadata) {
  std::string json = "{";
  if (!metadata.empty()) json += fmt::format("\"{}\":{}", kMetadataKey, quoted(source, metadata));
  std::set<std::string_view> names;
  std::size_t offset = 0;
  for (const TensorToWrite& tensor : tensors) {
    const std::string label = tensor_label(source, tensor);
    if (tensor.name == kMetadataKey) fail("{}: the name is reserved", label);
    if (!names.insert(tensor.name).second) fail("{} is listed twice", label);
    if (tensor.shape.size() > kMaxTensorRank)
      fail("{} has {} dimensions, the limit is {}", label, tensor.shape.size(), kMaxTensorRank);
    std::size_t end = 0;
    if (__builtin_add_overflow(offset, tensor_bytes(label, tensor.kind, tensor.shape), &end))
      fail("{} does not fit: the file would have more than 2^64 bytes", label);
    json += fmt::format(R"({}{}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})",
                        json.size() > 1 ? "," : "", quoted(source, tensor.name),
                        name_of(tensor.kind), fmt::join(tensor.shape, ","), offset, end);
    offset = end;
  }
  json += "}";
  json.resize((json.size() + kAlignment - 1) / kAlignment * kAlignment, ' ');
  if (json.size() > kMaxSafetensorsHeader)
    fail(
        "safetensors: cannot write '{}': header of {} bytes is longer than the format's limit of "
        "{}",
        source, json.size(), kMaxSafetensorsHeader);

  std::string header;
  for (std::size_t i = 0; i < 8; ++i)
    header += static_cast<char>((static_cast<std::uint64_t>(json.size()) >> (8 * i)) & 0xFF);
  return header + json;
}

void write_safetensors(const std::filesystem::path& path, std::vector<TensorToWrite> tensors,
                       const SafetensorsMetadata& metadata) {
  std::sort(tensors.begin(), tensors.end(), [](const auto& a, const auto& b) {
    return std::tie(b.kind, a.name) < std::tie(a.kind, b.name);
  });
  const std::string header = safetensors_header(path.string(), tensors, metadata);
  AtomicFile file(path);
  file.write(header);
  for (const TensorToWrite& tensor : tensors) {
    const std::span<const std::byte> bytes = tensor.data();
    const std::string label = tensor_label(path.string(), tensor);
    const std::size_t needed = tensor_bytes(label, tensor.kind, tensor.shape);
    if (bytes.size() != needed)
      fail("{} has {} bytes of data, but its shape {} of {} takes {}", label, bytes.size(),
           shape_text(tensor.shape), name_of(tensor.kind), needed);
    file.write(bytes);
  }
  file.commit();
}

}  // namespace filigree
