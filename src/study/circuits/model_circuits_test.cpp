// Circuits of models that were loaded once, and their JSON.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "filigree/study/circuits/circuit_files.h"
#include "filigree/study/circuits/task_circuits.h"
#include "support/errors.h"
#include "support/test_task.h"

namespace filigree::study {
namespace {

using ::testing::HasSubstr;

class Circuits : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = std::make_unique<ModelFolder>();
    scratch_ = std::make_unique<TemporaryFolder>();
    write_own_task(*folder_, task_file(), 12);
    models_ = std::make_unique<std::vector<LoadedModel>>(
        load_models({folder_->name(), folder_->name()}, {}));
  }
  static void TearDownTestSuite() { models_.reset(), scratch_.reset(), folder_.reset(); }

  static std::string task_file() { return (scratch_->path() / "own.jsonl").string(); }
  static TaskSelection own_task() {
    TaskSelection task;
    task.name = task_file();
    return task;
  }
  static CircuitRequest request(Parts parts) {
    CircuitRequest request;
    request.task = own_task();
    request.search.parts = parts;
    request.search.method = usual_method(parts);
    return request;
  }

  static std::unique_ptr<ModelFolder> folder_;
  static std::unique_ptr<TemporaryFolder> scratch_;
  static std::unique_ptr<std::vector<LoadedModel>> models_;
};
std::unique_ptr<ModelFolder> Circuits::folder_;
std::unique_ptr<TemporaryFolder> Circuits::scratch_;
std::unique_ptr<std::vector<LoadedModel>> Circuits::models_;

TEST_F(Circuits, OfEveryKindWithTheirFiguresAndFilesLoadNoModelAgain) {
  const std::int64_t before = models_loaded();
  const TaskCircuits found = find_task_circuits(own_task(), *models_, {}, {});
  ASSERT_EQ(found.kinds.size(), 3u);
  for (const CircuitsOfKind& circuits : found.kinds) {
    ASSERT_EQ(circuits.size(), 2u);
    ASSERT_TRUE(circuits[0].size());
    EXPECT_EQ(circuits[0].size(), circuits[1].size());  // the same model twice
  }
  if (has_figures()) {
    const TaskFigures figures = task_figures(found, *models_);
    ASSERT_TRUE(figures.grid);
    EXPECT_EQ(figures.grid->panels.size(), 2u);
    EXPECT_EQ(figures.grid->panels[0].heads.size(),
              found.find(Parts::kHeads)->front().found->heads.size());
    EXPECT_EQ(task_section(found, figures, {}).figures.size(), 3u);
  }
  CircuitOutput output;
  output.folder = scratch_->path() / "out";
  output.formats = {figure::Format::kSvg};
  prepare_output(output, {});
  for (const CircuitsOfKind& circuits : found.kinds)
    for (const std::string& file : write_circuit_files(circuits, *models_, output))
      EXPECT_GT(std::filesystem::file_size(output.folder / file), 100u) << file;
  EXPECT_EQ(models_loaded(), before);
}

TEST_F(Circuits, HaveEveryKeyWhetherThereIsAValueOrNot) {
  const CircuitsOfKind edges = find_circuits(request(Parts::kEdges), *models_, {});
  const CircuitsOfKind cells = find_circuits(request(Parts::kAttentionEdges), *models_, {});
  CircuitRequest beyond = request(Parts::kHeads);
  beyond.task.name = "pronoun";  // which a model of random weights does not know
  beyond.task.prompts = 20;
  const CircuitsOfKind none = find_circuits(beyond, *models_, {});
  EXPECT_FALSE(none[0].found);
  const auto keys = [](const CircuitsOfKind& circuits) {
    std::vector<std::string> names;
    const Json json = to_json(circuits, Scores::kEvery);
    for (const auto& [key, value] : json["models"][0].items()) names.push_back(key);
    return names;
  };
  EXPECT_EQ(keys(edges), keys(cells));
  EXPECT_EQ(keys(edges), keys(none));
  EXPECT_TRUE(to_json(none[0])["curve"].is_null());
  EXPECT_TRUE(to_json(cells[0])["circuit"].is_null());
  EXPECT_FALSE(to_json(cells[0])["scores_by_prompt"].is_null());
  const Json edge = to_json(edges[0])["scores"][0];
  EXPECT_EQ(edge["part"].get<std::string>(),
            edge["from"].get<std::string>() + " -> " + edge["to"].get<std::string>());
}

