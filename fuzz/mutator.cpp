#include "mutator.h"

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <utility>

namespace filigree::fuzz {
namespace {

constexpr std::size_t kLargestPool = 4096;

constexpr std::uint64_t kEdgeIntegers[] = {
    0,          1,          2,           7,          8,          63,         64,
    127,        128,        255,         256,        4095,       4096,       32767,
    32768,      65535,      65536,       99999999,   100000000,  100000001,  0x7FFFFFFF,
    0x80000000, 0xFFFFFFFF, 0x100000000, 1ull << 40, 1ull << 61, 1ull << 62, (1ull << 63) - 1,
    1ull << 63, ~0ull - 1,  ~0ull,
};

constexpr std::string_view kEdgeNumbers[] = {
    "-1", "-0", "0.5", "1e999", "1e-999", "18446744073709551616", "-9223372036854775809",
};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

Mutator::Mutator(std::uint64_t seed, std::size_t max_length, std::vector<std::string> dictionary)
    : state_(seed), max_length_(max_length), dictionary_(std::move(dictionary)) {}

void Mutator::add(std::string input) {
  input.resize(std::min(input.size(), max_length_));
  if (pool_.size() < kLargestPool)
    pool_.push_back(std::move(input));
  else
    pool_[below(kLargestPool)] = std::move(input);
}

std::string Mutator::next() {
  std::string input = pool_.empty() ? std::string() : pool_[below(pool_.size())];
  // Few changes keep most of a valid input valid; now and then many.
  std::size_t changes = 1 + below(4);
  if (below(8) == 0) changes += below(16);
  for (; changes > 0; --changes) change(input);
  input.resize(std::min(input.size(), max_length_));
  return input;
}

// SplitMix64.
std::uint64_t Mutator::random() {
  state_ += 0x9E3779B97F4A7C15;
  std::uint64_t z = state_;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

std::size_t Mutator::below(std::size_t bound) { return bound == 0 ? 0 : random() % bound; }

void Mutator::change(std::string& input) {
  const std::size_t at = below(input.size());
  switch (below(11)) {
    case 0:
      if (!input.empty()) input[at] = static_cast<char>(input[at] ^ (1 << below(8)));
      break;
    case 1:
      if (!input.empty()) input[at] = static_cast<char>(below(256));
      break;
    case 2: set_integer(input); break;
    case 3: change_number(input); break;
    case 4: {
      std::string bytes(1 + below(8), '\0');
      for (char& byte : bytes) byte = static_cast<char>(below(256));
      insert(input, bytes);
      break;
    }
    case 5: input.erase(at, 1 + below(below(4) == 0 ? input.size() : 16)); break;
    case 6: {
      // Repeats a range: doubled keys, deeper nesting, longer lists.
      const std::string piece(piece_of(input, 64));
      std::string repeated;
      for (std::size_t i = 1 + below(below(8) == 0 ? 200 : 3); i > 0; --i) repeated += piece;
      input.insert(at, repeated);
      break;
    }
    case 7: {
      // Exchanges the tail with that of another input.
      if (pool_.empty()) break;
      const std::string& other = pool_[below(pool_.size())];
      input = input.substr(0, at) + other.substr(below(other.size()));
      break;
    }
    case 8:
      if (!pool_.empty()) insert(input, piece_of(pool_[below(pool_.size())], 256));
      break;
    case 9:
    case 10:
      if (!dictionary_.empty()) insert(input, dictionary_[below(dictionary_.size())]);
      break;
  }
}

// Overwrites 1, 2, 4 or 8 bytes with an edge value, little or big endian.
void Mutator::set_integer(std::string& input) {
  const std::size_t width = std::size_t{1} << below(4);
  if (input.size() < width) return;
  const std::size_t at = below(3) == 0 ? 0 : below(input.size() - width + 1);
  const std::uint64_t value = kEdgeIntegers[below(std::size(kEdgeIntegers))];
  const bool big_endian = below(4) == 0;
  for (std::size_t i = 0; i < width; ++i)
    input[at + (big_endian ? width - 1 - i : i)] = static_cast<char>((value >> (8 * i)) & 0xFF);
}

// Replaces a decimal number in the text, where there is one, by another.
void Mutator::change_number(std::string& input) {
  const auto start = input.begin() + static_cast<std::ptrdiff_t>(below(input.size()));
  const auto first = std::find_if(start, input.end(), is_digit);
  const auto last = std::find_if_not(first, input.end(), is_digit);
  if (first == last) return;
  std::string number = below(4) == 0
                           ? std::string(kEdgeNumbers[below(std::size(kEdgeNumbers))])
                           : std::to_string(kEdgeIntegers[below(std::size(kEdgeIntegers))]);
  if (below(3) == 0) number = std::to_string(below(64));
  input.replace(first, last, number);
}

// Puts `piece` in at a random place, or over what is there.
void Mutator::insert(std::string& input, std::string_view piece) {
  const std::size_t at = below(input.size() + 1);
  input.replace(at, below(2) == 0 ? piece.size() : 0, piece);
}

std::string_view Mutator::piece_of(std::string_view input, std::size_t longest) {
  return input.substr(below(input.size()), 1 + below(longest));
}

std::vector<std::string> parse_dictionary(std::string_view text) {
  std::vector<std::string> words;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::size_t open = line.find('"');
    if (line.starts_with('#') || open == std::string_view::npos) continue;
    line.remove_prefix(open + 1);
    std::string word;
    while (!line.empty() && line[0] != '"') {
      std::size_t used = 1;
      char c = line[0];
      if (c == '\\' && line.size() >= 4 && line[1] == 'x') {
        c = static_cast<char>(std::stoi(std::string(line.substr(2, 2)), nullptr, 16));
        used = 4;
      } else if (c == '\\' && line.size() >= 2) {
        c = line[1];
        used = 2;
      }
      word += c;
      line.remove_prefix(used);
    }
    if (line.empty()) throw std::runtime_error("dictionary: the word '" + word + "' does not end");
    words.push_back(std::move(word));
  }
  return words;
}

}  // namespace filigree::fuzz
