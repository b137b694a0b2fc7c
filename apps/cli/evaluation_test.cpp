#include "apps/cli/evaluation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "apps/cli/test_model.h"
#include "base/error.h"
#include "base/random.h"
#include "ops/cross_entropy/cross_entropy.h"

namespace filigree::cli {
namespace {

using ::testing::HasSubstr;

std::vector<TokenId> random_ids(std::size_t count, std::int64_t vocabulary) {
  Random random(11);
  std::vector<TokenId> ids;
  for (std::size_t i = 0; i < count; ++i)
    ids.push_back(static_cast<TokenId>(random.below(static_cast<std::uint64_t>(vocabulary))));
  return ids;
}

// -log p(target | inputs), in double precision from the logits of one forward pass.
double direct_loss(const Model& model, std::span<const TokenId> inputs, TokenId target) {
  const Tensor ids = Tensor::from_ids({1, static_cast<std::int64_t>(inputs.size())}, inputs);
  const Variable logits = model.forward(ids, {.last_position_only = true});
  double sum = 0.0;
  for (const float logit : logits.value().values()) sum += std::exp(static_cast<double>(logit));
  return std::log(sum) -
         static_cast<double>(logits.value().values()[static_cast<std::size_t>(target)]);
}

// The definition, target by target: the first window that has a target is the one that counts.
double direct_mean(const Model& model, const std::vector<TokenId>& ids, std::int64_t length,
                   std::int64_t stride) {
  double sum = 0.0;
  for (std::size_t i = 1; i < ids.size(); ++i) {
    std::size_t begin = 0;  // of the first window [begin, begin + length) that has input i - 1
    while (i - 1 >= begin + static_cast<std::size_t>(length))
      begin += static_cast<std::size_t>(stride);
    sum += direct_loss(model, std::span(ids).subspan(begin, i - begin), ids[i]);
  }
  return sum / static_cast<double>(ids.size() - 1);
}

class EvaluationTest : public ::testing::Test {
 protected:
  std::string error_of(const std::vector<TokenId>& ids, const EvaluationOptions& options) {
    try {
      evaluate(*model_, ids, options);
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  }

  std::unique_ptr<Model> model_ = make_model(tiny_config(300, 16), 4);
};

TEST_F(EvaluationTest, EqualsTheDefinitionForEveryWindowing) {
  struct Case {
    std::size_t tokens;
    std::int64_t length, stride, batch;
  };
  for (const Case& c : {Case{50, 16, 16, 1}, Case{50, 16, 16, 3}, Case{50, 16, 5, 2},
                        Case{50, 7, 1, 4}, Case{50, 1, 1, 8}, Case{17, 16, 16, 1},
                        Case{18, 16, 16, 4}, Case{5, 16, 8, 2}, Case{2, 16, 16, 1}}) {
    SCOPED_TRACE(fmt::format("{} tokens, length {}, stride {}, batch {}", c.tokens, c.length,
                             c.stride, c.batch));
    const std::vector<TokenId> ids = random_ids(c.tokens, 300);
    const LossTotal total = evaluate(*model_, ids, {c.length, c.stride, c.batch});
    EXPECT_EQ(total.tokens, static_cast<std::int64_t>(c.tokens) - 1);
    EXPECT_NEAR(total.mean(), direct_mean(*model_, ids, c.length, c.stride), 1e-5);
  }
}

TEST_F(EvaluationTest, OneWindowIsTheLibrarysCrossEntropy) {
  const std::vector<TokenId> ids = random_ids(17, 300);
  const Variable logits = model_->forward(Tensor::from_ids({1, 16}, std::span(ids).first(16)));
  const Tensor targets = Tensor::from_ids({1, 16}, std::span(ids).last(16));
  EXPECT_NEAR(evaluate(*model_, ids, {}).mean(),
              static_cast<double>(cross_entropy(logits, targets).value().item()), 1e-6);
}

TEST_F(EvaluationTest, DefaultsAreTheContextWithoutOverlap) {
  const std::vector<TokenId> ids = random_ids(60, 300);
  EXPECT_NEAR(evaluate(*model_, ids, {}).sum, evaluate(*model_, ids, {16, 16, 1}).sum, 1e-4);
}

TEST_F(EvaluationTest, ReportsEveryPass) {
  const std::vector<TokenId> ids = random_ids(50, 300);
  std::vector<std::int64_t> seen;
  evaluate(*model_, ids, {16, 16, 2},
           [&](const LossTotal& so_far) { seen.push_back(so_far.tokens); });
  EXPECT_THAT(seen, ::testing::ElementsAre(32, 49));
}

TEST_F(EvaluationTest, WhatCannotBeEvaluatedIsAnError) {
  EXPECT_THAT(error_of({}, {}), HasSubstr("at least two tokens, there are 0"));
  EXPECT_THAT(error_of({1}, {}), HasSubstr("at least two tokens, there is 1"));
  EXPECT_THAT(error_of({1, 2, 3}, {17, 0, 1}),
              HasSubstr("windows of 17 tokens are longer than the model's context of 16"));
  EXPECT_THAT(error_of({1, 2, 3}, {8, 9, 1}), HasSubstr("stride of 9"));
  EXPECT_THAT(error_of({1, 300, 3}, {}), HasSubstr("300"));
}

TEST(Windows, EveryTargetCountsOnce) {
  for (std::int64_t tokens = 2; tokens < 40; ++tokens)
    for (std::int64_t length = 1; length < 12; ++length)
      for (std::int64_t stride = 1; stride <= length; ++stride) {
        std::int64_t next = 1;
        for (const Window& window : windows_of(tokens, length, stride)) {
          ASSERT_EQ(window.first_counted, next);
          ASSERT_GT(window.first_counted, window.begin);  // it has its input in the window
          ASSERT_LE(window.end - window.begin, length);
          next = window.end + 1;
        }
        ASSERT_EQ(next, tokens);
      }
}

}  // namespace
}  // namespace filigree::cli
