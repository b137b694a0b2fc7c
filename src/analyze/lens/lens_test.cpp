// The logit lens and direct logit attribution against taps and against double precision by hand.
#include "filigree/lens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "analyze/circuit/circuit_test_support.h"
#include "filigree/error.h"
#include "filigree/tasks.h"

namespace filigree {
namespace {

using Doubles = std::vector<double>;

Doubles parameter(const Model& model, const std::string& name) {
  for (const NamedParameter& named : model.parameters())
    if (named.name == name) {
      const auto values = named.variable.value().values();
      return {values.begin(), values.end()};
    }
  ADD_FAILURE() << "no parameter " << name;
  return {};
}

// Norms whose gains and biases are not 1 and 0, so that nothing hides behind them.
std::unique_ptr<Model> model_with_norms(bool gated = false) {
  auto model = small_model(gated, 2);
  std::size_t seed = 0;
  for (const NamedParameter& named : model->parameters()) {
    if (named.variable.shape().rank() != 1) continue;
    Random random(++seed);
    Tensor& value = named.variable.mutable_value();
    for (std::int64_t i = 0; i < value.elements(); ++i)
      value.mutable_f32()[i] += 0.3f * static_cast<float>(random.normal());
  }
  return model;
}

struct Normed {
  Doubles values;
  double scale = 1;
};

// GPT-2's final norm of one position in double precision, with its own scale or a given one.
Normed final_norm(const Model& model, const Doubles& x, bool bias, double fixed_scale = 0) {
  const Doubles gain = parameter(model, "transformer.ln_f.weight");
  const Doubles shift = parameter(model, "transformer.ln_f.bias");
  const double mean = std::accumulate(x.begin(), x.end(), 0.0) / static_cast<double>(x.size());
  double variance = 0;
  for (const double value : x) variance += (value - mean) * (value - mean);
  Normed result;
  result.scale =
      fixed_scale > 0
          ? fixed_scale
          : std::sqrt(variance / static_cast<double>(x.size()) + model.config().norm_epsilon);
  for (std::size_t i = 0; i < x.size(); ++i)
    result.values.push_back((x[i] - mean) / result.scale * gain[i] + (bias ? shift[i] : 0));
  return result;
}

double logit(const Model& model, const Doubles& normed, TokenId token) {
  const Doubles embedding = parameter(model, "transformer.wte.weight");
  double sum = 0;
  for (std::size_t i = 0; i < normed.size(); ++i)
    sum += normed[i] * embedding[static_cast<std::size_t>(token) * normed.size() + i];
  return sum;
}

Doubles row(const Tensor& values, std::int64_t position, std::int64_t width) {
  const float* begin = values.f32() + position * width;
  return {begin, begin + width};
}

TEST(LogitLens, IsTheFinalNormAndUnembeddingOfEveryPoint) {
  for (const bool gated : {false, true}) {
    const auto model = model_with_norms(gated);
    const std::vector<TokenId> ids = {3, 17, 5, 30, 8};
    LensOptions options;
    options.middle = true, options.top = 3, options.token = 12;
    const LogitLens lens = logit_lens(*model, ids, options);
    ASSERT_EQ(lens.points.size(), 5u);
    EXPECT_EQ(name_of(lens.points[1]), "L0 resid_mid");
    Taps taps;
    for (const LensPoint& point : lens.points) taps.observe(tap_name(point));
    model->forward(Tensor::from_ids({1, 5}, ids), {.taps = &taps});
    for (std::size_t p = 0; p < lens.points.size(); ++p)
      for (std::int64_t t = 0; t < 5; ++t) {
        SCOPED_TRACE(fmt::format("{} position {}", name_of(lens.points[p]), t));
        const Normed normed =
            final_norm(*model, row(taps.value(tap_name(lens.points[p])), t, 24), true);
        Doubles logits;
        for (TokenId id = 0; id < kTestVocabulary; ++id)
          logits.push_back(logit(*model, normed.values, id));
        double sum = 0;
        for (const double value : logits) sum += std::exp(value);
        const LensCell& cell = lens.at(p, t);
        ASSERT_EQ(cell.top.size(), 3u);
        EXPECT_NEAR(cell.log_probability, logits[12] - std::log(sum), 1e-4);
        EXPECT_EQ(cell.rank, std::count_if(logits.begin(), logits.end(),
                                           [&](double value) { return value > logits[12]; }));
        const auto best = std::max_element(logits.begin(), logits.end());
        EXPECT_EQ(cell.top[0].id, best - logits.begin());
        EXPECT_NEAR(cell.top[0].probability, std::exp(*best) / sum, 1e-5);
        EXPECT_GE(cell.top[0].probability, cell.top[1].probability);
        EXPECT_GE(cell.top[1].probability, cell.top[2].probability);
      }
  }
}

TEST(LogitLens, RanksTheNextTokenUnlessToldAnother) {
  const auto model = model_with_norms();
  const std::vector<TokenId> ids = {3, 17, 5};
  const LogitLens own = logit_lens(*model, ids);
  LensOptions options;
  options.token = 5;
  const LogitLens five = logit_lens(*model, ids, options);
  EXPECT_EQ(own.at(2, 1).rank, five.at(2, 1).rank);
  EXPECT_EQ(own.at(2, 1).log_probability, five.at(2, 1).log_probability);
  EXPECT_EQ(own.at(2, 2).rank, -1);  // nothing follows
  options.token = 99;
  EXPECT_THROW(logit_lens(*model, ids, options), Error);
  EXPECT_THROW(logit_lens(*model, {}), Error);
}

TEST(LogitAttribution, SumsToTheLogitDifference) {
  for (const bool gated : {false, true}) {
    const auto model = model_with_norms(gated);
    auto prompts = small_prompts({7, 5, 7, 9});
    prompts[1].answers.push_back((prompts[1].answers[0] + 3) % kTestVocabulary);
    prompts[2].wrong.clear();  // one logit, not a difference
    const LogitAttribution result = attribute_logits(*model, prompts);
    for (std::size_t i = 0; i < prompts.size(); ++i) {
      const Tensor logits =
          model->forward(prompt_ids({&prompts[i]}, false), {.last_position_only = true}).value();
      double expected = 0;
      for (const TokenId id : prompts[i].answers)
        expected += logits.f32()[id] / static_cast<double>(prompts[i].answers.size());
      for (const TokenId id : prompts[i].wrong)
        expected -= logits.f32()[id] / static_cast<double>(prompts[i].wrong.size());
      double sum = 0, magnitude = 0;
      for (std::size_t p = 0; p < result.parts.size(); ++p) {
        sum += result.contributions[p][i];
        magnitude += std::abs(result.contributions[p][i]);
        if (result.parts[p].kind == PartKind::kRest) {
          EXPECT_NEAR(result.contributions[p][i], 0, 1e-4);
        }
      }
      EXPECT_NEAR(result.total[i], expected, 1e-4);
      EXPECT_NEAR(sum, result.total[i], 1e-6 * magnitude + 1e-5) << i;
    }
  }
}

TEST(LogitAttribution, AgreesWithTheFinalNormByHand) {
  const auto model = model_with_norms();
  const auto prompts = small_prompts({6});
  const LogitAttribution result = attribute_logits(*model, prompts);
  Taps taps;
  for (const char* name : {"hook_embed", "hook_pos_embed", "blocks.*.attn.hook_result",
                           "blocks.*.hook_mlp_out", "blocks.1.hook_resid_post"})
    taps.observe(name);
  model->forward(prompt_ids({&prompts[0]}, false), {.taps = &taps});
  const double scale =
      final_norm(*model, row(taps.value("blocks.1.hook_resid_post"), 5, 24), false).scale;
  const auto difference = [&](const Doubles& normed) {
    return logit(*model, normed, prompts[0].answers[0]) -
           logit(*model, normed, prompts[0].wrong[0]);
  };
  for (std::size_t p = 0; p < result.parts.size(); ++p) {
    const Part& part = result.parts[p];
    SCOPED_TRACE(name_of(part));
    Doubles written;
    const std::string block = fmt::format("blocks.{}.", part.layer);
    switch (part.kind) {
      case PartKind::kEmbedding: written = row(taps.value("hook_embed"), 5, 24); break;
      case PartKind::kPositions: written = row(taps.value("hook_pos_embed"), 5, 24); break;
      case PartKind::kHead:
        written = row(taps.value(block + "attn.hook_result"), 5 * 3 + part.head, 24);
        break;
      case PartKind::kAttentionBias:
        written = parameter(*model, fmt::format("transformer.h.{}.attn.c_proj.bias", part.layer));
        break;
      case PartKind::kMlp: written = row(taps.value(block + "hook_mlp_out"), 5, 24); break;
      case PartKind::kRest: continue;
      case PartKind::kOutputBias:
        EXPECT_NEAR(result.contributions[p][0],
                    difference(parameter(*model, "transformer.ln_f.bias")), 1e-4);
        continue;
    }
    EXPECT_NEAR(result.contributions[p][0],
                difference(final_norm(*model, written, false, scale).values), 1e-4);
  }
  // 2 layers of 3 heads, a bias and an MLP; embedding, positions, rest, output bias.
  EXPECT_EQ(result.parts.size(), 14u);
}

TEST(LogitAttribution, OfPositionsIsThatOfThePromptsUpToThem) {
  for (const bool gated : {false, true}) {
    const auto model = model_with_norms(gated);
    const std::vector<TokenId> ids = {3, 17, 5, 11, 2};
    std::vector<ReadLogit> logits;
    for (const std::int64_t at : {4, 1, 3}) logits.push_back({at, {ids[0]}, {7}});
    const LogitAttribution result = attribute_positions(*model, ids, logits);
    for (std::size_t i = 0; i < logits.size(); ++i) {
      TaskPrompt prompt;
      prompt.clean.assign(ids.begin(), ids.begin() + logits[i].position + 1);
      prompt.answers = {ids[0]}, prompt.wrong = {7};
      const LogitAttribution wanted = attribute_logits(*model, {prompt});
      EXPECT_NEAR(result.total[i], wanted.total[0], 1e-4);
      for (std::size_t p = 0; p < wanted.parts.size(); ++p)
        EXPECT_NEAR(result.contributions[p][i], wanted.contributions[p][0], 1e-4)
            << name_of(wanted.parts[p]) << " at " << logits[i].position;
    }
  }
}

TEST(LogitAttribution, OfAChangedRunSumsToItsLogit) {
  const auto model = model_with_norms();
  const std::vector<TokenId> ids = {3, 17, 5, 11};
  Interventions asked;
  asked.add_ablations("L0H1,L1H2.pattern@3<-1");
  asked.add_scales("L1MLP=2");
  AppliedInterventions changes(*model, asked);
  const LogitAttribution result = attribute_positions(*model, ids, {{1, {9}}, {3, {9}}}, &changes);
  Taps taps;
  changes.put_on(taps);
  const Tensor logits = model->forward(Tensor::from_ids({1, 4}, ids), {.taps = &taps}).value();
  const LogitAttribution plain = attribute_positions(*model, ids, {{3, {9}}});
  for (std::size_t i = 0; i < 2; ++i) {
    double sum = 0;
    for (std::size_t p = 0; p < result.parts.size(); ++p) {
      sum += result.contributions[p][i];
      if (name_of(result.parts[p]) == "L0H1") {
        EXPECT_EQ(result.contributions[p][i], 0);
      }
      if (result.parts[p].kind == PartKind::kRest) {
        EXPECT_NEAR(result.contributions[p][i], 0, 1e-4);
      }
    }
    const std::int64_t at = i == 0 ? 1 : 3;
    EXPECT_NEAR(result.total[i], logits.f32()[at * kTestVocabulary + 9], 1e-4);
    EXPECT_NEAR(sum, result.total[i], 1e-4);
  }
  EXPECT_GT(std::abs(result.total[1] - plain.total[0]), 1e-4);
}

TEST(LogitAttribution, RefusesPositionsThatAreNotThere) {
  const auto model = small_model(false, 2);
  EXPECT_THROW(attribute_positions(*model, {1, 2}, {{2, {3}}}), Error);
  EXPECT_THROW(attribute_positions(*model, {1, 2}, {{-1, {3}}}), Error);
  EXPECT_THROW(attribute_positions(*model, {1, 2}, {{1, {3}}, {1, {4}}}), Error);
  EXPECT_THROW(attribute_positions(*model, {1, 2}, {{1, {}}}), Error);
  EXPECT_THROW(attribute_positions(*model, {1, 2}, {}), Error);
}

TEST(LogitAttribution, RefusesBadTokens) {
  const auto model = small_model(false, 2);
  auto prompts = small_prompts({6});
  prompts[0].answers = {kTestVocabulary};
  EXPECT_THROW(attribute_logits(*model, prompts), Error);
  prompts[0].answers.clear();
  EXPECT_THROW(attribute_logits(*model, prompts), Error);
  EXPECT_THROW(attribute_logits(*model, {}), Error);
}

}  // namespace
}  // namespace filigree
