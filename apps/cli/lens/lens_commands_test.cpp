// filigree lens as a user calls it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <filesystem>

#include "apps/cli/tests/run_program.h"
#include "apps/cli/tests/test_figures.h"
#include "apps/cli/tests/test_task.h"

namespace filigree::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

using Arguments = std::vector<std::string>;

nlohmann::json json_of(Arguments arguments) {
  arguments.insert(arguments.end(), {"--json", "--quiet"});
  const ProgramRun run = run_program(arguments);
  EXPECT_EQ(run.code, 0) << run.err;
  return nlohmann::json::parse(run.out, nullptr, false);
}

std::string error_of(const Arguments& arguments, int code = 1) {
  const ProgramRun run = run_program(arguments);
  EXPECT_EQ(run.code, code) << run.err;
  return run.err;
}

TEST(LogitLensCommand, ShowsEveryLayer) {
  const ModelFolder model;
  const ScratchFolder scratch;
  const std::string figure = (scratch.path() / "lens.png").string();
  const Arguments arguments = {"lens",    model.name(), "--prompt", "The cat sat on the",
                               "--token", " the"};
  Arguments drawn = arguments;
  drawn.push_back("--quiet");
  drawn.insert(drawn.end(), {"--out", figure});
  const ProgramRun run = run_program(drawn);
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, AllOf(HasSubstr("L0 resid_pre"), HasSubstr("L1 resid_post"),
                             HasSubstr("rank of ' the'")));
  expect_figure(figure);

  Arguments middle = arguments;
  middle.insert(middle.end(), {"--show", "sublayers", "--top", "2"});
  const auto json = json_of(middle);
  const auto& points = json["models"][0]["points"];
  ASSERT_EQ(points.size(), 5u);
  EXPECT_EQ(points[1]["tap"], "blocks.0.hook_resid_mid");
  const auto& cell = points[4]["positions"].back();
  ASSERT_EQ(cell["top"].size(), 2u);
  EXPECT_GE(cell["rank"].get<int>(), 1);
  // The last point is the model's own prediction: the same as what it generates.
  const auto generated = json_of({"generate", model.name(), "--prompt", "The cat sat on the",
                                  "--temperature", "0", "--max-tokens", "1"});
  EXPECT_THAT(generated.dump(), HasSubstr(cell["top"][0]["token"].dump()));
}

TEST(LogitLensCommand, NamesWhatIsWrong) {
  const ModelFolder model;
  EXPECT_THAT(error_of({"lens", model.name()}, 2), HasSubstr("--prompt"));
  EXPECT_THAT(error_of({"lens", model.name(), "--prompt", ""}), HasSubstr("empty"));
  EXPECT_THAT(error_of({"lens", model.name(), "--prompt", "a", "--token", " extraordinarily long"}),
              AllOf(HasSubstr("the token"), HasSubstr("not one")));
}

TEST(LogitAttributionCommand, SumsToTheLogitDifference) {
  const ModelFolder model;
  const ScratchFolder scratch;
  const std::string task = (scratch.path() / "task.jsonl").string();
  write_own_task(model, task, 8);
  const std::string figure = (scratch.path() / "attribution.svg").string();
  Arguments arguments = {"lens", model.name(), "--task", task};
  arguments.insert(arguments.end(), {"--out", figure});
  const auto json = json_of(arguments);
  const auto& found = json["models"][0];
  // Embedding, positions, 2 layers of 4 heads with bias and MLP, rest and output bias.
  ASSERT_EQ(found["parts"].size(), 16u);
  double sum = 0;
  for (const auto& part : found["parts"]) sum += part["contribution"].get<double>();
  EXPECT_NEAR(sum, found["total"]["mean"].get<double>(), 1e-3);
  EXPECT_NEAR(found["total"]["mean"].get<double>(),
              found["check"]["metric"]["clean"]["mean"].get<double>(), 1e-3);
  EXPECT_NEAR(found["sums"]["rest"]["mean"].get<double>(), 0, 1e-3);
  expect_figure(figure);

  const ProgramRun run = run_program({"lens", model.name(), "--prompt", "The cat", "--target",
                                      " the", "--against", " a", "--quiet"});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, AllOf(HasSubstr("logit of ' the' less that of ' a'"), HasSubstr("MLPs"),
                             HasSubstr("sum")));
}

