#include "io/gguf_writer.h"

#include <limits>
#include <set>
#include <utility>

#include "base/atomic_file.h"
#include "filigree/error.h"
#include "filigree/names.h"
#include "io/gguf.h"

namespace filigree {
namespace {

template <typename Number>
void put(std::string& bytes, Number value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void put_text(std::string& bytes, std::string_view text) {
  put(bytes, static_cast<std::uint64_t>(text.size()));
  bytes += text;
}

void put_type(std::string& bytes, GgufType type) { put(bytes, static_cast<std::uint32_t>(type)); }

void put_array_of(std::string& bytes, std::string_view key, GgufType type, std::size_t count) {
  put_text(bytes, key);
  put_type(bytes, GgufType::kArray);
  put_type(bytes, type);
  put(bytes, static_cast<std::uint64_t>(count));
}

std::size_t aligned(std::size_t size) {
  return (size + kGgufAlignment - 1) / kGgufAlignment * kGgufAlignment;
}

}  // namespace

void GgufEntries::integer(std::string_view key, std::int64_t value) {
  require(std::in_range<std::uint32_t>(value), "gguf: '{}' is {}, which no u32 holds", key, value);
  put_text(bytes_, key);
  put_type(bytes_, GgufType::kU32);
  put(bytes_, static_cast<std::uint32_t>(value));
  ++count_;
}

void GgufEntries::number(std::string_view key, double value) {
  put_text(bytes_, key);
  put_type(bytes_, GgufType::kF32);
  put(bytes_, static_cast<float>(value));
  ++count_;
}

void GgufEntries::boolean(std::string_view key, bool value) {
  put_text(bytes_, key);
  put_type(bytes_, GgufType::kBool);
  put(bytes_, static_cast<std::uint8_t>(value ? 1 : 0));
  ++count_;
}

void GgufEntries::text(std::string_view key, std::string_view value) {
  put_text(bytes_, key);
  put_type(bytes_, GgufType::kText);
  put_text(bytes_, value);
  ++count_;
}

void GgufEntries::texts(std::string_view key, std::span<const std::string> values) {
  put_array_of(bytes_, key, GgufType::kText, values.size());
  for (const std::string& value : values) put_text(bytes_, value);
  ++count_;
}

void GgufEntries::integers(std::string_view key, std::span<const std::int32_t> values) {
  put_array_of(bytes_, key, GgufType::kI32, values.size());
  for (const std::int32_t value : values) put(bytes_, value);
  ++count_;
}

void GgufEntries::numbers(std::string_view key, std::span<const float> values) {
  put_array_of(bytes_, key, GgufType::kF32, values.size());
  for (const float value : values) put(bytes_, value);
  ++count_;
}

void write_gguf(const std::filesystem::path& path, const GgufEntries& entries,
                std::span<const TensorToWrite> tensors) {
  std::string head;
  put(head, kGgufMagic);
  put(head, kGgufVersion);
  put(head, static_cast<std::uint64_t>(tensors.size()));
  put(head, entries.count());
  head += entries.bytes();
  std::set<std::string_view> names;
  std::vector<std::size_t> sizes;
  std::size_t offset = 0;
  for (const TensorToWrite& tensor : tensors) {
    const std::string label =
        fmt::format("gguf: cannot write '{}': tensor '{}'", path.string(), printable(tensor.name));
    const auto type = ggml_type_of(tensor.kind);
    if (!type) fail("{} is {}, which GGUF does not have", label, name_of(tensor.kind));
    if (tensor.shape.empty() || tensor.shape.size() > 4)
      fail("{} has {} extents; 1 to 4 are possible", label, tensor.shape.size());
    if (!names.insert(tensor.name).second) fail("{} is listed twice", label);
    put_text(head, tensor.name);
    put(head, static_cast<std::uint32_t>(tensor.shape.size()));
    for (std::size_t i = tensor.shape.size(); i-- > 0;)
      put(head, static_cast<std::uint64_t>(tensor.shape[i]));
    put(head, *type);
    put(head, static_cast<std::uint64_t>(offset));
    sizes.push_back(tensor_bytes(label, tensor.kind, tensor.shape));
    if (__builtin_add_overflow(offset, aligned(sizes.back()), &offset))
      fail("{} does not fit: the file would have more than 2^64 bytes", label);
  }
  head.resize(aligned(head.size()), '\0');

  AtomicFile file(path);
  file.write(head);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const std::span<const std::byte> bytes = tensors[i].data();
    require(bytes.size() == sizes[i],
            "gguf: cannot write '{}': tensor '{}' has {} bytes of data, but its shape takes {}",
            path.string(), printable(tensors[i].name), bytes.size(), sizes[i]);
    file.write(bytes);
    file.write(std::string(aligned(bytes.size()) - bytes.size(), '\0'));
  }
  file.commit();
}

}  // namespace filigree
