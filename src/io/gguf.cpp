#include "io/gguf.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <numeric>
#include <utility>

#include "base/mapped_file.h"
#include "base/utf8.h"
#include "filigree/error.h"
#include "filigree/names.h"
#include "io/gguf_cursor.h"

namespace filigree {
namespace {

constexpr std::uint32_t kMostExtents = 4;  // GGML's own limit

struct TypeName {
  std::uint32_t number;
  std::string_view name;
  std::optional<TensorKind> kind;
};

// GGML's types by their numbers; those without a kind are known by name only.
constexpr TypeName kGgmlTypes[] = {{0, "F32", TensorKind::kF32},
                                   {1, "F16", TensorKind::kF16},
                                   {2, "Q4_0", TensorKind::kQ4_0},
                                   {3, "Q4_1", TensorKind::kQ4_1},
                                   {6, "Q5_0", TensorKind::kQ5_0},
                                   {7, "Q5_1", TensorKind::kQ5_1},
                                   {8, "Q8_0", TensorKind::kQ8_0},
                                   {9, "Q8_1", {}},
                                   {10, "Q2_K", TensorKind::kQ2_K},
                                   {11, "Q3_K", TensorKind::kQ3_K},
                                   {12, "Q4_K", TensorKind::kQ4_K},
                                   {13, "Q5_K", TensorKind::kQ5_K},
                                   {14, "Q6_K", TensorKind::kQ6_K},
                                   {15, "Q8_K", {}},
                                   {16, "IQ2_XXS", {}},
                                   {17, "IQ2_XS", {}},
                                   {18, "IQ3_XXS", {}},
                                   {19, "IQ1_S", {}},
                                   {20, "IQ4_NL", TensorKind::kIq4Nl},
                                   {21, "IQ3_S", {}},
                                   {22, "IQ2_S", {}},
                                   {23, "IQ4_XS", TensorKind::kIq4Xs},
                                   {24, "I8", TensorKind::kI8},
                                   {25, "I16", TensorKind::kI16},
                                   {26, "I32", TensorKind::kI32},
                                   {27, "I64", TensorKind::kI64},
                                   {28, "F64", TensorKind::kF64},
                                   {29, "IQ1_M", {}},
                                   {30, "BF16", TensorKind::kBf16},
                                   {34, "TQ1_0", {}},
                                   {35, "TQ2_0", {}},
                                   {39, "MXFP4", {}},
                                   {40, "NVFP4", {}}};

TensorKind kind_from(std::uint32_t number, const std::string& label) {
  std::string_view name = "of no name";
  std::vector<std::string> known;
  for (const TypeName& type : kGgmlTypes) {
    if (type.number == number && type.kind) return *type.kind;
    if (type.number == number) name = type.name;
    if (type.kind) known.emplace_back(type.name);
  }
  fail("{} has type {} ({}), which is not supported; {} are", label, number, name,
       join(known, ", "));
}

TensorView read_tensor_info(GgufCursor& at, const std::string& source, std::uint64_t& offset) {
  TensorView view;
  view.name = at.text("the name of a tensor");
  const std::string label = fmt::format("{}: tensor '{}'", source, printable(view.name));
  if (view.name.empty()) fail("{} has no name", label);
  if (!is_valid_utf8(view.name)) fail("{}: its name is not UTF-8", label);
  const auto extents = at.number<std::uint32_t>("a number of extents");
  if (extents > kMostExtents)
    fail("{} has {} extents; the limit is {}", label, extents, kMostExtents);
  for (std::uint32_t i = 0; i < extents; ++i) {
    const auto extent = at.number<std::uint64_t>("an extent");
    if (extent > std::uint64_t{std::numeric_limits<std::int64_t>::max()})
      fail("{} has an extent of {}", label, extent);
    view.shape.push_back(static_cast<std::int64_t>(extent));
  }
  std::reverse(view.shape.begin(), view.shape.end());
  view.kind = kind_from(at.number<std::uint32_t>("a type"), label);
  offset = at.number<std::uint64_t>("an offset");
  return view;
}

// In the order of their data, each must end before the next one begins.
void refuse_overlaps(const std::vector<TensorView>& tensors, const std::string& source) {
  std::vector<const TensorView*> order;
  for (const TensorView& tensor : tensors)
    if (!tensor.data.empty()) order.push_back(&tensor);
  std::sort(order.begin(), order.end(), [](const TensorView* a, const TensorView* b) {
    return std::less<>()(a->data.data(), b->data.data());
  });
  for (std::size_t i = 1; i < order.size(); ++i)
    if (std::less<>()(order[i]->data.data(), order[i - 1]->data.data() + order[i - 1]->data.size()))
      fail("{}: tensor '{}' begins inside tensor '{}'", source, printable(order[i]->name),
           printable(order[i - 1]->name));
}

void refuse_twin_names(const std::vector<TensorView>& tensors, const std::string& source) {
  std::vector<std::string_view> names;
  for (const TensorView& tensor : tensors) names.push_back(tensor.name);
  std::sort(names.begin(), names.end());
  const auto twin = std::adjacent_find(names.begin(), names.end());
  if (twin != names.end()) fail("{}: tensor '{}' appears twice", source, printable(*twin));
}

std::uint32_t read_version(GgufCursor& at, const std::string& source) {
  const auto magic = at.number<std::uint32_t>("the four letters GGUF");
  if (magic != kGgufMagic) fail("{}: not a GGUF file; it does not begin with GGUF", source);
  const auto version = at.number<std::uint32_t>("a version");
  if ((version & 0xFFFF) == 0 && version != 0)
    fail("{}: the numbers are big endian, which is not supported; convert the file", source);
  if (version != 2 && version != kGgufVersion)
    fail("{}: version {} of GGUF is not supported; 2 and 3 are", source, version);
  return version;
}

// Of entries that have at least so many bytes each.
std::uint64_t read_count(GgufCursor& at, const char* what, std::uint64_t most,
                         std::uint64_t each_bytes, const std::string& source) {
  const auto count = at.number<std::uint64_t>(what);
  if (count > most) fail("{}: {} {}; the limit is {}", source, count, what, most);
  if (count > at.left() / each_bytes)
    fail("{}: {} {} do not fit into the {} bytes that follow", source, count, what, at.left());
  return count;
}

}  // namespace

std::optional<std::uint32_t> ggml_type_of(TensorKind kind) {
  for (const TypeName& type : kGgmlTypes)
    if (type.kind == kind) return type.number;
  return std::nullopt;
}

std::optional<TensorKind> kind_of_ggml_type(std::uint32_t number) {
  for (const TypeName& type : kGgmlTypes)
    if (type.number == number) return type.kind;
  return std::nullopt;
}

bool has_gguf_ending(const std::filesystem::path& path) { return path.extension() == ".gguf"; }

GgufFile GgufFile::open(const std::filesystem::path& path) {
  const auto file = MappedFile::open(path, WhileMapped::kMustNotChange);
  return from_bytes(file->bytes(), path.string(), file);
}

GgufFile GgufFile::from_bytes(std::span<const std::byte> bytes, const std::string& source,
                              const std::shared_ptr<const void>& owner) {
  constexpr std::uint64_t kLeastInfo = 24, kLeastEntry = 13;
  static_assert(std::endian::native == std::endian::little);
  GgufFile file;
  GgufMetadata& metadata = file.metadata_;
  metadata.source_ = fmt::format("gguf: '{}'", source);
  metadata.owner_ = owner;
  const std::string& label = metadata.source_;

  GgufCursor at(bytes, label);
  file.version_ = read_version(at, label);
  const std::uint64_t tensors = read_count(at, "tensors", kMaxGgufTensors, kLeastInfo, label);
  const std::uint64_t entries =
      read_count(at, "entries of metadata", kMaxGgufEntries, kLeastEntry, label);
  for (std::uint64_t i = 0; i < entries; ++i) {
    GgufMetadata::Entry& entry = metadata.entries_.emplace_back();
    entry.key = at.text("a key");
    if (!is_valid_utf8(entry.key)) fail("{}: key '{}' is not UTF-8", label, printable(entry.key));
    entry.type = at.type(entry.key);
    if (entry.type == GgufType::kArray) {
      entry.array = true;
      entry.type = at.type(entry.key);
      entry.count = at.number<std::uint64_t>("the length of an array");
    }
    entry.bytes = at.values(entry.key, entry.type, entry.count);
  }
  metadata.by_key_.resize(metadata.entries_.size());
  std::iota(metadata.by_key_.begin(), metadata.by_key_.end(), std::size_t{0});
  const auto& all = metadata.entries_;
  std::ranges::sort(metadata.by_key_, {},
                    [&](std::size_t i) { return std::string_view(all[i].key); });
  const auto twin = std::ranges::adjacent_find(
      metadata.by_key_, [&](std::size_t a, std::size_t b) { return all[a].key == all[b].key; });
  if (twin != metadata.by_key_.end())
    fail("{}: key '{}' appears twice", label, printable(all[*twin].key));

  std::vector<std::uint64_t> offsets(tensors);
  for (std::uint64_t& offset : offsets)
    file.tensors_.push_back(read_tensor_info(at, label, offset));
  refuse_twin_names(file.tensors_, label);

  const auto alignment = static_cast<std::uint64_t>(
      metadata.integer_or("general.alignment", kGgufAlignment, 1, 1 << 20));
  if (!std::has_single_bit(alignment))
    fail("{}: general.alignment is {}, should be a power of two", label, alignment);
  at.align(alignment, tensors != 0);
  const std::span<const std::byte> data = at.rest();
  for (std::size_t i = 0; i < file.tensors_.size(); ++i) {
    TensorView& view = file.tensors_[i];
    const std::string name = fmt::format("{}: tensor '{}'", label, printable(view.name));
    const std::size_t size = tensor_bytes(name, view.kind, view.shape);
    if (offsets[i] % alignment != 0)
      fail("{} begins at byte {} of the data, which is no multiple of {}", name, offsets[i],
           alignment);
    if (offsets[i] > data.size() || size > data.size() - offsets[i])
      fail("{} takes {} bytes from byte {} on, but the data has {}; was the file cut short?", name,
           size, offsets[i], data.size());
    view.data = data.subspan(offsets[i], size);
    view.owner = owner;
  }
  refuse_overlaps(file.tensors_, label);
  return file;
}

}  // namespace filigree
