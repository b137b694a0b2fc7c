// Circuits: curves, their sizes, and a model built by hand whose circuit is known.
#include "analyze/circuit/circuit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "analyze/circuit/test_support.h"
#include "analyze/task/check.h"
#include "base/error.h"

namespace filigree {
namespace {

using ::testing::HasSubstr;

// Sizes of the model built by hand: the residual stream has a place for each token, for each
// position, for the token before and for the token to say.
constexpr std::int64_t kTokens = 16, kPositions = 16, kWidth = 64, kHeads = 4, kHeadWidth = 16;
constexpr std::int64_t kTokenAt = 0, kPositionAt = 16, kBeforeAt = 32, kSayAt = 48;

float* weights(const Model& model, const std::string& name) {
  for (const NamedParameter& parameter : model.parameters())
    if (parameter.name == name) return parameter.variable.mutable_value().mutable_f32();
  fail("test: no parameter {}", name);
}

// Lets head 0 of a layer compare `asked` (a place for each of 16 things) of the query with `held`
// of the key, `offset` places further, and copy the key's token to `to`.
void wire_head(const Model& model, int layer, std::int64_t asked, std::int64_t held,
               std::int64_t offset, std::int64_t to) {
  float* qkv = weights(model, fmt::format("transformer.h.{}.attn.c_attn.weight", layer));
  float* out = weights(model, fmt::format("transformer.h.{}.attn.c_proj.weight", layer));
  for (std::int64_t row = 0; row < kWidth; ++row)  // nothing else in this head
    for (std::int64_t j = 0; j < kHeadWidth; ++j)
      for (std::int64_t part = 0; part < 3; ++part) qkv[row * 3 * kWidth + part * kWidth + j] = 0;
  for (std::int64_t j = 0; j < kHeadWidth; ++j)
    for (std::int64_t column = 0; column < kWidth; ++column) out[j * kWidth + column] = 0;
  for (std::int64_t j = 0; j < kHeadWidth; ++j) {
    if (j + offset < kHeadWidth) qkv[(asked + j + offset) * 3 * kWidth + j] = 3;
    qkv[(held + j) * 3 * kWidth + kWidth + j] = 3;
    qkv[(kTokenAt + j) * 3 * kWidth + 2 * kWidth + j] = 0.2f;
    out[j * kWidth + to + j] = 1;
  }
}

// A model of two layers that continues a repeated sequence: head 0 of layer 0 tells each position
// the token before it, head 0 of layer 1 looks for the position that followed this token and says
// its token. The other six heads are noise; the MLPs do nothing.
std::unique_ptr<Model> induction_model() {
  auto model = make_model(parse_model_config({{"model_type", "gpt2"},
                                              {"n_layer", 2},
                                              {"n_head", kHeads},
                                              {"n_embd", kWidth},
                                              {"n_positions", kPositions},
                                              {"vocab_size", kTokens},
                                              {"tie_word_embeddings", false}},
                                             "induction_model"),
                          3);
  const auto place = [&](const std::string& name, std::int64_t at, float value) {
    float* table = weights(*model, name);
    std::fill_n(table, kTokens * kWidth, 0.0f);
    for (std::int64_t i = 0; i < kTokens; ++i) table[i * kWidth + at + i] = value;
  };
  place("transformer.wte.weight", kTokenAt, 1);
  place("transformer.wpe.weight", kPositionAt, 1);
  place("lm_head.weight", kSayAt, 3);
  for (const int layer : {0, 1})
    std::fill_n(weights(*model, fmt::format("transformer.h.{}.mlp.c_proj.weight", layer)),
                4 * kWidth * kWidth, 0.0f);
  wire_head(*model, 0, kPositionAt, kPositionAt, 1, kBeforeAt);  // position i asks for i - 1
  wire_head(*model, 1, kTokenAt, kBeforeAt, 0, kSayAt);
  return model;
}

// a b c d e a b -> c; corrupt: the first five are others.
std::vector<TaskPrompt> induction_prompts(std::size_t count) {
  Random random(4);
  std::vector<TaskPrompt> prompts;
  while (prompts.size() < count) {
    std::vector<TokenId> tokens(kTokens);
    for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<TokenId>(i);
    for (std::size_t i = tokens.size() - 1; i > 0; --i)
      std::swap(tokens[i], tokens[static_cast<std::size_t>(random.below(i + 1))]);
    const std::size_t repeat = 2 + static_cast<std::size_t>(random.below(3));
    TaskPrompt prompt;
    for (std::size_t i = 0; i < 5; ++i) {
      prompt.clean.push_back(tokens[i]);
      prompt.corrupt.push_back(tokens[i + 5]);
    }
    for (std::size_t i = 0; i < repeat; ++i) {
      prompt.clean.push_back(tokens[i]);
      prompt.corrupt.push_back(tokens[i]);
    }
    prompt.answers = {tokens[repeat]};
    for (std::size_t i = 0; i < 5; ++i)
      if (i != repeat) prompt.wrong.push_back(tokens[i]);
    prompts.push_back(prompt);
  }
  return prompts;
}

TEST(InductionModel, IsRightAboutTheNextToken) {
  const auto model = induction_model();
  const std::vector<TaskPrompt> prompts = induction_prompts(12);
  const TaskCheck check = check_task(score(*model, prompts, Metric::kLogitDifference), prompts);
  EXPECT_EQ(check.clean_accuracy, 1.0);
  EXPECT_TRUE(check.better_than_chance);
  EXPECT_TRUE(check.corruption_matters);
}

TEST(InductionModel, ItsCircuitIsFoundWithEveryMetricAndReplacement) {
  const auto model = induction_model();
  const std::vector<TaskPrompt> prompts = induction_prompts(12);
  const std::vector<PatchTarget> heads = all_heads(model->config());
  for (const Metric metric : {Metric::kLogitDifference, Metric::kProbabilityDifference}) {
    PatchOptions options;
    options.metric = metric;
    for (const Replacement replacement : {Replacement::kCorrupt, Replacement::kMean}) {
      options.replacement = replacement;
      SCOPED_TRACE(fmt::format("{} {}", name_of(metric), name_of(replacement)));
      const Importance importance = exact_importance(*model, prompts, heads, options);
      const CircuitCurve curve = keep_most_important(*model, prompts, importance, {}, options);
      const std::vector<PatchTarget> found(curve.order.begin(), curve.order.begin() + 2);
      EXPECT_THAT(found, testing::UnorderedElementsAre(PatchTarget{Site::kZ, 0, 0},
                                                       PatchTarget{Site::kZ, 1, 0}));
      EXPECT_EQ(curve.size_at(0.9), 2u);
      EXPECT_NEAR(curve.points.back().effect, 1, 1e-6);
      EXPECT_EQ(curve.points.size(), heads.size() + 1);
      if (replacement == Replacement::kCorrupt) {
        EXPECT_NEAR(curve.points[0].effect, 0, 1e-4);
      }
    }
  }
}

TEST(Circuit, WithoutAnyHeadIsTheCorruptRun) {
  const auto model = small_model(true);
  const std::vector<TaskPrompt> prompts = small_prompts({8, 8, 6});
  const Importance importance = exact_importance(*model, prompts, all_heads(model->config()));
  const CircuitCurve curve = keep_most_important(*model, prompts, importance, {4});
  ASSERT_EQ(curve.points.size(), 3u);
  EXPECT_EQ(curve.points[1].kept, 4u);
  EXPECT_NEAR(curve.points[0].metric, curve.corrupt.mean, 1e-4);
  EXPECT_NEAR(curve.points[2].metric, curve.clean.mean, 1e-6);
}

CircuitCurve curve_of(const std::vector<double>& effects) {
  CircuitCurve curve;
  for (const double effect : effects) {
    CurvePoint point;
    point.kept = curve.points.size();
    point.effect = effect;
    curve.points.push_back(point);
  }
  return curve;
}

TEST(Circuit, SizeIsWhereTheEffectStaysAboveTheLevel) {
  EXPECT_EQ(curve_of({0, 0.95, 0.5, 0.92, 1.1, 1}).size_at(0.9), 3u);
  EXPECT_EQ(curve_of({0, 0.5, 1}).size_at(0.9), 2u);
  EXPECT_EQ(curve_of({0.95, 0.95, 1}).size_at(0.9), 0u);
  EXPECT_EQ(curve_of({0, 1, 0.8}).size_at(0.9), std::nullopt);
  EXPECT_DOUBLE_EQ(curve_of({0, 1, 1}).area(), 0.75);
}

TEST(Circuit, EffectsAreSharesWithTheErrorOfARatio) {
  PatchedRuns runs;
  runs.clean = {2, 4, 6};
  runs.corrupt = {0, 0, 0};
  runs.patched = {{1, 2, 3}, {3, 2, 1}};
  const std::vector<CurvePoint> points = curve_points({1, 2}, runs);
  EXPECT_DOUBLE_EQ(points[0].effect, 0.5);
  EXPECT_DOUBLE_EQ(points[0].error, 0);  // half of every prompt
  EXPECT_DOUBLE_EQ(points[1].effect, 0.5);
  EXPECT_NEAR(points[1].error, std::sqrt((4 + 0 + 4) / 2.0 / 3.0) / 4, 1e-12);
  runs.corrupt = runs.clean;
  EXPECT_THROW(curve_points({1, 2}, runs), Error);
}

TEST(Circuit, RefusesSizesBeyondTheParts) {
  const auto model = small_model(false, 1);
  const std::vector<TaskPrompt> prompts = small_prompts({6});
  const Importance importance = exact_importance(*model, prompts, all_heads(model->config()));
  EXPECT_THROW(keep_most_important(*model, prompts, importance, {4}), Error);
}

}  // namespace
}  // namespace filigree
