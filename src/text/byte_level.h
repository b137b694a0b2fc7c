// The byte-level alphabet of GPT-2: every byte has a printable character, so that a vocabulary of
// byte strings can be written as JSON text.
//
// A byte that is printable and not a space in Latin-1 ('!'..'~', U+00A1..U+00AC, U+00AE..U+00FF)
// stands for itself; the other 68 bytes, in ascending order, become U+0100, U+0101, ... The space
// is U+0120 (Ġ), the newline U+010A (Ċ).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace filigree {

// UTF-8 form of the character that stands for `byte`.
std::string_view byte_level_character(std::uint8_t byte);

// Every byte of `bytes` as its character.
std::string to_byte_level(std::string_view bytes);

// The bytes that `token` stands for, or nothing when it holds a character outside the alphabet.
std::optional<std::string> from_byte_level(std::string_view token);

// All bytes ordered by the code point of their character: the order of a trained vocabulary.
const std::array<std::uint8_t, 256>& bytes_in_alphabet_order();

}  // namespace filigree
