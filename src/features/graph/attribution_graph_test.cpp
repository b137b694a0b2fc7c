// Attribution graphs of small random models of every kind, with per-layer and cross-layer
// transcoders: what must sum up sums up, and a graph says what a model with everything frozen does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "filigree/ops.h"
#include "filigree/trace.h"
#include "model/family_samples_test_support.h"
#include "support/errors.h"
#include "support/random_transcoder.h"

namespace filigree {
namespace {

struct Traced {
  std::unique_ptr<Model> model;
  std::unique_ptr<FeatureDictionary> features;
  FrozenModel frozen;
  GraphSources sources;
  std::vector<GraphTarget> targets;

  AttributionGraph graph(const GraphOptions& options = {}) const {
    return attribution_graph(frozen, sources, targets, options);
  }
};

// Small values are not clipped; queries and keys still are.
void scale_values(Model& model, float factor) {
  for (const NamedParameter& parameter : model.parameters()) {
    if (!parameter.name.ends_with("v_proj.weight")) continue;
    Tensor& value = parameter.variable.mutable_value();
    for (std::int64_t i = 0; i < value.elements(); ++i) value.mutable_f32()[i] *= factor;
  }
}

// "model/transcoder", such as "llama+gated/cross-layer".
Traced traced(const std::string& name, std::int64_t positions = 7,
              const SourceOptions& options = {}) {
  Traced t;
  t.model = sample_model(name.substr(0, name.find('/')));
  if (t.model->config().clip_qkv > 0.0f) scale_values(*t.model, 0.05f);
  const std::string kind = name.substr(name.find('/') + 1);
  const bool normed = t.model->config().branch_norms != BranchNorms::kAfter;
  t.features = dictionary_of(random_transcoder(t.model->config(),
                                               kind == "cross-layer" ? TranscoderKind::kCrossLayer
                                                                     : TranscoderKind::kPerLayer,
                                               10, kind == "skip"),
                             {.input = normed ? "ln2.hook_normalized" : "hook_resid_mid"});
  const Tensor ids = sample_ids(1, positions);
  t.frozen = freeze_model(*t.model, {ids.i32(), static_cast<std::size_t>(positions)},
                          t.features->hooks().input, t.features->hooks().output);
  t.sources = graph_sources(t.frozen, *t.features, options);
  t.targets = likeliest_logits(t.frozen, 0.9, 3);
  t.targets.push_back(logit_difference(t.frozen, 4, 9));
  t.targets.push_back(feature_target(t.frozen, *t.features, 1, positions - 2, 3));
  return t;
}

double row_total(const AttributionGraph& graph, std::int64_t r) {
  return std::accumulate(graph.row(r), graph.row(r) + graph.sources(), 0.0) +
         graph.bias[static_cast<std::size_t>(r)] + graph.left_out[static_cast<std::size_t>(r)];
}

void expect_row_sums(const AttributionGraph& graph) {
  double largest = 0.0;
  for (const double value : graph.value) largest = std::max(largest, std::abs(value));
  for (std::int64_t r = 0; r < graph.rows(); ++r)
    EXPECT_NEAR(row_total(graph, r), graph.value[static_cast<std::size_t>(r)], 1e-5 * largest) << r;
}

class GraphOf : public testing::TestWithParam<const char*> {};

TEST_P(GraphOf, RowsSumUpToTheirTargets) {
  const Traced t = traced(GetParam());
  expect_row_sums(t.graph());
  const Traced other =
      traced(GetParam(), 7, {.without_first_position = true, .positions_in_embeddings = false});
  expect_row_sums(other.graph());
  for (const GraphNode& node : other.sources.nodes)
    EXPECT_TRUE(node.kind == NodeKind::kEmbedding || node.position > 0);
}

TEST_P(GraphOf, FewerFeaturesAreTheMostInfluentialAndTheRestIsCounted) {
  const Traced t = traced(GetParam());
  const AttributionGraph all = t.graph();
  const AttributionGraph some = t.graph({.max_features = 20, .batch = 3, .rerank = 2});
  EXPECT_EQ(some.features, 20);
  EXPECT_EQ(some.active_features, all.features);
  expect_row_sums(some);
  const std::vector<double> influence = node_influence(all);
  const auto strongest = std::max_element(influence.begin(), influence.begin() + all.features);
  EXPECT_THAT(some.nodes, testing::Contains(
                              all.nodes[static_cast<std::size_t>(strongest - influence.begin())]));
}

TEST_P(GraphOf, LoadingsOfEveryLayerSumUpToTheEffect) {
  const Traced t = traced(GetParam());
  const AttributionGraph graph = t.graph();
  std::vector<SourceReading> pairs;
  std::vector<double> effects;
  for (std::int64_t r = 0; r < graph.rows(); r += 5)
    for (std::int64_t s = 0; s < graph.sources(); s += 3) {
      const StreamReading* reading =
          r < graph.features
              ? &t.sources
                     .readings[static_cast<std::size_t>(graph.source[static_cast<std::size_t>(r)])]
              : &t.targets[static_cast<std::size_t>(r - graph.features)].reading;
      pairs.push_back({reading, graph.source[static_cast<std::size_t>(s)]});
      effects.push_back(graph.row(r)[s]);
    }
  const std::vector<EdgeLoading> loadings = head_loadings(t.frozen, t.sources, pairs);
  const double largest =
      std::abs(*std::max_element(effects.begin(), effects.end(),
                                 [](double a, double b) { return std::abs(a) < std::abs(b); }));
  for (std::size_t e = 0; e < pairs.size(); ++e)
    for (std::int64_t l = 0; l < t.frozen.depth(); ++l) {
      double sum = loadings[e].beside[static_cast<std::size_t>(l)] +
                   loadings[e].behind[static_cast<std::size_t>(l)];
      for (std::int64_t h = 0; h < t.frozen.heads; ++h)
        sum += loadings[e].heads.f32()[l * t.frozen.heads + h];
      const bool above = 2 * l >= pairs[e].reading->stage;  // of the target: nothing passes there
      EXPECT_NEAR(sum, above ? 0.0 : effects[e], 1e-5 * largest) << e << " layer " << l;
    }
}

TEST_P(GraphOf, TermsSumUpToTheScoreAndMarginalsToo) {
  const Traced t = traced(GetParam());
  const QkCell cell{1, t.frozen.heads - 1, 5, 2};
  const QkTerms terms = qk_terms(t.frozen, t.sources, cell);
  const QkMarginals marginals = qk_marginals(t.frozen, t.sources, {cell}).at(0);
  EXPECT_NEAR(terms.score, marginals.score, 1e-6);
  double sum = 0.0;
  for (std::int64_t u = 0; u <= t.sources.count(); ++u) {
    double query = 0.0, key = 0.0;
    for (std::int64_t v = 0; v <= t.sources.count(); ++v) {
      query += terms.term(u, v);
      key += terms.term(v, u);
    }
    sum += query;
    EXPECT_NEAR(query, marginals.query[static_cast<std::size_t>(u)], 1e-4);
    EXPECT_NEAR(key, marginals.key[static_cast<std::size_t>(u)], 1e-4);
  }
  EXPECT_NEAR(sum, terms.score, 1e-4);
  const auto total = [](const std::vector<float>& all) {
    return std::accumulate(all.begin(), all.end(), 0.0);
  };
  EXPECT_NEAR(total(marginals.query), marginals.score, 1e-4);
  EXPECT_NEAR(total(marginals.key), marginals.score, 1e-4);
  EXPECT_NEAR(total(marginals.relative_query), marginals.relative_score, 1e-4);
  EXPECT_NEAR(total(marginals.relative_key), marginals.relative_score, 1e-4);
}

// The scores are those that the model's own run shows.
TEST_P(GraphOf, ScoresAreTheModels) {
  const Traced t = traced(GetParam());
  Taps taps;
  taps.observe("blocks.1.attn.hook_attn_scores");
  t.model->forward(sample_ids(1, 7), {.taps = &taps});
  const Tensor& scores = taps.value("blocks.1.attn.hook_attn_scores");
  EXPECT_NEAR(capped_score(t.frozen, cell_score(t.frozen, {1, 2, 4, 3})),
              scores.f32()[(2 * 7 + 4) * 7 + 3], 1e-5);
}

// With two positions nothing can go over a third one.
TEST_P(GraphOf, TwoPositionsHaveOneWay) {
  const Traced t = traced(GetParam(), 2);
  const AttributionGraph graph = t.graph();
  std::vector<SourceReading> pairs;
  std::vector<double> effects;
  const std::int64_t r = graph.features;  // the first logit, at position 1
  for (std::int64_t s = 0; s < graph.sources(); ++s)
    if (graph.nodes[static_cast<std::size_t>(s)].position == 0) {
      pairs.push_back({&t.targets[0].reading, graph.source[static_cast<std::size_t>(s)]});
      effects.push_back(graph.row(r)[s]);
    }
  const PairLoading loading = pair_loading(t.frozen, t.sources, pairs, effects, 0, 1);
  double whole = 0.0;
  for (const double effect : effects) whole += std::abs(effect);
  EXPECT_NEAR(loading.single, whole, 1e-5 * whole);
  EXPECT_NEAR(loading.several, 0.0, 1e-5 * whole);
}

INSTANTIATE_TEST_SUITE_P(Models, GraphOf,
                         testing::Values("gpt2/cross-layer", "gpt2+gated/per-layer",
                                         "llama/per-layer", "llama+gated/cross-layer",
                                         "parallel/cross-layer", "llama+gated/skip",
                                         "parallel-gpt2/skip", "family-gpt_neo/per-layer",
                                         "family-gpt_neox/per-layer", "family-mistral/cross-layer",
                                         "family-qwen2/per-layer", "family-qwen3/cross-layer",
                                         "family-olmo/per-layer", "family-olmo2/cross-layer",
                                         "family-olmo2+gated/skip", "family-gemma2/per-layer",
                                         "family-gemma2+gated/cross-layer", "family-gptj/per-layer",
                                         "family-opt/cross-layer", "family-gpt_bigcode/per-layer",
                                         "family-olmo3/per-layer", "family-smollm3/cross-layer",
                                         "family-gemma/per-layer", "family-gemma3_text/cross-layer",
                                         "family-phi3/per-layer", "family-starcoder2/per-layer",
                                         "family-olmoe/per-layer"),
                         [](const auto& one) { return sample_test_name(one.param); });

// A run in which attention weights, denominators and MLP outputs are those of the plain one, but
// for something added to the stream.
struct FrozenRun {
  std::vector<Tensor> inputs;  // of the features of each layer, [positions, width]
  Tensor logits;               // [vocabulary], of the last position
};

FrozenRun frozen_run(const Traced& t, const std::string& tap, const Tensor& added) {
  const Tensor ids = sample_ids(1, t.frozen.positions);
  std::vector<std::string> clamped = {"blocks.*.attn.hook_pattern", "ln_final.hook_scale",
                                      "blocks.*.hook_mlp_out"};
  const BranchNorms norms = t.model->config().branch_norms;
  if (norms != BranchNorms::kAfter)
    clamped.insert(clamped.end(), {"blocks.*.ln1.hook_scale", "blocks.*.ln2.hook_scale"});
  if (norms != BranchNorms::kBefore) clamped.emplace_back("blocks.*.ln1_post.hook_scale");
  Taps plain;
  for (const std::string& name : clamped) plain.observe(name);
  t.model->forward(ids, {.taps = &plain});
  Taps taps;
  for (const std::string& name : plain.passed()) {
    const Tensor value = plain.value(name);
    taps.intervene(name, [value](const Variable&) { return Variable(value); });
  }
  taps.intervene(tap, [&](const Variable& x) { return add(x, Variable(added)); });
  taps.observe("blocks.*." + t.features->hooks().input);
  const Tensor logits = t.model->forward(ids, {.taps = &taps, .uncapped_logits = true}).value();
  FrozenRun run;
  for (std::int64_t l = 0; l < t.frozen.depth(); ++l)
    run.inputs.push_back(
        taps.value(t.features->hooks().input_of(l)).reshape({t.frozen.positions, t.frozen.width}));
  const std::int64_t vocabulary = logits.size(2);
  run.logits = logits.reshape({t.frozen.positions, vocabulary})
                   .rows(t.frozen.positions - 1, t.frozen.positions)
                   .clone()
                   .reshape({vocabulary});
  return run;
}

// What a row's target is in such a run.
double value_in(const Traced& t, const AttributionGraph& graph, std::int64_t r,
                const FrozenRun& run) {
  const GraphNode& node = graph.nodes[static_cast<std::size_t>(graph.node_of_row(r))];
  if (node.kind == NodeKind::kFeature) {
    const auto feature = static_cast<std::int32_t>(node.feature);
    const FeatureRows rows = t.features->rows(node.layer, std::span(&feature, 1));
    const float* input =
        run.inputs[static_cast<std::size_t>(node.layer)].f32() + node.position * t.frozen.width;
    return std::inner_product(input, input + t.frozen.width, rows.encoder.f32(), 0.0) +
           static_cast<double>(rows.encoder_bias.f32()[0]);
  }
  const auto logits = run.logits.values();
  return static_cast<double>(run.logits.f32()[node.feature]) -
         std::accumulate(logits.begin(), logits.end(), 0.0) / static_cast<double>(logits.size());
}

// A source written once more moves every target by its column.
TEST(GraphInterventions, ASourceWrittenTwiceMovesEveryTargetByItsColumn) {
  for (const char* name :
       {"gpt2/per-layer", "llama+gated/per-layer", "parallel/per-layer", "family-qwen3/per-layer",
        "family-olmo/per-layer", "family-olmo2/per-layer", "family-gemma2/per-layer",
        "family-smollm3/per-layer", "family-gemma3_text/per-layer", "family-gptj/per-layer"}) {
    SCOPED_TRACE(name);
    const Traced t = traced(name);
    const AttributionGraph graph = t.graph();
    const FrozenRun plain =
        frozen_run(t, "hook_embed", Tensor::zeros({1, t.frozen.positions, t.frozen.width}));
    const std::int64_t strange = graph.features + graph.targets - 2;  // difference and feature
    for (std::int64_t s = 1; s < graph.sources(); s += 7) {
      const GraphNode& node = graph.nodes[static_cast<std::size_t>(s)];
      const StreamWrites& writes = node.kind == NodeKind::kEmbedding
                                       ? t.sources.embedding
                                       : t.sources.mlp[static_cast<std::size_t>(node.layer)];
      Tensor added = Tensor::zeros({1, t.frozen.positions, t.frozen.width});
      for (std::size_t w = 0; w < writes.source.size(); ++w)
        if (writes.source[w] == graph.source[static_cast<std::size_t>(s)])
          std::copy_n(writes.rows.f32() + static_cast<std::int64_t>(w) * t.frozen.width,
                      t.frozen.width, added.mutable_f32() + node.position * t.frozen.width);
      const FrozenRun moved = frozen_run(t,
                                         node.kind == NodeKind::kEmbedding
                                             ? "hook_embed"
                                             : fmt::format("blocks.{}.hook_mlp_out", node.layer),
                                         added);
      for (std::int64_t r = 0; r < strange; ++r)
        EXPECT_NEAR(value_in(t, graph, r, moved) - value_in(t, graph, r, plain), graph.row(r)[s],
                    2e-4)
            << s << " " << r;
    }
  }
}

TEST(GraphLoadings, AClosedGateCarriesExactlyNothing) {
  const Traced t = traced("gpt2+gated/cross-layer");
  std::vector<SourceReading> pairs;
  for (std::int32_t s = 0; s < t.sources.count(); s += 4)
    pairs.push_back({&t.targets[0].reading, s});
  const std::int64_t n = t.frozen.positions;
  std::int64_t closed = 0;
  for (const EdgeLoading& loading :
       head_loadings(t.frozen, t.sources, pairs, {.cells = 0, .maps = true}))
    for (std::int64_t l = 0; l < t.frozen.depth(); ++l)
      for (std::int64_t c = 0; c < t.frozen.heads * n * n; ++c)
        if (t.frozen.layer(l).weights.f32()[c] == 0.0f) {
          EXPECT_EQ(loading.maps.f32()[l * t.frozen.heads * n * n + c], 0.0f);
          ++closed;
        }
  EXPECT_GT(closed, 0);
}

// What a clipped value carries does not answer to the stream; clipped queries and keys do no harm.
TEST(GraphErrors, AClippedValueIsRefused) {
  const auto model = sample_model("family-olmo");
  const Tensor ids = sample_ids(1, 7);
  const auto freeze = [&] {
    freeze_model(*model, {ids.i32(), 7}, "ln2.hook_normalized", "hook_mlp_out");
  };
  EXPECT_THAT(error_of(freeze), testing::HasSubstr("clips a value at 1 at token"));
  scale_values(*model, 0.05f);
  EXPECT_NO_THROW(freeze());
  Taps taps;
  taps.observe("blocks.1.attn.hook_q");
  model->forward(ids, {.taps = &taps});
  const auto queries = taps.value("blocks.1.attn.hook_q").values();
  EXPECT_GT(std::count(queries.begin(), queries.end(), 1.0f), 0);
}

TEST(GraphErrors, QueriesThatLoseTheirMeanAreRefused) {
  const Tensor ids = sample_ids(1, 7);
  for (const char* name : {"family-cohere", "family-phi", "family-stablelm"}) {
    const auto model = sample_model(name);
    EXPECT_THAT(error_of([&] {
                  freeze_model(*model, {ids.i32(), 7}, "ln2.hook_normalized", "hook_mlp_out");
                }),
                testing::HasSubstr("takes the mean off queries and keys"))
        << name;
  }
}

// Probabilities are those of capped logits, values those before the cap.
TEST(GraphTargets, HaveTheModelsProbabilitiesWithASoftCap) {
  const Traced t = traced("family-gemma2/per-layer");
  const Tensor logits = t.model->forward(sample_ids(1, 7), {.last_position_only = true}).value();
  double sum = 0.0;
  for (const float x : logits.values()) sum += std::exp(static_cast<double>(x));
  for (std::size_t i = 0; i < 3; ++i) {
    const GraphTarget& target = t.targets[i];
    const double capped = static_cast<double>(logits.f32()[target.node.feature]);
    EXPECT_NEAR(target.probability, std::exp(capped) / sum, 1e-5);
  }
}

TEST(GraphErrors, SayWhatIsWrong) {
  const auto model = sample_model("gpt2");
  const auto features =
      dictionary_of(random_transcoder(sample_config("llama"), TranscoderKind::kPerLayer, 4));
  const std::vector<std::int32_t> none;
  EXPECT_THROW(freeze_model(*model, none, "ln2.hook_normalized", "hook_mlp_out"), Error);
  EXPECT_THROW(freeze_model(*sample_model("gpt2+adapted"), std::vector<std::int32_t>{1},
                            "ln2.hook_normalized", "hook_mlp_out"),
               Error);
  const Traced t = traced("gpt2/per-layer");
  EXPECT_THROW(logit_target(t.frozen, kSampleVocabulary), Error);
  EXPECT_THROW(feature_target(t.frozen, *t.features, 0, 7, 0), Error);
  EXPECT_THROW(qk_terms(t.frozen, t.sources, {0, 0, 2, 3}), Error);
}

}  // namespace
}  // namespace filigree
