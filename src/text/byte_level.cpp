#include "text/byte_level.h"

#include <cstddef>

#include "base/utf8.h"

namespace filigree {
namespace {

// The alphabet's code points all lie below this: 256 + the 68 bytes without a character of their
// own.
constexpr char32_t kAlphabetEnd = 256 + 68;

struct Alphabet {
  std::array<std::string, 256> character;
  std::array<std::int16_t, kAlphabetEnd> byte_of_code;  // -1: no byte has this character
  std::array<std::uint8_t, 256> in_order;

  Alphabet() {
    byte_of_code.fill(-1);
    char32_t next_free = 256;
    for (int byte = 0; byte < 256; ++byte) {
      const bool own = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte != 0xAD);
      const char32_t code = own ? static_cast<char32_t>(byte) : next_free++;
      byte_of_code[code] = static_cast<std::int16_t>(byte);
      append_utf8(character[static_cast<std::size_t>(byte)], code);
    }
    std::size_t next = 0;
    for (const std::int16_t byte : byte_of_code)
      if (byte >= 0) in_order[next++] = static_cast<std::uint8_t>(byte);
  }
};

const Alphabet& alphabet() {
  static const Alphabet instance;
  return instance;
}

}  // namespace

std::string_view byte_level_character(std::uint8_t byte) { return alphabet().character[byte]; }

std::string to_byte_level(std::string_view bytes) {
  std::string token;
  token.reserve(bytes.size() * 2);
  for (const char byte : bytes) token += byte_level_character(static_cast<std::uint8_t>(byte));
  return token;
}

std::optional<std::string> from_byte_level(std::string_view token) {
  std::string bytes;
  bytes.reserve(token.size());
  while (!token.empty()) {
    const Utf8Sequence next = utf8_sequence(token);
    if (!next.is_character() || next.code >= kAlphabetEnd) return std::nullopt;
    const std::int16_t byte = alphabet().byte_of_code[next.code];
    if (byte < 0) return std::nullopt;
    bytes += static_cast<char>(byte);
    token.remove_prefix(next.length);
  }
  return bytes;
}

const std::array<std::uint8_t, 256>& bytes_in_alphabet_order() { return alphabet().in_order; }

}  // namespace filigree
