#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <system_error>
#include <utility>

#include "base/utf8.h"
#include "filigree/error.h"
#include "filigree/names.h"
#include "io/gguf.h"
#include "io/gguf_cursor.h"

namespace filigree {
namespace {

template <typename Number>
Number value_at(std::span<const std::byte> bytes, std::uint64_t index) {
  Number value;
  std::memcpy(&value, bytes.data() + index * sizeof value, sizeof value);
  return value;
}

// Calls use(value) with the number of its own type.
template <typename Use>
auto with_number(GgufType type, std::span<const std::byte> bytes, std::uint64_t index, Use use) {
  switch (type) {
    case GgufType::kU8: return use(value_at<std::uint8_t>(bytes, index));
    case GgufType::kI8: return use(value_at<std::int8_t>(bytes, index));
    case GgufType::kU16: return use(value_at<std::uint16_t>(bytes, index));
    case GgufType::kI16: return use(value_at<std::int16_t>(bytes, index));
    case GgufType::kU32: return use(value_at<std::uint32_t>(bytes, index));
    case GgufType::kI32: return use(value_at<std::int32_t>(bytes, index));
    case GgufType::kF32: return use(value_at<float>(bytes, index));
    case GgufType::kU64: return use(value_at<std::uint64_t>(bytes, index));
    case GgufType::kI64: return use(value_at<std::int64_t>(bytes, index));
    default: return use(value_at<double>(bytes, index));
  }
}

// The shortest decimal number that is this f32: what was 1e-05 before it was stored is so again.
double shortest(float value) {
  std::array<char, 32> text;
  const auto [end, failed] = std::to_chars(text.data(), text.data() + text.size(), value);
  double exact = value;
  if (failed == std::errc() && std::isfinite(value)) std::from_chars(text.data(), end, exact);
  return exact;
}

bool is_number(GgufType type) {
  return type != GgufType::kText && type != GgufType::kBool && type != GgufType::kArray;
}

std::string_view kind_name(GgufType type) {
  return type == GgufType::kText ? "text" : type == GgufType::kBool ? "truth" : "number";
}

}  // namespace

std::vector<std::string> GgufMetadata::keys() const {
  std::vector<std::string> keys;
  for (const Entry& entry : entries_) keys.push_back(entry.key);
  return keys;
}

const GgufMetadata::Entry* GgufMetadata::find(std::string_view key) const {
  const auto found = std::lower_bound(
      by_key_.begin(), by_key_.end(), key,
      [&](std::size_t i, std::string_view wanted) { return entries_[i].key < wanted; });
  return found != by_key_.end() && entries_[*found].key == key ? &entries_[*found] : nullptr;
}

const GgufMetadata::Entry& GgufMetadata::at(std::string_view key) const {
  if (const Entry* entry = find(key)) return *entry;
  fail("{}: the metadata has no '{}'", source_, printable(key));
}

void GgufMetadata::wrong(const Entry& entry, std::string_view wanted) const {
  fail("{}: '{}' is {}{}, should be {}", source_, printable(entry.key),
       entry.array ? fmt::format("an array of {} ", entry.count) : "a ",
       entry.array ? fmt::format("{}s", kind_name(entry.type)) : kind_name(entry.type), wanted);
}

const GgufMetadata::Entry& GgufMetadata::scalar(std::string_view key) const {
  const Entry& entry = at(key);
  if (entry.array) wrong(entry, "one value");
  return entry;
}

const GgufMetadata::Entry& GgufMetadata::array(std::string_view key) const {
  const Entry& entry = at(key);
  if (!entry.array) wrong(entry, "an array");
  return entry;
}

std::int64_t GgufMetadata::integer_at(const Entry& entry, std::uint64_t index) const {
  if (!is_number(entry.type)) wrong(entry, "a whole number");
  return with_number(entry.type, entry.bytes, index, [&](auto value) -> std::int64_t {
    if constexpr (std::is_floating_point_v<decltype(value)>) {
      const auto wide = static_cast<double>(value);
      if (!(std::abs(wide) <= 9.0e15) || std::trunc(wide) != wide)
        fail("{}: '{}' is {}, should be a whole number", source_, printable(entry.key), wide);
      return static_cast<std::int64_t>(wide);
    } else {
      if (!std::in_range<std::int64_t>(value))
        fail("{}: '{}' is {}, which is too large", source_, printable(entry.key), value);
      return static_cast<std::int64_t>(value);
    }
  });
}

double GgufMetadata::number_at(const Entry& entry, std::uint64_t index) const {
  if (!is_number(entry.type)) wrong(entry, "a number");
  return with_number(entry.type, entry.bytes, index, [](auto value) {
    if constexpr (std::is_same_v<decltype(value), float>) return shortest(value);
    return static_cast<double>(value);
  });
}

std::string_view GgufMetadata::checked_text(const Entry& entry, std::string_view text,
                                            std::uint64_t index) const {
  if (const std::size_t bad = first_invalid_utf8(text); bad != text.size())
    fail("{}: text {} of '{}' is not UTF-8 at its byte {}", source_, index, printable(entry.key),
         bad);
  return text;
}

std::int64_t GgufMetadata::integer(std::string_view key, std::int64_t min, std::int64_t max) const {
  const std::int64_t value = integer_at(scalar(key), 0);
  if (value < min || value > max)
    fail("{}: '{}' is {}, should be from {} to {}", source_, printable(key), value, min, max);
  return value;
}

std::int64_t GgufMetadata::integer_or(std::string_view key, std::int64_t fallback, std::int64_t min,
                                      std::int64_t max) const {
  return has(key) ? integer(key, min, max) : fallback;
}

double GgufMetadata::number(std::string_view key) const {
  const double value = number_at(scalar(key), 0);
  if (!std::isfinite(value))
    fail("{}: '{}' is {}, should be finite", source_, printable(key), value);
  return value;
}

double GgufMetadata::number_or(std::string_view key, double fallback) const {
  return has(key) ? number(key) : fallback;
}

bool GgufMetadata::boolean_or(std::string_view key, bool fallback) const {
  if (!has(key)) return fallback;
  const Entry& entry = scalar(key);
  if (entry.type != GgufType::kBool) wrong(entry, "a truth");
  return entry.bytes[0] != std::byte{0};
}

std::string GgufMetadata::text(std::string_view key) const {
  const Entry& entry = scalar(key);
  if (entry.type != GgufType::kText) wrong(entry, "a text");
  return std::string(checked_text(entry, GgufCursor(entry.bytes, source_).text("a text"), 0));
}

std::string GgufMetadata::text_or(std::string_view key, std::string fallback) const {
  return has(key) ? text(key) : std::move(fallback);
}

bool GgufMetadata::is_array(std::string_view key) const { return at(key).array; }

std::uint64_t GgufMetadata::length(std::string_view key) const { return array(key).count; }

std::vector<std::string_view> GgufMetadata::texts(std::string_view key) const {
  const Entry& entry = array(key);
  if (entry.type != GgufType::kText) wrong(entry, "an array of texts");
  std::vector<std::string_view> texts;
  texts.reserve(entry.count);
  GgufCursor at(entry.bytes, source_);
  for (std::uint64_t i = 0; i < entry.count; ++i)
    texts.push_back(checked_text(entry, at.text("a text"), i));
  return texts;
}

std::vector<std::int64_t> GgufMetadata::integers(std::string_view key) const {
  const Entry& entry = array(key);
  std::vector<std::int64_t> values;
  for (std::uint64_t i = 0; i < entry.count; ++i) values.push_back(integer_at(entry, i));
  return values;
}

std::vector<double> GgufMetadata::numbers(std::string_view key) const {
  const Entry& entry = array(key);
  std::vector<double> values;
  for (std::uint64_t i = 0; i < entry.count; ++i) values.push_back(number_at(entry, i));
  return values;
}

}  // namespace filigree
