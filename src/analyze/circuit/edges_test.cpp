// Edges: patched runs against the same intervention by hand, scores against slopes and sums.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "analyze/circuit/circuit_test_support.h"
#include "analyze/circuit/edge_circuit.h"
#include "analyze/circuit/induction_model_test_support.h"
#include "filigree/autograd.h"
#include "filigree/tasks.h"

namespace filigree {
namespace {

constexpr double kTolerance = 3e-4;  // of logit differences of a few units

std::vector<std::int64_t> all_edges(const ComponentGraph& graph) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(graph.edges()));
  std::iota(all.begin(), all.end(), std::int64_t{0});
  return all;
}

class Edges : public testing::TestWithParam<SmallKind> {
 protected:
  std::unique_ptr<Model> model_ = small_model(GetParam());
  ComponentGraph graph_{model_->config()};
  std::vector<TaskPrompt> prompts_ = small_prompts({9, 6, 9, 9, 6, 12});

  // A node's output, [T, d] of a prompt's clean or corrupt run.
  std::vector<float> output(const TaskPrompt& prompt, bool corrupt, std::int64_t node) const {
    const Component& which = graph_.nodes()[static_cast<std::size_t>(node)];
    Taps taps;
    taps.observe(tap_name(which));
    // What a norm behind the attention makes of it.
    const bool behind = which.kind == ComponentKind::kHead && normed_behind(GetParam());
    const std::string scale = fmt::format("blocks.{}.ln1_post.hook_scale", which.layer);
    if (behind) taps.observe(scale);
    model_->forward(prompt_ids({&prompt}, corrupt), {.taps = &taps});
    const Tensor& value = taps.value(tap_name(which));
    const std::int64_t d = model_->config().width, heads = value.elements() / d / prompt.length();
    Tensor gain;
    if (behind)
      gain = model_->weights()
                 .layers[static_cast<std::size_t>(which.layer)]
                 .attention_post_norm.gain()
                 .value();
    std::vector<float> rows;
    for (std::int64_t t = 0; t < prompt.length(); ++t)
      for (std::int64_t i = 0; i < d; ++i) {
        rows.push_back(value.f32()[(t * heads + which.head) * d + i]);
        if (behind) rows.back() *= gain.f32()[i] / taps.value(scale).f32()[t];
      }
    return rows;
  }

  // The metric when `share` of x_u(corrupt) - x_u(clean) is added to what an input reads.
  double patched_by_hand(const TaskPrompt& prompt, const ComponentEdge& edge,
                         float share = 1.0f) const {
    const ComponentInput& input = graph_.inputs()[static_cast<std::size_t>(edge.input)];
    const std::vector<float> clean = output(prompt, false, edge.node);
    const std::vector<float> corrupt = output(prompt, true, edge.node);
    Taps taps;
    taps.intervene(tap_name(input), [&](const Variable& x) {
      Tensor changed = x.value().clone();
      const std::int64_t d = model_->config().width;
      const std::int64_t heads = changed.elements() / d / prompt.length();
      for (std::int64_t t = 0; t < prompt.length(); ++t)
        for (std::int64_t i = 0; i < d; ++i) {
          const auto at = static_cast<std::size_t>(t * d + i);
          changed.mutable_f32()[(t * heads + std::max<std::int64_t>(input.head, 0)) * d + i] +=
              share * (corrupt[at] - clean[at]);
        }
      return Variable(changed);
    });
    const Tensor logits =
        model_->forward(prompt_ids({&prompt}, false), {.taps = &taps, .last_position_only = true})
            .value();
    return measure(Metric::kLogitDifference, logits, {&prompt})[0];
  }
};

TEST_P(Edges, NoneIsTheCleanRunAndAllAreTheCorruptOne) {
  const std::vector<EdgeSet> sets = {
      {false, {}}, {true, all_edges(graph_)}, {false, all_edges(graph_)}, {true, {}}};
  const PatchedRuns runs = run_edges(*model_, graph_, prompts_, sets);
  for (std::size_t i = 0; i < prompts_.size(); ++i) {
    EXPECT_GT(std::abs(runs.clean[i] - runs.corrupt[i]), 10 * kTolerance);
    EXPECT_EQ(runs.patched[0][i], runs.clean[i]);
    EXPECT_EQ(runs.patched[1][i], runs.clean[i]);
    EXPECT_NEAR(runs.patched[2][i], runs.corrupt[i], kTolerance);
    EXPECT_NEAR(runs.patched[3][i], runs.corrupt[i], kTolerance);
  }
}

