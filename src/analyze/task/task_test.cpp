// Prompts for a tokenizer, tasks from files, metrics and the comparison with chance.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <filesystem>
#include <numeric>
#include <set>

#include "analyze/analyze_test_support.h"
#include "analyze/task/positions.h"
#include "analyze/task/user_task.h"
#include "filigree/autograd.h"
#include "filigree/error.h"
#include "filigree/tasks.h"
#include "support/files.h"
#include "text/byte_level.h"

namespace filigree {
namespace {

using ::testing::HasSubstr;

const Tokenizer& tokenizer() {
  static const Tokenizer loaded = Tokenizer::from_folder(golden_folder() / "bpe-8k");
  return loaded;
}

// Bytes, and numbers cut as GPT-2 cuts them: " 1732" is " 17" and "32".
const Tokenizer& digit_tokenizer() {
  static const Tokenizer built = [] {
    nlohmann::json vocabulary;
    std::string merges = "#version: 0.2\n";
    const auto add = [&](const std::string& token) {
      const auto id = static_cast<int>(vocabulary.size());
      vocabulary[token] = id;
    };
    for (const std::uint8_t byte : bytes_in_alphabet_order())
      add(std::string(byte_level_character(byte)));
    const std::string space(byte_level_character(' '));
    const auto merge = [&](const std::string& a, const std::string& b) {
      add(a + b);
      merges += a + " " + b + "\n";
    };
    merge(space, "1");
    for (char digit = '0'; digit <= '9'; ++digit) merge(space + "1", std::string(1, digit));
    for (char tens = '0'; tens <= '9'; ++tens)
      for (char digit = '0'; digit <= '9'; ++digit)
        merge(std::string(1, tens), std::string(1, digit));
    return Tokenizer::from_vocab_and_merges_text(vocabulary.dump(), merges);
  }();
  return built;
}

// bpe-8k has no token for most years.
const Tokenizer& tokenizer_for(const TaskDefinition& task) {
  return task.name == "greater-than" ? digit_tokenizer() : tokenizer();
}

DropReason reason_of(const PromptText& text, const FitOptions& options = {}) {
  const Fit result = fit(text, tokenizer(), options);
  EXPECT_FALSE(result.prompt.has_value());
  return result.reason;
}

// A text whose only word the tokenizer splits, and one that it does not.
constexpr const char* kSplitWord = " Antananarivo";

TEST(Fit, GivesTheTokensOfPromptsAndAnswers) {
  const Fit result = fit({"The king gave it to the", "The man gave it to the", {" king"}, {" man"}},
                         tokenizer(), {});
  ASSERT_TRUE(result.prompt.has_value());
  const TaskPrompt& prompt = *result.prompt;
  EXPECT_EQ(tokenizer().decode(prompt.clean), "The king gave it to the");
  EXPECT_EQ(tokenizer().decode(prompt.corrupt), "The man gave it to the");
  EXPECT_EQ(prompt.first_difference(), 1);
  EXPECT_EQ(tokenizer().decode(prompt.answers), " king");
  EXPECT_EQ(tokenizer().decode(prompt.wrong), " man");
}

TEST(Fit, SaysWhyAPairIsOfNoUse) {
  EXPECT_EQ(reason_of({"", "a", {" b"}, {" c"}}), DropReason::kEmpty);
  EXPECT_EQ(reason_of({"one", "one", {" king"}, {" man"}}), DropReason::kSame);
  EXPECT_EQ(reason_of({"the king", "the king and", {" man"}, {" king"}}),
            DropReason::kDifferentLengths);
  EXPECT_EQ(reason_of({"the king", "the man", {kSplitWord}, {" king"}}),
            DropReason::kSeveralTokens);
  EXPECT_EQ(reason_of({"the king", "the man", {" king"}, {kSplitWord}}),
            DropReason::kSeveralTokens);
  EXPECT_EQ(reason_of({"the king", "the man", {" king"}, {" king"}}), DropReason::kSharedToken);
  // "th" and "e" are one token together.
  EXPECT_EQ(reason_of({"of th", "to th", {"e"}, {" king"}}), DropReason::kJoined);
  FitOptions small;
  small.context = 1;
  EXPECT_EQ(reason_of({"the king", "the man", {" of"}, {" to"}}, small), DropReason::kTooLong);
  small.context = 0, small.vocabulary = 10;
  EXPECT_EQ(reason_of({"the king", "the man", {" of"}, {" to"}}, small),
            DropReason::kOutsideVocabulary);
}

TEST(Fit, TakesTheFirstTokenOfLongAnswersWhenAsked) {
  FitOptions first;
  first.answer_tokens = AnswerTokens::kFirst;
  const Fit result = fit({"the king", "the man", {kSplitWord}, {" king"}}, tokenizer(), first);
  ASSERT_TRUE(result.prompt.has_value());
  EXPECT_EQ(result.prompt->answers.size(), 1u);
  EXPECT_EQ(result.prompt->answers[0], tokenizer().encode(kSplitWord)[0]);
}

TEST(Fit, LeavesOutWrongAnswersUnlessAllAreNeeded) {
  const PromptText text = {"the king", "the man", {" of"}, {" to", kSplitWord}};
  const Fit some = fit(text, tokenizer(), {});
  ASSERT_TRUE(some.prompt.has_value());
  EXPECT_EQ(some.prompt->wrong.size(), 1u);
  EXPECT_EQ(some.wrong_left_out, 1u);
  FitOptions all;
  all.every_wrong_answer = true;
  EXPECT_EQ(reason_of(text, all), DropReason::kSeveralTokens);
}

TEST(Fit, TakesAnswersApartWhenAsked) {
  FitOptions options;
  const PromptText text = {"of th", "to th", {"e"}, {" king"}};
  EXPECT_EQ(reason_of(text, options), DropReason::kJoined);
  options.answers_apart = true;
  const Fit result = fit(text, tokenizer(), options);
  ASSERT_TRUE(result.prompt.has_value());
  EXPECT_EQ(result.prompt->answers, tokenizer().encode("e"));
}

TEST(Fit, NamesTokensAndTheirRoles) {
  // " 1732" is " 17" and "32", letters are tokens.
  PromptText text = {"from 1732 to 17", "from 1701 to 17", {"40"}, {"20"}};
  text.roles = {{"XX", 5, 7}, {"YY", 7, 9}, {"WORD", 0, 4}};
  const Fit fitted = fit(text, digit_tokenizer(), {.answers_apart = true});
  ASSERT_TRUE(fitted.prompt);
  const TaskPrompt& prompt = *fitted.prompt;
  EXPECT_EQ(prompt.tokens,
            (std::vector<std::string>{"f", "r", "o", "m", " 17", "32", " ", "t", "o", " 17"}));
  EXPECT_EQ(prompt.roles, (std::vector<std::string>{"WORD", "WORD.2", "WORD.3", "WORD.4", "XX",
                                                    "YY", "", "", "", "END"}));
  EXPECT_EQ(token_place(prompt, 5), "'32'");
  EXPECT_EQ(token_place(prompt, 9), "' 17' 9");
  EXPECT_EQ(role_place(prompt, 9), "END");
  EXPECT_EQ(role_place(prompt, 7), "'t'");
  EXPECT_THROW(token_place(prompt, 10), Error);
  // A token may be part of several stretches; the first is START where it is nothing else.
  text.roles = {{"A", 4, 6}, {"B", 6, 7}};
  const std::vector<std::string> roles = roles_of(text, prompt.clean, digit_tokenizer());
  EXPECT_EQ(roles[0], "START");
  EXPECT_EQ(roles[4], "A/B");
  // Tokens of another text have no roles but those of every prompt.
  text.clean += "x";
  EXPECT_EQ(roles_of(text, prompt.clean, digit_tokenizer())[4], "");
  EXPECT_EQ(roles_of(text, {}, digit_tokenizer()).size(), 0u);
  // Prompts that were made of numbers have numbers for places.
  TaskPrompt bare;
  bare.clean = {3, 4};
  EXPECT_EQ(token_place(bare, 1), "1");
  EXPECT_EQ(role_place(bare, 1), "1");
}

TEST(Fit, PutsTheEndOfTextTokenFirst) {
  FitOptions options;
  options.end_of_text_first = true;
  const Fit result = fit({"the king", "the man", {" of"}, {" to"}}, tokenizer(), options);
  ASSERT_TRUE(result.prompt.has_value());
  EXPECT_EQ(result.prompt->clean[0], tokenizer().eos_id());
  EXPECT_EQ(result.prompt->corrupt[0], tokenizer().eos_id());
  EXPECT_EQ(result.prompt->length(), 3);
}

class EveryCorruption : public testing::TestWithParam<std::pair<std::string, std::string>> {};

TEST_P(EveryCorruption, GivesDifferentPromptsThatFitAndAreAFunctionOfTheSeed) {
  const TaskDefinition& task = task_definition(GetParam().first);
  const TaskCorruption& corruption = corruption_of(task, GetParam().second);
  const Tokenizer& cut = tokenizer_for(task);
  TaskOptions options;
  options.prompts = 3;
  options.seed = 3;
  const TaskPrompts made = make_task(task, corruption, cut, options);
  EXPECT_EQ(made.prompts.size(), 3u);
  EXPECT_EQ(made.drawn, std::accumulate(made.dropped.begin(), made.dropped.end(), std::size_t{3}));
  std::set<std::string> texts;
  for (const TaskPrompt& prompt : made.prompts) {
    EXPECT_EQ(prompt.clean.size(), prompt.corrupt.size());
    EXPECT_NE(prompt.clean, prompt.corrupt);
    EXPECT_EQ(cut.decode(prompt.clean), prompt.text.clean);
    std::vector<TokenId> with_answer = prompt.clean;
    with_answer.push_back(prompt.answers[0]);
    EXPECT_EQ(cut.decode(with_answer), prompt.text.clean + prompt.text.answers[0]);
    if (!task.fixed_answers) {
      EXPECT_EQ(cut.encode(prompt.text.clean + prompt.text.answers[0]), with_answer);
    }
    for (const TokenId wrong : prompt.wrong)
      EXPECT_EQ(std::count(prompt.answers.begin(), prompt.answers.end(), wrong), 0);
    texts.insert(prompt.text.clean);
  }
  EXPECT_EQ(texts.size(), made.prompts.size());

  const TaskPrompts again = make_task(task, corruption, cut, options);
  options.seed = 4;
  const TaskPrompts other = make_task(task, corruption, cut, options);
  const auto prompts = [](const TaskPrompts& all) {
    std::vector<std::vector<TokenId>> list;
    for (const TaskPrompt& prompt : all.prompts) list.push_back(prompt.clean);
    return list;
  };
  EXPECT_EQ(prompts(again), prompts(made));
  EXPECT_NE(prompts(other), prompts(made));
}

std::vector<std::pair<std::string, std::string>> all_corruptions() {
  std::vector<std::pair<std::string, std::string>> all;
  for (const TaskDefinition& task : task_definitions())
    for (const TaskCorruption& corruption : task.corruptions)
      if (!task.from_text) all.emplace_back(task.name, corruption.name);  // see text_tasks_test.cpp
  return all;
}

INSTANTIATE_TEST_SUITE_P(Tasks, EveryCorruption, testing::ValuesIn(all_corruptions()),
                         [](const auto& parameter) {
                           std::string name = parameter.param.first + "_" + parameter.param.second;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(Tasks, AreFoundByEitherNameAndNearOnesAreNamed) {
  EXPECT_EQ(task_definition("indirect_object").name, "ioi");
  EXPECT_EQ(task_definition("greater_than").name, "greater-than");
  EXPECT_THAT(error_of([] { task_definition("greter-than"); }), HasSubstr("greater-than"));
  EXPECT_THAT(error_of([] { corruption_of(task_definition("ioi"), "none"); }),
              HasSubstr("third-person, exchanged, other-names"));
}

TEST(Tasks, GreaterThanHasEveryYear) {
  const TaskDefinition& task = task_definition("greater-than");
  const TaskPrompts made = make_task(task, task.corruptions[0], digit_tokenizer(), {.prompts = 5});
  for (const TaskPrompt& prompt : made.prompts)
    EXPECT_EQ(prompt.answers.size() + prompt.wrong.size(), 100u);
}

TEST(Tasks, SayWhyNoPromptFits) {
  TaskOptions options;
  options.prompts = 2;
  options.fit.context = 1;
  const TaskDefinition& task = task_definition("induction");
  EXPECT_THAT(error_of([&] { make_task(task, task.corruptions[0], tokenizer(), options); }),
              HasSubstr("longer than the model's context"));
}

TaskPrompts parse(const std::string& text, std::size_t most = 100) {
  return parse_task(text, "my.jsonl", tokenizer(), {}, most);
}

TEST(UserTasks, AreReadLineByLine) {
  const TaskPrompts made = parse(
      "{\"clean\": \"the king\", \"corrupt\": \"the man\", \"answer\": \" of\", \"wrong\": \" "
      "to\"}\r\n\n"
      "{\"clean\": \"the man\", \"corrupt\": \"the king\", \"answer\": [\" of\", \" in\"], "
      "\"wrong\": [\" to\"]}\n"
      "{\"clean\": \"the man\", \"corrupt\": \"the\", \"answer\": \" of\", \"wrong\": \" to\"}");
  ASSERT_EQ(made.prompts.size(), 2u);
  EXPECT_EQ(made.prompts[1].answers.size(), 2u);
  EXPECT_EQ(made.drawn, 3u);
  EXPECT_EQ(made.dropped[static_cast<std::size_t>(DropReason::kDifferentLengths)], 1u);
}

TEST(UserTasks, MayNameRoles) {
  const auto roles = [](const std::string& text, const FitOptions& options = {}) {
    const std::string line =
        R"({"clean": "the king of the man", "corrupt": "the king of the king", "answer": " of", )"
        R"("wrong": " to", "roles": )";
    return parse_task(line + text + "}", "my.jsonl", tokenizer(), options, 1).prompts[0].roles;
  };
  using Roles = std::vector<std::string>;
  EXPECT_EQ(roles("{}"), (Roles{"START", "", "", "", "END"}));
  EXPECT_EQ(roles(R"({"A": "king", "B": ["the", 2], "C": -2, "D": 0, "E": 4})"),
            (Roles{"D", "A", "", "B/C", "END"}));
  EXPECT_EQ(roles(R"({"A": 1})", {.end_of_text_first = true}),
            (Roles{"START", "", "A", "", "", "END"}));
  const auto error = [&](const char* text) { return error_of([&] { roles(text); }); };
  EXPECT_THAT(error(R"({"A": "queen"})"), HasSubstr("line 1: role 'A': 'queen' is not in clean"));
  EXPECT_THAT(error(R"({"A": ["the", 3]})"), HasSubstr("'the' is not 3 times in clean"));
  EXPECT_THAT(error(R"({"A": 5})"), HasSubstr("no position 5; clean has 5 tokens, 0 to 4"));
  EXPECT_THAT(error(R"({"A": -6})"), HasSubstr("no position -6"));
  EXPECT_THAT(error(R"({"A": [1]})"), HasSubstr("a text and which of its places"));
  EXPECT_THAT(error(R"({"END": 1})"), HasSubstr("'END' is no name of a role"));
  EXPECT_THAT(error(R"({"": 1})"), HasSubstr("no name of a role"));
  EXPECT_THAT(error("[1]"), HasSubstr("'roles' is no object"));
}

TEST(UserTasks, BadLinesAreErrorsWithTheirNumber) {
  const std::string good =
      R"({"clean": "the king", "corrupt": "the man", "answer": " of", "wrong": " to"})"
      "\n";
  EXPECT_THAT(error_of([&] { parse(good + "\n" + "{\"clean\": 1}"); }), HasSubstr("line 3"));
  EXPECT_THAT(error_of([&] { parse(good + "nonsense"); }), HasSubstr("my.jsonl, line 2"));
  EXPECT_THAT(error_of([&] { parse(good + R"({"clean": "a", "corrupt": "b", "wrong": " c"})"); }),
              HasSubstr("'answer' is missing"));
  EXPECT_THAT(error_of([&] {
                parse(R"({"clean": "a", "corrupt": "b", "answer": [" c", 2], "wrong": " c"})");
              }),
              HasSubstr("not a text"));
  EXPECT_THAT(
      error_of([&] { parse(R"({"clean": "a", "corrupt": "b", "answer": [], "wrong": ""})"); }),
      HasSubstr("list of 1 to"));
  EXPECT_THAT(
      error_of([&] {
        parse(R"({"clean": "a", "corrupt": "b", "answer": " c", "wrong": " d", "metric": 1})");
      }),
      HasSubstr("unknown key 'metric'"));
  EXPECT_THAT(error_of([&] { parse("\n  \n"); }), HasSubstr("no prompt"));
  EXPECT_THAT(error_of([&] { parse("\"" + std::string(kMostTaskLineBytes + 1, 'x') + "\""); }),
              HasSubstr("line 1"));
}

TaskPrompt prompt_of(std::vector<TokenId> answers, std::vector<TokenId> wrong) {
  TaskPrompt prompt;
  prompt.clean = {1, 2}, prompt.corrupt = {1, 3};
  prompt.answers = std::move(answers), prompt.wrong = std::move(wrong);
  return prompt;
}

TEST(Metrics, AreWhatTheirDefinitionsSay) {
  const TaskPrompt one = prompt_of({0}, {1}), two = prompt_of({1, 2}, {3});
  const PromptRefs prompts = {&one, &two};
  const Tensor logits = Tensor::from({2, 4}, std::vector<float>{1, 3, 0, 0, 0, 2, 4, 1});
  const Tensor clean = Tensor::from({2, 4}, std::vector<float>{1, 3, 0, 0, 0, 0, 0, 0});
  const std::vector<double> difference = measure(Metric::kLogitDifference, logits, prompts);
  EXPECT_DOUBLE_EQ(difference[0], -2);
  EXPECT_DOUBLE_EQ(difference[1], 2);
  EXPECT_EQ(measure(Metric::kAccuracy, logits, prompts), (std::vector<double>{0, 1}));

  const auto softmax = [](const std::vector<double>& x) {
    double sum = 0;
    for (const double value : x) sum += std::exp(value);
    std::vector<double> p;
    for (const double value : x) p.push_back(std::exp(value) / sum);
    return p;
  };
  const std::vector<double> p = softmax({1, 3, 0, 0}), q = softmax({0, 2, 4, 1});
  const std::vector<double> probability = measure(Metric::kProbabilityDifference, logits, prompts);
  EXPECT_NEAR(probability[0], p[0] - p[1], 1e-6);
  EXPECT_NEAR(probability[1], q[1] + q[2] - q[3], 1e-6);

  const std::vector<double> kl = measure(Metric::kKl, logits, prompts, clean);
  double expected = 0;
  for (const double value : q) expected -= 0.25 * std::log(0.25 / value);
  EXPECT_NEAR(kl[0], 0, 1e-7);
  EXPECT_NEAR(kl[1], expected, 1e-6);

  // The same prompts twice in one batch.
  const Tensor doubled =
      Tensor::from({4, 4}, std::vector<float>{1, 3, 0, 0, 0, 2, 4, 1, 3, 1, 0, 0, 0, 2, 4, 5});
  EXPECT_EQ(measure(Metric::kLogitDifference, doubled, prompts),
            (std::vector<double>{-2, 2, 2, -2}));
}

TEST(Metrics, SumsHaveTheRightValueAndSlope) {
  const TaskPrompt one = prompt_of({0}, {1}), two = prompt_of({1, 2}, {3});
  const PromptRefs prompts = {&one, &two};
  const std::vector<float> values = {1, 3, 0, 0.5f, 0, 2, 1, 1};
  const Tensor clean = Tensor::from({2, 4}, std::vector<float>{1, 2, 0, 1, 0, 0, 0.5f, 0});
  for (const Metric metric :
       {Metric::kLogitDifference, Metric::kProbabilityDifference, Metric::kKl}) {
    SCOPED_TRACE(name_of(metric));
    const auto total = [&](const std::vector<float>& at) {
      const std::vector<double> rows = measure(metric, Tensor::from({2, 4}, at), prompts, clean);
      return rows[0] + rows[1];
    };
    const Variable logits(Tensor::from({2, 1, 4}, values), true);
    Tape tape;
    const Variable sum = metric_sum(metric, logits, prompts, clean);
    EXPECT_NEAR(sum.value().item(), total(values), 1e-5);
    tape.backward(sum);
    for (std::size_t i = 0; i < values.size(); ++i) {
      std::vector<float> more = values, less = values;
      more[i] += 1e-2f, less[i] -= 1e-2f;
      EXPECT_NEAR(logits.grad().f32()[i], (total(more) - total(less)) / 2e-2, 2e-4);
    }
  }
  EXPECT_THAT(error_of([&] {
                metric_sum(Metric::kAccuracy, Tensor::from({2, 4}, values), prompts);
              }),
              HasSubstr("no gradient"));
  EXPECT_THAT(error_of([] { parse_name<Metric>("loss", "metric"); }), HasSubstr("logit-diff"));
}

TEST(Metrics, EstimatesHaveTheStandardErrorOfTheMean) {
  const std::vector<double> values = {1, 2, 3, 6};
  const Estimate result = estimate(values);
  EXPECT_DOUBLE_EQ(result.mean, 3);
  EXPECT_NEAR(result.error.value(), std::sqrt((4 + 1 + 0 + 9) / 3.0 / 4.0), 1e-12);
  const std::vector<double> one = {2};
  EXPECT_EQ(estimate(one).mean, 2);
  EXPECT_FALSE(estimate(one).error);
}

TEST(Chance, IsTheTailOfIndependentGuesses) {
  EXPECT_NEAR(at_least(3, {0.5, 0.5, 0.5, 0.5}), 5.0 / 16, 1e-12);
  EXPECT_NEAR(at_least(0, {0.1, 0.9}), 1, 1e-12);
  EXPECT_NEAR(at_least(2, {0.1, 0.9}), 0.09, 1e-12);
  EXPECT_NEAR(at_least(1, {0.1, 0.9}), 1 - 0.9 * 0.1, 1e-12);
}

TEST(Chance, IsBeatenOnlyByWhatGuessingWouldHardlyReach) {
  const std::vector<TaskPrompt> prompts(20, prompt_of({0}, {1}));
  TaskScores scores;
  scores.clean.assign(20, 1.0), scores.corrupt.assign(20, 0.0);
  scores.corrupt[0] = 0.5;
  scores.corrupt_accuracy.assign(20, 0.0);
  scores.clean_accuracy.assign(20, 1.0);
  const TaskCheck good = check_task(scores, prompts);
  EXPECT_TRUE(good.better_than_chance);
  EXPECT_TRUE(good.corruption_matters);
  EXPECT_DOUBLE_EQ(good.chance, 0.5);
  EXPECT_NEAR(good.p_value, std::pow(0.5, 20), 1e-9);
  for (std::size_t i = 0; i < 8; ++i) scores.clean_accuracy[i] = 0;
  scores.corrupt = scores.clean;
  const TaskCheck bad = check_task(scores, prompts);
  EXPECT_FALSE(bad.better_than_chance);  // 12 of 20
  EXPECT_FALSE(bad.corruption_matters);
}

TEST(Batches, HoldPromptsOfOneLengthWithinTheLimit) {
  std::vector<TaskPrompt> prompts;
  for (const std::size_t length : {3u, 5u, 3u, 3u, 5u, 9u}) {
    TaskPrompt prompt;
    prompt.clean.assign(length, 1), prompt.corrupt.assign(length, 1);
    prompt.corrupt.back() = 2;
    prompts.push_back(prompt);
  }
  prompts[2].corrupt[0] = 2;  // differs earlier than its neighbours
  const auto batches = batches_of(prompts, 6);
  const std::vector<std::vector<std::size_t>> expected = {{2, 0}, {3}, {1}, {4}, {5}};
  EXPECT_EQ(batches, expected);
}

TEST(UserTasks, LinesThatComeAgainCountOnce) {
  const std::string line =
      R"({"clean": "the king", "corrupt": "the man", "answer": " of", "wrong": " to"})";
  const std::string other =
      R"({"clean": "the king", "corrupt": "the man", "answer": " of", "wrong": " in"})";
  const TaskPrompts prompts = parse_task(line + "\n" + other + "\n" + line + "\n" + line + "\n",
                                         "task.jsonl", tokenizer(), {}, 100);
  EXPECT_EQ(prompts.prompts.size(), 2u);
  EXPECT_EQ(prompts.drawn, 4u);
  EXPECT_EQ(prompts.dropped[static_cast<std::size_t>(DropReason::kRepeated)], 2u);
  EXPECT_EQ(prompts.example[static_cast<std::size_t>(DropReason::kRepeated)], "the king");
}

}  // namespace
}  // namespace filigree
