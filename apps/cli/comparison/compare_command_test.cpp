// filigree compare, curves, and the figures of attention, as a user runs them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <fstream>

#include "apps/cli/tests/run_program.h"
#include "apps/cli/tests/test_task.h"
#include "filigree/study_figures.h"
#include "support/files.h"
#include "support/temporary_folder.h"

namespace filigree::cli {
namespace {

namespace fs = std::filesystem;

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

using Arguments = std::vector<std::string>;

class CompareCommandTest : public ::testing::Test {
 protected:
  void SetUp() override {}

  std::string path(const std::string& name) const { return (scratch_.path() / name).string(); }
  std::string dense() const { return model_.path().string(); }

  // The dense model with gates of one bias.
  std::string gated(const std::string& name, float bias) const {
    return model_.gated(path(name), {{bias}});
  }

  static nlohmann::json json_of(Arguments arguments) {
    arguments.insert(arguments.end(), {"--quiet", "--json"});
    const ProgramRun run = run_program(arguments);
    EXPECT_EQ(run.code, 0) << run.err;
    return nlohmann::json::parse(run.out, nullptr, false);
  }

  static void expect_failure(const Arguments& arguments,
                             const ::testing::Matcher<std::string>& message, int code = 1) {
    const ProgramRun run = run_program(arguments);
    EXPECT_EQ(run.code, code) << run.err;
    EXPECT_THAT(run.err, AllOf(StartsWith("filigree"), message));
  }

