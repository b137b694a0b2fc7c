#include "io/safetensors.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <numeric>
#include <tuple>
#include <utility>

#include "filigree/error.h"
#include "filigree/names.h"
#include "filigree/runtime.h"
#include "io/dequantize.h"
#include "io/safetensors_header.h"

namespace filigree {
namespace {

constexpr std::size_t kLengthBytes = 8;

// A name of untrusted length makes edit distances slow; no name worth suggesting is this long.
constexpr std::size_t kLongestSuggestion = 256;

// Numbers that a thread dequantises at a time, at least.
constexpr std::size_t kReadGrain = 1 << 16;

// What a clone without Git LFS leaves in place of a large file.
constexpr std::string_view kLfsPointer = "version https://git-lfs";

std::uint64_t little_endian_u64(std::span<const std::byte> bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = kLengthBytes; i-- > 0;)
    value = (value << 8) | std::to_integer<std::uint64_t>(bytes[i]);
  return value;
}

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// The header's text, once its length is known to lie inside the file and the format's limit.
std::string_view header_text(const std::string& label, std::span<const std::byte> bytes) {
  if (as_text(bytes).starts_with(kLfsPointer))
    fail("{}: a Git LFS pointer, not the file itself; fetch it with 'git lfs pull'", label);
  if (bytes.size() < kLengthBytes)
    fail("{}: {} bytes long, too short for the 8 bytes of the header length", label, bytes.size());
  const std::uint64_t length = little_endian_u64(bytes);
  if (length > kMaxSafetensorsHeader)
    fail("{}: header of {} bytes is longer than the format's limit of {}", label, length,
         kMaxSafetensorsHeader);
  if (length > bytes.size() - kLengthBytes)
    fail("{}: header of {} bytes is longer than the rest of the file ({} bytes)", label, length,
         bytes.size() - kLengthBytes);
  const std::string_view text = as_text(bytes.subspan(kLengthBytes, length));
  if (!text.starts_with('{'))
    fail("{}: header begins with '{}', should begin with '{{'", label,
         printable(text.substr(0, 1)));
  return text;
}

// Through a small aligned buffer, since the source may start at any byte.
template <typename Convert>
void convert_halves(std::span<const std::byte> from, std::span<float> to, Convert convert) {
  std::array<std::uint16_t, 4096> block;
  for (std::size_t done = 0; done < to.size();) {
    const std::size_t count = std::min(block.size(), to.size() - done);
    std::memcpy(block.data(), from.data() + 2 * done, 2 * count);
    convert(block.data(), to.data() + done, count);
    done += count;
  }
}

void check_count(const TensorView& view, std::size_t count) {
  if (static_cast<std::uint64_t>(view.element_count()) != count)
    fail("safetensors: tensor '{}' has {} elements (shape {}), cannot be read into {}",
         printable(view.name), view.element_count(), shape_text(view.shape), count);
}

}  // namespace

std::span<const std::byte> TensorView::bytes(std::size_t begin, std::size_t count) const {
  const std::span<const std::byte> part = data.subspan(begin, count);
  if (check != nullptr) check->require(part);
  return part;
}

