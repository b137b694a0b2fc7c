#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "filigree/trace.h"
#include "model/family_samples_test_support.h"
#include "support/random_transcoder.h"

namespace filigree {
namespace {

struct Sample {
  std::unique_ptr<Model> model = sample_model("gpt2+gated");
  std::unique_ptr<FeatureDictionary> features =
      dictionary_of(random_transcoder(model->config(), TranscoderKind::kCrossLayer, 10));
  FrozenModel frozen;
  GraphSources sources;
  std::vector<GraphTarget> targets;
  AttributionGraph graph;

  Sample() {
    const Tensor ids = sample_ids(1, 6);
    frozen =
        freeze_model(*model, {ids.i32(), 6}, features->hooks().input, features->hooks().output);
    sources = graph_sources(frozen, *features);
    targets = {logit_target(frozen, 5), logit_difference(frozen, 5, 6)};
    graph = attribution_graph(frozen, sources, targets);
  }

  FeatureChange ablation(std::int64_t f) const {
    const GraphNode& node = graph.nodes[static_cast<std::size_t>(f)];
    return {{node.layer, node.feature}, node.position, node.activation, 0.0};
  }
};

// With everything held, a feature taken away takes away its direct effect, in a group the sum.
TEST(ChangedRuns, ConstrainedIsTheGraphsDirectEffect) {
  const Sample sample;
  const ChangedRuns runs(*sample.model, sample.frozen, *sample.features);
  for (const RunMode mode : {RunMode::kConstrained, RunMode::kFrozen, RunMode::kFree})
    EXPECT_NEAR(runs.value(sample.targets[0], runs.logits({}, mode)), sample.targets[0].value,
                1e-4);
  RunChanges group;
  double expected = 0.0;
  for (std::int64_t f = 0; f < sample.graph.features; f += 9) {
    for (std::size_t t = 0; t < 2; ++t) {
      const double found =
          runs.value(sample.targets[t],
                     runs.logits({.features = {sample.ablation(f)}}, RunMode::kConstrained)) -
          sample.targets[t].value;
      EXPECT_NEAR(found,
                  predicted_ablations(sample.graph, static_cast<std::int64_t>(t))
                      .direct[static_cast<std::size_t>(f)],
                  2e-4);
    }
    group.features.push_back(sample.ablation(f));
    expected -= static_cast<double>(sample.graph.row(sample.graph.features)[f]);
  }
  EXPECT_NEAR(runs.value(sample.targets[0], runs.logits(group, RunMode::kConstrained)) -
                  sample.targets[0].value,
              expected, 5e-4);
}

TEST(ChangedRuns, ModesHoldWhatTheySay) {
  const Sample sample;
  const ChangedRuns runs(*sample.model, sample.frozen, *sample.features);
  const RunChanges change = {.features = {sample.ablation(1)}};
  const Tensor constrained = runs.logits(change, RunMode::kConstrained);
  const Tensor frozen = runs.logits(change, RunMode::kFrozen);
  const Tensor free = runs.logits(change, RunMode::kFree);
  EXPECT_GT(relative_error(frozen.values(), to_doubles(constrained)), 1e-4);
  EXPECT_GT(relative_error(free.values(), to_doubles(frozen)), 1e-4);
  const Tensor without = runs.logits({.heads = {{{1, 2}, 0.0}}}, RunMode::kFrozen);
  Taps taps;
  taps.intervene("blocks.1.attn.hook_pattern", [&](const Variable& x) {
    Tensor value = x.value().clone();
    std::fill_n(value.mutable_f32() + 2 * 36, 36, 0.0f);
    return Variable(value);
  });
  const Tensor expected = sample.model->forward(sample_ids(1, 6), {.taps = &taps}).value();
  EXPECT_LT(relative_error(without.values(),
                           to_doubles(expected.reshape({6, kSampleVocabulary}).rows(5, 6))),
            1e-5);
}

// By hand: s moves f by 3, of whose activation of 2 the target gets 4, and the target by 1.
TEST(ChangedRuns, TotalEffectsPassOverFeatures) {
  AttributionGraph graph;
  graph.nodes = {{NodeKind::kFeature, 0, 0, 0, 1.0},
                 {NodeKind::kFeature, 1, 0, 0, 2.0},
                 {NodeKind::kTarget, 2, 0, 0, 0.0}};
  graph.features = 2, graph.targets = 1;
  graph.effects = Tensor::from({3, 2}, std::vector<float>{0, 0, 3, 0, 1, 4});
  const PredictedEffects effects = predicted_ablations(graph, 0);
  EXPECT_THAT(effects.direct, testing::ElementsAre(-1.0, -4.0));
  EXPECT_THAT(effects.total, testing::ElementsAre(-7.0, -4.0));
}

}  // namespace
}  // namespace filigree
