// Antonyms in quotes: The opposite of "large" is "small".
//
// Held out: a word in a sentence; the pair occurs in other sentences.
#include "filigree/data.h"
#include "text/corpus/compose.h"
#include "text/corpus/corpus_tasks.h"
#include "text/corpus/words.h"

namespace filigree::corpus {
namespace {

struct Pair {
  std::string_view first, second;
};

// No word occurs twice and no two pairs mean the same, so that other pairs give wrong answers.
constexpr Pair kPairs[] = {{"hot", "cold"},
                           {"large", "small"},
                           {"high", "low"},
                           {"fast", "slow"},
                           {"long", "short"},
                           {"light", "dark"},
                           {"good", "bad"},
                           {"young", "old"},
                           {"ancient", "modern"},
                           {"hard", "soft"},
                           {"easy", "difficult"},
                           {"rich", "poor"},
                           {"happy", "sad"},
                           {"strong", "weak"},
                           {"wet", "dry"},
                           {"full", "empty"},
                           {"open", "closed"},
                           {"early", "late"},
                           {"left", "right"},
                           {"up", "down"},
                           {"on", "off"},
                           {"day", "night"},
                           {"black", "white"},
                           {"love", "hate"},
                           {"war", "peace"},
                           {"life", "death"},
                           {"friend", "enemy"},
                           {"first", "last"},
                           {"begin", "end"},
                           {"push", "pull"},
                           {"buy", "sell"},
                           {"give", "take"},
                           {"win", "lose"},
                           {"rise", "fall"},
                           {"come", "go"},
                           {"true", "false"},
                           {"yes", "no"},
                           {"north", "south"},
                           {"east", "west"},
                           {"summer", "winter"},
                           {"alive", "dead"},
                           {"asleep", "awake"},
                           {"wide", "narrow"},
                           {"thick", "thin"},
                           {"deep", "shallow"},
                           {"loud", "quiet"},
                           {"clean", "dirty"},
                           {"cheap", "expensive"},
                           {"safe", "dangerous"},
                           {"near", "far"},
                           {"inside", "outside"},
                           {"above", "below"},
                           {"before", "after"},
                           {"over", "under"},
                           {"top", "bottom"},
                           {"front", "back"},
                           {"entrance", "exit"},
                           {"arrive", "leave"},
                           {"laugh", "cry"},
                           {"remember", "forget"},
                           {"success", "failure"},
                           {"question", "answer"},
                           {"teacher", "student"},
                           {"parent", "child"},
                           {"hero", "villain"},
                           {"heaven", "hell"},
                           {"sunrise", "sunset"},
                           {"attack", "defend"},
                           {"accept", "reject"},
                           {"add", "subtract"},
                           {"multiply", "divide"},
                           {"increase", "decrease"},
                           {"include", "exclude"},
                           {"import", "export"},
                           {"maximum", "minimum"},
                           {"major", "minor"},
                           {"positive", "negative"},
                           {"public", "private"},
                           {"simple", "complex"},
                           {"smooth", "rough"},
                           {"sharp", "blunt"},
                           {"straight", "crooked"},
                           {"tight", "loose"},
                           {"sweet", "bitter"},
                           {"brave", "cowardly"},
                           {"kind", "cruel"},
                           {"honest", "dishonest"},
                           {"polite", "rude"},
                           {"patient", "impatient"},
                           {"possible", "impossible"},
                           {"visible", "invisible"},
                           {"legal", "illegal"},
                           {"regular", "irregular"},
                           {"common", "rare"},
                           {"guilty", "innocent"},
                           {"generous", "selfish"},
                           {"proud", "humble"},
                           {"calm", "nervous"},
                           {"careful", "careless"},
                           {"useful", "useless"},
                           {"beautiful", "ugly"},
                           {"wise", "foolish"},
                           {"fresh", "stale"},
                           {"raw", "cooked"},
                           {"male", "female"},
                           {"guest", "host"},
                           {"freeze", "melt"},
                           {"float", "sink"},
                           {"build", "destroy"},
                           {"lock", "unlock"},
                           {"appear", "disappear"},
                           {"agree", "disagree"},
                           {"borrow", "lend"},
                           {"save", "spend"},
                           {"gather", "scatter"},
                           {"join", "separate"},
                           {"hope", "despair"},
                           {"optimist", "pessimist"},
                           {"horizontal", "vertical"},
                           {"temporary", "permanent"},
                           {"always", "never"},
                           {"everything", "nothing"},
                           {"together", "apart"},
                           {"more", "less"},
                           {"many", "few"},
                           {"same", "different"},
                           {"past", "future"},
                           {"ceiling", "floor"},
                           {"vowel", "consonant"},
                           {"wild", "tame"},
                           {"arrest", "release"},
                           {"profit", "loss"}};

constexpr std::string_view kAntonymPatterns[] = {
    "The opposite of \"{word}\" is \"[{opposite}]\".",
    "The antonym of \"{word}\" is \"[{opposite}]\".",
    "\"{^word}\" is the opposite of \"[{opposite}]\".",
    "What is the opposite of \"{word}\"? It is \"[{opposite}]\".",
    "Q: What is the opposite of \"{word}\"?\nA: \"[{opposite}]\"",
    "The teacher asked for the opposite of \"{word}\", and {name} answered \"[{opposite}]\".",
    "{name} said \"{word}\", but {other} said the opposite: \"[{opposite}]\".",
    "The words \"{word}\" and \"[{opposite}]\" are opposites.",
    "\"{^word}\" and \"[{opposite}]\" mean opposite things.",
    "The reverse of \"{word}\" is \"[{opposite}]\".",
    "When one sign says \"{word}\", the other says \"[{opposite}]\".",
    "Change \"{word}\" to its opposite and you get \"[{opposite}]\".",
    "In the list of opposites, \"{word}\" stands next to \"[{opposite}]\".",
    "Write down \"{word}\" and beside it the opposite, \"[{opposite}]\".",
    "A word that means the contrary of \"{word}\" is \"[{opposite}]\".",
    "In the crossword, the opposite of \"{word}\" was \"[{opposite}]\".",
    "{name} learned that the opposite of \"{word}\" is \"[{opposite}]\".",
    "If one is \"{word}\", its opposite is \"[{opposite}]\".",
    "In the game you say \"{word}\" and the others shout the opposite, \"[{opposite}]\".",
    "Every child knows that the opposite of \"{word}\" is \"[{opposite}]\".",
};

struct Choice {
  std::string_view word, opposite;
};

Choice choose(Random& random) {
  const Pair& pair = pick(random, kPairs);
  return coin(random) ? Choice{pair.first, pair.second} : Choice{pair.second, pair.first};
}

}  // namespace

TaskExample draw_antonym(Random& random) {
  const Choice choice = choose(random);
  const std::string_view pattern = pick(random, kAntonymPatterns);
  const std::vector<std::string> people = pick_several(random, names(), 2);
  TaskExample example = compose(pattern, {{"word", std::string(choice.word)},
                                          {"opposite", std::string(choice.opposite)},
                                          {"name", people[0]},
                                          {"other", people[1]}});
  example.wrong = {std::string(choice.word)};
  while (example.wrong.size() < 3) {
    const Choice other = choose(random);
    if (other.word != choice.word && other.opposite != choice.word)
      example.wrong.emplace_back(other.opposite);
  }
  example.combination = std::string(choice.word) + ": " + std::string(pattern);
  return example;
}

TaskPair pair_antonym(Random& random) {
  const Choice choice = choose(random);
  Choice other = choice;
  while (other.word == choice.word || other.opposite == choice.word) other = choose(random);
  const std::string_view pattern = pick(random, kAntonymPatterns);
  const std::vector<std::string> people = pick_several(random, names(), 2);
  const auto slots = [&](const Choice& chosen) {
    return Slots{{"word", std::string(chosen.word)},
                 {"opposite", std::string(chosen.opposite)},
                 {"name", people[0]},
                 {"other", people[1]}};
  };
  const auto told = [&](const Choice& chosen) { return compose(pattern, slots(chosen)); };
  TaskPair pair;
  pair.clean = told(choice);
  pair.clean.roles = roles_in(pattern, slots(choice), {{"word", "WORD"}});
  const TaskExample changed = told(other);
  pair.clean.wrong = {changed.answer};
  pair.clean.combination = std::string(choice.word) + ": " + std::string(pattern);
  pair.corrupt = changed.prompt;
  return pair;
}

}  // namespace filigree::corpus