TEST(LogitAttributionCommand, SaysWhatItDidWithThePrompts) {
  const ModelFolder model;
  const ScratchFolder scratch;
  const std::string task = (scratch.path() / "task.jsonl").string();
  write_own_task(model, task, 20);
  write_awkward_prompts(task);
  const ProgramRun run = run_program({"lens", model.name(), "--task", task, "--quiet"});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out,
              AllOf(HasSubstr("20 of 22 prompts fit"),
                    HasSubstr("1 dropped: an answer is more than one token (--first-token"),
                    HasSubstr("prompts of one length run together")));
  EXPECT_THAT(run_program({"lens", model.name(), "--task", task, "--first-token"}).out,
              AllOf(HasSubstr("21 of 22"), HasSubstr("the first token stands for the answer")));
  const ProgramRun chance =
      run_program({"lens", model.name(), "--task", "pronoun", "--prompts", "20", "--quiet"});
  EXPECT_EQ(chance.code, 3) << chance.err;
  EXPECT_THAT(chance.out, HasSubstr("NOT better than chance"));
}

TEST(LogitAttributionCommand, NamesWhatIsWrong) {
  const ModelFolder model;
  EXPECT_THAT(error_of({"lens", model.name(), "--show", "parts"}, 2), HasSubstr("either a task"));
  EXPECT_THAT(error_of({"lens", model.name(), "--prompt", "a", "--show", "parts"}, 2),
              HasSubstr("needs an answer"));
  EXPECT_THAT(error_of({"lens", model.name(), "--task", "ioi", "--against", "a"}, 2),
              HasSubstr("go with a prompt"));
}

TEST(HeadCircuitsCommand, ListsScoresCompositionsAndTokenPairs) {
  const ModelFolder model;
  const ScratchFolder scratch;
  const std::string figure = (scratch.path() / "composition.pdf").string();
  Arguments arguments = {"head", model.name(), "--heads", "L1H2",   "--token",
                         " the", "--top",      "4",       "--quiet"};
  arguments.insert(arguments.end(), {"--out", figure});
  const ProgramRun run = run_program(arguments);
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out,
              AllOf(HasSubstr("OV score"), HasSubstr("K-composition"),
                    HasSubstr("random matrices: "), HasSubstr("L1H2"), HasSubstr("' the'")));
  expect_figure(figure);

  const auto json = json_of({"head", model.name(), "--heads", "L0H0", "--top", "3", "--show",
                             "matrices", "--set", "less-random=true"});
  ASSERT_EQ(json["heads"].size(), 8u);
  for (const auto& head : json["heads"]) EXPECT_LE(std::abs(head["copying"].get<double>()), 1.0);
  const auto& scores = json["composition"]["q"]["scores"];
  ASSERT_EQ(scores.size(), 8u);
  EXPECT_TRUE(scores[4][1].is_null());  // nothing reads backwards
  ASSERT_EQ(json["composition"]["v"]["strongest"].size(), 3u);
  const auto& strongest = json["composition"]["v"]["strongest"][0];
  double most = -1;
  for (std::size_t a = 0; a < 4; ++a)
    for (std::size_t b = 4; b < 8; ++b)
      most = std::max(most, json["composition"]["v"]["scores"][a][b].get<double>());
  EXPECT_EQ(strongest["score"].get<double>(), most);
  EXPECT_EQ(json["token_pairs"][0]["ov"].size(), 3u);
  EXPECT_EQ(json["token_pairs"][0]["qk"].size(), 3u);
}

TEST(HeadCircuitsCommand, NamesWhatIsWrong) {
  const ModelFolder model;
  EXPECT_THAT(error_of({"head", model.name(), "--heads", "L9H1"}), HasSubstr("L9"));
  EXPECT_THAT(error_of({"head", model.name(), "--token", " the"}, 2),
              HasSubstr("say of which heads"));
  EXPECT_THAT(error_of({"head", model.name(), "--heads", "5,x"}, 2), HasSubstr("--heads"));
  EXPECT_THAT(error_of({"head", model.name(), "--device", "cpu"}, 2),
              HasSubstr("--device"));  // weights are read, nothing is run
}

}  // namespace
}  // namespace filigree::cli