std::int64_t TensorView::element_count() const {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

bool TensorView::aligned() const {
  if (is_quantised(kind)) return true;  // blocks are read by the byte
  const std::size_t element_bytes = std::max<std::size_t>(bits_of(kind) / 8, 1);
  return reinterpret_cast<std::uintptr_t>(data.data()) % element_bytes == 0;
}

DType TensorView::dtype() const {
  const auto computable = dtype_of(kind);
  if (!computable)
    fail(
        "safetensors: tensor '{}' has dtype {}, which cannot be computed with; F32, BF16, F16 and "
        "I32 can",
        printable(name), name_of(kind));
  return *computable;
}

void read_f32(const TensorView& view, std::span<float> to) {
  check_count(view, to.size());
  read_f32_rows(view, 0, row_count(view), to);
}

std::int64_t row_count(const TensorView& view) {
  if (view.shape.empty()) return 1;
  const std::int64_t elements = view.element_count();
  return elements == 0 ? 0 : elements / view.shape.back();
}

void read_f32_rows(const TensorView& view, std::int64_t first, std::int64_t count,
                   std::span<float> to) {
  const auto width = static_cast<std::size_t>(view.shape.empty() ? 1 : view.shape.back());
  const std::int64_t rows = row_count(view);
  require(first >= 0 && count >= 0 && first <= rows && count <= rows - first,
          "tensor '{}' has {} rows; {} from {} on are not among them", printable(view.name), rows,
          count, first);
  const auto row = static_cast<std::size_t>(first), many = static_cast<std::size_t>(count);
  require(to.size() == many * width, "tensor '{}': {} rows of {} cannot be read into {} numbers",
          printable(view.name), count, width, to.size());
  if (to.empty()) return;
  const BlockSize block = block_of(view.kind);
  const std::size_t stride = width / block.elements * block.bytes;
  const std::span<const std::byte> from = view.bytes(row * stride, many * stride);
  if (view.kind == TensorKind::kF32) {
    std::memcpy(to.data(), from.data(), from.size());
  } else if (view.kind == TensorKind::kBf16) {
    convert_halves(from, to, bf16_to_f32);
  } else if (view.kind == TensorKind::kF16) {
    convert_halves(from, to, f16_to_f32);
  } else if (view.kind == TensorKind::kF64) {
    for (std::size_t i = 0; i < to.size(); ++i) {
      double value = 0.0;
      std::memcpy(&value, from.data() + i * sizeof value, sizeof value);
      to[i] = static_cast<float>(value);
    }
  } else if (is_quantised(view.kind)) {
    const auto grain = static_cast<std::int64_t>(std::max<std::size_t>(kReadGrain / width, 1));
    parallel_for(count, grain, [&](std::int64_t begin, std::int64_t end) {
      const auto at = static_cast<std::size_t>(begin), part = static_cast<std::size_t>(end - begin);
      dequantize(view.kind, from.subspan(at * stride, part * stride),
                 to.subspan(at * width, part * width));
    });
  } else {
    fail(
        "tensor '{}' has dtype {}, cannot be read as f32; F64, F32, BF16, F16 and the quantised "
        "types of GGUF can",
        printable(view.name), name_of(view.kind));
  }
}

void read_i32(const TensorView& view, std::span<std::int32_t> to) {
  check_count(view, to.size());
  if (view.kind != TensorKind::kI32)
    fail("safetensors: tensor '{}' has dtype {}, cannot be read as i32", printable(view.name),
         name_of(view.kind));
  if (!to.empty()) std::memcpy(to.data(), view.bytes().data(), view.data.size());
}

SafetensorsFile SafetensorsFile::open(const std::filesystem::path& path) {
  const auto file = MappedFile::open(path, WhileMapped::kMustNotChange);
  return from_bytes(file->bytes(), path.string(), file);
}

SafetensorsFile SafetensorsFile::from_bytes(std::span<const std::byte> bytes,
                                            const std::string& source,
                                            const std::shared_ptr<const void>& owner) {
  const std::string label = fmt::format("safetensors: '{}'", source);
  const std::string_view text = header_text(label, bytes);
  const std::span<const std::byte> data = bytes.subspan(kLengthBytes + text.size());
  SafetensorsHeader header = read_safetensors_header(label, text);

  // Empty tensors sort before the one that begins at the same byte, so they are never inside it.
  std::sort(header.entries.begin(), header.entries.end(), [](const auto& a, const auto& b) {
    return std::tie(a.begin, a.end) < std::tie(b.begin, b.end);
  });
  SafetensorsFile file;
  file.source_ = source;
  file.metadata_ = std::move(header.metadata);
  file.tensors_.reserve(header.entries.size());
  for (SafetensorsEntry& entry : header.entries) {
    if (entry.end > data.size())
      fail("{}: tensor '{}' ends at byte {}, past the end of the data ({} bytes)", label,
           printable(entry.name), entry.end, data.size());
    file.tensors_.push_back({std::move(entry.name), entry.kind, std::move(entry.shape),
                             data.subspan(entry.begin, entry.end - entry.begin), owner});
  }
  file.index_names(label);
  file.check_coverage(label, data);
  return file;
}

void SafetensorsFile::index_names(const std::string& label) {
  by_name_.resize(tensors_.size());
  std::iota(by_name_.begin(), by_name_.end(), std::size_t{0});
  std::sort(by_name_.begin(), by_name_.end(),
            [&](std::size_t a, std::size_t b) { return tensors_[a].name < tensors_[b].name; });
  const auto twin = std::adjacent_find(
      by_name_.begin(), by_name_.end(),
      [&](std::size_t a, std::size_t b) { return tensors_[a].name == tensors_[b].name; });
  if (twin != by_name_.end())
    fail("{}: tensor '{}' appears twice", label, printable(tensors_[*twin].name));
}

void SafetensorsFile::check_coverage(const std::string& label, std::span<const std::byte> data) {
  std::size_t covered = 0;
  const TensorView* previous = nullptr;
  for (const TensorView& tensor : tensors_) {
    const auto begin = static_cast<std::size_t>(tensor.data.data() - data.data());
    if (begin < covered)
      fail("{}: tensor '{}' begins at byte {}, inside tensor '{}', which ends at byte {}", label,
           printable(tensor.name), begin, printable(previous->name), covered);
    if (begin > covered)
      fail("{}: bytes {} to {} of the data, before tensor '{}', belong to no tensor", label,
           covered, begin, printable(tensor.name));
    covered = begin + tensor.data.size();
    previous = &tensor;
  }
  if (covered < data.size())
    fail("{}: the tensors end at byte {}, but {} more bytes of data follow", label, covered,
         data.size() - covered);
}

const TensorView* SafetensorsFile::find(std::string_view name) const {
  const auto found = std::lower_bound(
      by_name_.begin(), by_name_.end(), name,
      [&](std::size_t i, std::string_view wanted) { return tensors_[i].name < wanted; });
  return found != by_name_.end() && tensors_[*found].name == name ? &tensors_[*found] : nullptr;
}

const TensorView& SafetensorsFile::at(std::string_view name) const {
  if (const TensorView* found = find(name)) return *found;
  std::vector<std::string> names;
  for (const TensorView& tensor : tensors_) names.push_back(tensor.name);
  fail("safetensors: '{}': no tensor '{}'{}", source_, printable(name),
       nearest_tensor_names(name, std::move(names)));
}

std::string nearest_tensor_names(std::string_view name, std::vector<std::string> candidates) {
  if (candidates.empty()) return "; there are no tensors";
  std::erase_if(candidates, [](const auto& other) { return other.size() > kLongestSuggestion; });
  std::string listed;
  for (const std::string& other : nearest_names(name, candidates, 3))
    listed += fmt::format("{}'{}'", listed.empty() ? "; nearest: " : ", ", printable(other));
  return listed;
}

}  // namespace filigree
