// A hash table from a pair of small numbers (two token ids; a node and a byte) to a 64-bit value.
// Looking a pair up is the innermost step of encoding and of training, hence open addressing in one
// array instead of std::unordered_map. Entries are never removed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "text/hashing.h"

namespace filigree {

class PairTable {
 public:
  explicit PairTable(std::size_t expected = 0) : key_(hash_key()) {
    std::size_t slots = 16;
    while (slots < expected * 2) slots *= 2;
    slots_.resize(slots);
  }

  // Null when the pair is absent. Valid until the next insert.
  const std::uint64_t* find(std::uint32_t first, std::uint32_t second) const {
    const Slot& slot = slots_[slot_of(join(first, second))];
    return slot.pair == kEmpty ? nullptr : &slot.value;
  }

  // The pair's value, which starts as `initial` when the pair is new. Valid until the next insert.
  std::uint64_t& insert(std::uint32_t first, std::uint32_t second, std::uint64_t initial) {
    const std::uint64_t pair = join(first, second);
    std::size_t at = slot_of(pair);
    if (slots_[at].pair == kEmpty) {
      if ((used_ + 1) * 2 > slots_.size()) {
        grow();
        at = slot_of(pair);
      }
      ++used_;
      slots_[at] = {pair, initial};
    }
    return slots_[at].value;
  }

  std::size_t size() const { return used_; }

 private:
  // No pair of token ids is this one: ids are not negative.
  static constexpr std::uint64_t kEmpty = UINT64_MAX;
  struct Slot {
    std::uint64_t pair = kEmpty;
    std::uint64_t value = 0;
  };

  static std::uint64_t join(std::uint32_t first, std::uint32_t second) {
    return (std::uint64_t{first} << 32) | second;
  }

  std::size_t slot_of(std::uint64_t pair) const {
    const std::size_t mask = slots_.size() - 1;
    std::size_t at = hash_number(pair, key_) & mask;
    while (slots_[at].pair != pair && slots_[at].pair != kEmpty) at = (at + 1) & mask;
    return at;
  }

  void grow() {
    std::vector<Slot> smaller(slots_.size() * 2);
    smaller.swap(slots_);
    for (const Slot& slot : smaller)
      if (slot.pair != kEmpty) slots_[slot_of(slot.pair)] = slot;
  }

  std::uint64_t key_;
  std::vector<Slot> slots_;  // a power of two, at most half full
  std::size_t used_ = 0;
};

}  // namespace filigree
