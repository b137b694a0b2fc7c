// How often each word occurs in a text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "text/word_table.h"

namespace filigree {

class WordCounts {
 public:
  void add(std::string_view word, std::uint64_t times = 1) {
    const std::uint32_t index = words_.intern(word);
    if (index == counts_.size()) counts_.push_back(0);
    counts_[index] += times;
  }

  void add(const WordCounts& other) {
    for (std::size_t i = 0; i < other.size(); ++i) add(other.word(i), other.count(i));
  }

  std::size_t size() const { return counts_.size(); }
  std::string_view word(std::size_t index) const { return words_[index]; }
  std::uint64_t count(std::size_t index) const { return counts_[index]; }

 private:
  WordTable words_;
  std::vector<std::uint64_t> counts_;
};

}  // namespace filigree
