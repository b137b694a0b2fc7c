// Circuits of models that were loaded once, and their JSON.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "filigree/circuit_study.h"
#include "study/circuits/circuit_files.h"
#include "study/circuits/circuit_tables.h"
#include "study/circuits/head_marks.h"
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
  const TaskFigures figures = task_figures(found, *models_);
  ASSERT_TRUE(figures.grid);
  EXPECT_EQ(figures.grid->panels.size(), 2u);
  EXPECT_EQ(figures.grid->panels[0].heads.size(),
            found.find(Parts::kHeads)->front().found->heads.size());
  EXPECT_EQ(task_section(found, figures, {}).figures.size(), 4u);
  // The drawn prompt has the edges that its circuit keeps, the strongest of its cells.
  const ModelCircuit& circuit = found.find(Parts::kAttentionEdges)->front();
  const CellScores::OfPrompt& cells = circuit.found->cells->prompts[0];
  ASSERT_TRUE(figures.tokens);
  ASSERT_EQ(figures.tokens->panels.size(), 2u);
  EXPECT_EQ(figures.tokens->tokens, circuit.task.prompts.prompts[0].tokens);
  EXPECT_EQ(figures.tokens->roles.back(), "END");
  const std::vector<figure::TokenEdge>& edges = figures.tokens->panels[0].edges;
  ASSERT_EQ(edges.size(), std::min(*circuit.size(), cells.cells.size()));
  double weakest = std::abs(edges[0].score);
  for (const figure::TokenEdge& edge : edges) weakest = std::min(weakest, std::abs(edge.score));
  EXPECT_EQ(std::count_if(cells.drops.begin(), cells.drops.end(),
                          [&](double drop) { return std::abs(drop) > weakest; }),
            std::count_if(edges.begin(), edges.end(), [&](const figure::TokenEdge& edge) {
              return std::abs(edge.score) > weakest;
            }));
  // With what its head attends with, as a tap of the plain run has it.
  const std::vector<TokenId>& ids = circuit.task.prompts.prompts[0].clean;
  const auto T = static_cast<std::int64_t>(ids.size());
  Taps taps;
  taps.observe("blocks.*.attn.hook_pattern");
  models_->front().model().forward(Tensor::from_ids({1, T}, ids), {.taps = &taps});
  for (const figure::TokenEdge& edge : edges) {
    const Tensor& pattern = taps.value(fmt::format("blocks.{}.attn.hook_pattern", edge.head.layer));
    const std::int64_t at = (edge.head.head * T + static_cast<std::int64_t>(edge.query)) * T +
                            static_cast<std::int64_t>(edge.key);
    EXPECT_NEAR(edge.attention.value(), pattern.f32()[at], 1e-6);
  }
  CircuitOutput output;
  output.folder = scratch_->path() / "out";
  output.formats = {figure::Format::kSvg};
  const std::unique_ptr<OutputFolder> out = prepare_output(output, {});
  for (const CircuitsOfKind& circuits : found.kinds)
    for (const std::string& file : write_circuit_files(circuits, *models_, output))
      EXPECT_GT(std::filesystem::file_size(output.folder / file), 100u) << file;
  EXPECT_EQ(models_loaded(), before);
}

TEST_F(Circuits, HaveEveryKeyWhetherThereIsAValueOrNot) {
  const CircuitsOfKind edges = run(request(Parts::kEdges), *models_, {});
  const CircuitsOfKind cells = run(request(Parts::kAttentionEdges), *models_, {});
  CircuitRequest beyond = request(Parts::kHeads);
  beyond.task.name = "pronoun";  // which a model of random weights does not know
  beyond.task.prompts = 20;
  const CircuitsOfKind none = run(beyond, *models_, {});
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
  EXPECT_TRUE(to_json(edges[0])["prompts"].is_null());
  const Json prompts = to_json(cells[0])["prompts"];
  ASSERT_EQ(prompts.size(), to_json(cells[0])["scores_by_prompt"].size());
  EXPECT_EQ(prompts[0]["tokens"].size(), prompts[0]["roles"].size());
  EXPECT_EQ(prompts[0]["roles"].back(), "END");
  const Json cell = to_json(cells[0])["scores"][0];
  EXPECT_EQ(cell["part"].get<std::string>(),
            fmt::format("L{}H{} {} <- {}", cell["layer"].get<int>(), cell["head"].get<int>(),
                        cell["query"].get<std::string>(), cell["key"].get<std::string>()));
  const Json edge = to_json(edges[0])["scores"][0];
  EXPECT_EQ(edge["part"].get<std::string>(),
            edge["from"].get<std::string>() + " -> " + edge["to"].get<std::string>());
}

