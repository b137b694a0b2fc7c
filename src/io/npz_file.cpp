#include "io/npz_file.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "base/mapped_file.h"
#include "filigree/error.h"
#include "filigree/names.h"
#include "io/zip_archive.h"

namespace filigree {
namespace {

constexpr std::string_view kNpyEnding = ".npy";
constexpr std::size_t kMostArrays = 10000;  // more than anybody writes
constexpr std::size_t kMostEntries = 1000000;

// The description that a .npy file begins with, a Python dictionary of three keys.
class NpyHeader {
 public:
  NpyHeader(std::string_view text, std::string label) : rest_(text), label_(std::move(label)) {}

  void read() {
    expect('{');
    while (!take('}')) {
      const std::string key = quoted();
      expect(':');
      if (key == "descr")
        type = quoted();
      else if (key == "fortran_order")
        fortran = boolean();
      else if (key == "shape")
        read_shape();
      else
        wrong();
      if (!take(',')) {
        expect('}');
        break;
      }
    }
    if (!type || !fortran || !shape_read_) wrong();
  }

  std::optional<std::string> type;
  std::optional<bool> fortran;
  std::vector<std::int64_t> shape;

 private:
  [[noreturn]] void wrong() const { fail("{} has no header as NumPy writes it", label_); }

  void skip_spaces() {
    while (!rest_.empty() && (rest_[0] == ' ' || rest_[0] == '\n')) rest_.remove_prefix(1);
  }
  bool take(char c) {
    skip_spaces();
    if (rest_.empty() || rest_[0] != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void expect(char c) {
    if (!take(c)) wrong();
  }
  std::string quoted() {
    const char quote = take('\'') ? '\'' : '"';
    if (quote == '"') expect('"');
    const std::size_t end = rest_.find(quote);
    if (end == std::string_view::npos) wrong();
    std::string text(rest_.substr(0, end));
    rest_.remove_prefix(end + 1);
    return text;
  }
  bool boolean() {
    skip_spaces();
    for (const auto& [word, value] : {std::pair{"True", true}, {"False", false}}) {
      if (!rest_.starts_with(word)) continue;
      rest_.remove_prefix(std::string_view(word).size());
      return value;
    }
    wrong();
  }
  void read_shape() {
    if (shape_read_) wrong();
    shape_read_ = true;
    expect('(');
    while (!take(')')) {
      std::int64_t extent = 0;
      skip_spaces();
      const auto [end, failure] =
          std::from_chars(rest_.data(), rest_.data() + rest_.size(), extent);
      if (failure != std::errc() || extent < 0 || shape.size() >= kMaxTensorRank) wrong();
      rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
      shape.push_back(extent);
      if (!take(',')) {
        expect(')');
        break;
      }
    }
  }

  std::string_view rest_;
  std::string label_;
  bool shape_read_ = false;
};

std::optional<TensorKind> kind_of_type(std::string_view type) {
  constexpr std::pair<std::string_view, TensorKind> kTypes[] = {
      {"<f4", TensorKind::kF32}, {"<f2", TensorKind::kF16}, {"<f8", TensorKind::kF64},
      {"<i4", TensorKind::kI32}, {"<i8", TensorKind::kI64}, {"|b1", TensorKind::kBool},
      {"|u1", TensorKind::kU8},  {"|i1", TensorKind::kI8}};
  for (const auto& [name, kind] : kTypes)
    if (name == type) return kind;
  return std::nullopt;
}

std::string array_label(const ZipArchive& archive, const std::string& name) {
  return fmt::format("{}: array '{}'", archive.label(), printable(name));
}

TensorView view_of(const ZipArchive& archive, const ZipMember& member) {
  TensorView view;
  view.name = member.name.substr(0, member.name.size() - kNpyEnding.size());
  const std::string label = array_label(archive, view.name);
  if (member.method != 0)
    fail("{} is compressed; write it with numpy.savez instead of savez_compressed", label);
  const std::uint64_t at = archive.content(member, label);
  constexpr std::string_view kMagic = "\x93NUMPY";
  if (member.size < 12 || archive.text(at, kMagic.size()) != kMagic)
    fail("{} has no header as NumPy writes it", label);
  // Version 1 counts the header in two bytes, later ones in four.
  const int digits = archive.number(at + 6, 1) == 1 ? 2 : 4;
  const std::uint64_t begin = 8 + static_cast<std::uint64_t>(digits);
  const std::uint64_t length = archive.number(at + 8, digits);
  if (length > member.size - begin) fail("{}: its header of {} bytes is cut off", label, length);
  NpyHeader header(archive.text(at + begin, length), label);
  header.read();
  const std::optional<TensorKind> kind = kind_of_type(*header.type);
  if (!kind) fail("{} is of type '{}', which cannot be read", label, printable(*header.type));
  if (*header.fortran && header.shape.size() > 1)
    fail("{} is in Fortran's order; write it with numpy.ascontiguousarray", label);
  view.kind = *kind;
  view.shape = std::move(header.shape);
  const std::size_t needed = tensor_bytes(label, view.kind, view.shape);
  if (member.size - begin - length != needed)
    fail("{}: shape {} takes {} bytes, but there are {}", label, shape_text(view.shape), needed,
         member.size - begin - length);
  view.data = archive.part(at + begin + length, needed);
  return view;
}

}  // namespace

NpzFile NpzFile::open(const std::filesystem::path& path) {
  const auto file = MappedFile::open(path, WhileMapped::kMustNotChange);
  return from_bytes(file->bytes(), path.string(), file);
}

NpzFile NpzFile::from_bytes(std::span<const std::byte> bytes, const std::string& source,
                            const std::shared_ptr<const void>& owner, ZipChecksums checksums) {
  const ZipArchive archive(bytes, fmt::format("npz: '{}'", source), ".npz files");
  NpzFile file;
  file.source_ = source;
  for (const ZipMember& member : archive.members(kMostEntries)) {
    if (!member.name.ends_with(kNpyEnding)) continue;
    TensorView view = view_of(archive, member);
    if (file.find(view.name) != nullptr)
      fail("{}: array '{}' appears twice", archive.label(), printable(view.name));
    if (file.tensors_.size() == kMostArrays)
      fail("{}: more than {} arrays", archive.label(), kMostArrays);
    view.owner = owner;
    if (checksums == ZipChecksums::kCompare)
      view.check = archive.check_of(member, array_label(archive, view.name), owner);
    file.tensors_.push_back(std::move(view));
  }
  return file;
}

const TensorView* NpzFile::find(std::string_view name) const {
  const auto found = std::find_if(tensors_.begin(), tensors_.end(),
                                  [&](const TensorView& view) { return view.name == name; });
  return found != tensors_.end() ? &*found : nullptr;
}

const TensorView& NpzFile::at(std::string_view name) const {
  if (const TensorView* found = find(name)) return *found;
  std::vector<std::string> names;
  for (const TensorView& view : tensors_) names.push_back(view.name);
  fail("npz: '{}': no array '{}'{}", source_, printable(name),
       nearest_tensor_names(name, std::move(names)));
}

}  // namespace filigree
