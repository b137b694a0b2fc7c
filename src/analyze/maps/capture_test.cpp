#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "analyze/analyze_test_support.h"
#include "filigree/maps.h"
#include "filigree/runtime.h"

namespace filigree {
namespace {

using analyze_test::random_prompt;
using analyze_test::small_model;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Tensor ids_of(const Prompt& prompt) {
  return Tensor::from_ids({1, static_cast<std::int64_t>(prompt.ids.size())}, prompt.ids);
}

std::vector<float> copy(std::span<const float> values) { return {values.begin(), values.end()}; }

TEST(Capture, GivesTheTapsOfEveryChosenHead) {
  for (const bool gated : {false, true}) {
    const auto model = small_model(gated);
    const std::vector<Prompt> prompts = {random_prompt(9, 1), random_prompt(1, 2),
                                         random_prompt(9, 3)};
    CaptureOptions options;
    options.heads = parse_heads("L0H1,L2,L2H3,L1H0", 3, 4);
    options.scores = options.gate = options.value_norms = true;
    std::vector<std::string> seen;
    capture_maps(*model, prompts, options, [&](std::span<const HeadMap> heads) {
      for (const HeadMap& head : heads) {
        seen.push_back(fmt::format("{} {}", head.prompt, head_name(head.head)));
        EXPECT_EQ(options.heads[head.slot], head.head);
        const auto T = static_cast<std::size_t>(head.length);
        ASSERT_EQ(T, prompts[head.prompt].ids.size());
        Taps taps;
        const std::string prefix = fmt::format("blocks.{}.attn.", head.head.layer);
        // Of all layers: a layer whose scores are read computes them another way.
        for (const char* name : {"hook_attn_scores", "hook_pattern", "hook_v"})
          taps.observe(std::string("blocks.*.attn.") + name);
        if (gated) taps.observe(prefix + "hook_gate");
        model->forward(ids_of(prompts[head.prompt]), {.taps = &taps});
        const auto expected = [&](const char* name) {
          return copy(taps.value(prefix + name)
                          .values()
                          .subspan(static_cast<std::size_t>(head.head.head) * T * T, T * T));
        };
        EXPECT_EQ(copy(head.weights), expected("hook_pattern"));
        EXPECT_EQ(copy(head.scores), expected("hook_attn_scores"));
        if (gated) {
          EXPECT_EQ(copy(head.gate), expected("hook_gate"));
        } else {
          EXPECT_TRUE(head.gate.empty());
        }
        const Tensor& v = taps.value(prefix + "hook_v");
        for (std::size_t j = 0; j < T; ++j) {
          double sum = 0.0;
          for (std::size_t d = 0; d < 8; ++d)
            sum += std::pow(v.values()[(j * 4 + static_cast<std::size_t>(head.head.head)) * 8 + d],
                            2.0);
          EXPECT_NEAR(head.value_norms[j], std::sqrt(sum), 1e-4);
        }
      }
    });
    EXPECT_EQ(seen.size(), 3 * options.heads.size());
    EXPECT_EQ(seen[0], "0 L0H1");
    EXPECT_EQ(seen[1], "0 L1H0");
    EXPECT_EQ(seen[2], "0 L2H0");
    EXPECT_EQ(seen[options.heads.size()], "1 L0H1");
  }
}

TEST(Capture, BatchesGiveTheSameMaps) {
  const auto model = small_model(true);
  const std::vector<Prompt> prompts = {random_prompt(9, 1), random_prompt(9, 2),
                                       random_prompt(9, 3), random_prompt(4, 4)};
  const auto maps = [&](std::int64_t batch_tokens) {
    CaptureOptions options = CaptureOptions::of(all_heads(3, 4), MapKind::kGate);
    options.batch_tokens = batch_tokens;
    std::map<std::pair<std::size_t, std::size_t>, std::vector<float>> result;
    capture_maps(*model, prompts, options, [&](std::span<const HeadMap> heads) {
      for (const HeadMap& head : heads) result[{head.prompt, head.slot}] = copy(head.weights);
    });
    return result;
  };
  const auto single = maps(0), batched = maps(20);
  ASSERT_EQ(single.size(), 4u * 12u);
  ASSERT_EQ(batched.size(), single.size());
  for (const auto& [key, map] : single) {
    const std::vector<float>& other = batched.at(key);
    ASSERT_EQ(map.size(), other.size());
    for (std::size_t c = 0; c < map.size(); ++c) EXPECT_NEAR(map[c], other[c], 1e-5);
  }
}

// Attention may not look ahead; what a query pays to its keys is 1, or less where gates are closed.
TEST(Capture, WeightsAreCausalAndSumToOne) {
  for (const bool gated : {false, true}) {
    const std::vector<Prompt> prompts = {random_prompt(17, 1)};
    std::size_t heads_seen = 0;
    capture_maps(*small_model(gated), prompts,
                 CaptureOptions::of(all_heads(3, 4), MapKind::kWeights),
                 [&](std::span<const HeadMap> heads) {
                   for (const HeadMap& head : heads) {
                     ++heads_seen;
                     const auto T = static_cast<std::size_t>(head.length);
                     for (std::size_t query = 0; query < T; ++query) {
                       const auto row = head.weights.subspan(query * T, T);
                       double sum = 0.0;
                       for (std::size_t key = 0; key < T; ++key) {
                         EXPECT_TRUE(key <= query ? row[key] >= 0.0f : row[key] == 0.0f)
                             << head_name(head.head) << " " << query << " <- " << key;
                         sum += static_cast<double>(row[key]);
                       }
                       EXPECT_LE(sum, 1.0 + 1e-5);
                       if (!gated) {
                         EXPECT_GE(sum, 1.0 - 1e-5);
                       }
                     }
                   }
                 });
    EXPECT_EQ(heads_seen, 12u);
  }
}

TEST(Capture, FillsMapsOfEveryKind) {
  const float inf = -std::numeric_limits<float>::infinity();
  const std::vector<float> weights = {1, 0, 0.25f, 0.5f}, scores = {2, inf, 1, -1}, norms = {3, 6};
  HeadMap head;
  head.length = 2;
  head.weights = weights, head.scores = scores, head.value_norms = norms;
  std::vector<float> out(4);
  fill_map(head, MapKind::kWeights, out);
  EXPECT_EQ(out, weights);
  fill_map(head, MapKind::kScores, out);
  EXPECT_EQ(out, scores);
  fill_map(head, MapKind::kGate, out);
  EXPECT_EQ(out, (std::vector<float>{1, 0, 1, 1}));  // no gates: every causal edge is open
  fill_map(head, MapKind::kValueWeighted, out);
  EXPECT_EQ(out, (std::vector<float>{0.5f, 0, 0.125f, 0.5f}));
  const std::vector<float> none = {0, 0};
  head.value_norms = none;
  fill_map(head, MapKind::kValueWeighted, out);
  EXPECT_EQ(out, (std::vector<float>{0, 0, 0, 0}));
  EXPECT_THAT(names_of<MapKind>(), ElementsAre("weights", "scores", "gate", "value-weighted"));
}

TEST(Capture, RefusesPromptsAndHeadsThatDoNotFit) {
  const auto model = small_model();
  const auto error = [&](Prompt prompt, const std::vector<HeadId>& heads) {
    const std::vector<Prompt> prompts = {random_prompt(3), std::move(prompt)};
    return error_of([&] {
      capture_maps(*model, prompts, CaptureOptions::of(heads, MapKind::kWeights),
                   [](std::span<const HeadMap>) { FAIL() << "nothing should have run"; });
    });
  };
  EXPECT_THAT(error({}, {{0, 0}}), HasSubstr("prompt 2 is empty"));
  EXPECT_THAT(error(random_prompt(65), {{0, 0}}),
              HasSubstr("prompt 2 has 65 tokens, more than the model's context of 64"));
  EXPECT_THAT(error({{97}}, {{0, 0}}), HasSubstr("token id 97"));
  EXPECT_THAT(error(random_prompt(3), {{3, 0}}), AllOf(HasSubstr("L3H0"), HasSubstr("3 layers")));
  EXPECT_THAT(error(random_prompt(3), {}), HasSubstr("no heads"));
}

// The maps of 12 layers are 12 times what one layer has; the peak must not grow with the layers.
TEST(Capture, MemoryDoesNotGrowWithTheLayers) {
  constexpr std::int64_t kLength = 256, kHeads = 4;
  constexpr std::uint64_t kLayerMaps = kHeads * kLength * kLength * sizeof(float);
  const auto peak = [&](std::int64_t layers, MapKind kind) {
    const auto model = small_model(true, layers, kHeads, kLength);
    const std::vector<Prompt> prompts = {random_prompt(kLength)};
    const std::uint64_t before = pool_statistics().bytes_in_use;
    reset_pool_peak();
    std::size_t seen = 0;
    capture_maps(*model, prompts, CaptureOptions::of(all_heads(layers, kHeads), kind),
                 [&](std::span<const HeadMap> heads) { seen += heads.size(); });
    EXPECT_EQ(seen, static_cast<std::size_t>(layers * kHeads));
    return pool_statistics().peak_bytes_in_use - before;
  };
  for (const MapKind kind : {MapKind::kWeights, MapKind::kGate, MapKind::kScores}) {
    const std::uint64_t two = peak(2, kind), twelve = peak(12, kind);
    EXPECT_LT(twelve, two + kLayerMaps / 2) << name_of(kind);
    EXPECT_LT(twelve, 6 * kLayerMaps) << name_of(kind);
  }
}

TEST(AverageMaps, IsTheMeanWhateverTheBudget) {
  const auto model = small_model(true);
  const std::vector<Prompt> prompts = {random_prompt(7, 1), random_prompt(7, 2),
                                       random_prompt(7, 3)};
  for (const MapKind kind : {MapKind::kWeights, MapKind::kScores, MapKind::kGate}) {
    std::vector<std::vector<float>> expected(12, std::vector<float>(49, 0.0f));
    capture_maps(*model, prompts, CaptureOptions::of(all_heads(3, 4), kind),
                 [&](std::span<const HeadMap> heads) {
                   std::vector<float> map(49);
                   for (const HeadMap& head : heads) {
                     fill_map(head, kind, map);
                     for (std::size_t c = 0; c < 49; ++c) expected[head.slot][c] += map[c] / 3.0f;
                   }
                 });
    for (const std::size_t budget :
         {std::size_t{1} << 20, std::size_t{49 * 4 * 5}, std::size_t{1}}) {
      std::size_t next = 0;
      const AverageOptions options = {all_heads(3, 4), kind, budget};
      average_maps(*model, prompts, options, [&](std::size_t slot, std::span<const float> map) {
        EXPECT_EQ(slot, next++);
        for (std::size_t i = 0; i < 7; ++i)
          for (std::size_t j = 0; j <= i; ++j)
            EXPECT_NEAR(map[i * 7 + j], expected[slot][i * 7 + j], 1e-4);
      });
      EXPECT_EQ(next, 12u);
    }
  }
}

TEST(AverageMaps, RefusesPromptsOfDifferentLengths) {
  const auto model = small_model();
  const std::vector<Prompt> prompts = {random_prompt(7), random_prompt(7), random_prompt(8)};
  EXPECT_THAT(error_of([&] {
                average_maps(*model, prompts, {.heads = all_heads(3, 4)},
                             [](std::size_t, std::span<const float>) {});
              }),
              HasSubstr("prompt 1 has 7 tokens and prompt 3 has 8"));
}

}  // namespace
}  // namespace filigree
