// Indirect object: two people are named, one of them gives something, the other one receives it.
//
//   When Mary and John went to the store, John gave a drink to Mary.     (ABBA)
//   When John and Mary went to the store, John gave a drink to Mary.     (BABA)
//
// Held out: pairs of names, in either order and role.
#include <algorithm>

#include "filigree/data.h"
#include "text/corpus/compose.h"
#include "text/corpus/corpus_tasks.h"
#include "text/corpus/words.h"

namespace filigree::corpus {
namespace {

// Each ends where a clause with one of the two people begins.
constexpr std::string_view kIndirectObjectOpenings[] = {
    "When {A} and {B} went to the {place}, ",
    "After {A} and {B} went to the {place}, ",
    "While {A} and {B} were at the {place}, ",
    "When {A} and {B} met at the {place}, ",
    "After {A} and {B} met near the {place}, ",
    "As {A} and {B} were leaving the {place}, ",
    "Once {A} and {B} got to the {place}, ",
    "Before {A} and {B} left the {place}, ",
    "Because {A} and {B} worked together at the {place}, ",
    "{A} and {B} went to the {place}, and ",
    "{A} and {B} were at the {place}. ",
    "{A} and {B} spent the morning at the {place}. ",
    "{A} and {B} had a long talk at the {place}. Then ",
    "{A} met {B} at the {place}. Later ",
    "{A} walked to the {place} with {B}. There ",
    "{A} and {B} were waiting at the {place} when ",
    "Then, {A} and {B} had lunch at the {place}. Afterwards ",
    "One day, {A} and {B} were playing near the {place}. Suddenly ",
    "Last week {A} and {B} visited the {place}, where ",
    "{A} saw {B} at the {place}, and ",
    "Friends say that {A} and {B} were at the {place} when ",
    "After a long day at the {place}, {A} and {B} sat down, and ",
    "Yesterday {A} and {B} came to the {place}. In the end ",
    "{A} and {B} argued at the {place}, but at last ",
};

constexpr std::string_view kClosings[] = {
    "{S} gave {a thing} to[ {R}].",
    "{S} gave the {thing} to[ {R}].",
    "{S} handed {a thing} to[ {R}].",
    "{S} handed the {thing} over to[ {R}].",
    "{S} passed the {thing} to[ {R}].",
    "{S} offered {a thing} to[ {R}].",
    "{S} showed the {thing} to[ {R}].",
    "{S} sold {a thing} to[ {R}].",
    "{S} lent {a thing} to[ {R}].",
    "{S} threw the {thing} to[ {R}].",
    "{S} brought {a thing} to[ {R}].",
    "{S} decided to give {a thing} to[ {R}].",
    "{S} wanted to give the {thing} to[ {R}].",
    "{S} bought {a thing} for[ {R}].",
    "{S} picked out {a thing} for[ {R}].",
    "{S} said something about the {thing} to[ {R}].",
    "{S} gave back the {thing} that belonged to[ {R}].",
    "{S} pointed out {a thing} to[ {R}].",
    "{S} quietly slipped {a thing} to[ {R}].",
    "{S} returned the {thing} to[ {R}].",
};

// What is held out: two names in either order.
std::string names_of(const std::vector<std::string>& people) {
  return std::min(people[0], people[1]) + " " + std::max(people[0], people[1]);
}

}  // namespace

TaskExample draw_indirect_object(Random& random) {
  const std::vector<std::string> people = pick_several(random, names(), 2);
  const bool abba = coin(random);
  const std::string& giver = people[abba ? 1 : 0];
  const std::string& receiver = people[abba ? 0 : 1];
  const std::string pattern =
      std::string(pick(random, kIndirectObjectOpenings)) + std::string(pick(random, kClosings));
  TaskExample example = compose(pattern, {{"A", people[0]},
                                          {"B", people[1]},
                                          {"S", giver},
                                          {"R", receiver},
                                          {"place", std::string(pick(random, places()))},
                                          {"thing", std::string(pick(random, things()))}});
  example.wrong = {" " + giver};
  example.combination = names_of(people);
  return example;
}

TaskPair pair_indirect_object(Random& random, NameOrder order, GiverChange change) {
  const std::vector<std::string> people = pick_several(random, names(), 5);
  const bool abba = order == NameOrder::kEither ? coin(random) : order == NameOrder::kAbba;
  const std::string& giver = people[abba ? 1 : 0];
  const std::string& receiver = people[abba ? 0 : 1];
  const std::string opening(pick(random, kIndirectObjectOpenings)),
      closing(pick(random, kClosings));
  const std::string place(pick(random, places())), thing(pick(random, things()));
  const auto slots = [&](const std::string& a, const std::string& b, const std::string& gives) {
    return Slots{{"A", a},        {"B", b},         {"S", gives},
                 {"R", receiver}, {"place", place}, {"thing", thing}};
  };
  const auto told = [&](const std::string& a, const std::string& b, const std::string& gives) {
    return compose(opening + closing, slots(a, b, gives));
  };
  TaskPair pair;
  pair.clean = told(people[0], people[1], giver);
  pair.clean.roles = roles_in(opening + closing, slots(people[0], people[1], giver),
                              {{"A", abba ? "IO" : "S1"}, {"B", abba ? "S1" : "IO"}, {"S", "S2"}});
  pair.clean.wrong = {" " + giver};
  pair.clean.combination = names_of(people);
  switch (change) {
    case GiverChange::kThirdPerson:
      pair.corrupt = told(people[0], people[1], people[2]).prompt;
      break;
    case GiverChange::kExchanged: pair.corrupt = told(people[0], people[1], receiver).prompt; break;
    case GiverChange::kOtherNames:
      pair.corrupt = told(people[2], people[3], people[4]).prompt;
      break;
  }
  return pair;
}

}  // namespace filigree::corpus
