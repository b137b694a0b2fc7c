#include "base/utf8.h"

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

// Inline, so that a caller that does not ask for the code point does not compute it.
inline Utf8Sequence decode(std::string_view text) {
  using Kind = Utf8Sequence::Kind;
  const unsigned char first = byte_at(text, 0);
  if (first < 0x80) return {Kind::kCharacter, 1, first};
  if (first < 0xC2 || first > 0xF4) return {Kind::kInvalid, 1};
  const std::size_t length = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  char32_t code = first & (0x7Fu >> length);
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
    code = (code << 6) | (byte & 0x3Fu);
  }
  return {Kind::kCharacter, length, code};
}

}  // namespace

Utf8Sequence utf8_sequence(std::string_view text) { return decode(text); }

std::size_t first_invalid_utf8(std::string_view text) {
  std::size_t at = 0;
  while (true) {
    at += ascii_prefix(text.substr(at));
    if (at == text.size()) return at;
    const Utf8Sequence sequence = decode(text.substr(at));
    if (!sequence.is_character()) return at;
    at += sequence.length;
  }
}

bool is_valid_utf8(std::string_view text) { return first_invalid_utf8(text) == text.size(); }

std::string replace_invalid_utf8(std::string_view text) {
  std::string repaired;
  repaired.reserve(text.size());
  while (!text.empty()) {
    const std::size_t valid = first_invalid_utf8(text);
    repaired += text.substr(0, valid);
    text.remove_prefix(valid);
    if (text.empty()) break;
    repaired += kReplacementCharacter;
    text.remove_prefix(decode(text).length);
  }
  return repaired;
}

void append_utf8(std::string& text, char32_t code) {
  if (code < 0x80) {
    text += static_cast<char>(code);
    return;
  }
  const int continuations = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  // As many ones as the character has bytes, then a zero.
  const unsigned lead = (0xFF00u >> (continuations + 1)) & 0xFFu;
  text += static_cast<char>(lead | (code >> (6 * continuations)));
  for (int i = continuations - 1; i >= 0; --i)
    text += static_cast<char>(0x80u | ((code >> (6 * i)) & 0x3Fu));
}

}  // namespace filigree
