#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "filigree/training_study.h"

namespace filigree::study {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Eight windows of 100 tokens around this loss; what varies between windows varies in all models
// alike, but for `noise`.
Evaluation evaluation_of(double loss, double open_share = 1.0, double noise = 0.0) {
  Evaluation evaluation;
  evaluation.layers = evaluation.heads = 1;
  for (int w = 0; w < 8; ++w) {
    const double shift = 0.1 * w - 0.35 + (w % 2 == 0 ? noise : -noise);
    evaluation.windows.push_back({100.0 * (loss + shift), 100});
    evaluation.total.sum += evaluation.windows.back().sum;
    evaluation.total.tokens += 100;
  }
  evaluation.open_edges = {open_share * 1000.0};
  evaluation.edges = {1000.0};
  evaluation.queries = 800;
  return evaluation;
}

std::vector<Finding> findings(const SparsifyVerdict& verdict) {
  std::vector<Finding> all;
  for (const SparsifyVerdict::Found& one : verdict.found) all.push_back(one.finding);
  return all;
}

TEST(SparsifyVerdict, HoldsWhereTheControlStandsStill) {
  const Evaluation dense = evaluation_of(3.0), sparse = evaluation_of(3.015, 0.1),
                   control = evaluation_of(2.99);
  const SparsifyVerdict verdict = judge_sparsify(
      BudgetReference::kDense, 0.02,
      {.dense = dense, .sparse = sparse, .control = &control, .worth_of_attention = 0.5});
  EXPECT_TRUE(verdict.holds());
  EXPECT_NEAR(verdict.gap.nats, 0.015, 1e-9);
  EXPECT_NEAR(verdict.control->nats, -0.01, 1e-9);
  const Json json = to_json(verdict);
  EXPECT_EQ(json["holds"], true);
  EXPECT_EQ(json["against"], "dense");
}

TEST(SparsifyVerdict, FindsTheDenseModelUnconvergedByItsControl) {
  const Evaluation dense = evaluation_of(3.0), sparse = evaluation_of(2.94, 0.1),
                   control = evaluation_of(2.8);
  const SparsifyMeasurements measured{
      .dense = dense, .sparse = sparse, .control = &control, .worth_of_attention = 0.5};
  const SparsifyVerdict verdict = judge_sparsify(BudgetReference::kDense, 0.02, measured);
  EXPECT_THAT(findings(verdict), ElementsAre(Finding::kUnconvergedDense));
  EXPECT_THAT(verdict.found[0].text, AllOf(HasSubstr("-0.2000"), HasSubstr("+0.1400"),
                                           HasSubstr("-0.0600"), HasSubstr("against the control")));
  EXPECT_EQ(to_json(verdict)["found"][0]["finding"], "unconverged-dense");
  // Counted from the control nothing is wrong with it, and the gap is the true one.
  const SparsifyVerdict fair = judge_sparsify(BudgetReference::kControl, 0.02, measured);
  EXPECT_TRUE(fair.holds());
  EXPECT_NEAR(fair.gap.nats, 0.14, 1e-9);
}

TEST(SparsifyVerdict, ANegativeGapIsFoundWithoutAControlToo) {
  const Evaluation dense = evaluation_of(3.0), sparse = evaluation_of(2.94, 0.1);
  const SparsifyMeasurements measured{.dense = dense, .sparse = sparse};
  EXPECT_THAT(findings(judge_sparsify(BudgetReference::kDense, 0.02, measured)),
              ElementsAre(Finding::kBelowDense));
  // Not within the budget, and not within what chance does.
  EXPECT_TRUE(
      judge_sparsify(BudgetReference::kDense, 0.1, {.dense = dense, .sparse = sparse}).holds());
  const Evaluation chance = evaluation_of(2.94, 0.1, 0.2);
  EXPECT_TRUE(
      judge_sparsify(BudgetReference::kDense, 0.02, {.dense = dense, .sparse = chance}).holds());
}

TEST(SparsifyVerdict, FindsThatAttentionIsGone) {
  const Evaluation dense = evaluation_of(3.0), closed = evaluation_of(3.0, 0.0),
                   open = evaluation_of(3.0, 0.2);
  EXPECT_THAT(
      findings(judge_sparsify(BudgetReference::kDense, 0.02, {.dense = dense, .sparse = closed})),
      ElementsAre(Finding::kNoOpenEdges));
  EXPECT_THAT(
      findings(judge_sparsify(BudgetReference::kDense, 0.02,
                              {.dense = dense, .sparse = open, .worth_of_attention = 2e-4})),
      ElementsAre(Finding::kIdleAttention));
}

}  // namespace
}  // namespace filigree::study
