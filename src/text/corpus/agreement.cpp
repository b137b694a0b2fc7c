// Subject-verb agreement: the verb has the number of its subject, not of the noun between them.
//
//   The keys near the cabinet are old.
//
// Held out: a subject with a distracting noun, each in its number.
#include "filigree/data.h"
#include "text/corpus/compose.h"
#include "text/corpus/corpus_tasks.h"

namespace filigree::corpus {
namespace {

struct Noun {
  std::string_view singular, plural;
};

constexpr Noun kPeople[] = {{"teacher", "teachers"},
                            {"doctor", "doctors"},
                            {"lawyer", "lawyers"},
                            {"farmer", "farmers"},
                            {"pilot", "pilots"},
                            {"sailor", "sailors"},
                            {"soldier", "soldiers"},
                            {"judge", "judges"},
                            {"artist", "artists"},
                            {"student", "students"},
                            {"friend", "friends"},
                            {"driver", "drivers"},
                            {"gardener", "gardeners"},
                            {"baker", "bakers"},
                            {"singer", "singers"},
                            {"dancer", "dancers"},
                            {"writer", "writers"},
                            {"manager", "managers"},
                            {"guard", "guards"},
                            {"clerk", "clerks"},
                            {"child", "children"},
                            {"woman", "women"},
                            {"man", "men"},
                            {"boy", "boys"},
                            {"girl", "girls"},
                            {"king", "kings"},
                            {"queen", "queens"},
                            {"neighbor", "neighbors"},
                            {"visitor", "visitors"},
                            {"actor", "actors"},
                            {"author", "authors"},
                            {"engineer", "engineers"},
                            {"nurse", "nurses"},
                            {"player", "players"},
                            {"hunter", "hunters"},
                            {"waiter", "waiters"},
                            {"poet", "poets"}};

constexpr Noun kThingNouns[] = {
    {"key", "keys"},       {"cabinet", "cabinets"},   {"book", "books"},
    {"table", "tables"},   {"chair", "chairs"},       {"window", "windows"},
    {"door", "doors"},     {"car", "cars"},           {"house", "houses"},
    {"tree", "trees"},     {"flower", "flowers"},     {"picture", "pictures"},
    {"letter", "letters"}, {"box", "boxes"},          {"bottle", "bottles"},
    {"lamp", "lamps"},     {"clock", "clocks"},       {"boat", "boats"},
    {"bridge", "bridges"}, {"road", "roads"},         {"river", "rivers"},
    {"garden", "gardens"}, {"fence", "fences"},       {"tower", "towers"},
    {"stone", "stones"},   {"knife", "knives"},       {"plate", "plates"},
    {"cup", "cups"},       {"shelf", "shelves"},      {"coin", "coins"},
    {"ticket", "tickets"}, {"computer", "computers"}, {"machine", "machines"},
    {"statue", "statues"}, {"painting", "paintings"}, {"wall", "walls"},
    {"roof", "roofs"},     {"basket", "baskets"},     {"carpet", "carpets"},
    {"mirror", "mirrors"}};

// What stands between subject and verb; {n} is the distracting noun.
constexpr std::string_view kBetween[] = {" near the {n}",        " behind the {n}",
                                         " next to the {n}",     " beside the {n}",
                                         " in front of the {n}", " not far from the {n}",
                                         " with the {n}",        " between the stairs and the {n}",
                                         " that the {n} hid",    " that stood by the {n}"};
constexpr std::string_view kBetweenPeople[] = {
    " near the {n}",         " behind the {n}",       " next to the {n}",
    " beside the {n}",       " in front of the {n}",  " with the {n}",
    " who saw the {n}",      " who knew the {n}",     " that the {n} met",
    " that the {n} admired", " who spoke to the {n}", " who waited for the {n}"};

struct Verb {
  std::string_view singular, plural, rest;
};

constexpr Verb kAboutThings[] = {{"is", "are", "old"},
                                 {"is", "are", "new"},
                                 {"is", "are", "broken"},
                                 {"is", "are", "dirty"},
                                 {"is", "are", "still there"},
                                 {"is", "are", "very expensive"},
                                 {"was", "were", "clean"},
                                 {"was", "were", "gone"},
                                 {"was", "were", "made of wood"},
                                 {"was", "were", "painted green"},
                                 {"has", "have", "been sold"},
                                 {"has", "have", "been repaired"},
                                 {"has", "have", "disappeared"},
                                 {"looks", "look", "beautiful"},
                                 {"seems", "seem", "heavy"},
                                 {"belongs", "belong", "to us"},
                                 {"needs", "need", "some care"},
                                 {"costs", "cost", "too much"},
                                 {"stands", "stand", "in the sun"},
                                 {"isn't", "aren't", "for sale"},
                                 {"wasn't", "weren't", "there before"},
                                 {"doesn't", "don't", "look safe"},
                                 {"hasn't", "haven't", "been moved"}};

constexpr Verb kAboutPeople[] = {
    {"is", "are", "tired"},           {"is", "are", "happy"},
    {"is", "are", "ready to leave"},  {"is", "are", "from the village"},
    {"was", "were", "late"},          {"was", "were", "very kind"},
    {"was", "were", "laughing"},      {"has", "have", "gone home"},
    {"has", "have", "two dogs"},      {"has", "have", "never been here"},
    {"knows", "know", "the answer"},  {"likes", "like", "music"},
    {"works", "work", "at night"},    {"lives", "live", "in the city"},
    {"wants", "want", "to help"},     {"speaks", "speak", "three languages"},
    {"walks", "walk", "to work"},     {"reads", "read", "a lot"},
    {"needs", "need", "more time"},   {"sings", "sing", "every evening"},
    {"doesn't", "don't", "agree"},    {"isn't", "aren't", "at home"},
    {"wasn't", "weren't", "invited"}, {"hasn't", "haven't", "arrived"}};

constexpr std::string_view kAgreementOpenings[] = {"The ",
                                                   "The ",
                                                   "The ",
                                                   "Today the ",
                                                   "I think that the ",
                                                   "It is clear that the ",
                                                   "They say that the ",
                                                   "We noticed that the ",
                                                   "As you can see, the ",
                                                   "Perhaps the ",
                                                   "Everyone knows that the "};

std::string_view form(const Noun& noun, bool plural) {
  return plural ? noun.plural : noun.singular;
}

}  // namespace

TaskExample draw_agreement(Random& random) {
  const bool about_people = coin(random);
  const bool plural = coin(random);
  const bool other_plural = coin(random);
  const Noun& subject = about_people ? pick(random, kPeople) : pick(random, kThingNouns);
  const Noun* other = &subject;
  // Who met, saw or hid something: the distracting noun is a person where the phrase needs one.
  while (other == &subject)
    other = about_people ? &pick(random, kPeople) : &pick(random, kThingNouns);
  const std::string_view between =
      about_people ? pick(random, kBetweenPeople) : pick(random, kBetween);
  const Verb& verb = about_people ? pick(random, kAboutPeople) : pick(random, kAboutThings);
  const std::string pattern = std::string(pick(random, kAgreementOpenings)) + "{subject}" +
                              std::string(between) + "[ {verb}] {rest}.";
  TaskExample example =
      compose(pattern, {{"subject", std::string(form(subject, plural))},
                        {"n", std::string(form(*other, other_plural))},
                        {"verb", std::string(plural ? verb.plural : verb.singular)},
                        {"rest", std::string(verb.rest)}});
  example.wrong = {" " + std::string(plural ? verb.singular : verb.plural)};
  example.combination =
      std::string(form(subject, plural)) + " / " + std::string(form(*other, other_plural));
  return example;
}

TaskPair pair_agreement(Random& random) {
  const bool about_people = coin(random);
  const bool plural = coin(random);
  const bool other_plural = coin(random);
  const std::span<const Noun> nouns =
      about_people ? std::span<const Noun>(kPeople) : std::span<const Noun>(kThingNouns);
  const Noun& subject = pick(random, nouns);
  const Noun* other = &subject;
  while (other == &subject) other = &pick(random, nouns);
  const std::string between(about_people ? pick(random, kBetweenPeople) : pick(random, kBetween));
  const Verb& verb = about_people ? pick(random, kAboutPeople) : pick(random, kAboutThings);
  const std::string pattern =
      std::string(pick(random, kAgreementOpenings)) + "{subject}" + between + "[ {verb}] {rest}.";
  const auto slots = [&](bool many) {
    return Slots{{"subject", std::string(form(subject, many))},
                 {"n", std::string(form(*other, other_plural))},
                 {"verb", std::string(many ? verb.plural : verb.singular)},
                 {"rest", std::string(verb.rest)}};
  };
  const auto told = [&](bool many) { return compose(pattern, slots(many)); };
  TaskPair pair;
  pair.clean = told(plural);
  pair.clean.roles = roles_in(pattern, slots(plural), {{"subject", "SUBJECT"}, {"n", "OTHER"}});
  const TaskExample changed = told(!plural);
  pair.clean.wrong = {changed.answer};
  pair.clean.combination =
      std::string(form(subject, plural)) + " / " + std::string(form(*other, other_plural));
  pair.corrupt = changed.prompt;
  return pair;
}

}  // namespace filigree::corpus
