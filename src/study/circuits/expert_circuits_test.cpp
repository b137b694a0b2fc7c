// Studies whose parts are the experts of a mixture.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "filigree/circuit_study.h"
#include "filigree/lens_study.h"
#include "study/comparison/changed_runs.h"
#include "study/comparison/stored_runs.h"
#include "support/errors.h"
#include "support/test_task.h"

namespace filigree::study {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr std::int64_t kLayers = 2, kHeads = 4, kExperts = 4;

class ExpertCircuits : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = std::make_unique<ModelFolder>();
    const ModelConfig config = parse_model_config({{"model_type", "olmoe"},
                                                   {"num_hidden_layers", kLayers},
                                                   {"num_attention_heads", kHeads},
                                                   {"num_key_value_heads", 2},
                                                   {"hidden_size", 32},
                                                   {"intermediate_size", 24},
                                                   {"max_position_embeddings", 64},
                                                   {"num_experts", kExperts},
                                                   {"num_experts_per_tok", 2},
                                                   {"vocab_size", 8192}},
                                                  "expert_circuits");
    const std::unique_ptr<Model> model = make_model(config, 1);
    enlarge_weights(*model, 10.0f);
    save_model(*model, folder_->path());  // in the place of the folder's own, with its tokenizer
    write_own_task(*folder_, task_file(), 12);
    models_ = std::make_unique<std::vector<LoadedModel>>(load_models({folder_->name()}, {}));
  }
  static void TearDownTestSuite() { models_.reset(), folder_.reset(); }

  static std::string task_file() { return (folder_->path() / "own.jsonl").string(); }
  static const LoadedModel& model() { return models_->front(); }
  static CircuitRequest request(Parts parts) {
    CircuitRequest request;
    request.task.name = task_file();
    request.search.parts = parts;
    request.search.method = usual_method(parts);
    return request;
  }
  static RunResult run_with(const std::string& ablated) {
    RunRequest request = {.prompt = "The cat sat on the", .top = 1};
    request.taps = {"*hook_expert_gates"};
    request.interventions.add_ablations(ablated);
    return run(request, *models_, {});
  }

  static std::unique_ptr<ModelFolder> folder_;
  static std::unique_ptr<std::vector<LoadedModel>> models_;
};
std::unique_ptr<ModelFolder> ExpertCircuits::folder_;
std::unique_ptr<std::vector<LoadedModel>> ExpertCircuits::models_;

TEST_F(ExpertCircuits, ListExpertsBesideHeads) {
  const CircuitsOfKind circuits = run(request(Parts::kHeadsAndMlps), *models_, {});
  ASSERT_TRUE(circuits[0].found);
  const FoundCircuit& found = *circuits[0].found;
  std::set<std::string> names, expected;
  double sum = 0;
  for (const CircuitPart& part : found.parts) names.insert(part.name), sum += part.score.mean;
  for (std::int64_t l = 0; l < kLayers; ++l) {
    for (std::int64_t h = 0; h < kHeads; ++h) expected.insert(head_name({l, h}));
    for (std::int64_t e = 0; e < kExperts; ++e) expected.insert(expert_name({l, e}));
  }
  EXPECT_EQ(names, expected);
  EXPECT_EQ(found.part_count, static_cast<double>(expected.size()));
  // All of them are the whole effect, and none of them nothing; what they do one by one lies in
  // the order of it.
  const double whole = found.curve.clean.mean - found.curve.corrupt.mean;
  EXPECT_NEAR(found.curve.points.front().effect, 0.0, 1e-3);
  EXPECT_NEAR(found.curve.points.back().effect, 1.0, 1e-3);
  EXPECT_GT(sum, 0.1 * whole);
  EXPECT_LT(sum, 10 * whole);
  // Experts are no heads.
  for (const HeadId& head : found.heads)
    EXPECT_NE(std::find(found.members.begin(), found.members.end(), head_name(head)),
              found.members.end());
  const auto heads = std::count_if(
      found.members.begin(), found.members.end(),
      [](const auto& name) { return parse_component(name).kind == ComponentKind::kHead; });
  EXPECT_EQ(static_cast<std::size_t>(heads), found.heads.size());
  const Json scores = to_json(circuits[0])["scores"];
  for (std::size_t i = 0; i < scores.size(); ++i) {
    const Component part = parse_component(found.parts[i].name);
    EXPECT_EQ(scores[i]["layer"], part.layer);
    EXPECT_EQ(scores[i]["head"].is_null(), part.kind == ComponentKind::kExpert);
    EXPECT_EQ(scores[i]["expert"].is_null(), part.kind == ComponentKind::kHead);
    if (part.kind == ComponentKind::kExpert) {
      EXPECT_EQ(scores[i]["expert"], part.expert);
    }
  }
  if (const auto grid = grid_of(circuits, *models_)) {
    EXPECT_THAT(grid->panels[0].title, HasSubstr("expert"));
    EXPECT_THAT(grid->panels[0].title, ::testing::Not(HasSubstr("MLP")));
  }
}

