// UTF-8 as untrusted bytes, the one decoder of the library: where text breaks, how to repair it,
// and where a character that is still arriving begins. Well-formed means: shortest form, no
// surrogates, at most U+10FFFF.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace filigree {

inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";  // U+FFFD

struct Utf8Sequence {
  enum class Kind {
    kCharacter,   // a whole well-formed character
    kIncomplete,  // the text ends inside a character that is well-formed so far
    kInvalid,     // the longest start of a character that no continuation could complete
  };
  Kind kind;
  std::size_t length;  // bytes, at least 1
  char32_t code = 0;   // of a whole character

  bool is_character() const { return kind == Kind::kCharacter; }
};

// Decodes the start of `text`, which must not be empty.
Utf8Sequence utf8_sequence(std::string_view text);

// True for a byte that cannot begin a character because it continues one.
inline bool continues_utf8(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

// Offset of the first byte that is not part of a well-formed character; text.size() when all is
// well.
std::size_t first_invalid_utf8(std::string_view text);
bool is_valid_utf8(std::string_view text);

// `text` with U+FFFD for every invalid or incomplete sequence: one for each longest start of a
// character, as the Unicode standard recommends and Rust's and Python's decoders do.
std::string replace_invalid_utf8(std::string_view text);

// Writes a character, which must not be a surrogate, at the end of `text`.
void append_utf8(std::string& text, char32_t code);

}  // namespace filigree
