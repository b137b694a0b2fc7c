#include "io/npz.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <optional>

#include "base/utf8.h"
#include "filigree/error.h"
#include "filigree/names.h"

namespace filigree {
namespace {

constexpr std::uint32_t kLocalHeader = 0x04034b50, kDescriptor = 0x08074b50,
                        kCentralHeader = 0x02014b50, kEnd = 0x06054b50, kEnd64 = 0x06064b50,
                        kLocator64 = 0x07064b50;
constexpr std::uint16_t kPlainVersion = 20, kZip64Version = 45;
constexpr std::uint16_t kChecksumFollows = 1 << 3, kUtf8Names = 1 << 11;
constexpr std::uint16_t kDate = (1980 - 1980) << 9 | 1 << 5 | 1;  // the format's first day
constexpr std::uint32_t kIn64 = 0xFFFFFFFF;
constexpr std::uint16_t kZip64Extra = 1;

// Little-endian numbers one after the other.
class Record {
 public:
  Record& u16(std::uint64_t value) { return number(value, 2); }
  Record& u32(std::uint64_t value) { return number(value, 4); }
  Record& u64(std::uint64_t value) { return number(value, 8); }
  Record& text(std::string_view value) {
    bytes_ += value;
    return *this;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  Record& number(std::uint64_t value, int count) {
    for (int i = 0; i < count; ++i) bytes_ += static_cast<char>(value >> (8 * i) & 0xFF);
    return *this;
  }
  std::string bytes_;
};

std::optional<std::string_view> npy_type(TensorKind kind) {
  switch (kind) {
    case TensorKind::kBool: return "|b1";
    case TensorKind::kU8: return "|u1";
    case TensorKind::kI8: return "|i1";
    case TensorKind::kI16: return "<i2";
    case TensorKind::kU16: return "<u2";
    case TensorKind::kF16: return "<f2";
    case TensorKind::kI32: return "<i4";
    case TensorKind::kU32: return "<u4";
    case TensorKind::kF32: return "<f4";
    case TensorKind::kF64: return "<f8";
    case TensorKind::kI64: return "<i8";
    case TensorKind::kU64: return "<u8";
    default: return std::nullopt;
  }
}

}  // namespace

std::string npy_header(TensorKind kind, std::span<const std::int64_t> shape) {
  const auto type = npy_type(kind);
  require(type.has_value(), "npy: NumPy has no type for {}", name_of(kind));
  // A tuple of one has a comma: (5,).
  const std::string tuple =
      fmt::format("({}{})", fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
  std::string description =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': {}, }}", *type, tuple);
  constexpr std::size_t kFront = 10, kAlignment = 64;  // magic, version, length
  const std::size_t used = kFront + description.size() + 1;
  description.append((kAlignment - used % kAlignment) % kAlignment, ' ');
  description += '\n';
  require(description.size() <= 0xFFFF, "npy: a shape of {} dimensions is too long", shape.size());
  return Record().text("\x93NUMPY").text({"\x01\x00", 2}).u16(description.size()).bytes() +
         description;
}

NpzWriter::NpzWriter(std::filesystem::path path, std::uint64_t zip64_from)
    : path_(std::move(path)), zip64_from_(zip64_from), file_(path_) {}

void NpzWriter::put(std::string_view bytes) {
  file_.write(bytes);
  position_ += bytes.size();
}

void NpzWriter::put_data(std::span<const std::byte> bytes) {
  std::uint32_t& crc = entries_.back().crc;
  // zlib's takes a null pointer for a question about its first value.
  if (!bytes.empty())
    crc = static_cast<std::uint32_t>(
        crc32_z(crc, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
  file_.write(bytes);
  position_ += bytes.size();
  remaining_ -= bytes.size();
  if (remaining_ == 0) end_entry();
}

void NpzWriter::check_complete() const {
  require(!open_, "npz: '{}': array '{}' lacks {} of its bytes", printable(path_.string()),
          entries_.empty() ? "" : printable(entries_.back().file), remaining_);
}

void NpzWriter::begin_entry(const std::string& file, std::uint64_t size) {
  check_complete();
  require(!file.empty() && file.find_first_of(std::string_view("/\\\0", 3)) == std::string::npos &&
              is_valid_utf8(file) && file.size() <= 0xFFFF,
          "npz: '{}' is no name for an entry", printable(file));
  for (const Entry& entry : entries_)
    require(entry.file != file, "npz: '{}' is there twice", printable(file));
  entries_.push_back({file, position_, size});
  const bool large = size >= zip64_from_;
  // Sizes are known, and given here as well as after the data; the checksum is not.
  const std::uint64_t shown = large ? kIn64 : size;
  Record extra;
  if (large) extra.u16(kZip64Extra).u16(16).u64(size).u64(size);
  put(Record()
          .u32(kLocalHeader)
          .u16(large ? kZip64Version : kPlainVersion)
          .u16(kChecksumFollows | kUtf8Names)
          .u16(0)  // stored
          .u16(0)
          .u16(kDate)
          .u32(0)  // checksum
          .u32(shown)
          .u32(shown)
          .u16(file.size())
          .u16(extra.bytes().size())
          .text(file)
          .text(extra.bytes())
          .bytes());
  remaining_ = size;
  open_ = true;
  if (size == 0) end_entry();
}

void NpzWriter::end_entry() {
  const Entry& entry = entries_.back();
  Record record;
  record.u32(kDescriptor).u32(entry.crc);
  if (entry.size >= zip64_from_)
    record.u64(entry.size).u64(entry.size);
  else
    record.u32(entry.size).u32(entry.size);
  put(record.bytes());
  open_ = false;
}

void NpzWriter::begin(const std::string& name, TensorKind kind, std::vector<std::int64_t> shape) {
  const std::string header = npy_header(kind, shape);
  const std::uint64_t bytes =
      tensor_bytes(fmt::format("npz: array '{}'", printable(name)), kind, shape);
  require(!name.empty(), "npz: an array needs a name");
  begin_entry(name + ".npy", header.size() + bytes);
  put_data(std::as_bytes(std::span(header)));
}

void NpzWriter::write(std::span<const std::byte> bytes) {
  require(bytes.size() <= remaining_, "npz: '{}': {} bytes more than array '{}' has room for",
          printable(path_.string()), bytes.size() - remaining_,
          entries_.empty() ? "" : printable(entries_.back().file));
  if (!bytes.empty()) put_data(bytes);
}

void NpzWriter::add(const std::string& name, TensorKind kind, std::vector<std::int64_t> shape,
                    std::span<const std::byte> bytes) {
  begin(name, kind, std::move(shape));
  write(bytes);
  check_complete();
}

void NpzWriter::add_text(const std::string& file, std::string_view text) {
  begin_entry(file, text.size());
  write(std::as_bytes(std::span(text)));
}

void NpzWriter::commit() {
  check_complete();
  const std::uint64_t start = position_;
  for (const Entry& entry : entries_) {
    const bool large = entry.size >= zip64_from_, far = entry.offset >= zip64_from_;
    Record extra;
    if (large || far) {
      extra.u16(kZip64Extra).u16((large ? 16 : 0) + (far ? 8 : 0));
      if (large) extra.u64(entry.size).u64(entry.size);
      if (far) extra.u64(entry.offset);
    }
    const std::uint16_t version = large || far ? kZip64Version : kPlainVersion;
    const std::uint64_t size = large ? kIn64 : entry.size;
    put(Record()
            .u32(kCentralHeader)
            .u16(version)
            .u16(version)
            .u16(kChecksumFollows | kUtf8Names)
            .u16(0)
            .u16(0)
            .u16(kDate)
            .u32(entry.crc)
            .u32(size)
            .u32(size)
            .u16(entry.file.size())
            .u16(extra.bytes().size())
            .u16(0)  // comment
            .u16(0)  // disk
            .u16(0)
            .u32(0)  // attributes
            .u32(far ? kIn64 : entry.offset)
            .text(entry.file)
            .text(extra.bytes())
            .bytes());
  }
  const std::uint64_t end = position_, size = end - start, count = entries_.size();
  const bool large = start >= zip64_from_ || size >= zip64_from_ || count >= 0xFFFF;
  if (large)
    put(Record()
            .u32(kEnd64)
            .u64(44)  // bytes of this record from here on
            .u16(kZip64Version)
            .u16(kZip64Version)
            .u32(0)
            .u32(0)
            .u64(count)
            .u64(count)
            .u64(size)
            .u64(start)
            .u32(kLocator64)
            .u32(0)
            .u64(end)
            .u32(1)
            .bytes());
  put(Record()
          .u32(kEnd)
          .u16(0)
          .u16(0)
          .u16(large ? 0xFFFF : count)
          .u16(large ? 0xFFFF : count)
          .u32(large ? kIn64 : size)
          .u32(large ? kIn64 : start)
          .u16(0)
          .bytes());
  file_.commit();
}

}  // namespace filigree
