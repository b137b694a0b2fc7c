// Two-digit addition: 23 + 45 = 68, also told as small stories.
//
// Held out: pairs of summands, in either order.
#include <fmt/format.h>

#include <algorithm>

#include "filigree/data.h"
#include "text/corpus/compose.h"
#include "text/corpus/corpus_tasks.h"
#include "text/corpus/words.h"

namespace filigree::corpus {
namespace {

constexpr std::string_view kAdditionPatterns[] = {
    "{a} + {b} =[ {c}]",
    "{a}+{b}=[{c}]",
    "{a} + {b} =[ {c}].",
    "{a} plus {b} is[ {c}].",
    "{a} plus {b} equals[ {c}].",
    "The sum of {a} and {b} is[ {c}].",
    "Adding {a} and {b} gives[ {c}].",
    "If you add {b} to {a}, you get[ {c}].",
    "Q: What is {a} + {b}?\nA:[ {c}]",
    "What is {a} plus {b}? It is[ {c}].",
    "{a} and {b} make[ {c}].",
    "{a} and {b} together are[ {c}].",
    "{name} had {a} {items} and got {b} more, which makes[ {c}] {items}.",
    "{name} had {a} {items}, {other} had {b}; together they had[ {c}] {items}.",
    "There are {a} {items} on one shelf and {b} on the other, so there are[ {c}] {items} in all.",
    "A bus with {a} passengers picked up {b} more; then it carried[ {c}] passengers.",
    "{name} read {a} pages yesterday and {b} today,[ {c}] pages altogether.",
    "The first team scored {a} points and the second {b}, a total of[ {c}] points.",
    "{name} paid {a} dollars for the {thing} and {b} for the bag,[ {c}] dollars in all.",
    "After {a} steps to the left and {b} further on, {name} had counted[ {c}] steps.",
    "In May {name} sold {a} {items} and in June {b}, which is[ {c}] {items} in two months.",
    "The bill said: {a} plus {b}, total[ {c}].",
};

constexpr std::string_view kItems[] = {
    "apples",  "coins",   "stamps",  "marbles", "cards",    "shells",  "books",   "pencils",
    "tickets", "eggs",    "oranges", "flowers", "stickers", "bottles", "buttons", "cookies",
    "stones",  "candles", "chairs",  "boxes",   "pears",    "nails",   "letters"};

}  // namespace

TaskExample draw_addition(Random& random) {
  const int a = pick_number(random, 10, 99);
  const int b = pick_number(random, 10, 99);
  const std::vector<std::string> people = pick_several(random, names(), 2);
  TaskExample example =
      compose(pick(random, kAdditionPatterns), {{"a", std::to_string(a)},
                                                {"b", std::to_string(b)},
                                                {"c", std::to_string(a + b)},
                                                {"name", people[0]},
                                                {"other", people[1]},
                                                {"items", std::string(pick(random, kItems))},
                                                {"thing", std::string(pick(random, things()))}});
  const std::string lead = example.answer.starts_with(' ') ? " " : "";
  // One off, and what forgetting or inventing a carry gives.
  for (const int slip : {1, -1, 10, -10})
    example.wrong.push_back(lead + std::to_string(a + b + slip));
  example.combination = fmt::format("{} {}", std::min(a, b), std::max(a, b));
  return example;
}

TaskPair pair_addition(Random& random) {
  const int a = pick_number(random, 10, 99);
  const int b = pick_number(random, 10, 99);
  int other = b;
  while (other == b) other = pick_number(random, 10, 99);
  const std::string_view pattern = pick(random, kAdditionPatterns);
  const std::vector<std::string> people = pick_several(random, names(), 2);
  const std::string items(pick(random, kItems)), thing(pick(random, things()));
  const auto slots = [&](int second) {
    return Slots{
        {"a", std::to_string(a)}, {"b", std::to_string(second)}, {"c", std::to_string(a + second)},
        {"name", people[0]},      {"other", people[1]},          {"items", items},
        {"thing", thing}};
  };
  const auto told = [&](int second) { return compose(pattern, slots(second)); };
  TaskPair pair;
  pair.clean = told(b);
  pair.clean.roles = roles_in(pattern, slots(b), {{"a", "A"}, {"b", "B"}});
  const TaskExample changed = told(other);
  pair.clean.wrong = {changed.answer};
  pair.clean.combination = fmt::format("{} {}", std::min(a, b), std::max(a, b));
  pair.corrupt = changed.prompt;
  return pair;
}

}  // namespace filigree::corpus