TEST_P(Edges, OneIsTheSameAsByHand) {
  const std::vector<std::int64_t> numbers = all_edges(graph_);
  std::vector<EdgeSet> sets;
  for (const std::int64_t number : numbers) sets.push_back({.edges = {number}});
  for (const std::int64_t tokens : {1, 100, 4096}) {
    PatchOptions options;
    options.tokens_at_once = tokens;
    const PatchedRuns runs = run_edges(*model_, graph_, prompts_, sets, options);
    for (std::size_t s = 0; s < sets.size(); s += tokens == 100 ? 1 : 7)
      for (const std::size_t i : {1u, 5u})
        ASSERT_NEAR(runs.patched[s][i], patched_by_hand(prompts_[i], graph_.edge(numbers[s])),
                    kTolerance)
            << graph_.edge_text(numbers[s]) << " of prompt " << i;
  }
}

// Any set of edges, as patched ones and as the kept ones of the others, which takes other sums.
TEST_P(Edges, SomeAreTheSameWhetherListedAsPatchedOrKept) {
  Random random(5);
  std::vector<EdgeSet> sets;
  for (const std::uint64_t percent : {2u, 10u, 50u, 90u, 99u}) {
    EdgeSet patched, kept;
    kept.kept = true;
    for (const std::int64_t number : all_edges(graph_))
      (random.below(100) < percent ? patched : kept).edges.push_back(number);
    sets.push_back(patched);
    sets.push_back(kept);
  }
  const PatchedRuns runs = run_edges(*model_, graph_, prompts_, sets);
  for (std::size_t s = 0; s < sets.size(); s += 2)
    for (std::size_t i = 0; i < prompts_.size(); ++i)
      EXPECT_NEAR(runs.patched[s][i], runs.patched[s + 1][i], kTolerance) << s << " " << i;
}

// Patched edges from all nodes to one input are the corrupt stream there, while what a patched
// input changes further on is the run's own.
TEST_P(Edges, AllOfAnInputAreItsCorruptStream) {
  const std::int64_t layer = 1, head = 1, input = graph_.input(Branch::kKey, layer, head);
  EdgeSet set;
  for (std::int64_t u = 0; u < graph_.inputs()[static_cast<std::size_t>(input)].before; ++u)
    set.edges.push_back(graph_.number({u, input}));
  const PatchedRuns edges = run_edges(*model_, graph_, prompts_, {set});
  const PatchedRuns keys = run_patched(*model_, prompts_, {{{Site::kKey, layer, head}}});
  for (std::size_t i = 0; i < prompts_.size(); ++i)
    EXPECT_NEAR(edges.patched[0][i], keys.patched[0][i], kTolerance);
}

// Keeping all edges but those out of a head is patching the head; with a norm behind the attention,
// whose denominator the heads of a layer share, it is so of all heads of a layer.
TEST_P(Edges, AllOutOfAHeadAreTheHead) {
  std::set<std::int64_t> nodes;
  PatchSet heads;
  for (std::int64_t h = 0; h < graph_.heads(); ++h) {
    if (h != 1 && !normed_behind(GetParam())) continue;
    nodes.insert(graph_.head_node(1, h));
    heads.push_back({Site::kZ, 1, h});
  }
  EdgeSet set;
  for (const std::int64_t number : all_edges(graph_))
    if (nodes.contains(graph_.edge(number).node)) set.edges.push_back(number);
  const PatchedRuns edges = run_edges(*model_, graph_, prompts_, {set});
  const PatchedRuns head = run_patched(*model_, prompts_, {heads});
  for (std::size_t i = 0; i < prompts_.size(); ++i)
    EXPECT_NEAR(edges.patched[0][i], head.patched[0][i], kTolerance);
}

TEST_P(Edges, ExactScoresAreTheDrops) {
  const std::vector<std::int64_t> some = {0, 17, graph_.edges() - 1};
  const EdgeScores scores = exact_edge_scores(*model_, graph_, prompts_, {}, &some);
  ASSERT_EQ(scores.drops.size(), static_cast<std::size_t>(graph_.edges()));
  for (const std::int64_t number : some) {
    std::vector<double> drops;
    for (std::size_t i = 0; i < prompts_.size(); ++i)
      drops.push_back(scores.clean[i] - patched_by_hand(prompts_[i], graph_.edge(number)));
    const Estimate expected = estimate(drops);
    EXPECT_NEAR(scores.drops[static_cast<std::size_t>(number)].mean, expected.mean, kTolerance);
    EXPECT_NEAR(scores.drops[static_cast<std::size_t>(number)].error.value(),
                expected.error.value(), kTolerance);
  }
}

