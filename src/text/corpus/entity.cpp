// Entity tracking: things lie in containers and people in places, some are moved, and the question
// is where one of them is in the end.
//
//   The key is in the box. The map is in the drawer. Mary moves the key to the bag. Now the key is
//   in the bag.
//
// Held out: a thing (or person) with the place where it ends.
#include <algorithm>

#include "text/corpus/compose.h"
#include "text/corpus/corpus_tasks.h"
#include "text/corpus/words.h"

namespace filigree::corpus {
namespace {

struct Wording {
  std::string_view begin, move, question;
};

// {who} is the thing or person, {from} and {to} are where it was and comes, {name} moves things.
constexpr Wording kThingWordings[] = {
    {"The {who} is in the {to}. ", "{name} moves the {who} to the {to}. ",
     "Now the {who} is in the[ {to}]."},
    {"There is {a who} in the {to}. ", "{name} takes the {who} and puts it in the {to}. ",
     "The {who} is now in the[ {to}]."},
    {"{name} puts the {who} in the {to}. ", "{name} moves the {who} from the {from} to the {to}. ",
     "The {who} ends up in the[ {to}]."},
    {"The {to} contains the {who}. ", "The {who} is taken out of the {from} and put in the {to}. ",
     "Where is the {who}? It is in the[ {to}]."},
    {"{name} hid the {who} in the {to}. ", "Then {name} carried the {who} to the {to}. ",
     "In the end, the {who} was in the[ {to}]."},
    {"{name} left the {who} in the {to}. ", "Later {name} put the {who} in the {to}. ",
     "If you look for the {who}, open the[ {to}]."},
    {"In the {to} there was {a who}. ", "{name} placed the {who} in the {to}. ",
     "At last the {who} was found in the[ {to}]."},
};

constexpr Wording kPersonWordings[] = {
    {"{who} is at the {to}. ", "{who} goes to the {to}. ", "Now {who} is at the[ {to}]."},
    {"{who} was at the {to}. ", "{who} went to the {to}. ", "After that, {who} was at the[ {to}]."},
    {"{who} started at the {to}. ", "{who} left the {from} and walked to the {to}. ",
     "Where is {who}? At the[ {to}]."},
    {"{who} waited at the {to}. ", "Then {who} moved on to the {to}. ",
     "In the end, {who} was at the[ {to}]."},
    {"In the morning {who} was at the {to}. ", "{who} drove from the {from} to the {to}. ",
     "By evening {who} was at the[ {to}]."},
};

}  // namespace

TaskExample draw_entity(Random& random) {
  const bool about_things = random.below(3) != 0;
  const Wording& wording =
      about_things ? pick(random, kThingWordings) : pick(random, kPersonWordings);
  const auto who_list = about_things ? things() : names();
  const auto where_list = about_things ? containers() : places();
  const auto count = static_cast<std::size_t>(pick_number(random, 2, 4));
  const std::vector<std::string> whos = pick_several(random, who_list, count);
  std::vector<std::string> where = pick_several(random, where_list, count);
  std::vector<std::string> mentioned = where;

  const auto slots = [&](std::size_t who, const std::string& from, const std::string& to) {
    return Slots{{"who", whos[who]},
                 {"from", from},
                 {"to", to},
                 {"name", pick_other(random, names(), whos)}};
  };
  std::string story;
  for (std::size_t i = 0; i < count; ++i) story += fill(wording.begin, slots(i, "", where[i]));
  for (int moves = pick_number(random, 0, 4); moves > 0; --moves) {
    const auto who = static_cast<std::size_t>(random.below(count));
    // Often a place that is known already, so that the latest mention alone does not tell.
    const std::string to = coin(random) ? pick_other(random, where_list, mentioned)
                                        : mentioned[random.below(mentioned.size())];
    if (to == where[who]) continue;
    story += fill(wording.move, slots(who, where[who], to));
    where[who] = to;
    if (std::find(mentioned.begin(), mentioned.end(), to) == mentioned.end())
      mentioned.push_back(to);
  }
  const auto asked = static_cast<std::size_t>(random.below(count));
  TaskExample example = compose(wording.question, slots(asked, "", where[asked]));
  example.prompt = story + example.prompt;
  example.text = story + example.text;
  for (const std::string& place : mentioned)
    if (place != where[asked]) example.wrong.push_back(" " + place);
  example.combination = whos[asked] + " @ " + where[asked];
  return example;
}

}  // namespace filigree::corpus