  ModelFolder model_;
  TemporaryFolder scratch_;
};

TEST_F(CompareCommandTest, ModelsOfOneHeadHaveNoPairsAndAreComparedAllTheSame) {
  fs::copy(dense(), path("one"));
  save_model(*make_model(parse_model_config({{"model_type", "gpt2"},
                                             {"n_layer", 1},
                                             {"n_head", 1},
                                             {"n_embd", 8},
                                             {"n_positions", 32},
                                             {"vocab_size", 8192}},
                                            "test"),
                         1),
             path("one"));
  json_of({"compare", path("one"), path("one"), "--prompt", "one two one", "--out", path("out")});
  EXPECT_TRUE(fs::exists(path("out/figures/grid.svg")));
  EXPECT_FALSE(fs::exists(path("out/figures/scatter.svg")));
}

TEST_F(CompareCommandTest, AddsTheCircuitsOfTasks) {
  const std::string task = path("own.jsonl");
  write_own_task(model_, task, 8);
  const auto json =
      json_of({"compare", dense(), gated("open", 1e6f), "--out", path("out"), "--task",
               task + ",pronoun", "--prompts", "8", "--format", "svg", "--prompt", "The cat sat."});
  ASSERT_EQ(json["tasks"].size(), 2u);
  const auto& kinds = json["tasks"][0]["kinds"];
  ASSERT_EQ(kinds.size(), 3u);
  for (std::size_t k = 0; k < kinds.size(); ++k) {
    EXPECT_EQ(kinds[k]["kind"], (Arguments{"heads", "edges", "attention-edges"}[k]));
    const auto& models = kinds[k]["models"];
    // The gates of the second model are all open: it is the first one.
    EXPECT_EQ(models[0]["size"], models[1]["size"]);
    EXPECT_EQ(models[0]["curve"].size(), models[1]["curve"].size());
    EXPECT_FALSE(models[0].contains("scores"));  // far too many for a summary
    if (k == 2) continue;
    EXPECT_EQ(models[0]["circuit"], models[1]["circuit"]);
    EXPECT_EQ(models[0]["circuit"].size(), models[0]["size"].get<std::size_t>());
  }
  for (const char* name : {"figures/own-curves.svg", "figures/own-heads.svg",
                           "figures/own-edges.svg", "data/own-edges-open.dot"}) {
    EXPECT_GT(fs::file_size(fs::path(path("out")) / name), 500u);
    EXPECT_THAT(json["files"], ::testing::Contains(name));
  }
  // A model of random weights knows no pronouns: the page says so and draws nothing.
  EXPECT_TRUE(json["tasks"][1]["kinds"][0]["models"][0]["size"].is_null());
  for (const char* what : {"info", "heads", "edges"})
    EXPECT_FALSE(fs::exists(path("out") + "/figures/pronoun-" + what + ".svg"));
  const std::string page = read_file(fs::path(path("out")) / "report.html");
  EXPECT_THAT(page, AllOf(HasSubstr("\"tasks\":["), HasSubstr("Explained effect"),
                          HasSubstr("Edges of the circuits"), HasSubstr("attention edges"),
                          HasSubstr("not better than chance: no circuit")));
  expect_failure({"compare", dense(), dense(), "--out", path("x"), "--task", "pronuon"},
                 HasSubstr("pronoun"));
}

TEST_F(CompareCommandTest, WritesFiguresTablesDataAndThePage) {
  const nlohmann::json json =
      json_of({"compare", dense(), gated("sparse", -0.1f), "--out", path("out"), "--format",
               "svg,pdf", "--set", "strips=L1H2", "--set", "maps=true"});
  ASSERT_TRUE(json.is_object());
  for (const char* file :
       {"figures/grid.svg", "figures/grid.pdf", "figures/L1H2.svg", "figures/correlation.pdf",
        "figures/scatter.svg", "figures/statistics.pdf", "tables/roles.csv", "tables/roles.tex",
        "tables/statistics.csv", "tables/statistics.tex", "data/summary.json", "data/maps.npz",
        "report.html"}) {
    EXPECT_GT(fs::file_size(path("out") + "/" + file), 200u) << file;
    EXPECT_THAT(json["files"], ::testing::Contains(file));
  }
  EXPECT_EQ(json["files"].size(), 17u);  // 5 figures in 2 formats, 2 tables, 2 of data, the page
  EXPECT_THAT(read_file(path("out/figures/grid.svg")), HasSubstr("<svg"));
  EXPECT_THAT(read_file(path("out/figures/grid.pdf")), StartsWith("%PDF"));

  // What it found is what `attention` finds on the same prompts.
  EXPECT_EQ(json["prompts"], 8);
  EXPECT_EQ(json["models"][0]["statistics"]["model"]["active_edges"], 1.0);
  const double edges = json["models"][1]["statistics"]["model"]["active_edges"];
  EXPECT_GT(edges, 0.01);
  EXPECT_LT(edges, 0.99);
  EXPECT_EQ(nlohmann::json::parse(read_file(path("out/data/summary.json")))["comparison"],
            json["comparison"]);
  const std::string page = read_file(path("out/report.html"));
  EXPECT_THAT(page, HasSubstr("filigree compare "));
  EXPECT_THAT(page, HasSubstr("When Mary and John went"));
  EXPECT_THAT(read_file(path("out/tables/roles.csv")),
              StartsWith("model,layer,head,role,confidence,sink,current,"));
}

TEST_F(CompareCommandTest, AllZeroHeadsShortPromptsAndOtherScriptsAreFine) {
  const std::string closed = gated("closed", -1e4f);
  const nlohmann::json json = json_of({"compare", dense(), closed, "--out", path("out"), "--format",
                                       "png", "--set", "dpi=50", "--prompt", "a", "--prompt",
                                       "\u4f60\u597d, \u043c\u0438\u0440", "--order", "role"});
  EXPECT_EQ(json["models"][1]["statistics"]["model"]["active_edges"], 0.0);
  EXPECT_EQ(json["models"][1]["roles"][0]["role"], "empty");
  EXPECT_TRUE(fs::exists(path("out/report.html")));
}

TEST_F(CompareCommandTest, HeadsCanBeChosenAndOrderedByImportance) {
  const std::string sparse = gated("sparse", 0.0f);
  const Arguments common = {"compare", dense(), sparse, "--format", "svg", "--prompt", "a b c d"};
  const auto with = [&](Arguments more) {
    Arguments all = common;
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  json_of(with({"--out", path("a"), "--heads", "L0H1,L1H3", "--set", "first=L1H3,L0H1"}));
  json_of(with({"--out", path("b"), "--heads", "L0H1,L1H3", "--order", "layer"}));
  EXPECT_NE(read_file(path("a/figures/grid.svg")), read_file(path("b/figures/grid.svg")));
  expect_failure(with({"--out", path("c"), "--set", "first=L7H0"}), HasSubstr("L7H0"));
  expect_failure(with({"--out", path("c"), "--order", "L1H3"}), HasSubstr("neither layer nor role"),
                 2);
  expect_failure(with({"--out", path("c"), "--set", "strips=L0H9"}), HasSubstr("L0H9"));
  expect_failure(with({"--out", path("c"), "--theme", "pink"}), HasSubstr("light"), 2);
  expect_failure(with({"--out", path("c"), "--format", "gif"}), HasSubstr("'gif'"), 2);
  EXPECT_FALSE(fs::exists(path("c"))) << "nothing is written before the arguments are checked";
}

TEST_F(CompareCommandTest, RefusesModelsThatDoNotGoTogether) {
  const auto other = make_model(parse_model_config({{"model_type", "gpt2"},
                                                    {"n_layer", 3},
                                                    {"n_head", 4},
                                                    {"n_embd", 32},
                                                    {"n_positions", 64},
                                                    {"vocab_size", 8192}},
                                                   "test"),
                                1);
  fs::copy(model_.path(), path("other"));
  save_model(*other, path("other"));
  expect_failure({"compare", dense(), path("other"), "--out", path("out")},
                 AllOf(HasSubstr("2 layers of 4 heads"), HasSubstr("3 of 4")));
  std::ofstream(path("file")) << "x";
  expect_failure({"compare", dense(), dense(), "--out", path("file/out")},
                 HasSubstr("/file': a file of that name exists"));
}

TEST_F(CompareCommandTest, AttentionDrawsOnePromptOrTheMean) {
  const Arguments common = {"attention", dense(), "--show", "roles", "--out"};
  const auto with = [&](const std::string& out, Arguments more) {
    Arguments all = common;
    all.push_back(path(out));
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  json_of(with("one.png", {"--prompt", "a b c"}));
  EXPECT_THAT(read_file(path("one.png")), StartsWith("\x89PNG"));
  json_of(with("scores.svg", {"--prompt", "a b c", "--what", "scores", "--heads", "L0H0"}));
  json_of(with("mean.pdf", {"--prompt", "a b c", "--prompt", "d e f", "--set", "average=true"}));
  EXPECT_THAT(read_file(path("mean.pdf")), StartsWith("%PDF"));
  expect_failure(with("two.svg", {"--prompt", "a b", "--prompt", "c d"}),
                 HasSubstr("or the mean of 2"), 2);
}

TEST_F(CompareCommandTest, CurvesComeFromTheLogsOfRuns) {
  fs::create_directory(path("run"));
  {
    std::ofstream log(path("run/log.jsonl"));
    log << R"({"run": "sparsify"})" << '\n';
    for (int step = 10; step <= 50; step += 10)
      log << R"({"step": )" << step
          << R"(, "gap": 0.1, "active_edges": 0.05, "lambda": 2.0, "loss": 1.0})" << '\n';
    log << R"({"event": "evaluation", "step": 50, "held_out_loss": 1.0})" << '\n';
    log << R"({"step": 60, "ga)";
  }
  const nlohmann::json json = json_of({"info", path("run"), "--out", path("curves.svg")});
  EXPECT_EQ(json["runs"][0]["points"], 5);
  EXPECT_EQ(json["runs"][0]["name"], "run");
  const std::string log = path("run/log.jsonl"), second = path("second.jsonl");
  const std::string like_the_folder = path("run.jsonl");
  fs::copy(log, second);
  fs::copy(log, like_the_folder);
  const auto names = [&](const std::string& a, const std::string& b) {
    const nlohmann::json runs = json_of({"info", a, b, "--out", path("x.svg")})["runs"];
    return std::vector<std::string>{runs[0]["name"], runs[1]["name"]};
  };
  EXPECT_EQ(names(log, second), (std::vector<std::string>{"run", "second"}));
  EXPECT_EQ(names(path("run"), like_the_folder),
            (std::vector<std::string>{path("run"), like_the_folder}));
  EXPECT_THAT(read_file(path("curves.svg")), HasSubstr("<svg"));

  std::ofstream(path("dense.jsonl"))
      << R"({"step": 1, "loss": 2.0})" << '\n'
      << R"({"step": 2, "loss": 9.0})" << '\n'
      << R"({"event": "stopped", "step": 2, "reason": "x: y"})" << '\n';
  const nlohmann::json dense = json_of({"info", path("dense.jsonl"), "--out", path("x.svg")});
  EXPECT_EQ(dense["runs"][0]["events"][0]["event"], "stopped");
  EXPECT_THAT(read_file(path("x.svg")), HasSubstr("<svg"));
  std::ofstream(path("none.jsonl")) << R"({"run": "pretrain"})" << '\n';
  expect_failure({"info", path("none.jsonl"), "--out", path("x.svg")},
                 HasSubstr("no steps of training"));
  std::ofstream(path("bad.jsonl")) << "{\n"
                                   << R"({"step": 1})" << '\n';
  expect_failure({"info", path("bad.jsonl"), "--out", path("x.svg")}, HasSubstr("line 1"));
  std::ofstream(path("deep.jsonl")) << std::string(60000, '[') << std::string(60000, ']') << '\n';
  expect_failure({"info", path("deep.jsonl"), "--out", path("x.svg")},
                 HasSubstr("deep.jsonl, line 1': byte 64: nested more than 64 levels deep"));
  expect_failure({"info", path("none"), "--out", path("x.svg")}, HasSubstr("cannot read"));
  expect_failure({"info", path("run"), "--out", path("x.gif")}, HasSubstr(".svg, .pdf or .png"), 2);
}

}  // namespace
}  // namespace filigree::cli
