#include "filigree/io/npz_file.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "filigree/base/error.h"
#include "filigree/base/mapped_file.h"
#include "filigree/base/strings.h"

namespace filigree {
namespace {

constexpr std::uint32_t kEndRecord = 0x06054b50, kEnd64Record = 0x06064b50,
                        kEnd64Locator = 0x07064b50, kCentralHeader = 0x02014b50,
                        kLocalHeader = 0x04034b50;
constexpr std::uint64_t kLongestComment = 65535;
constexpr std::string_view kNpyEnding = ".npy";
constexpr std::size_t kMostArrays = 10000;  // more than anybody writes

// Numbers of the archive, each checked to lie inside of it.
class Archive {
 public:
  Archive(std::span<const std::byte> bytes, std::string label)
      : bytes_(bytes), label_(std::move(label)) {}

  std::uint64_t number(std::uint64_t at, int bytes) const {
    check(at, static_cast<std::uint64_t>(bytes));
    std::uint64_t value = 0;
    for (int i = bytes; i-- > 0;)
      value =
          value << 8 | std::to_integer<std::uint64_t>(bytes_[at + static_cast<std::uint64_t>(i)]);
    return value;
  }
  std::span<const std::byte> part(std::uint64_t at, std::uint64_t size) const {
    check(at, size);
    return bytes_.subspan(at, size);
  }
  std::string_view text(std::uint64_t at, std::uint64_t size) const {
    return {reinterpret_cast<const char*>(part(at, size).data()), size};
  }
  std::uint64_t size() const { return bytes_.size(); }
  const std::string& label() const { return label_; }

 private:
  void check(std::uint64_t at, std::uint64_t size) const {
    if (at > bytes_.size() || size > bytes_.size() - at)
      fail("{}: {} bytes at {} lie outside of the file, which has {}", label_, size, at,
           bytes_.size());
  }

  std::span<const std::byte> bytes_;
  std::string label_;
};

struct Directory {
  std::uint64_t at = 0, size = 0;
};

Directory find_directory(const Archive& archive) {
  constexpr std::uint64_t kEndSize = 22;
  if (archive.size() < kEndSize)
    fail("{}: {} bytes long, too short for an archive", archive.label(), archive.size());
  const std::uint64_t last = archive.size() - kEndSize;
  const std::uint64_t first = last - std::min(last, kLongestComment);
  std::uint64_t end = last;
  while (archive.number(end, 4) != kEndRecord) {
    if (end == first) fail("{}: not a zip archive, as .npz files are", archive.label());
    --end;
  }
  if (end >= 20 && archive.number(end - 20, 4) == kEnd64Locator) {
    const std::uint64_t end64 = archive.number(end - 20 + 8, 8);
    if (archive.number(end64, 4) != kEnd64Record)
      fail("{}: the end record of zip64 is not at byte {}", archive.label(), end64);
    return {archive.number(end64 + 48, 8), archive.number(end64 + 40, 8)};
  }
  return {archive.number(end + 16, 4), archive.number(end + 12, 4)};
}

struct Member {
  std::string name;
  std::uint64_t method = 0, size = 0, offset = 0;
};

// Sizes and offsets that do not fit 32 bits are in the extra field of kind 1, those only.
void read_zip64(const Archive& archive, std::uint64_t at, std::uint64_t size,
                std::uint64_t compressed, Member& member) {
  constexpr std::uint64_t kElsewhere = 0xFFFFFFFF;
  const std::uint64_t end = at + size;
  while (at + 4 <= end) {
    const std::uint64_t kind = archive.number(at, 2), length = archive.number(at + 2, 2);
    at += 4;
    if (kind == 1) {
      for (std::uint64_t* field : {&member.size, &compressed, &member.offset}) {
        if (*field != kElsewhere) continue;
        *field = archive.number(at, 8);
        at += 8;
      }
      return;
    }
    at += length;
  }
}

std::vector<Member> members_of(const Archive& archive) {
  const Directory directory = find_directory(archive);
  archive.part(directory.at, directory.size);
  std::vector<Member> members;
  std::uint64_t at = directory.at;
  const std::uint64_t end = directory.at + directory.size;
  while (at < end) {
    if (archive.number(at, 4) != kCentralHeader)
      fail("{}: no entry of the directory at byte {}", archive.label(), at);
    const std::uint64_t name = archive.number(at + 28, 2), extra = archive.number(at + 30, 2),
                        comment = archive.number(at + 32, 2);
    Member member{std::string(archive.text(at + 46, name)), archive.number(at + 10, 2),
                  archive.number(at + 24, 4), archive.number(at + 42, 4)};
    read_zip64(archive, at + 46 + name, extra, archive.number(at + 20, 4), member);
    members.push_back(std::move(member));
    at += 46 + name + extra + comment;
  }
  return members;
}

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

TensorView view_of(const Archive& archive, const Member& member) {
  TensorView view;
  view.name = member.name.substr(0, member.name.size() - kNpyEnding.size());
  const std::string label = fmt::format("{}: array '{}'", archive.label(), printable(view.name));
  if (member.method != 0)
    fail("{} is compressed; write it with numpy.savez instead of savez_compressed", label);
  if (archive.number(member.offset, 4) != kLocalHeader)
    fail("{}: nothing begins at byte {}", label, member.offset);
  const std::uint64_t at = member.offset + 30 + archive.number(member.offset + 26, 2) +
                           archive.number(member.offset + 28, 2);
  archive.part(at, member.size);
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
                            const std::shared_ptr<const void>& owner) {
  const Archive archive(bytes, fmt::format("npz: '{}'", source));
  NpzFile file;
  file.source_ = source;
  for (const Member& member : members_of(archive)) {
    if (!member.name.ends_with(kNpyEnding)) continue;
    TensorView view = view_of(archive, member);
    if (file.find(view.name) != nullptr)
      fail("{}: array '{}' appears twice", archive.label(), printable(view.name));
    if (file.tensors_.size() == kMostArrays)
      fail("{}: more than {} arrays", archive.label(), kMostArrays);
    view.owner = owner;
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