TEST_F(Circuits, PartsHaveTheirPlaces) {
  const CircuitsOfKind circuits = find_circuits(request(Parts::kHeadsAndMlps), *models_, {});
  const FoundCircuit& found = *circuits[0].found;
  const Json scores = to_json(circuits[0])["scores"];
  ASSERT_EQ(scores.size(), 10u);
  for (std::size_t i = 0; i < scores.size(); ++i) {
    const PatchTarget& target = std::get<PatchTarget>(found.parts[i].place);
    EXPECT_EQ(scores[i]["layer"], target.layer);
    EXPECT_EQ(scores[i]["head"].is_null(), target.site == Site::kMlpOut);
    EXPECT_EQ(found.parts[i].name, text_of(target));
  }
}

TEST_F(Circuits, GoOnWhereTheyWereStopped) {
  CircuitRequest kept = request(Parts::kHeads);
  const Json whole = to_json(find_circuits(kept, *models_, {}), Scores::kEvery);
  kept.state = scratch_->path() / "sweep.state";
  int asked = 0;
  Context stopping;
  stopping.stop = [&] { return ++asked > 12; };
  EXPECT_THROW(find_circuits(kept, *models_, stopping), Stopped);
  EXPECT_TRUE(std::filesystem::exists(kept.state));
  std::vector<std::string> said;
  Context listening;
  listening.note = [&](const std::string& sentence) { said.push_back(sentence); };
  EXPECT_EQ(to_json(find_circuits(kept, *models_, listening), Scores::kEvery), whole);
  ASSERT_FALSE(said.empty());
  EXPECT_THAT(said[0], HasSubstr("goes on after"));
  kept.search.replacement = Replacement::kZero;
  EXPECT_THAT(error_of([&] { find_circuits(kept, *models_, {}); }),
              HasSubstr("another model, task, option or version"));
}

TEST_F(Circuits, RefuseARequestBeforeTheWork) {
  CircuitRequest wrong = request(Parts::kEdges);
  wrong.search.replacement = Replacement::kZero;
  EXPECT_THROW(find_circuits(wrong, *models_, {}), RequestError);
  CircuitRequest unknown = request(Parts::kHeads);
  unknown.task.name = "pronuon";
  EXPECT_THAT(error_of([&] { check_request(unknown); }), HasSubstr("pronoun"));
  CircuitRequest corrupted = request(Parts::kHeads);
  corrupted.task.corruption = "all-tokens";
  EXPECT_THROW(find_circuits(corrupted, *models_, {}), RequestError);
}

TEST(SizeRatio, IsOfTheFirstModelsCircuit) {
  const auto circuit_of = [](std::size_t size) {
    ModelCircuit circuit;
    circuit.found.emplace();
    for (const std::size_t kept : {std::size_t{0}, size, std::size_t{144}}) {
      CurvePoint point;
      point.kept = kept + (kept == size ? 3 : 0);  // three of them lead nowhere
      point.parts = kept;
      point.effect = kept == 0 ? 0 : 0.95;
      circuit.found->curve.points.push_back(point);
    }
    return circuit;
  };
  const ModelCircuit dense = circuit_of(60), sparse = circuit_of(20);
  EXPECT_EQ(dense.size(), 60u);
  EXPECT_EQ(size_ratio(dense, sparse), 3.0);
  EXPECT_EQ(size_ratio(dense, {}), std::nullopt);
  EXPECT_EQ(to_json(sparse)["size"], 20);
  EXPECT_EQ(to_json({dense, sparse}, Scores::kLeftOut)["models"][1]["ratio"], 3.0);
  EXPECT_TRUE(to_json(sparse)["published"].is_null());
}

}  // namespace
}  // namespace filigree::study
