// Tasks whose prompts are token ids: positions, classes, and what causal models do not read.
#include <gmock/gmock.h>

#include "analyze/task/user_task.h"
#include "filigree/circuit.h"
#include "filigree/error.h"
#include "filigree/lens.h"
#include "model/family_samples_test_support.h"
#include "support/errors.h"

namespace filigree {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

FitOptions options_of(const ModelConfig& config) {
  FitOptions options;
  options.vocabulary = config.vocabulary, options.outputs = config.outputs();
  options.context = config.context, options.bidirectional = config.bidirectional;
  return options;
}

TaskPrompts parsed(const std::string& text, const FitOptions& options) {
  return parse_task(text, "test", Tokenizer::of_ids(50), options, 100);
}

TEST(IdTasks, OfACausalModelEndAtTheirPosition) {
  const FitOptions options = options_of(sample_config("hooked-attn_only"));
  const TaskPrompts tasks = parsed(
      R"({"clean": [1, 2, 3], "corrupt": [1, 4, 3], "answer": 5, "wrong": [6, 7]})"
      "\n"
      R"({"clean": [9, 2, 3, 8], "corrupt": [9, 4, 3, 8], "position": [1, -1], "answer": [5, [6, 1]], "wrong": [[7, 8], 9]})"
      "\n",
      options);
  ASSERT_EQ(tasks.prompts.size(), 3u);
  EXPECT_THAT(tasks.prompts[0].answers, ElementsAre(5));
  EXPECT_THAT(tasks.prompts[0].wrong, ElementsAre(6, 7));
  EXPECT_THAT(tasks.prompts[0].tokens, ElementsAre("1", "2", "3"));
  EXPECT_THAT(tasks.prompts[1].clean, ElementsAre(9, 2));
  EXPECT_THAT(tasks.prompts[1].wrong, ElementsAre(7, 8));
  EXPECT_THAT(tasks.prompts[2].clean, ElementsAre(9, 2, 3, 8));
  EXPECT_THAT(tasks.prompts[2].answers, ElementsAre(6, 1));
  for (const TaskPrompt& prompt : tasks.prompts) EXPECT_EQ(prompt.position, -1);
}

TEST(IdTasks, WhatIsNoneIsNamed) {
  const FitOptions options = options_of(sample_config("hooked-attn_only"));
  const auto message = [&](const std::string& line) {
    return error_of([&] { parsed(line, options); });
  };
  EXPECT_THAT(message(R"({"clean": [1, "a"], "corrupt": [1, 2], "answer": 1, "wrong": 2})"),
              HasSubstr("no token id"));
  EXPECT_THAT(message(R"({"clean": [1, 2], "corrupt": [1, 3], "answer": 1})"),
              HasSubstr("'wrong'"));
  EXPECT_THAT(message(R"({"clean": [1], "corrupt": [2], "answer": 1, "wrong": 2, "position": 1})"),
              HasSubstr("no position 1"));
  EXPECT_THAT(
      message(
          R"({"clean": [1, 4], "corrupt": [2, 4], "answer": [1], "wrong": [2], "position": [0, 1]})"),
      HasSubstr("each of 2 positions"));
  // These fit no model, and are dropped with a reason.
  EXPECT_THAT(message(R"({"clean": [1, 77], "corrupt": [2, 77], "answer": 1, "wrong": 2})"),
              HasSubstr("outside"));
  EXPECT_THAT(message(R"({"clean": [1, 2], "corrupt": [1], "answer": 1, "wrong": 2})"),
              HasSubstr("different numbers"));
  EXPECT_THAT(message(R"({"clean": [1, 2], "corrupt": [1, 2], "answer": 1, "wrong": 2})"),
              HasSubstr("same tokens"));
}

// A bidirectional model reads all of the prompt, and its answer where the task says: in scores,
// patched runs, gradients and contributions alike.
TEST(IdTasks, OfABidirectionalModelAreReadAtTheirPosition) {
  const auto model = sample_model(sample_config("hooked-bidirectional"));
  const TaskPrompts tasks = parsed(
      R"({"clean": [1, 2, 3, 30], "corrupt": [1, 2, 40, 30], "position": 0, "answer": 5, "wrong": 6})"
      "\n"
      R"({"clean": [9, 2, 3, 8], "corrupt": [9, 2, 4, 8], "position": 2, "answer": 5, "wrong": 7})"
      "\n"
      R"({"clean": [9, 2, 3, 8], "corrupt": [9, 2, 4, 8], "answer": 5, "wrong": 7})"
      "\n",
      options_of(model->config()));
  ASSERT_EQ(tasks.prompts.size(), 3u);
  EXPECT_EQ(tasks.prompts[0].position, 0);
  EXPECT_EQ(tasks.prompts[1].position, 2);
  EXPECT_EQ(tasks.prompts[2].position, -1);
  const auto by_hand = [&](const TaskPrompt& prompt, const std::vector<TokenId>& ids) {
    const Tensor logits = model->forward(Tensor::from_ids({1, 4}, ids)).value();
    const std::int64_t at = prompt.position < 0 ? 3 : prompt.position;
    const float* row = logits.f32() + at * logits.size(2);
    return static_cast<double>(row[prompt.answers[0]]) - static_cast<double>(row[prompt.wrong[0]]);
  };
  const TaskScores scores = score(*model, tasks.prompts, Metric::kLogitDifference);
  const LogitAttribution parts = attribute_logits(*model, tasks.prompts, {});
  const PatchedRuns runs = run_patched(*model, tasks.prompts, {PatchSet{{Site::kEmbedding}}}, {});
  for (std::size_t i = 0; i < 3; ++i) {
    const TaskPrompt& prompt = tasks.prompts[i];
    const double clean = by_hand(prompt, prompt.clean), corrupt = by_hand(prompt, prompt.corrupt);
    EXPECT_GT(std::abs(clean - corrupt), 1e-3) << i;
    EXPECT_NEAR(scores.clean[i], clean, 1e-4) << i;
    EXPECT_NEAR(scores.corrupt[i], corrupt, 1e-4) << i;
    EXPECT_NEAR(parts.total[i], clean, 1e-3) << i;
    EXPECT_NEAR(runs.clean[i], clean, 1e-4) << i;
    EXPECT_NEAR(runs.patched[0][i], corrupt, 1e-3) << i;  // all that differs comes in there
  }
}

}  // namespace
}  // namespace filigree
