// Numbers byte strings 0, 1, 2, ... in order of arrival: the set of words of a text, the tokens of
// a vocabulary. The strings live in one block of memory, which keeps millions of short ones
// compact.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace filigree {

class WordTable {
 public:
  static constexpr std::uint32_t kAbsent = UINT32_MAX;

  WordTable();

  // Index of `word`, or kAbsent.
  std::uint32_t find(std::string_view word) const;

  // Index of `word`, which is added when it is new.
  std::uint32_t intern(std::string_view word);

  std::size_t size() const { return ends_.size(); }

  // Valid until the next intern().
  std::string_view operator[](std::size_t index) const {
    const std::size_t begin = index == 0 ? 0 : ends_[index - 1];
    return std::string_view(bytes_).substr(begin, ends_[index] - begin);
  }

 private:
  // A slot holds an index and half of the word's hash, which spares most comparisons of strings.
  struct Slot {
    std::uint32_t index = kAbsent;
    std::uint32_t hash_part = 0;
  };

  std::size_t slot_of(std::string_view word, std::uint64_t hash) const;
  void grow();

  std::uint64_t key_;
  std::vector<Slot> slots_;  // a power of two, at most half full
  std::vector<std::size_t> ends_;
  std::string bytes_;
};

}  // namespace filigree