TEST_F(Circuits, AreTablesToo) {
  const std::vector<CircuitsOfKind> kinds = {run(request(Parts::kHeads), *models_, {}),
                                             run(request(Parts::kAttentionEdges), *models_, {})};
  const DataTable sizes = sizes_table_of(kinds);
  ASSERT_EQ(sizes.rows.size(), 4u);
  for (std::size_t row = 0; row < 4; ++row) {
    const ModelCircuit& circuit = kinds[row / 2][row % 2];
    EXPECT_EQ(sizes.rows[row][2], plural_of(circuit.options.parts));
    EXPECT_EQ(sizes.rows[row][5], std::to_string(*circuit.size()));
    EXPECT_EQ(sizes.rows[row][7], row % 2 == 0 ? "" : "1.00");  // the same model twice
  }
  const DataTable parts = parts_table_of(kinds[0], 0);
  ASSERT_EQ(parts.rows.size(), 16u);
  std::size_t kept = 0;
  for (const std::vector<std::string>& row : parts.rows) kept += row[5] == "yes";
  EXPECT_EQ(kept, 2 * *kinds[0][0].size());
  EXPECT_EQ(parts.rows[0][2], kinds[0][0].found->parts[0].name);
  EXPECT_EQ(parts_table_of(kinds[1], 3).rows.size(), 6u);
  EXPECT_EQ(parts_table_of(kinds[1], 3).rows[0][5], "");
}

TEST_F(Circuits, ShowTheEdgesOfTheirHeads) {
  const CircuitsOfKind circuits = run(request(Parts::kHeads), *models_, {});
  const std::optional<figure::AttentionGrid> grid = grid_of(circuits, *models_);
  ASSERT_TRUE(grid);
  const TaskPrompt& prompt = circuits[0].task.prompts.prompts[0];
  PatchOptions zero;
  zero.metric = circuits[0].task.metric;
  zero.replacement = Replacement::kZero;
  const Model& model = (*models_)[0].model();
  for (const figure::GridHead& head : grid->panels[0].heads) {
    ASSERT_EQ(head.marks.size(), 1u);
    EXPECT_FALSE(head.note.empty());
    // No other cell of the head is worth more, by the score of that head's cells alone.
    const CellScores scores = attributed_cell_scores(model, {prompt}, 0, zero);
    double marked = 0, most = 0;
    for (std::size_t i = 0; i < scores.prompts[0].cells.size(); ++i) {
      const AttentionCell& cell = scores.prompts[0].cells[i];
      if (HeadId{cell.layer, cell.head} != head.head) continue;
      const double drop = std::abs(scores.prompts[0].drops[i]);
      most = std::max(most, drop);
      if (static_cast<std::size_t>(cell.query) == head.marks[0].query &&
          static_cast<std::size_t>(cell.key) == head.marks[0].key)
        marked = drop;
    }
    EXPECT_GT(most, 0);
    EXPECT_EQ(marked, most);
  }
}

TEST(AlignHeads, PutsSharedOnesAtTheSamePlaces) {
  const auto panel = [](const std::vector<HeadId>& heads) {
    figure::GridPanel result;
    for (const HeadId& head : heads)
      result.heads.push_back({static_cast<int>(head.layer), static_cast<int>(head.head)});
    return result;
  };
  figure::AttentionGrid grid;
  grid.panels = {panel({{9, 1}, {3, 0}, {5, 5}, {7, 2}}), panel({{7, 2}, {1, 1}, {9, 1}})};
  EXPECT_EQ(align_heads(grid), 2u);
  const auto names = [](const figure::GridPanel& of) {
    std::vector<std::string> list;
    for (const figure::GridHead& head : of.heads) list.push_back(head_name(head.head));
    return list;
  };
  EXPECT_EQ(names(grid.panels[0]), (std::vector<std::string>{"L9H1", "L7H2", "L3H0", "L5H5"}));
  EXPECT_EQ(names(grid.panels[1]), (std::vector<std::string>{"L9H1", "L7H2", "L1H1"}));
  grid.panels.resize(1);
  EXPECT_EQ(align_heads(grid), 0u);
}