TEST_P(Edges, ByAttributionAreSlopesTowardsTheCorruptValue) {
  for (const std::size_t i : {1u, 5u}) {
    const std::vector<TaskPrompt> one = {prompts_[i]};
    const EdgeScores scores = attributed_edge_scores(*model_, graph_, one, 0);
    for (std::int64_t number = 0; number < graph_.edges(); number += 3) {
      constexpr float kStep = 2e-3f;
      const ComponentEdge edge = graph_.edge(number);
      const double slope =
          (patched_by_hand(one[0], edge, kStep) - patched_by_hand(one[0], edge, -kStep)) /
          (2 * static_cast<double>(kStep));
      ASSERT_NEAR(scores.drops[static_cast<std::size_t>(number)].mean, -slope,
                  2e-2 * std::abs(slope) + 4e-3)
          << graph_.edge_text(number);
    }
  }
}

TEST_P(Edges, AttributionOfSeveralPromptsIsTheMeanWithItsError) {
  PatchOptions options;
  options.tokens_at_once = 72;  // batches of two prompts at most
  const EdgeScores all = attributed_edge_scores(*model_, graph_, prompts_, 2, options);
  std::vector<EdgeScores> single;
  for (const TaskPrompt& prompt : prompts_)
    single.push_back(attributed_edge_scores(*model_, graph_, {prompt}, 2));
  for (std::size_t e = 0; e < all.drops.size(); ++e) {
    std::vector<double> values;
    for (const EdgeScores& one : single) values.push_back(one.drops[e].mean);
    EXPECT_NEAR(all.drops[e].mean, estimate(values).mean, 1e-4);
    EXPECT_NEAR(all.drops[e].error.value(), estimate(values).error.value(), 1e-4);
  }
}

// What reaches an input by its edges is what reaches it in all: the attribution of an MLP's or the
// logits' edges sums up to that of the stream they read.
TEST_P(Edges, OfOneInputAddUpToItsStream) {
  const EdgeScores scores = attributed_edge_scores(*model_, graph_, prompts_, 0);
  const auto sum_of = [&](std::int64_t index) {
    const ComponentInput& input = graph_.inputs()[static_cast<std::size_t>(index)];
    double sum = 0;
    for (std::int64_t u = 0; u < input.before; ++u)
      sum += scores.drops[static_cast<std::size_t>(input.first + u)].mean;
    return sum;
  };
  // Into an MLP: (in(clean) - in(corrupt)) . gradient of the branch, by hand.
  for (const std::int64_t index : {graph_.input(Branch::kMlp, 1), graph_.logits()}) {
    const std::string tap = tap_name(graph_.inputs()[static_cast<std::size_t>(index)]);
    std::vector<double> products;
    for (const TaskPrompt& prompt : prompts_) {
      Taps corrupt, clean;
      corrupt.observe(tap);
      model_->forward(prompt_ids({&prompt}, true), {.taps = &corrupt});
      clean.observe_gradient(tap);
      if (GetParam() == SmallKind::kGated)
        clean.intervene("blocks.*.attn.hook_gate",
                        [](const Variable& gate) { return Variable(gate.value()); });
      Tape tape;
      tape.backward(metric_sum(Metric::kLogitDifference,
                               model_->forward(prompt_ids({&prompt}, false),
                                               {.taps = &clean, .last_position_only = true}),
                               {&prompt}));
      double product = 0;
      for (std::int64_t i = 0; i < clean.value(tap).elements(); ++i)
        product += (static_cast<double>(clean.value(tap).f32()[i]) -
                    static_cast<double>(corrupt.value(tap).f32()[i])) *
                   static_cast<double>(clean.gradient(tap).f32()[i]);
      products.push_back(product);
    }
    EXPECT_NEAR(sum_of(index), estimate(products).mean, 1e-3);
  }
}

// All edges out of a head, to first order, are the head.
TEST_P(Edges, OutOfAHeadAddUpToTheHead) {
  if (normed_behind(GetParam()))
    GTEST_SKIP() << "a head's output also changes the denominator of the others'";
  const EdgeScores scores = attributed_edge_scores(*model_, graph_, prompts_, 3);
  const Importance heads = attributed_importance(*model_, prompts_, all_heads(model_->config()), 3);
  for (std::size_t t = 0; t < heads.targets.size(); ++t) {
    const std::int64_t node = graph_.head_node(heads.targets[t].layer, heads.targets[t].head);
    double sum = 0;
    for (const std::int64_t number : all_edges(graph_))
      if (graph_.edge(number).node == node)
        sum += scores.drops[static_cast<std::size_t>(number)].mean;
    EXPECT_NEAR(sum, heads.of(t).mean, 2e-3 * std::abs(heads.of(t).mean) + 1e-3);
  }
}