TEST_F(ExpertCircuits, OfEdgesKeepTheMixtureAsOneMlp) {
  const CircuitsOfKind circuits = run(request(Parts::kEdges), *models_, {});
  ASSERT_TRUE(circuits[0].found);
  bool mlp = false;
  for (const CircuitPart& part : circuits[0].found->parts) {
    const std::string& from = std::get<NamedEdge>(part.place).from;
    EXPECT_NE(parse_component(from).kind, ComponentKind::kExpert) << from;
    mlp = mlp || from == "L0 MLP";
  }
  EXPECT_TRUE(mlp);
}

TEST_F(ExpertCircuits, SweepsNameExperts) {
  PatchRequest request;
  request.task.name = task_file();
  request.sites = {Site::kExpertOut};
  const PatchResult result = run(request, *models_, {});
  ASSERT_EQ(result.models[0].sites.size(), 1u);
  const SweptSite& site = result.models[0].sites[0];
  EXPECT_EQ(site.axis, SweepAxis::kExpert);
  EXPECT_EQ(site.place(kExperts + 2), "L1E2");
  EXPECT_EQ(to_json(result)["models"][0]["sites"][0]["by"], "layer-expert");
  EXPECT_EQ(figure_of(result)->panels[0].columns.name, "expert");
  request.sites = {Site::kMlpOut}, request.by = SweepAxis::kExpert;
  EXPECT_THAT(error_of([&] { run(request, *models_, {}); }), HasSubstr("has no experts"));
}

TEST_F(ExpertCircuits, RunsChangeWithTheExpertsThatTokensChose) {
  int silent = 0, heard = 0;
  for (std::int64_t l = 0; l < kLayers; ++l)
    for (std::int64_t e = 0; e < kExperts; ++e) {
      const RunResult result = run_with(expert_name({l, e}));
      const Tensor& gates = result.plain.taps[static_cast<std::size_t>(l)];  // [T, E]
      bool chosen = false;
      for (std::int64_t t = 0; t < gates.size(0); ++t)
        chosen = chosen || gates.f32()[t * kExperts + e] != 0.0f;
      double most = 0;
      for (const double moved : result.divergence) most = std::max(most, moved);
      if (chosen) {
        EXPECT_GT(most, 1e-4) << expert_name({l, e});
        ++heard;
      } else {
        EXPECT_LT(most, 1e-6) << expert_name({l, e});
        ++silent;
      }
    }
  EXPECT_GT(heard, 1);
  EXPECT_EQ(heard + silent, kLayers * kExperts);
  EXPECT_THAT(error_of([] { run_with("L1E4"); }),
              AllOf(HasSubstr("no expert 4"), HasSubstr("there are 4")));
}

