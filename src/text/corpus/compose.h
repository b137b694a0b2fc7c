// Sentences from patterns, for the tasks.
//
//   {thing}    the slot's text          {a thing}  with "a" or "an" before it
//   {^thing}   with a capital letter    [ ]        around the answer
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "filigree/data.h"
#include "filigree/random.h"

namespace filigree::corpus {

using Slots = std::vector<std::pair<std::string_view, std::string>>;

// Prompt, answer and text of the pattern; throws Error for a slot it does not know and for a
// pattern without an answer.
TaskExample compose(std::string_view pattern, const Slots& slots);

// The pattern without an answer.
std::string fill(std::string_view pattern, const Slots& slots);

// Where slots stand in the prompt of the pattern, what is before the answer: every place of each
// slot that has a role, under that role.
using SlotRoles = std::vector<std::pair<std::string_view, std::string_view>>;  // slot, role
std::vector<RoleSpan> roles_in(std::string_view pattern, const Slots& slots,
                               const SlotRoles& roles);

// "a" or "an" and the noun.
std::string with_article(std::string_view noun);

// One of the list, each equally likely.
template <typename Item>
const Item& pick(Random& random, std::span<const Item> list) {
  return list[static_cast<std::size_t>(random.below(list.size()))];
}
template <typename Item, std::size_t size>
const Item& pick(Random& random, const Item (&list)[size]) {
  return pick(random, std::span<const Item>(list));
}

// `count` different ones in random order; the list must have that many.
std::vector<std::string> pick_several(Random& random, std::span<const std::string_view> list,
                                      std::size_t count);

// One that is none of `taken`.
std::string pick_other(Random& random, std::span<const std::string_view> list,
                       const std::vector<std::string>& taken);

// Whole number from `least` to `most`.
int pick_number(Random& random, int least, int most);

bool coin(Random& random);

}  // namespace filigree::corpus
