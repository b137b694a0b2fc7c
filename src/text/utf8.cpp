#include "filigree/text/utf8.h"

#include <cstdint>
#include <cstring>

namespace filigree {
namespace {

unsigned char byte_at(std::string_view text, std::size_t i) {
  return static_cast<unsigned char>(text[i]);
}

// Number of leading ASCII bytes, counted eight at a time: most text is mostly ASCII.
std::size_t ascii_prefix(std::string_view text) {
  std::size_t i = 0;
  for (; i + 8 <= text.size(); i += 8) {
    std::uint64_t eight;
    std::memcpy(&eight, text.data() + i, 8);
    if ((eight & 0x8080808080808080u) != 0) break;
  }
  while (i < text.size() && byte_at(text, i) < 0x80) ++i;
  return i;
}

}  // namespace

Utf8Sequence utf8_sequence(std::string_view text) {
  using Kind = Utf8Sequence::Kind;
  const unsigned char first = byte_at(text, 0);
  if (first < 0x80) return {Kind::kCharacter, 1};
  if (first < 0xC2 || first > 0xF4) return {Kind::kInvalid, 1};
  const std::size_t length = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  for (std::size_t i = 1; i < length; ++i) {
    if (i == text.size()) return {Kind::kIncomplete, i};
    unsigned char lowest = 0x80;
    unsigned char highest = 0xBF;
    if (i == 1) {
      if (first == 0xE0) lowest = 0xA0;   // shorter forms exist below
      if (first == 0xED) highest = 0x9F;  // surrogates above
      if (first == 0xF0) lowest = 0x90;   // shorter forms exist below
      if (first == 0xF4) highest = 0x8F;  // beyond U+10FFFF
    }
    const unsigned char byte = byte_at(text, i);
    if (byte < lowest || byte > highest) return {Kind::kInvalid, i};
  }
  return {Kind::kCharacter, length};
}

std::size_t first_invalid_utf8(std::string_view text) {
  std::size_t at = 0;
  while (true) {
    at += ascii_prefix(text.substr(at));
    if (at == text.size()) return at;
    const Utf8Sequence sequence = utf8_sequence(text.substr(at));
    if (sequence.kind != Utf8Sequence::Kind::kCharacter) return at;
    at += sequence.length;
  }
}

std::string replace_invalid_utf8(std::string_view text) {
  std::string repaired;
  repaired.reserve(text.size());
  while (!text.empty()) {
    const std::size_t valid = first_invalid_utf8(text);
    repaired += text.substr(0, valid);
    text.remove_prefix(valid);
    if (text.empty()) break;
    repaired += kReplacementCharacter;
    text.remove_prefix(utf8_sequence(text).length);
  }
  return repaired;
}

char32_t utf8_code_point(std::string_view text) {
  const std::size_t length = utf8_sequence(text).length;
  static constexpr unsigned char kLeadMask[] = {0, 0x7F, 0x1F, 0x0F, 0x07};
  char32_t code = byte_at(text, 0) & kLeadMask[length];
  for (std::size_t i = 1; i < length; ++i) code = (code << 6) | (byte_at(text, i) & 0x3Fu);
  return code;
}

bool is_unicode_whitespace(char32_t code) {
  return (code >= 0x09 && code <= 0x0D) || code == 0x20 || code == 0x85 || code == 0xA0 ||
         code == 0x1680 || (code >= 0x2000 && code <= 0x200A) || code == 0x2028 || code == 0x2029 ||
         code == 0x202F || code == 0x205F || code == 0x3000;
}

}  // namespace filigree
