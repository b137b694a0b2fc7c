#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "filigree/comparison_study.h"
#include "filigree/error.h"
#include "filigree/features.h"
#include "filigree/lens.h"
#include "filigree/lens_study.h"
#include "filigree/maps.h"
#include "filigree/study.h"
#include "study/comparison/changed_runs.h"
#include "study/comparison/comparison_output.h"
#include "study/comparison/stored_runs.h"
#include "support/files.h"
#include "support/random_transcoder.h"
#include "support/test_task.h"

namespace filigree::study {
namespace {

namespace fs = std::filesystem;

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

class ComparisonStudyTest : public ::testing::Test {
 protected:
  ComparisonStudyTest() : sparse_(dense_.gated(scratch_ / "sparse", {{-0.1f}})) {
    request_.folder = scratch_ / "out";
    request_.formats = {figure::Format::kSvg};
    request_.prompts.source = numbered_prompts({"one two three one two", "The cat sat."});
  }

  void SetUp() override {}

  std::vector<LoadedModel> load() const { return load_models({dense_.name(), sparse_}, {}); }

  const ModelFolder dense_;
  const TemporaryFolder scratch_;
  const std::string sparse_;
  ComparisonRequest request_;
};

TEST_F(ComparisonStudyTest, RunsOnModelsThatWereLoadedOnce) {
  write_own_task(dense_, (scratch_ / "own.jsonl").string(), 8);
  TaskSelection task;
  task.name = (scratch_ / "own.jsonl").string();
  task.prompts = 8;
  request_.tasks = {task};
  request_.texts = {{"prose", {"It was a bright cold day in April.", "the prose"}}};
  request_.maps = true;
  const std::int64_t before = models_loaded();
  const std::vector<LoadedModel> models = load();
  const ComparisonResult result = study::run(request_, models, {});
  EXPECT_EQ(models_loaded() - before, 2);

  EXPECT_EQ(result.models[0].parameters, models[0].model().parameter_count());
  ASSERT_EQ(result.held_out.size(), 1u);
  EXPECT_EQ(result.held_out[0].models[1].evaluation.loss(),
            evaluate_text(models[1], request_.texts[0].text, {}, {}).evaluation.loss());
  ASSERT_EQ(result.tasks.size(), 1u);
  for (const char* file : {"figures/grid.svg", "figures/own-heads.svg", "tables/statistics.csv",
                           "data/maps.npz", "data/summary.json", "report.html"}) {
    EXPECT_THAT(result.files, Contains(file));
    EXPECT_GT(fs::file_size(result.folder / file), 500u) << file;
  }
  // Three heads are drawn large: those whose peak changed most.
  const auto large = std::count_if(result.files.begin(), result.files.end(),
                                   [](const auto& file) { return file.starts_with("figures/L"); });
  EXPECT_EQ(large, 3);
  EXPECT_EQ(Json::parse(read_file(result.folder / "data/summary.json")), findings_json(result));
  EXPECT_THAT(read_file(result.page()), HasSubstr("held-out prose"));
}

TEST_F(ComparisonStudyTest, StoresWhatTheViewsOfThePageShow) {
  const std::vector<LoadedModel> models = load();
  const std::vector<TokenId> ids = prompt_tokens(models[0], "one two three one two");
  const StoredPrompt whole = stored_prompt(models, ids, {});
  const Json& stored = whole.json;
  for (const char* list : {"looks", "lens", "attribution", "importance"})
    ASSERT_EQ(stored[list].size(), 2u) << list;
  for (std::size_t m = 0; m < 2; ++m) {
    RunRequest request = {.prompt = "one two three one two", .top = 3};
    const Json plain = to_json(study::run(request, models[m], {}))["plain"];
    const Json& look = stored["looks"][m];
    EXPECT_EQ(look["next"][0]["token"], plain["next"][0]["token"]);
    EXPECT_NEAR(look["next"][0]["probability"].get<double>(),
                plain["next"][0]["probability"].get<double>(), 1e-4);
    // The last point of the lens is the prediction, and attributions sum up.
    const Json& last = stored["lens"][m]["points"].back()["positions"].back();
    EXPECT_EQ(last["top"][0]["token"], look["next"][0]["token"]);
    const Json& attribution = stored["attribution"][m];
    ASSERT_EQ(attribution["tokens"].size(), ids.size());
    for (const Json& token : attribution["tokens"]) {
      int sum = 0;
      for (const Json& part : token["contributions"]) sum += part.get<int>();
      // Each is rounded to a thousandth.
      EXPECT_NEAR(sum, token["total"].get<int>(),
                  0.5 * static_cast<double>(attribution["parts"].size() + 1));
    }
    EXPECT_EQ(stored["importance"][m].size(), 10u) << "eight heads and two MLPs";
  }
  ASSERT_FALSE(stored["changes"].empty());
  for (const Json& change : stored["changes"]) {
    RunRequest request = {.prompt = "one two three one two", .top = 1};
    request.interventions.add_ablations(change["ablate"].get<std::string>());
    const Json run = to_json(study::run(request, models[1], {}));
    EXPECT_NEAR(change["looks"][1]["divergence"].get<double>(),
                run["divergence"].back().get<double>(), 1e-4);
  }
}

TEST_F(ComparisonStudyTest, StoresTheMapsAndTheLensOfChangedRuns) {
  const std::vector<LoadedModel> models = load();
  const std::vector<TokenId> ids = prompt_tokens(models[0], "one two three one two");
  const StoredPrompt whole = stored_prompt(models, ids, {});
  std::size_t at = 0, changed = 0;
  for (const Json& change : whole.json["changes"]) {
    const auto layer = change["layer"].get<std::int64_t>();
    for (std::size_t m = 0; m < models.size(); ++m) {
      const Model& model = models[m].model();
      Interventions off;
      off.add_ablations(change["ablate"].get<std::string>());
      AppliedInterventions applied(model, off);
      // Cells of the heads behind the change, one way and the other.
      const auto captured = [&](AppliedInterventions* changes) {
        CaptureOptions options = CaptureOptions::of(
            all_heads(models[m].config().layers, models[m].config().heads), MapKind::kWeights);
        options.interventions = changes;
        const Prompt prompt = {ids};
        std::vector<float> cells;
        capture_maps(model, std::span(&prompt, 1), options, [&](std::span<const HeadMap> heads) {
          for (const HeadMap& head : heads)
            for (std::size_t i = 0; head.head.layer > layer && i < ids.size(); ++i)
              for (std::size_t j = 0; j <= i; ++j)
                cells.push_back(head.weights[i * ids.size() + j]);
        });
        return cells;
      };
      const std::vector<float> plain = captured(nullptr), now = captured(&applied);
      for (std::size_t cell = 0; cell < now.size(); ++cell) {
        const auto byte = static_cast<unsigned char>(whole.changed_maps.at(at++));
        changed += byte > 0;
        const float shown = byte == 0 ? plain[cell] : static_cast<float>(byte - 1) / 100.0f;
        EXPECT_NEAR(shown, now[cell], 0.0101);
        EXPECT_EQ(shown > 0, now[cell] > 0) << "zero means zero";
      }
      const LogitLens lens = logit_lens(model, ids, {.top = 1, .interventions = &applied});
      const Json& points = change["lens"][m]["points"];
      ASSERT_EQ(points.size(), static_cast<std::size_t>(models[m].config().layers - layer));
      for (std::size_t p = 0; p < points.size(); ++p) {
        const std::size_t point = lens.points.size() - points.size() + p;
        EXPECT_EQ(points[p]["point"], name_of(lens.points[point]));
        for (std::size_t t = 0; t < ids.size(); ++t)
          EXPECT_NEAR(points[p]["positions"][t]["top"][0]["probability"].get<double>(),
                      lens.at(point, static_cast<std::int64_t>(t)).top[0].probability, 2e-4);
      }
    }
  }
  EXPECT_EQ(at, whole.changed_maps.size());
  EXPECT_GT(changed, 0u);
}

TEST(ChangedWeight, SaysSameZeroOrHowMuch) {
  EXPECT_EQ(changed_weight(0.5f, 0.5f), 0);
  EXPECT_EQ(changed_weight(0.5f, 0.504f), 0);
  EXPECT_EQ(changed_weight(0.0f, 0.001f), 1) << "closed";
  EXPECT_EQ(changed_weight(0.001f, 0.0f), 2) << "open";
  EXPECT_EQ(changed_weight(1.0f, 0.5f), 101);
  EXPECT_EQ(changed_weight(0.5f, 0.0f), 51);
}

TEST_F(ComparisonStudyTest, StoresCircuitsAtWork) {
  write_own_task(dense_, (scratch_ / "own.jsonl").string(), 8);
  const std::vector<LoadedModel> models = load();
  TaskSelection task;
  task.name = (scratch_ / "own.jsonl").string();
  task.prompts = 8;
  CircuitsOfKind heads;
  for (const LoadedModel& model : models) {
    ModelCircuit circuit = {.model = model.name(), .label = model.label()};
    circuit.task = load_task(task, model, {});
    heads.push_back(circuit);
  }
  heads[0].found.emplace();
  heads[0].found->heads = all_heads(2, 4);
  heads[0].found->heads.pop_back();
  const Json stored = stored_circuits(heads, models, {});
  ASSERT_EQ(stored["models"].size(), 2u);
  const Json& runs = stored["models"][0]["runs"];
  ASSERT_EQ(runs.size(), 3u);
  EXPECT_EQ(stored["models"][1]["runs"].size(), 1u) << "without a circuit";
  // With one head away, the run is that with this head ablated, or taken from the corrupt prompt.
  RunRequest request = {.prompt = stored["prompt"], .top = 1};
  request.tokens = {stored["answer"][0].get<std::string>()};
  const auto probability = [&] {
    return study::run(request, models[0], {}).changed->listed[0].probability;
  };
  request.interventions.add_ablations("L1H3");
  EXPECT_NEAR(runs[1]["answer"].get<double>(), probability(), 1e-4);
  request.interventions = {};
  request.interventions.add_patch("L1H3=" + stored["corrupt"].get<std::string>());
  EXPECT_NEAR(runs[2]["answer"].get<double>(), probability(), 1e-4);
}

TEST_F(ComparisonStudyTest, MapsTooLargeToKeepAreComputedAgainOnTheLoadedModel) {
  const std::vector<LoadedModel> models = load();
  const std::vector<Prompt> prompts = read_prompts(request_.prompts, models, {}).prompts;
  const std::vector<HeadId> heads = all_heads(2, 4);
  const std::vector<HeadId> shown = {{1, 3}, {0, 2}};
  ComparisonMaps kept({.grid = heads}, heads, prompts, models);
  ComparisonMaps chosen({.grid = heads, .strips = shown}, heads, prompts, models);
  ComparisonMaps dropped({.grid = heads}, heads, prompts, models, 0);
  const std::int64_t before = models_loaded();
  for (std::size_t m = 0; m < 2; ++m) {
    std::vector<float> expected;
    AnalysisPlan plan;
    plan.heads = heads;
    plan.each = [&](std::span<const HeadMap> maps) {
      for (ComparisonMaps* seen : {&kept, &chosen, &dropped}) seen->add(m, maps);
      for (const HeadMap& map : maps)
        if (map.prompt == 0 && map.head == shown[0])
          expected.assign(map.weights.begin(), map.weights.end());
    };
    analyse_model(models[m], {prompts, std::nullopt}, plan, {});
    EXPECT_EQ(kept.first_maps(m, shown).at(shown[0]), expected);
    EXPECT_EQ(chosen.first_maps(m, shown), kept.first_maps(m, shown));
    EXPECT_EQ(dropped.first_maps(m, shown), kept.first_maps(m, shown));
  }
  EXPECT_EQ(models_loaded(), before);
}

TEST_F(ComparisonStudyTest, TheGridCanBeOrderedByRoleAndByImportance) {
  const std::vector<LoadedModel> models = load();
  const auto grid = [&](GridOrder order, const std::string& first) {
    request_.order = order;
    request_.first = first;
    return read_file(study::run(request_, models, {}).folder / "figures/grid.svg");
  };
  request_.heads = "L0H1,L1H3";
  const std::string by_layer = grid(GridOrder::kLayer, "");
  EXPECT_EQ(grid(GridOrder::kLayer, "L0H1"), by_layer);
  EXPECT_NE(grid(GridOrder::kLayer, "L1H3"), by_layer);
  EXPECT_EQ(grid(GridOrder::kRole, "L1H3,L0H1"), grid(GridOrder::kLayer, "L1H3"));
}

TEST_F(ComparisonStudyTest, TracesAPromptThroughFeatures) {
  const std::vector<LoadedModel> models = load();
  const std::string features = (scratch_ / "clt").string();
  write_transcoder(
      features, random_transcoder(models[0].config(), TranscoderKind::kCrossLayer, 12, false, 0.3f),
      {});
  request_.features = {features, features};
  request_.trace.prompt = "The cat sat on the";
  const ComparisonResult result = study::run(request_, models, {});
  for (const char* file : {"figures/trace-heads.svg", "figures/trace-graph.svg"})
    EXPECT_TRUE(fs::exists(result.folder / file)) << file;
  EXPECT_EQ(to_json(result)["trace"]["models"].size(), 2u);
  EXPECT_THAT(read_file(result.page()), HasSubstr("heads for 80 % of the pair"));
}

TEST_F(ComparisonStudyTest, RefusesBeforeItWrites) {
  const std::vector<LoadedModel> models = load();
  const auto refuses = [&](const auto& change, const std::string& part) {
    ComparisonRequest request = request_;
    change(request);
    EXPECT_THAT([&] { study::run(request, models, {}); }, ThrowsMessage<Error>(HasSubstr(part)));
  };
  refuses([](auto& request) { request.strips = "L0H9"; }, "L0H9");
  refuses([](auto& request) { request.first = "L7H0"; }, "L7H0");
  refuses([](auto& request) { request.scatter = "x"; }, "choice of heads");
  refuses([](auto& request) { request.prompts.source = numbered_prompts({""}); }, "is empty");
  refuses([](auto& request) { request.tasks = {{.name = "pronuon"}}; }, "pronoun");
  refuses([](auto& request) { request.features = {"one"}; }, "both");
  refuses([](auto& request) { request.features = {"no-such", "no-such"}; }, "no-such");
  EXPECT_THROW(study::run(request_, std::span(models).first(1), {}), RequestError);
  EXPECT_FALSE(fs::exists(request_.folder));
}

TEST_F(ComparisonStudyTest, TheDemoLoadsNoModelAgain) {
  write_own_task(dense_, (scratch_ / "own.jsonl").string(), 8);
  DemoRequest request;
  request.folder = scratch_ / "demo";
  request.tokens = 100;
  request.tasks = {(scratch_ / "own.jsonl").string(), "pronoun"};
  request.task_prompts = 8;
  request.formats = {figure::Format::kSvg};
  request.prose = EvaluationText{"It was a bright cold day in April.", "the prose"};
  const std::int64_t before = models_loaded();
  const DemoResult result = study::run(request, load_models({dense_.name(), sparse_}, {}), {});
  EXPECT_EQ(models_loaded() - before, 2);
  EXPECT_EQ(result.comparison.tasks.size() + result.comparison.tasks_left_out.size(), 2u);
  ASSERT_EQ(result.comparison.held_out.size(), 2u);
  EXPECT_EQ(result.comparison.held_out[1].text, "tasks");
  EXPECT_TRUE(fs::exists(result.comparison.page()));
  EXPECT_GT(to_json(result)["seconds"].get<double>(), 0.0);
}

}  // namespace
}  // namespace filigree::study
