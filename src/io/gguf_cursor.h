// A place in the bytes of a GGUF file that moves forward and never past the end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "filigree/error.h"
#include "filigree/names.h"
#include "io/gguf.h"

namespace filigree {

// Bytes of a value of a type; 0 for texts, which say their own length.
constexpr std::size_t bytes_of(GgufType type) {
  switch (type) {
    case GgufType::kU8:
    case GgufType::kI8:
    case GgufType::kBool: return 1;
    case GgufType::kU16:
    case GgufType::kI16: return 2;
    case GgufType::kU32:
    case GgufType::kI32:
    case GgufType::kF32: return 4;
    case GgufType::kU64:
    case GgufType::kI64:
    case GgufType::kF64: return 8;
    case GgufType::kText:
    case GgufType::kArray: break;
  }
  return 0;
}

class GgufCursor {
 public:
  // `label` begins every message.
  GgufCursor(std::span<const std::byte> bytes, std::string_view label)
      : bytes_(bytes), label_(label) {}

  std::uint64_t left() const { return bytes_.size() - at_; }
  std::span<const std::byte> rest() const { return bytes_.subspan(at_); }

  template <typename Number>
  Number number(std::string_view what) {
    Number value;
    std::memcpy(&value, take(sizeof value, what).data(), sizeof value);
    return value;
  }

  std::string_view text(std::string_view what) {
    const auto length = number<std::uint64_t>(what);
    const std::span<const std::byte> bytes = take(length, what);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  // Of a value or of the elements of an array.
  GgufType type(std::string_view key) {
    const auto type = number<std::uint32_t>("a type");
    if (type > static_cast<std::uint32_t>(GgufType::kF64))
      fail("{}: key '{}' is of the type {}, which there is not", label_, printable(key), type);
    return static_cast<GgufType>(type);
  }

  // So many values in a row, as they lie in the file.
  std::span<const std::byte> values(std::string_view key, GgufType type, std::uint64_t count) {
    const std::size_t begin = at_;
    if (type == GgufType::kArray)
      fail("{}: key '{}' holds arrays of arrays, which are not supported", label_, printable(key));
    if (const std::size_t each = bytes_of(type); each != 0) {
      if (count > left() / each)
        fail("{}: key '{}' has {} values, more than the {} bytes that follow hold", label_,
             printable(key), count, left());
      return take(count * each, "values");
    }
    if (count > left() / sizeof(std::uint64_t))
      fail("{}: key '{}' has {} texts, more than the {} bytes that follow hold", label_,
           printable(key), count, left());
    for (std::uint64_t i = 0; i < count; ++i) text("a text");
    return bytes_.subspan(begin, at_ - begin);
  }

  // Without `needed`, the end of the bytes will do.
  void align(std::uint64_t alignment, bool needed) {
    const std::uint64_t padding = (alignment - at_ % alignment) % alignment;
    take(needed ? padding : std::min(padding, left()), "the padding before the data");
  }

 private:
  std::span<const std::byte> take(std::uint64_t count, std::string_view what) {
    if (count > left())
      fail("{}: ends inside {}: {} bytes at byte {} of {}", label_, what, count, at_,
           bytes_.size());
    const std::span<const std::byte> part = bytes_.subspan(at_, count);
    at_ += count;
    return part;
  }

  std::span<const std::byte> bytes_;
  std::string_view label_;
  std::size_t at_ = 0;
};

}  // namespace filigree