TEST_F(Circuits, PartsHaveTheirPlaces) {
  const CircuitsOfKind circuits = run(request(Parts::kHeadsAndMlps), *models_, {});
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

// Where MLPs are parts too they are counted as such, and the prompt is one that the model answers.
TEST_F(Circuits, FiguresCountWhatTheyShow) {
  const CircuitsOfKind circuits = run(request(Parts::kHeadsAndMlps), *models_, {});
  const FoundCircuit& found = *circuits[0].found;
  const ExamplePrompt example = example_prompt(circuits, *models_);
  const auto& prompts = circuits[0].task.prompts.prompts;
  std::size_t first = prompts.size();
  for (std::size_t i = prompts.size(); i-- > 0;)
    if (std::all_of(models_->begin(), models_->end(), [&](const LoadedModel& model) {
          return score(model.model(), {prompts[i]}, Metric::kAccuracy).clean[0] == 1.0;
        }))
      first = i;
  if (first < prompts.size()) {
    EXPECT_EQ(example.text, prompts[first].text.clean);
    EXPECT_EQ(example.chosen, "the first that both models answer");
  } else {
    EXPECT_EQ(example.text, prompts[0].text.clean);
    EXPECT_EQ(example.chosen.rfind("none of the first", 0), 0u);
  }
  const auto grid = grid_of(circuits, *models_);
  if (found.heads.empty()) {
    EXPECT_FALSE(grid.has_value());
    return;
  }
  const std::size_t heads = found.heads.size(), mlps = found.members.size() - heads;
  EXPECT_NE(grid->panels[0].title.find(counted(heads, "head") + " and " + counted(mlps, "MLP")),
            std::string::npos)
      << grid->panels[0].title;
  EXPECT_NE(grid->title.find("of the circuits of heads and MLPs"), std::string::npos);
  EXPECT_NE(grid->prompt.find(example.chosen), std::string::npos);
}

TEST_F(Circuits, GoOnWhereTheyWereStopped) {
  CircuitRequest kept = request(Parts::kHeads);
  const Json whole = to_json(run(kept, *models_, {}), Scores::kEvery);
  kept.state = scratch_->path() / "sweep.state";
  int asked = 0;
  Context stopping;
  stopping.stop = [&] { return ++asked > 12; };
  EXPECT_THROW(run(kept, *models_, stopping), Stopped);
  EXPECT_TRUE(std::filesystem::exists(kept.state));
  std::vector<std::string> said;
  Context listening;
  listening.note = [&](const std::string& sentence) { said.push_back(sentence); };
  EXPECT_EQ(to_json(run(kept, *models_, listening), Scores::kEvery), whole);
  ASSERT_FALSE(said.empty());
  EXPECT_THAT(said[0], HasSubstr("goes on after"));
  kept.search.replacement = Replacement::kZero;
  EXPECT_THAT(error_of([&] { run(kept, *models_, {}); }),
              HasSubstr("another model, task, option or version"));
}

TEST_F(Circuits, RefuseARequestBeforeTheWork) {
  CircuitRequest wrong = request(Parts::kEdges);
  wrong.search.replacement = Replacement::kZero;
  EXPECT_THROW(run(wrong, *models_, {}), RequestError);
  CircuitRequest unknown = request(Parts::kHeads);
  unknown.task.name = "pronuon";
  EXPECT_THAT(error_of([&] { check_request(unknown); }), HasSubstr("pronoun"));
  CircuitRequest corrupted = request(Parts::kHeads);
  corrupted.task.corruption = "all-tokens";
  EXPECT_THROW(run(corrupted, *models_, {}), RequestError);
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