TEST_P(Edges, CurveEndsWithTheCleanRunAndBeginsWithTheCorruptOne) {
  const EdgeScores scores = attributed_edge_scores(*model_, graph_, prompts_, 5);
  for (const bool greedy : {false, true}) {
    const EdgeCurve curve =
        keep_edges(*model_, graph_, prompts_,
                   greedy ? greedy_edge_order(graph_, scores) : scores.order(), {}, 0.5);
    EXPECT_EQ(curve.order.size(), static_cast<std::size_t>(graph_.edges()));
    EXPECT_NEAR(curve.points.front().metric, curve.corrupt.mean, kTolerance);
    EXPECT_NEAR(curve.points.back().metric, curve.clean.mean, 1e-6);
    EXPECT_EQ(curve.points.back().parts, static_cast<std::size_t>(graph_.edges()));
    for (const CurvePoint& point : curve.points) {
      EXPECT_LE(point.parts, point.kept);
      EXPECT_EQ(point.parts, curve.edges_of(graph_, point).size());
    }
    // Whoever watches sees all of it, and as it is.
    std::map<std::size_t, double> seen;
    PatchOptions watched;
    watched.point = [&](std::size_t kept, double effect) { seen[kept] = effect; };
    keep_edges(*model_, graph_, prompts_, curve.order, {}, 0.5, watched);
    ASSERT_EQ(seen.size(), curve.points.size());
    for (const CurvePoint& point : curve.points)
      EXPECT_NEAR(seen.at(point.kept), point.effect, 1e-4);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, Edges,
                         testing::Values(SmallKind::kDense, SmallKind::kGated, SmallKind::kLlama,
                                         SmallKind::kParallel, SmallKind::kOlmo2,
                                         SmallKind::kGemma2),
                         [](const auto& parameter) { return text_of(parameter.param); });

// Of a dense model: the embeddings' path from corrupt to clean adds up to the whole difference, and
// so do, for every cut through the graph, the edges that cross it; here those out of the input.
TEST(EdgeScoresByIntegration, OutOfTheInputAddUpToTheDifference) {
  const auto model = small_model(false);
  const ComponentGraph graph(model->config());
  for (const TaskPrompt& prompt : small_prompts({7, 5})) {
    const EdgeScores scores = attributed_edge_scores(*model, graph, {prompt}, 400);
    double sum = 0;
    for (std::int64_t number = 0; number < graph.edges(); ++number)
      if (graph.edge(number).node == 0) sum += scores.drops[static_cast<std::size_t>(number)].mean;
    const double whole = scores.clean[0] - scores.corrupt[0];
    EXPECT_NEAR(sum, whole, 0.02 * std::abs(whole) + 0.02);
  }
}

TEST(EdgeRuns, RefuseWhatTheGraphDoesNotHave) {
  const auto model = small_model(false);
  const ComponentGraph graph(model->config());
  const std::vector<TaskPrompt> prompts = small_prompts({6});
  EXPECT_THROW(run_edges(*model, graph, prompts, {{false, {graph.edges()}}}), Error);
  EXPECT_THROW(run_edges(*model, graph, prompts, {{false, {3, 3}}}), Error);
  PatchOptions options;
  options.replacement = Replacement::kZero;
  EXPECT_THROW(run_edges(*model, graph, prompts, {{false, {3}}}, options), Error);
  EXPECT_THROW(attributed_edge_scores(*model, graph, prompts, 0, options), Error);
  options.replacement = Replacement::kCorrupt;
  options.metric = Metric::kKl;
  EXPECT_THROW(attributed_edge_scores(*model, graph, prompts, 0, options), Error);
  options.metric = Metric::kAccuracy;
  EXPECT_THROW(attributed_edge_scores(*model, graph, prompts, 1, options), Error);
}

TEST(GreedyEdges, WalkBackFromTheLogits) {
  ModelConfig config;
  config.layers = 2, config.heads = config.key_heads = 2;
  const ComponentGraph graph(config);
  EdgeScores scores;
  scores.drops.resize(static_cast<std::size_t>(graph.edges()));
  const auto set = [&](std::int64_t node, std::int64_t input, double drop) {
    const std::int64_t number = graph.number({node, input});
    scores.drops[static_cast<std::size_t>(number)].mean = drop;
    return number;
  };
  const std::int64_t out = set(graph.head_node(1, 0), graph.logits(), -2);
  const std::int64_t middle = set(graph.head_node(0, 1), graph.input(Branch::kKey, 1, 0), 3);
  const std::int64_t in = set(0, graph.input(Branch::kValue, 0, 1), 1);
  const std::int64_t lonely = set(0, graph.input(Branch::kQuery, 0, 0), 9);  // leads nowhere
  const std::vector<std::int64_t> order = greedy_edge_order(graph, scores);
  EXPECT_EQ(order.size(), scores.drops.size());
  const std::vector<std::int64_t> first(order.begin(), order.begin() + 3);
  EXPECT_THAT(first, testing::ElementsAre(out, middle, in));
  EXPECT_EQ(scores.order()[0], lonely);
}

TEST(DrawnEdges, HaveNodesAndScoresAndGoToEveryHeadThatSharesAKey) {
  ModelConfig config;
  config.layers = 2, config.heads = 4, config.key_heads = 2;
  const ComponentGraph graph(config);
  EdgeScores scores;
  scores.drops.resize(static_cast<std::size_t>(graph.edges()));
  std::vector<std::int64_t> edges;
  const auto add = [&](std::int64_t node, std::int64_t input, double drop) {
    edges.push_back(graph.number({node, input}));
    scores.drops[static_cast<std::size_t>(edges.back())].mean = drop;
  };
  // Key head 1 of layer 1 serves the heads 2 and 3; only head 3 is heard further on.
  add(graph.head_node(1, 3), graph.logits(), -2);
  add(graph.mlp_node(0), graph.input(Branch::kKey, 1, 1), 3);
  add(0, graph.input(Branch::kMlp, 0), 1);
  CircuitGraph drawn = drawn_edges(graph, edges, scores);
  check_graph(drawn);
  std::vector<std::string> names;
  for (const Component& node : drawn.nodes) names.push_back(name_of(node));
  EXPECT_THAT(names, testing::ElementsAre("input", "L0 MLP", "L1H3", "logits"));
  ASSERT_EQ(drawn.edges.size(), 3u);
  EXPECT_EQ(drawn.edges[0].score, -2);
  EXPECT_EQ(drawn.edges[0].input, GraphInput::kNone);
  EXPECT_EQ(drawn.edges[1].input, GraphInput::kKey);
  EXPECT_EQ(drawn.edges[1].to, 2u);
  EXPECT_EQ(drawn.edges[1].score, 3);

  add(graph.head_node(1, 2), graph.logits(), 1);
  drawn = drawn_edges(graph, edges, scores);
  EXPECT_EQ(drawn.nodes.size(), 5u);
  EXPECT_EQ(drawn.edges.size(), 5u);  // the key's edge twice
}

// The circuit built by hand. Positions, which the first head compares, and the last token, which
// the second asks for, are the same in both prompts, so no edge that only brings these matters.
TEST(InductionModelEdges, AreFoundByEitherScoreAndSelection) {
  const auto model = induction_model();
  const ComponentGraph graph(model->config());
  const std::vector<TaskPrompt> prompts = induction_prompts(12);
  const std::vector<std::string> circuit = {"input -> L0H0 v", "L0H0 -> L1H0 k", "input -> L1H0 v",
                                            "L1H0 -> logits"};
  // The gradient at the clean run alone would not do: the second head's attention is certain of its
  // place, so that its softmax has no slope, and EAP hardly sees the edge to its keys.
  for (const int steps : {-1, 8}) {
    const EdgeScores scores = steps < 0 ? exact_edge_scores(*model, graph, prompts)
                                        : attributed_edge_scores(*model, graph, prompts, steps);
    for (const bool greedy : {false, true}) {
      SCOPED_TRACE(fmt::format("steps {} greedy {}", steps, greedy));
      const EdgeCurve curve =
          keep_edges(*model, graph, prompts,
                     greedy ? greedy_edge_order(graph, scores) : scores.order(), {}, 0.9);
      const CurvePoint* point = curve.at(0.9);
      ASSERT_NE(point, nullptr);
      EXPECT_EQ(point->parts, 4u);
      std::vector<std::string> found;
      for (const std::int64_t number : curve.edges_of(graph, *point))
        found.push_back(graph.edge_text(number));
      EXPECT_THAT(found, testing::UnorderedElementsAreArray(circuit));
    }
  }
}

}  // namespace
}  // namespace filigree
