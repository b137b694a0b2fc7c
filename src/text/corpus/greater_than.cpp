// Greater-than: something begins in one year and ends in a later one of the same century.
//
//   The war lasted from the year 1732 to the year 1748.
//
// Held out: first years.
#include <fmt/format.h>

#include "filigree/data.h"
#include "text/corpus/compose.h"
#include "text/corpus/corpus_tasks.h"

namespace filigree::corpus {
namespace {

constexpr std::string_view kEvents[] = {
    "war",         "siege",     "drought",    "famine",        "plague",       "voyage",
    "expedition",  "dispute",   "reign",      "project",       "exhibition",   "festival",
    "trial",       "campaign",  "rebellion",  "occupation",    "construction", "reconstruction",
    "restoration", "migration", "strike",     "negotiation",   "alliance",     "partnership",
    "empire",      "dynasty",   "revolution", "truce",         "epidemic",     "survey",
    "pilgrimage",  "conflict",  "feud",       "debate",        "tour",         "experiment",
    "program",     "boom",      "crisis",     "investigation", "blockade",     "crusade",
    "journey",     "exile",     "marriage",   "contract",      "regime",       "colony",
    "mission",     "uprising",  "recession",  "ceasefire",     "excavation",   "renovation"};

constexpr std::string_view kGreaterThanPatterns[] = {
    "The {event} lasted from the year {c}{y} to the year {c}[{z}].",
    "The {event} began in {c}{y} and ended in {c}[{z}].",
    "The {event} started in the year {c}{y} and went on until {c}[{z}].",
    "From {c}{y} to {c}[{z}] the {event} went on without a pause.",
    "The {event} ran from {c}{y} to {c}[{z}].",
    "Historians date the {event} from {c}{y} to {c}[{z}].",
    "According to the records, the {event} took place between {c}{y} and {c}[{z}].",
    "The {event}, which began in {c}{y}, was over by {c}[{z}].",
    "Between {c}{y} and {c}[{z}] people spoke of nothing but the {event}.",
    "The {event} is said to have lasted from {c}{y} until {c}[{z}].",
    "It took from {c}{y} to {c}[{z}] for the {event} to come to an end.",
    "The {event} of {c}{y} did not end until the year {c}[{z}].",
    "Having begun in {c}{y}, the {event} was finished in {c}[{z}].",
    "In {c}{y} the {event} began; in {c}[{z}] it ended.",
    "The {event} broke out in {c}{y} and was forgotten by {c}[{z}].",
    "A book about the {event} covers the years from {c}{y} to {c}[{z}].",
    "Letters from the {event} were written between the years {c}{y} and {c}[{z}].",
    "The museum shows pictures of the {event}, {c}{y} to {c}[{z}].",
    "Everyone remembered the {event} that lasted from {c}{y} to {c}[{z}].",
    "The {event} reached the town in {c}{y} and left it in {c}[{z}].",
};

constexpr int kFirstCentury = 11;
constexpr int kLastCentury = 19;

std::string two_digits(int year) { return fmt::format("{:02}", year); }

// Every year of the century but the answer is right or wrong.
void sort_years(int begin, int end, TaskExample& example) {
  for (int year = 0; year < 100; ++year) {
    if (year <= begin)
      example.wrong.push_back(two_digits(year));
    else if (year != end)
      example.also_right.push_back(two_digits(year));
  }
}

}  // namespace

TaskExample draw_greater_than(Random& random) {
  const std::string century = std::to_string(pick_number(random, kFirstCentury, kLastCentury));
  // From 01 on, which corrupt prompts begin with: it must be as familiar as the others, and a
  // token.
  const int begin = pick_number(random, 1, 98);
  const int end = pick_number(random, begin + 1, 99);
  TaskExample example =
      compose(pick(random, kGreaterThanPatterns), {{"event", std::string(pick(random, kEvents))},
                                                   {"c", century},
                                                   {"y", two_digits(begin)},
                                                   {"z", two_digits(end)}});
  sort_years(begin, end, example);
  example.combination = century + two_digits(begin);
  return example;
}

TaskPair pair_greater_than(Random& random, YearChange change) {
  const std::string century = std::to_string(pick_number(random, kFirstCentury, kLastCentury));
  const int begin = pick_number(random, 2, 98);
  const int end = pick_number(random, begin + 1, 99);
  int other = 1;
  while (change == YearChange::kOtherYear && (other == 1 || other == begin))
    other = pick_number(random, 2, 98);
  const std::string_view pattern = pick(random, kGreaterThanPatterns);
  const std::string event(pick(random, kEvents));
  const auto slots = [&](int year) {
    return Slots{{"event", event}, {"c", century}, {"y", two_digits(year)}, {"z", two_digits(end)}};
  };
  const auto told = [&](int year) { return compose(pattern, slots(year)); };
  TaskPair pair;
  pair.clean = told(begin);
  pair.clean.roles = roles_in(pattern, slots(begin), {{"c", "XX"}, {"y", "YY"}});
  sort_years(begin, end, pair.clean);
  pair.clean.combination = century + two_digits(begin);
  pair.corrupt = told(other).prompt;
  return pair;
}

}  // namespace filigree::corpus
