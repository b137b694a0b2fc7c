// Gendered pronouns: the pronoun that a name asks for.
//
//   So Evelyn is a really great friend, isn't she?
//
// Held out: a name in a sentence; the name occurs in other sentences and the sentence with other
// names.
#include "filigree/data.h"
#include "text/corpus/compose.h"
#include "text/corpus/corpus_tasks.h"
#include "text/corpus/words.h"

namespace filigree::corpus {
namespace {

// {he}, {his}, {him} and {himself} stand for the form of the name's gender.
constexpr std::string_view kPronounPatterns[] = {
    "So {name} is a really great {job}, isn't[ {he}]?",
    "{name} is a good {job}, and everyone knows that[ {he}] works hard.",
    "{name} was late because[ {he}] had missed the bus.",
    "{name} said that[ {he}] would come to the {place}.",
    "{name} wanted to become {a job} when[ {he}] was young.",
    "Nobody saw {name} at the {place}, although[ {he}] was there all day.",
    "When {name} left the {place},[ {he}] was smiling.",
    "{name} is happy today because[ {he}] found the {thing}.",
    "As soon as {name} opened the door,[ {he}] noticed the {thing}.",
    "{name} works as {a job}, but[ {he}] would rather be {a other}.",
    "The {job} is called {name}, and[ {he}] lives near the {place}.",
    "{name} stayed at home, for[ {he}] was tired.",
    "I asked {name} about the {thing}, but[ {he}] did not answer.",
    "We all like {name} since[ {he}] always tells the truth.",
    "{name} promised that[ {he}] would bring the {thing}.",
    "{name} forgot[ {his}] {thing} at the {place}.",
    "{name} put[ {his}] {thing} on the table.",
    "{name} looked for[ {his}] {thing} all over the {place}.",
    "At the {place}, {name} lost[ {his}] {thing}.",
    "{name} sold[ {his}] {thing} to the {job}.",
    "{name} could not find[ {his}] {thing} anywhere.",
    "{name} cleaned[ {his}] {thing} before going to the {place}.",
    "The {job} told {name} to bring[ {his}] {thing}.",
    "{name} is proud of[ {his}] new {thing}.",
    "{name} was holding[ {his}] {thing} with both hands.",
    "When {name} came to the {place}, everyone greeted[ {him}] warmly.",
    "{name} fell, and the {job} helped[ {him}] to get up.",
    "We waited for {name} and then drove[ {him}] to the {place}.",
    "{name} was hungry, so the {job} gave[ {him}] a sandwich.",
    "The {job} knew {name} well and trusted[ {him}] completely.",
    "{name} knows the {place}; a friend told[ {him}] about it.",
    "{name} called, and I told[ {him}] about the {thing}.",
    "{name} looked at[ {himself}] in the mirror.",
    "{name} bought the {thing} for[ {himself}].",
    "{name} taught[ {himself}] to cook.",
    "At the {place}, {name} introduced[ {himself}] as {a job}.",
    "{name} made the {thing} all by[ {himself}].",
    "{name} hurt[ {himself}] while carrying the {thing}.",
};

struct Pronouns {
  std::string_view he, his, him, himself;
};
constexpr Pronouns kMalePronouns = {"he", "his", "him", "himself"};
constexpr Pronouns kFemalePronouns = {"she", "her", "her", "herself"};

Slots with_pronouns(Slots slots, const Pronouns& pronouns) {
  slots.insert(slots.end(), {{"he", std::string(pronouns.he)},
                             {"his", std::string(pronouns.his)},
                             {"him", std::string(pronouns.him)},
                             {"himself", std::string(pronouns.himself)}});
  return slots;
}

}  // namespace

TaskExample draw_pronoun(Random& random) {
  const bool male = coin(random);
  const std::string name(pick(random, male ? male_names() : female_names()));
  const std::string_view pattern = pick(random, kPronounPatterns);
  const std::vector<std::string> jobs = pick_several(random, professions(), 2);
  const Slots slots = {{"name", name},
                       {"job", jobs[0]},
                       {"other", jobs[1]},
                       {"place", std::string(pick(random, places()))},
                       {"thing", std::string(pick(random, things()))}};
  TaskExample example =
      compose(pattern, with_pronouns(slots, male ? kMalePronouns : kFemalePronouns));
  example.wrong = {
      compose(pattern, with_pronouns(slots, male ? kFemalePronouns : kMalePronouns)).answer};
  example.combination = name + ": " + std::string(pattern);
  return example;
}

TaskPair pair_pronoun(Random& random) {
  const bool male = coin(random);
  const std::string name(pick(random, male ? male_names() : female_names()));
  const std::string other_name(pick(random, male ? female_names() : male_names()));
  const std::string_view pattern = pick(random, kPronounPatterns);
  const std::vector<std::string> jobs = pick_several(random, professions(), 2);
  const std::string place(pick(random, places())), thing(pick(random, things()));
  const auto slots = [&](const std::string& who, bool he) {
    return with_pronouns(
        {{"name", who}, {"job", jobs[0]}, {"other", jobs[1]}, {"place", place}, {"thing", thing}},
        he ? kMalePronouns : kFemalePronouns);
  };
  const auto told = [&](const std::string& who, bool he) {
    return compose(pattern, slots(who, he));
  };
  TaskPair pair;
  pair.clean = told(name, male);
  pair.clean.roles = roles_in(pattern, slots(name, male), {{"name", "NAME"}});
  const TaskExample other = told(other_name, !male);
  pair.clean.wrong = {other.answer};
  pair.clean.combination = name + ": " + std::string(pattern);
  pair.corrupt = other.prompt;
  return pair;
}

}  // namespace filigree::corpus