// The gradient against runs in which the expert is scaled a little up and down.
TEST_F(ExpertCircuits, GradientsAreSlopes) {
  const std::string prompt = "The cat sat on the";
  RunRequest request = {.prompt = prompt, .gradient_of = " a"};
  const RunResult result = run(request, *models_, {});
  ASSERT_EQ(result.plain.parts.size(), static_cast<std::size_t>(kLayers * (kHeads + kExperts)));
  constexpr double kStep = 0.01;
  int steep = 0;
  for (const PartGradient& part : result.plain.parts) {
    if (part.part.kind != ComponentKind::kExpert) continue;
    double ends[2];
    for (const int side : {0, 1}) {
      RunRequest moved = {.prompt = prompt, .tokens = {" a"}};
      moved.interventions.add_scales(
          fmt::format("{}={}", name_of(part.part), side == 0 ? 1 - kStep : 1 + kStep));
      ends[side] = run(moved, *models_, {}).changed->listed[0].logit;
    }
    const double slope = (ends[1] - ends[0]) / (2 * kStep);
    EXPECT_NEAR(part.value_times_gradient, slope, 2e-3 + 0.02 * std::abs(slope))
        << name_of(part.part);
    steep += std::abs(slope) > 0.02 ? 1 : 0;
  }
  EXPECT_GT(steep, 2);
}

// What the page stores of a run without an expert is that of the run with it switched off.
TEST_F(ExpertCircuits, RunsWithoutAnExpertAreAblated) {
  const std::vector<TokenId> ids = model().tokenizer().encode("The cat sat on the");
  const std::vector<Component> parts = {{.kind = ComponentKind::kExpert, .layer = 0, .expert = 1},
                                        {.kind = ComponentKind::kExpert, .layer = 1, .expert = 3},
                                        {ComponentKind::kHead, 0, 2}};
  const std::vector<ChangedRun> found = runs_without(model(), ids, parts);
  ASSERT_EQ(found.size(), parts.size());
  for (std::size_t p = 0; p < parts.size(); ++p) {
    Interventions changes;
    changes.add_ablations(name_of(parts[p]));
    AppliedInterventions applied(model().model(), changes);
    Taps taps;
    applied.put_on(taps);
    const Tensor logits =
        model()
            .model()
            .forward(Tensor::from_ids({1, static_cast<std::int64_t>(ids.size())}, ids),
                     {.taps = &taps, .last_position_only = true})
            .value();
    ASSERT_EQ(found[p].prediction.logits.size(), static_cast<std::size_t>(logits.elements()));
    for (std::size_t i = 0; i < found[p].prediction.logits.size(); ++i)
      ASSERT_NEAR(found[p].prediction.logits[i], logits.f32()[i], 2e-3) << name_of(parts[p]);
  }
}

// The page of a comparison has the strongest expert off, where every model has it.
TEST_F(ExpertCircuits, AreStoredWhereAllModelsHaveThem) {
  const std::vector<TokenId> ids = model().tokenizer().encode("The cat sat on the");
  const auto experts_off = [&](Models models) {
    std::vector<std::string> found;
    const StoredPrompt stored = stored_prompt(models, ids, {});
    for (const Json& change : stored.json.at("changes"))
      if (parse_component(change["ablate"].get<std::string>()).kind == ComponentKind::kExpert)
        found.push_back(change["ablate"]);
    return found;
  };
  const std::vector<std::string> alone = experts_off(*models_);
  ASSERT_EQ(alone.size(), kStoredMlps);
  const Json importance = stored_prompt(*models_, ids, {}).json.at("importance")[0];
  double largest = 0;
  for (const auto& [name, value] : importance.items())
    if (parse_component(name).kind == ComponentKind::kExpert)
      largest = std::max(largest, std::abs(value.get<double>()));
  EXPECT_DOUBLE_EQ(std::abs(importance.at(alone[0]).get<double>()), largest);
  const ModelFolder dense;
  EXPECT_TRUE(experts_off(load_models({folder_->name(), dense.name()}, {})).empty());
}

}  // namespace
}  // namespace filigree::study
