// A head's page against the same numbers found in other ways.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "base/scratch_folder.h"
#include "filigree/lens_study.h"
#include "study/head/head_parts.h"
#include "support/errors.h"
#include "support/test_task.h"

namespace filigree::study {
namespace {

using ::testing::HasSubstr;

const std::string kPrompt = "The capital of France is Paris, and the capital of Italy is";

class HeadPageTest : public ::testing::Test {
 protected:
  HeadPageTest() {
    write_own_task(folder_, task_, 6);
    request_.head = "L1H2";
    request_.tasks = {task_};
    request_.prompts.source = numbered_prompts({kPrompt, "one two one two one two"});
    request_.replacement = Replacement::kZero;
  }

  // The logits [V] at a position of the run on the text with the changes.
  std::vector<float> logits(const std::string& text, const Interventions& changes,
                            std::int64_t position) const {
    RunRequest request = {.prompt = text};
    request.interventions = changes;
    const RunResult result = run(request, models_[0], {});
    const Tensor& all = changes.empty() ? result.plain.logits : result.changed->logits;
    const auto V = static_cast<std::size_t>(all.size(1));
    const std::span<const float> row =
        all.values().subspan(static_cast<std::size_t>(position) * V, V);
    return {row.begin(), row.end()};
  }

  const ModelFolder folder_;
  const ScratchFolder scratch_;
  const std::string task_ = (scratch_.path() / "task.jsonl").string();
  const std::vector<LoadedModel> models_ = load_models({folder_.name()}, {});
  HeadRequest request_;
};

TEST_F(HeadPageTest, TasksLoseWhatRunsWithoutTheHeadLose) {
  const HeadPage page = run(request_, models_[0], {});
  ASSERT_EQ(page.facts.tasks.size(), 1u);
  const TaskEffect& effect = page.facts.tasks[0];
  TaskSelection selection;
  selection.name = task_;
  selection.prompts = request_.task_prompts;
  const LoadedTask task = load_task(selection, models_[0], {});
  ASSERT_EQ(effect.prompts, task.prompts.prompts.size());
  Interventions without;
  without.add_ablations("L1H2");
  double clean = 0, ablated = 0;
  for (const TaskPrompt& prompt : task.prompts.prompts)
    for (const bool changed : {false, true}) {
      const std::vector<float> last =
          logits(prompt.text.clean, changed ? without : Interventions(), prompt.length() - 1);
      double right = 0, wrong = 0;
      for (const TokenId id : prompt.answers) right += last[static_cast<std::size_t>(id)];
      for (const TokenId id : prompt.wrong) wrong += last[static_cast<std::size_t>(id)];
      (changed ? ablated : clean) += right / static_cast<double>(prompt.answers.size()) -
                                     wrong / static_cast<double>(prompt.wrong.size());
    }
  const auto n = static_cast<double>(effect.prompts);
  EXPECT_NEAR(effect.check.clean.mean, clean / n, 1e-4);
  EXPECT_NEAR(effect.ablated.mean, ablated / n, 1e-4);
  EXPECT_NEAR(effect.drop.mean, (clean - ablated) / n, 1e-4);
  EXPECT_GT(std::abs(effect.drop.mean), 1e-3);  // else the test would show nothing
}

// In the last layer, with its MLP silent and the final scale held, what a head writes is all that
// its absence takes away.
TEST_F(HeadPageTest, DirectEffectsAreDifferencesOfLogits) {
  const HeadPage page = run(request_, models_[0], {});
  ASSERT_TRUE(page.facts.example);
  const DirectEffect& direct = page.facts.direct;
  const std::int64_t position = page.facts.example->query;
  const std::string text = page.example() == 0 ? kPrompt : "one two one two one two";
  Interventions with;
  with.add_patch("ln_final.hook_scale=" + text);
  with.add_ablations("L1MLP");
  Interventions without = with;
  without.add_ablations("L1H2");
  const std::vector<float> a = logits(text, with, position), b = logits(text, without, position);
  double mean = 0;
  for (std::size_t v = 0; v < a.size(); ++v)
    mean += (static_cast<double>(a[v]) - b[v]) / static_cast<double>(a.size());
  for (const std::vector<LogitEffect>* list : {&direct.raised, &direct.lowered})
    for (const LogitEffect& effect : *list) {
      const auto v = static_cast<std::size_t>(effect.token);
      EXPECT_NEAR(effect.effect, static_cast<double>(a[v]) - b[v] - mean, 1e-4);
    }
  const auto largest = [&](double sign) {
    double most = -INFINITY;
    for (std::size_t v = 0; v < a.size(); ++v)
      most = std::max(most, sign * (static_cast<double>(a[v]) - b[v] - mean));
    return sign * most;
  };
  EXPECT_NEAR(direct.raised[0].effect, largest(1), 1e-4);
  EXPECT_NEAR(direct.lowered[0].effect, largest(-1), 1e-4);
}

TEST_F(HeadPageTest, EdgesAreThoseOfTheMaps) {
  request_.top = 1000;
  const HeadPage page = run(request_, models_[0], {});
  std::map<std::pair<TokenId, TokenId>, std::pair<int, double>> expected;
  double mass = 0;
  capture_maps(
      models_[0].model(), page.prompts, CaptureOptions::of({{1, 2}}, MapKind::kWeights),
      [&](std::span<const HeadMap> maps) {
        for (const HeadMap& map : maps)
          for (std::int64_t i = 0; i < map.length; ++i)
            for (std::int64_t j = 0; j <= i; ++j) {
              const float w = map.weights[static_cast<std::size_t>(i * map.length + j)];
              mass += static_cast<double>(w);
              if (w < 0.02f) continue;
              const std::vector<TokenId>& ids = page.prompts[map.prompt].ids;
              auto& cell =
                  expected[{ids[static_cast<std::size_t>(i)], ids[static_cast<std::size_t>(j)]}];
              ++cell.first, cell.second += static_cast<double>(w);
            }
      });
  ASSERT_EQ(page.facts.edges.size(), expected.size());
  for (const TokenEdge& edge : page.facts.edges) {
    const auto& [count, sum] = expected.at({edge.query, edge.key});
    EXPECT_EQ(edge.count, count);
    EXPECT_NEAR(edge.mean, sum / count, 1e-6);
    EXPECT_NEAR(edge.share, sum / mass, 1e-6);
  }
  EXPECT_TRUE(
      std::is_sorted(page.facts.edges.begin(), page.facts.edges.end(),
                     [](const TokenEdge& a, const TokenEdge& b) { return a.share > b.share; }));
  EXPECT_EQ(page.facts.map.size(),
            page.prompts[page.example()].ids.size() * page.prompts[page.example()].ids.size());
}

TEST_F(HeadPageTest, WeightsSayWhatIsRaisedAndLowered) {
  const HeadPage page = run(request_, models_[0], {});
  const std::vector<HeadMatrices> heads = all_head_matrices(models_[0].model());
  const HeadMatrices& head = heads[4 + 2];
  ASSERT_FALSE(page.facts.reads.empty());
  const TokenInputs inputs(models_[0].model(), TokenInput::kFirstMlp);
  const TokenRows& rows = inputs.of_layer(1);
  EXPECT_EQ(page.facts.input, TokenInput::kFirstMlp);
  for (const ReadToken& read : page.facts.reads) {
    PairOptions options = {.top = 1, .from = {read.written.token}};
    EXPECT_EQ(read.written.raised, top_ov_pairs(models_[0].model(), rows, head, options)[0].to);
    options.lowest = true;
    EXPECT_EQ(read.written.lowered, top_ov_pairs(models_[0].model(), rows, head, options)[0].to);
  }
  EXPECT_EQ(page.facts.circuit.copying,
            head_circuit_scores(models_[0].model(), inputs, heads, {4 + 2})[0].copying);
  // The page lists four heads of layer 0 as readable for one of layer 1, and none that reads it.
  EXPECT_EQ(page.facts.reads_heads[0].size(), 4u);
  EXPECT_TRUE(page.facts.read_by[0].empty());
}

TEST_F(HeadPageTest, WeightsReadWhatIsAskedFor) {
  std::vector<double> copying;
  for (const Named<TokenInput>& kind : kNames<TokenInput>) {
    request_.input = kind.value;
    const HeadPage page = run(request_, models_[0], {});
    EXPECT_EQ(page.facts.input, kind.value);
    EXPECT_EQ(to_json(page)["facts"]["input"], kind.name);
    copying.push_back(page.facts.circuit.copying);
  }
  EXPECT_NE(copying[0], copying[1]);
  EXPECT_NE(copying[1], copying[2]);
}

// What a head writes at a query is what it writes there for each token, by their weights.
TEST_F(HeadPageTest, ReadsAndWritesOfARunAreOfOneUnit) {
  const std::vector<TokenId> ids = {9, 4, 9, 31, 4, 7}, tokens = {9, 4, 31, 7};
  const std::int64_t query = 5;
  std::vector<double> weights;
  capture_maps(models_[0].model(), std::vector<Prompt>{{ids}},
               CaptureOptions::of({{1, 2}}, MapKind::kWeights), [&](std::span<const HeadMap> maps) {
                 weights.assign(maps[0].weights.begin() + query * 6, maps[0].weights.end());
               });
  const auto vocabulary = static_cast<std::size_t>(models_[0].config().vocabulary);
  const HeadInRun all =
      look_at_run(models_[0].model(), {1, 2}, ids, query, vocabulary, tokens, weights);
  std::map<TokenId, double> direct;
  for (const LogitEffect& effect : all.direct.raised) direct[effect.token] = effect.effect;
  // With one token alone to read, what is read is all that is written.
  const HeadInRun alone =
      look_at_run(models_[0].model(), {1, 2}, {9}, 0, vocabulary, {9}, std::vector<double>{1.0});
  ASSERT_EQ(alone.reads.size(), 1u);
  EXPECT_EQ(alone.reads[0].raised, alone.direct.raised[0].token);
  EXPECT_EQ(alone.reads[0].lowered, alone.direct.lowered[0].token);
  for (const LogitEffect& effect : alone.direct.raised)
    if (effect.token == 9) {
      EXPECT_NEAR(alone.reads[0].own_effect, effect.effect, 1e-5);
    }
  // With several, through the values by hand.
  Taps taps;
  taps.observe("blocks.1.attn.hook_v");
  taps.observe("ln_final.hook_scale");
  models_[0].model().forward(Tensor::from_ids({1, 6}, ids), {.taps = &taps});
  const HeadMatrices head = all_head_matrices(models_[0].model())[4 + 2];
  const Tensor unembedding = folded_unembedding(models_[0].model());
  const std::int64_t D = head.o.size(0), d = head.o.size(1);
  const auto effect_of = [&](std::int64_t position, TokenId token) {
    const float* v = taps.value("blocks.1.attn.hook_v").f32() + (position * 4 + 2) * D;
    double own = 0, mean = 0;
    for (std::int64_t u = 0; u < unembedding.size(0); ++u) {
      double logit = 0;
      for (std::int64_t i = 0; i < D; ++i)
        for (std::int64_t c = 0; c < d; ++c)
          logit +=
              static_cast<double>(v[i]) * head.o.f32()[i * d + c] * unembedding.f32()[u * d + c];
      mean += logit / static_cast<double>(unembedding.size(0));
      if (u == token) own = logit;
    }
    return (own - mean) / taps.value("ln_final.hook_scale").f32()[query];
  };
  EXPECT_NEAR(all.reads[2].own_effect, effect_of(3, 31), 1e-4);
  // Of a token that is there twice, by what each got.
  EXPECT_NEAR(
      all.reads[0].own_effect,
      (weights[0] * effect_of(0, 9) + weights[2] * effect_of(2, 9)) / (weights[0] + weights[2]),
      1e-4);
  double sum = 0;
  for (std::int64_t t = 0; t < 6; ++t)
    sum += weights[static_cast<std::size_t>(t)] * effect_of(t, 31);
  EXPECT_NEAR(direct.at(31), sum, 1e-4);
}

TEST_F(HeadPageTest, ATwinIsFoundByItsMaps) {
  // The same model under another name: every head is its own twin.
  const std::vector<LoadedModel> two = load_models({folder_.name(), folder_.name()}, {});
  const HeadPage page = run(request_, two, {});
  ASSERT_TRUE(page.twin);
  EXPECT_EQ(page.twin->facts.head, (HeadId{1, 2}));
  EXPECT_NEAR(page.twin->correlation, 1.0, 1e-6);
  EXPECT_EQ(page.twin->same_correlation, page.twin->correlation);
  EXPECT_EQ(page.twin->facts.tasks[0].drop.mean, page.facts.tasks[0].drop.mean);
  const std::vector<double> all = map_correlations(two[0], {1, 2}, two[1], page.prompts, {});
  // Against sums over the cells, for another head.
  std::vector<float> x, y;
  capture_maps(two[0].model(), page.prompts,
               CaptureOptions::of({{0, 1}, {1, 2}}, MapKind::kWeights),
               [&](std::span<const HeadMap> maps) {
                 for (const HeadMap& map : maps)
                   for (std::int64_t i = 0; i < map.length; ++i)
                     for (std::int64_t j = 0; j <= i; ++j)
                       (map.slot == 0 ? y : x)
                           .push_back(map.weights[static_cast<std::size_t>(i * map.length + j)]);
               });
  double mx = 0, my = 0, xy = 0, xx = 0, yy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) mx += x[i], my += y[i];
  mx /= static_cast<double>(x.size()), my /= static_cast<double>(y.size());
  for (std::size_t i = 0; i < x.size(); ++i)
    xy += (x[i] - mx) * (y[i] - my), xx += (x[i] - mx) * (x[i] - mx),
        yy += (y[i] - my) * (y[i] - my);
  EXPECT_NEAR(all[1], xy / std::sqrt(xx * yy), 1e-6);
  const figure::HeadPage drawn = figure_of(page);
  ASSERT_EQ(drawn.maps.size(), 2u);
  EXPECT_NE(drawn.maps[0].color, drawn.maps[1].color);
  EXPECT_EQ(drawn.bars.size(), 1u);
  EXPECT_EQ(to_json(page)["twin"]["facts"]["name"], "L1H2");
}

TEST_F(HeadPageTest, WithoutPromptsTheTasksAreLookedAt) {
  request_.prompts = {};
  const HeadPage page = run(request_, models_[0], {});
  const TaskEffect& effect = page.facts.tasks[0];
  EXPECT_EQ(page.prompts.size(), effect.prompts);
  EXPECT_FALSE(page.prompts[0].tokens.empty());
  // The strongest edge of a last token, found by looking at all of them.
  double most = 0;
  capture_maps(models_[0].model(), page.prompts, CaptureOptions::of({{1, 2}}, MapKind::kWeights),
               [&](std::span<const HeadMap> maps) {
                 const HeadMap& map = maps[0];
                 for (const float w : map.weights.last(static_cast<std::size_t>(map.length)))
                   most = std::max(most, static_cast<double>(w));
               });
  ASSERT_TRUE(effect.last);
  EXPECT_NEAR(effect.last->weight, most, 1e-6);
}

TEST_F(HeadPageTest, IsAboutOneHead) {
  request_.head = "L1";
  EXPECT_THAT(error_of([&] { run(request_, models_[0], {}); }),
              HasSubstr("'L1' is 4 heads; a page is about one"));
  request_.head = "L9H9";
  EXPECT_THAT(error_of([&] { run(request_, models_[0], {}); }), HasSubstr("no 'L9H9'"));
}

TEST(Counterpart, OfABundledModelIsTheOtherOne) {
  EXPECT_EQ(counterpart("/some/sparse-folder"), std::nullopt);
  EXPECT_EQ(counterpart("sparse-no-such-model"), std::nullopt);
}

}  // namespace
}  // namespace filigree::study
