#include "filigree/tasks.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "analyze/task/induction.h"
#include "analyze/task/text_tasks.h"
#include "base/checksum.h"
#include "filigree/error.h"
#include "filigree/names.h"

namespace filigree {
namespace {

using corpus::ArgumentChange;
using corpus::CopyChange;
using corpus::GiverChange;
using corpus::NameOrder;
using corpus::YearChange;

// Pairs tried for each prompt wanted before giving up: tokenizers that split most names still leave
// one pair in a hundred.
constexpr std::size_t kTriesPerPrompt = 100;
constexpr std::size_t kLeastTries = 2000;
// Draws for each of these: one in 16 is held out, and small tasks repeat themselves.
constexpr std::size_t kDrawsPerTry = 64;

std::function<DrawPair(const TaskMaterial&)> plain(DrawPair draw) {
  return [draw = std::move(draw)](const TaskMaterial&) { return draw; };
}

std::vector<TaskCorruption> giver_corruptions(NameOrder order) {
  const auto with = [order](GiverChange change) {
    return plain(
        [=](Random& random) { return corpus::pair_indirect_object(random, order, change); });
  };
  return {{"third-person", "a third person gives, so that the receiver is open",
           with(GiverChange::kThirdPerson)},
          {"exchanged", "the other one gives, so that the answer is the other name",
           with(GiverChange::kExchanged)},
          {"other-names", "all three names are others", with(GiverChange::kOtherNames)}};
}

std::vector<TaskDefinition> all_tasks() {
  std::vector<TaskDefinition> tasks;
  tasks.push_back({"ioi", "indirect_object",
                   "indirect object: of two people, the one who did not act receives"});
  tasks.back().corruptions = giver_corruptions(NameOrder::kEither);
  tasks.push_back({"ioi-abba", "indirect_object", "the same with the receiver named first (ABBA)"});
  tasks.back().corruptions = giver_corruptions(NameOrder::kAbba);
  tasks.push_back({"ioi-baba", "indirect_object", "the same with the giver named first (BABA)"});
  tasks.back().corruptions = giver_corruptions(NameOrder::kBaba);
  tasks.push_back({"greater-than", "greater_than", "an end year after the beginning",
                   Metric::kProbabilityDifference, true});
  tasks.back().corruptions = {
      {"first-year", "it begins in year 01 of the century",
       plain([](Random& r) { return corpus::pair_greater_than(r, YearChange::kFirstYear); })},
      {"other-year", "it begins in another year of the century",
       plain([](Random& r) { return corpus::pair_greater_than(r, YearChange::kOtherYear); })}};
  tasks.push_back({"pronoun", "pronoun", "he or she, his or her, after a name"});
  tasks.back().corruptions = {
      {"other-gender", "a name of the other gender", plain(corpus::pair_pronoun)}};
  tasks.push_back({"agreement", "agreement", "a verb in the number of its subject"});
  tasks.back().corruptions = {
      {"other-number", "the subject in the other number", plain(corpus::pair_agreement)}};
  tasks.push_back({"antonym", "antonym", "the opposite of a word in quotes"});
  tasks.back().corruptions = {{"other-word", "another word", plain(corpus::pair_antonym)}};
  tasks.push_back({"capital", "capital", "the capital of a country"});
  tasks.back().corruptions = {{"other-country", "another country", plain(corpus::pair_capital)}};
  tasks.push_back({"copy", "copy", "random words a second time"});
  tasks.back().corruptions = {
      {"one-word", "another word where the answer stands first",
       plain([](Random& r) { return corpus::pair_copy(r, CopyChange::kOneWord); })},
      {"all-words", "other words the first time",
       plain([](Random& r) { return corpus::pair_copy(r, CopyChange::kAllWords); })}};
  tasks.push_back({"induction", "", "random tokens of the model's own vocabulary a second time"});
  tasks.back().corruptions = {
      {"one-token", "another token where the answer stands first",
       [](const TaskMaterial& m) { return induction_draw(m.tokenizer, CopyChange::kOneWord); }},
      {"all-tokens", "other tokens the first time",
       [](const TaskMaterial& m) { return induction_draw(m.tokenizer, CopyChange::kAllWords); }}};
  tasks.push_back({"docstring", "docstring", "the next argument of a function, documented"});
  tasks.back().corruptions = {
      {"one-argument", "another name where the signature has the answer",
       plain([](Random& r) { return corpus::pair_docstring(r, ArgumentChange::kOneArgument); })},
      {"all-arguments", "a signature of other names",
       plain([](Random& r) { return corpus::pair_docstring(r, ArgumentChange::kAllArguments); })}};
  tasks.push_back({"addition", "addition", "the sum of two numbers of two digits"});
  tasks.back().corruptions = {
      {"other-summand", "another second summand", plain(corpus::pair_addition)}};
  const auto from_text = [&](std::string_view name, std::string_view description,
                             std::vector<TaskCorruption> corruptions) {
    tasks.push_back({name, "", description});
    tasks.back().from_text = tasks.back().first_token = true;
    tasks.back().corruptions = std::move(corruptions);
  };
  from_text("returning-word", "a name or rare word that returns in a passage of a text",
            {{"other-word", "another word the first time", returning_word_draw}});
  from_text("agreement-in-text", "a verb in the number of its subject, in a passage of a text",
            {{"other-number", "the subject in the other number", agreement_in_text_draw},
             {"other-noun", "another subject of the text, in the other number",
              agreement_other_noun_draw}});
  from_text("closing-quote", "a quotation that ends, in a passage of a text",
            {{"no-quote", "a word instead of the opening quote", closing_quote_draw}});
  return tasks;
}

PromptText text_of(TaskPair pair) {
  PromptText text;
  text.clean = std::move(pair.clean.prompt);
  text.corrupt = std::move(pair.corrupt);
  text.answers = {std::move(pair.clean.answer)};
  text.answers.insert(text.answers.end(), pair.clean.also_right.begin(),
                      pair.clean.also_right.end());
  text.wrong = std::move(pair.clean.wrong);
  text.roles = std::move(pair.clean.roles);
  return text;
}

}  // namespace

const std::vector<TaskDefinition>& task_definitions() {
  static const std::vector<TaskDefinition> tasks = all_tasks();
  return tasks;
}

const TaskDefinition& task_definition(std::string_view name) {
  std::vector<std::string> names;
  for (const TaskDefinition& task : task_definitions()) {
    if (task.name == name || (!task.corpus_task.empty() && task.corpus_task == name)) return task;
    names.emplace_back(task.name);
  }
  fail("there is no task '{}'; the nearest are {}", printable(name),
       join(nearest_names(name, names, 3), ", "));
}

const TaskCorruption& corruption_of(const TaskDefinition& task, std::string_view name) {
  if (name.empty()) return task.corruptions.front();
  std::vector<std::string> names;
  for (const TaskCorruption& corruption : task.corruptions) {
    if (corruption.name == name) return corruption;
    names.emplace_back(corruption.name);
  }
  fail("task '{}' has no corruption '{}'; it has {}", task.name, printable(name),
       join(names, ", "));
}

TaskPrompts make_task(const TaskDefinition& task, const TaskCorruption& corruption,
                      const Tokenizer& tokenizer, const TaskOptions& options) {
  require(options.prompts > 0, "task: the number of prompts must be positive");
  TaskPrompts result;
  result.task = task.name;
  result.corruption = corruption.name;
  FitOptions fitting = options.fit;
  fitting.every_wrong_answer = fitting.answers_apart = task.fixed_answers;
  if (task.first_token) fitting.answer_tokens = AnswerTokens::kFirst;
  require(!task.from_text || options.text != nullptr,
          "task '{}' is drawn from a text, and there is none", task.name);
  const DrawPair draw = corruption.prepare({tokenizer, options.text});
  Random random(options.seed, xxh64(task.name));
  std::set<std::string> kept;  // clean prompts
  const std::size_t most = std::max(kLeastTries, options.prompts * kTriesPerPrompt);
  for (std::size_t draws = 0; draws < most * kDrawsPerTry && result.drawn < most &&
                              result.prompts.size() < options.prompts;
       ++draws) {
    std::optional<TaskPair> pair = draw(random);
    if (!pair) {
      result.used_up = true;
      break;
    }
    if (!task.corpus_task.empty() && is_held_out(task.corpus_task, pair->clean.combination) !=
                                         (options.split == DataSplit::kHeldOut))
      continue;
    const PromptText text = text_of(std::move(*pair));
    // One that did not fit may do so with another corrupt prompt.
    if (kept.contains(text.clean)) continue;
    Fit fitted = fit(text, tokenizer, fitting);
    if (fitted.prompt) kept.insert(text.clean);
    result.add(std::move(fitted), text);
  }
  require(!task.from_text || result.drawn > 0,
          "task '{}': '{}', of {} words, has no passage for it; take a longer text", task.name,
          task.from_text ? printable(options.text->source) : "",
          task.from_text ? with_thousands(options.text->word_count()) : "");
  require_prompts(result);
  return result;
}

void require_prompts(const TaskPrompts& prompts) {
  if (!prompts.prompts.empty()) return;
  std::string reasons;
  for (std::size_t i = 0; i < kDropReasons; ++i)
    if (prompts.dropped[i] > 0)
      reasons += fmt::format("{}{} times {}", reasons.empty() ? "" : ", ", prompts.dropped[i],
                             description_of(static_cast<DropReason>(i)));
  fail("task '{}': none of {} prompts fits this model's tokenizer: {}{}", printable(prompts.task),
       prompts.drawn, reasons, prompts.used_up ? "; take a longer text" : "");
}

}  // namespace filigree
