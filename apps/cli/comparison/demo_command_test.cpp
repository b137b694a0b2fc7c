// filigree demo on small models of random weights.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <fstream>

#include "apps/cli/tests/run_program.h"
#include "apps/cli/tests/test_task.h"
#include "filigree/study_figures.h"
#include "support/files.h"

namespace filigree::cli {
namespace {

namespace fs = std::filesystem;

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

using Arguments = std::vector<std::string>;

class DemoTest : public ::testing::Test {
 protected:
  void SetUp() override {
    model_.gated(path("sparse"), {{-0.1f}});
    write_own_task(model_, path("own.jsonl"), 12);
    std::ofstream(path("prose.txt")) << "It was a bright cold day in April, and the clocks were "
                                        "striking. The door was open, and nobody came in.\n";
  }

  std::string path(const std::string& name) const { return (scratch_.path() / name).string(); }

  Arguments demo(const Arguments& more) const {
    Arguments all = {"demo",         model_.name(), path("sparse"), "--out", path("out"),
                     "--max-tokens", "200",         "--format",     "svg",   "--quiet"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }

  static nlohmann::json json_of(Arguments arguments) {
    arguments.push_back("--json");
    const ProgramRun run = run_program(arguments);
    EXPECT_EQ(run.code, 0) << run.err;
    EXPECT_EQ(run.err, "");
    return nlohmann::json::parse(run.out, nullptr, false);
  }

  const ModelFolder model_;
  const ScratchFolder scratch_;
};

TEST_F(DemoTest, EvaluatesComparesAndFindsCircuits) {
  const nlohmann::json json =
      json_of(demo({"--text", path("prose.txt"), "--task", path("own.jsonl") + ",pronoun"}));
  // The losses are those that eval finds.
  ASSERT_EQ(json["held_out"].size(), 2u);
  EXPECT_EQ(json["held_out"][0]["text"], "prose");
  EXPECT_EQ(json["held_out"][1]["text"], "tasks");
  const nlohmann::json eval = json_of({"eval", model_.name(), path("sparse"), "--text",
                                       path("prose.txt"), "--max-tokens", "200", "--quiet"});
  for (std::size_t m = 0; m < 2; ++m) {
    const auto &shown = json["held_out"][0]["models"][m], &expected = eval["models"][m];
    EXPECT_EQ(shown["loss"], expected["loss"]);
    EXPECT_EQ(shown["active_edges"], expected["active_edges"]);
    EXPECT_GE(json["held_out"][1]["models"][m]["tokens"], 200);
  }
  EXPECT_EQ(json["held_out"][0]["models"][0]["active_edges"], 1.0);
  EXPECT_LT(json["held_out"][0]["models"][1]["active_edges"], 1.0);

  // The circuits are those that circuit finds.
  ASSERT_EQ(json["tasks"].size(), 2u);
  ASSERT_EQ(json["tasks"][0]["kinds"].size(), 3u);
  for (std::size_t kind = 0; kind < 3; ++kind) {
    const std::string parts = Arguments{"heads", "edges", "attention-edges"}[kind];
    const auto& found = json["tasks"][0]["kinds"][kind];
    EXPECT_EQ(found["kind"], parts);
    const nlohmann::json circuit =
        json_of({"circuit", model_.name(), "--task", path("own.jsonl"), "--prompts", "16",
                 "--parts", parts, "--replacement", kind == 2 ? "zero" : "corrupt", "--quiet"});
    EXPECT_TRUE(found["models"][0]["size"].is_number());
    EXPECT_EQ(found["models"][0]["size"], circuit["models"][0]["size"]);
    // Attention edges are each prompt's own and not listed.
    if (kind < 2) {
      EXPECT_EQ(found["models"][0]["circuit"], circuit["models"][0]["circuit"]);
    }
  }
  EXPECT_TRUE(json["tasks"][1]["kinds"][0]["models"][0]["size"].is_null());  // it knows no pronouns

  for (const char* file :
       {"figures/grid.svg", "figures/own-curves.svg", "figures/own-heads.svg", "data/summary.json",
        "tables/roles.csv", "tables/circuits.csv", "tables/circuits.tex", "report.html"}) {
    EXPECT_TRUE(fs::exists(path("out/") + file)) << file;
    EXPECT_THAT(json["files"], Contains(file));
  }
  EXPECT_EQ(json["report"], path("out/report.html"));
  EXPECT_THAT(
      read_file(path("out/report.html")),
      AllOf(HasSubstr("held-out prose"), HasSubstr("held-out tasks"),
            HasSubstr("of the edges active"), HasSubstr("not better than chance: no circuit")));
  EXPECT_EQ(nlohmann::json::parse(read_file(path("out/data/summary.json")))["held_out"],
            json["held_out"]);
}

TEST_F(DemoTest, PrintsASummaryAndWhereTheReportIs) {
  const ProgramRun run = run_program(demo({"--task", path("own.jsonl"), "--prompts", "8"}));
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out,
              AllOf(HasSubstr("\ntasks"), Not(HasSubstr("\nprose")), HasSubstr("living heads"),
                    HasSubstr("one standard error"), HasSubstr("8 of 8"), HasSubstr("active edges"),
                    HasSubstr("keys/query"), HasSubstr("for 90 %: heads"),
                    HasSubstr("attention edges"), HasSubstr("own.jsonl "), HasSubstr(" sparse "),
                    HasSubstr("the report is " + path("out/report.html") + "\n")));
}

TEST_F(DemoTest, TakesTheTextBesideTheDenseModel) {
  fs::copy(path("prose.txt"), model_.path() / "held-out.txt");
  const nlohmann::json beside = json_of(demo({"--task", path("own.jsonl")}));
  fs::remove(model_.path() / "held-out.txt");
  const nlohmann::json given =
      json_of(demo({"--task", path("own.jsonl"), "--text", path("prose.txt")}));
  ASSERT_EQ(beside["held_out"].size(), 2u);
  EXPECT_EQ(beside["held_out"][0]["models"][1]["loss"], given["held_out"][0]["models"][1]["loss"]);
}

TEST_F(DemoTest, ATaskThatTheTokenizerCannotAskIsLeftOutWithTheReason) {
  std::ofstream(path("none.jsonl")) << R"({"clean": "the king", "corrupt": "the king of the hill",)"
                                    << R"( "answer": " of", "wrong": " to"})" << '\n';
  const nlohmann::json json =
      json_of(demo({"--task", path("none.jsonl") + "," + path("own.jsonl")}));
  EXPECT_EQ(json["tasks"].size(), 1u);
  ASSERT_EQ(json["tasks_left_out"].size(), 1u);
  EXPECT_EQ(json["tasks_left_out"][0]["task"], path("none.jsonl"));
  EXPECT_THAT(json["tasks_left_out"][0]["why"].get<std::string>(), HasSubstr("numbers of tokens"));
  const ProgramRun run = run_program(demo({"--task", path("none.jsonl")}));
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("none.jsonl left out: "));
}

TEST_F(DemoTest, RefusesBeforeItWrites) {
  const auto expect_failure = [](const Arguments& arguments, const std::string& part) {
    const ProgramRun run = run_program(arguments);
    EXPECT_EQ(run.code, 1);
    EXPECT_EQ(run.out, "");
    EXPECT_THAT(run.err, HasSubstr(part));
  };
  expect_failure(demo({"--task", "pronuon"}), "pronoun");
  expect_failure(demo({"--text", path("absent.txt")}), "absent.txt");
  expect_failure({"demo", "no-such-model", "none-such", "--out", path("out")}, "no-such-model");
  EXPECT_FALSE(fs::exists(path("out")));
  std::ofstream(path("file")) << "in the way";
  expect_failure(demo({"--task", path("own.jsonl"), "--out", path("file")}), path("file"));
}

}  // namespace
}  // namespace filigree::cli
