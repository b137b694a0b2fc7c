#include "text/corpus/compose.h"

#include <algorithm>
#include <cctype>

#include "filigree/error.h"

namespace filigree::corpus {
namespace {

std::string capitalised(std::string text) {
  if (!text.empty()) text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return text;
}

const std::string& slot_text(std::string_view name, const Slots& slots) {
  for (const auto& [key, text] : slots)
    if (key == name) return text;
  fail("corpus: a pattern has the slot '{}', which nothing fills", name);
}

std::string slot_value(std::string_view slot, const Slots& slots) {
  if (slot.starts_with("a ")) return with_article(slot_text(slot.substr(2), slots));
  if (slot.starts_with("^")) return capitalised(slot_text(slot.substr(1), slots));
  return slot_text(slot, slots);
}

std::string_view slot_name(std::string_view slot) {
  if (slot.starts_with("a ")) return slot.substr(2);
  return slot.starts_with("^") ? slot.substr(1) : slot;
}

// Calls watch(name, begin, end) for every slot with where its text lies in the whole.
template <typename Watch>
std::string fill_watched(std::string_view pattern, const Slots& slots, const Watch& watch) {
  std::string text;
  while (!pattern.empty()) {
    const std::size_t open = pattern.find('{');
    text += pattern.substr(0, open);
    if (open == std::string_view::npos) break;
    const std::size_t close = pattern.find('}', open);
    require(close != std::string_view::npos, "corpus: a slot is not closed in '{}'", pattern);
    const std::string_view slot = pattern.substr(open + 1, close - open - 1);
    const std::size_t begin = text.size();
    text += slot_value(slot, slots);
    watch(slot_name(slot), begin, text.size());
    pattern.remove_prefix(close + 1);
  }
  return text;
}

}  // namespace

std::string with_article(std::string_view noun) {
  const bool vowel = std::string_view("aeiou").find(noun.front()) != std::string_view::npos;
  const bool sounds_like_you = noun.starts_with("uni") || noun.starts_with("use");
  return (vowel && !sounds_like_you ? "an " : "a ") + std::string(noun);
}

std::string fill(std::string_view pattern, const Slots& slots) {
  return fill_watched(pattern, slots, [](std::string_view, std::size_t, std::size_t) {});
}

std::vector<RoleSpan> roles_in(std::string_view pattern, const Slots& slots,
                               const SlotRoles& roles) {
  std::vector<RoleSpan> spans;
  fill_watched(pattern.substr(0, pattern.find('[')), slots,
               [&](std::string_view slot, std::size_t begin, std::size_t end) {
                 for (const auto& [name, role] : roles)
                   if (name == slot) spans.push_back({std::string(role), begin, end});
               });
  return spans;
}

TaskExample compose(std::string_view pattern, const Slots& slots) {
  const std::size_t open = pattern.find('[');
  const std::size_t close = pattern.find(']');
  require(open != std::string_view::npos && close != std::string_view::npos && open < close,
          "corpus: the pattern '{}' has no answer", pattern);
  TaskExample example;
  example.prompt = fill(pattern.substr(0, open), slots);
  example.answer = fill(pattern.substr(open + 1, close - open - 1), slots);
  example.text = example.prompt + example.answer + fill(pattern.substr(close + 1), slots);
  return example;
}

std::vector<std::string> pick_several(Random& random, std::span<const std::string_view> list,
                                      std::size_t count) {
  require(count <= list.size(), "corpus: {} of {} words", count, list.size());
  std::vector<std::string> picked;
  while (picked.size() < count) picked.push_back(pick_other(random, list, picked));
  return picked;
}

std::string pick_other(Random& random, std::span<const std::string_view> list,
                       const std::vector<std::string>& taken) {
  while (true) {
    const std::string_view word = pick(random, list);
    if (std::find(taken.begin(), taken.end(), word) == taken.end()) return std::string(word);
  }
}

int pick_number(Random& random, int least, int most) {
  return least + static_cast<int>(random.below(static_cast<std::uint64_t>(most - least + 1)));
}

bool coin(Random& random) { return random.below(2) == 0; }

}  // namespace filigree::corpus
