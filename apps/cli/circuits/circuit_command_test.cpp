// filigree circuit as a user calls it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <fstream>

#include "apps/cli/tests/run_program.h"
#include "apps/cli/tests/test_task.h"
#include "filigree/study_figures.h"

namespace filigree::cli {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::EndsWith;
using ::testing::HasSubstr;

TEST(CircuitCommand, ClaimsNoCircuitOfWhatTheModelCannotDo) {
  const ModelFolder model;
  const ProgramRun run =
      run_program({"circuit", model.name(), "--task", "pronoun", "--prompts", "20", "--quiet"});
  EXPECT_EQ(run.code, 3) << run.err;
  EXPECT_THAT(run.out, AllOf(HasSubstr("NOT better than chance"), HasSubstr("none claimed")));
}

TEST(CircuitCommand, FindsHeadsByEveryMethodAndComparesModels) {
  const ModelFolder model;
  const ScratchFolder scratch;
  const std::string file = (scratch.path() / "task.jsonl").string();
  write_own_task(model, file, 12);
  const ProgramRun run = run_program({"circuit", model.name(), "--task", file, "--quiet"});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, AllOf(HasSubstr("heads for 90 %"), HasSubstr("drop without it"),
                             HasSubstr("better than chance (accuracy 100.0 %")));
  for (const char* method : {"exact", "attribution", "ig"}) {
    SCOPED_TRACE(method);
    const ProgramRun json_run = run_program({"circuit", model.name(), model.name(), "--task", file,
                                             "--method", method, "--json", "--quiet"});
    ASSERT_EQ(json_run.code, 0) << json_run.err;
    const auto json = nlohmann::json::parse(json_run.out);
    ASSERT_EQ(json["models"].size(), 2u);
    const auto& found = json["models"][0];
    EXPECT_EQ(found, json["models"][1]);  // the same model twice
    EXPECT_EQ(found["scores"].size(), 8u);
    EXPECT_EQ(found["circuit"].size(), found["size"].get<std::size_t>());
    EXPECT_EQ(found["ratio"], 1.0);
    ASSERT_EQ(found["curve"].size(), 9u);
    EXPECT_NEAR(found["curve"][8]["effect"].get<double>(), 1.0, 1e-5);
    EXPECT_NEAR(found["curve"][0]["effect"].get<double>(), 0.0, 1e-3);
    EXPECT_GE(found["size"].get<int>(), 1);
  }
}

TEST(CircuitCommand, FindsEveryKindOfPart) {
  const ModelFolder model;
  const ScratchFolder scratch;
  const std::string file = (scratch.path() / "task.jsonl").string();
  write_own_task(model, file, 12);
  struct Case {
    std::vector<std::string> options;
    double parts;  // 0: depends on the prompts
  };
  // 2 layers of 4 heads: 12 inputs before 1 and 6 nodes, MLPs before 5 and 10, logits before 11.
  const double edges = 12 * 1 + 5 + 12 * 6 + 10 + 11;
  for (const Case& test :
       {Case{{"--parts", "heads+mlps"}, 10}, Case{{"--parts", "heads", "--select", "greedy"}, 8},
        Case{{"--parts", "heads", "--select", "greedy-add"}, 8}, Case{{"--parts", "edges"}, edges},
        Case{{"--parts", "edges", "--method", "exact"}, edges},
        Case{{"--parts", "edges", "--method", "eap"}, edges},
        Case{{"--parts", "edges", "--select", "greedy"}, edges},
        Case{{"--parts", "attention-edges"}, 0},
        Case{{"--parts", "attention-edges", "--replacement", "zero"}, 0}}) {
    std::vector<std::string> arguments = {"circuit", model.name(), "--task", file, "--quiet"};
    arguments.insert(arguments.end(), test.options.begin(), test.options.end());
    SCOPED_TRACE(test.options[1] + " " + test.options.back());
    const ProgramRun text = run_program(arguments);
    EXPECT_EQ(text.code, 0) << text.err;
    EXPECT_THAT(text.out, HasSubstr("for 90 %"));
    arguments.emplace_back("--json");
    const ProgramRun run = run_program(arguments);
    ASSERT_EQ(run.code, 0) << run.err;
    const auto json = nlohmann::json::parse(run.out);
    EXPECT_EQ(json["kind"], test.options[1]);
    const auto& found = json["models"][0];
    const auto& curve = found["curve"];
    EXPECT_NEAR(curve.back()["effect"].get<double>(), 1.0, 1e-5);
    // The first point from which on the effect never falls below the level again.
    std::size_t size = 0;
    for (auto point = curve.rbegin(); point != curve.rend() && (*point)["effect"] >= 0.9; ++point)
      size = (*point)["parts"];
    EXPECT_GT(size, 0u);
    EXPECT_EQ(found["size"], size);
    if (test.parts > 0) {
      EXPECT_EQ(found["parts"], test.parts);
      EXPECT_EQ(found["scores"].size(), static_cast<std::size_t>(test.parts));
      EXPECT_EQ(found["circuit"].size(), found["size"].get<std::size_t>());
      // MLPs that stay clean keep a part of the effect when no head is left.
      if (test.options[1] != "heads") {
        EXPECT_NEAR(curve[0]["effect"].get<double>(), 0.0, 1e-3);
      }
    } else {
      ASSERT_EQ(found["scores_by_prompt"].size(), 12u);
      // Those that matter most; all of them would be hundreds of megabytes.
      EXPECT_EQ(found["scores"].size(), 1000u);
      const auto cells = found["scores_by_prompt"][0];
      ASSERT_EQ(cells.size(), 10u);
      for (std::size_t i = 1; i < cells.size(); ++i)
        EXPECT_LE(std::abs(cells[i].at(4).get<double>()),
                  std::abs(cells[i - 1].at(4).get<double>()));
    }
  }
}

TEST(CircuitCommand, WritesFiguresGraphvizAndJson) {
  const ModelFolder model;
  const ScratchFolder scratch;
  const std::string file = (scratch.path() / "own task.jsonl").string();
  const std::filesystem::path out = scratch.path() / "circuits" / "here";
  write_own_task(model, file, 12);
  const auto written = [&](const std::string& kind, const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments = {"circuit",  model.name(), model.name(), "--task", file,
                                          "--format", "svg",        "--parts",    kind,     "--out",
                                          out,        "--json",     "--quiet"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const ProgramRun run = run_program(arguments);
    // What needs no figures is there in any build.
    EXPECT_EQ(run.code, 0) << run.err;
    const auto json = nlohmann::json::parse(run.out, nullptr, false);
    std::vector<std::string> files = json.value("files", std::vector<std::string>());
    for (const std::string& name : files)
      EXPECT_GT(std::filesystem::file_size(out / name), 120u) << name;
    std::ifstream in(out / files.back());
    const auto stored = nlohmann::json::parse(in, nullptr, false);
    EXPECT_EQ(stored.value("models", nlohmann::json()), json.value("models", nlohmann::json()));
    return files;
  };
  const auto drawn = [](std::vector<std::string> figures, const std::vector<std::string>& others) {
    figures.insert(figures.end(), others.begin(), others.end());
    return figures;
  };
  const auto tables = [](const std::string& stem) {
    return std::vector<std::string>{stem + "-sizes.csv", stem + "-sizes.tex", stem + "-parts.csv",
                                    stem + "-parts.tex", stem + ".json"};
  };
  EXPECT_EQ(written("heads"), drawn({"own-task-heads-curves.svg", "own-task-heads-maps.svg"},
                                    tables("own-task-heads")));
  EXPECT_EQ(written("heads+mlps"),
            drawn({"own-task-heads-mlps-curves.svg", "own-task-heads-mlps-maps.svg"},
                  tables("own-task-heads-mlps")));
  EXPECT_EQ(written("attention-edges", {"--replacement", "zero"}),
            drawn({"own-task-attention-edges-curves.svg", "own-task-attention-edges-drawing.svg"},
                  tables("own-task-attention-edges")));
  // Both models are one folder: the second file has a number.
  const std::string label = model.path().filename().string();
  const std::vector<std::string> edges = written("edges");
  ASSERT_EQ(edges.size(), 9u);
  const std::string& first_dot = edges[edges.size() - 7];
  std::vector<std::string> others = {first_dot, edges[edges.size() - 6]};
  for (const std::string& table : tables("own-task-edges")) others.push_back(table);
  EXPECT_EQ(edges, drawn({"own-task-edges-curves.svg", "own-task-edges-drawing.svg"}, others));
  EXPECT_THAT(first_dot, AllOf(HasSubstr(label), EndsWith(".dot")));
  EXPECT_THAT(others[1], EndsWith("-2.dot"));
  std::ifstream in(out / first_dot);
  const std::string dot((std::istreambuf_iterator<char>(in)), {});
  EXPECT_THAT(dot, AllOf(HasSubstr("digraph"), HasSubstr("explain 90 %"), HasSubstr("logits")));
}

TEST(CircuitCommand, WritesOneFigureWhereItIsAsked) {
  const ModelFolder model;
  const ScratchFolder scratch;
  const std::string file = (scratch.path() / "own.jsonl").string();
  write_own_task(model, file, 12);
  for (const char* parts : {"heads", "edges", "attention-edges"}) {
    const std::string figure = (scratch.path() / parts).string() + ".svg";
    const ProgramRun run = run_program(
        {"circuit", model.name(), "--task", file, "--parts", parts, "--out", figure, "--quiet"});
    EXPECT_EQ(run.code, 0) << run.err;
    EXPECT_THAT(run.out, HasSubstr("figure: " + figure));
    EXPECT_GT(std::filesystem::file_size(figure), 2000u);
  }
  const std::string none = (scratch.path() / "none.svg").string();
  const ProgramRun run = run_program(
      {"circuit", model.name(), "--task", "pronoun", "--prompts", "20", "--out", none, "--quiet"});
  EXPECT_EQ(run.code, 3);
  EXPECT_THAT(run.out, HasSubstr("no circuit to draw"));
  EXPECT_FALSE(std::filesystem::exists(none));
}

TEST(CircuitCommand, ListsTheFilesItWroteAndNoneOfWhatIsNotThere) {
  const ModelFolder model;
  const ScratchFolder scratch;
  const std::string out = (scratch.path() / "out").string();
  const ProgramRun run = run_program({"circuit", model.name(), "--task", "pronoun", "--prompts",
                                      "20", "--parts", "edges", "--out", out, "--quiet"});
  EXPECT_THAT(run.out, AllOf(HasSubstr("none claimed"), HasSubstr("1 file in "),
                             HasSubstr("  pronoun-edges.json\n")));
  EXPECT_EQ(run.code, 3) << run.err;
  std::ofstream(scratch.path() / "file") << "x";
  const std::vector<std::string> common = {"circuit", model.name(), "--task", "pronoun", "--quiet"};
  const auto refused = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = common;
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_program(arguments).err;
  };
  EXPECT_THAT(refused({"--out", (scratch.path() / "file" / "x").string()}),
              HasSubstr("cannot create"));
  EXPECT_THAT(refused({"--out", out, "--format", "gif"}), HasSubstr("none of svg, pdf, png"));
  EXPECT_THAT(refused({"--out", out, "--theme", "pink"}), HasSubstr("light"));
}

// Unequal lengths, answers of several tokens.
TEST(CircuitCommand, SaysWhatItDidWithThePrompts) {
  const ModelFolder model;
  const ScratchFolder scratch;
  const std::string file = (scratch.path() / "task.jsonl").string();
  write_own_task(model, file, 20);
  write_awkward_prompts(file);
  for (const char* parts : {"heads", "edges", "attention-edges"}) {
    SCOPED_TRACE(parts);
    const ProgramRun run =
        run_program({"circuit", model.name(), "--task", file, "--parts", parts, "--quiet"});
    // Where heads look is the same in both prompts: that does not carry the task.
    const bool cells = std::string(parts) == "attention-edges";
    EXPECT_EQ(run.code, cells ? 3 : 0) << run.err;
    if (cells) {
      EXPECT_THAT(run.out, AllOf(HasSubstr("The attention edges do NOT carry this task"),
                                 HasSubstr("not carried"), HasSubstr("--replacement zero")));
    }
    EXPECT_THAT(run.out, AllOf(HasSubstr("20 of 22 prompts fit"),
                               HasSubstr("1 dropped: clean and corrupt have different numbers"),
                               HasSubstr("1 dropped: an answer is more than one token (--first-"),
                               ContainsRegex("of [0-9]+ to [0-9]+ tokens; prompts of one length")));
  }
  const ProgramRun first =
      run_program({"circuit", model.name(), "--task", file, "--first-token", "--quiet"});
  EXPECT_THAT(first.out, AllOf(HasSubstr("21 of 22 prompts fit"),
                               HasSubstr("1 with answers of several tokens: the first token")));
}

TEST(CircuitCommand, GoesOnWhereItStopped) {
  const ModelFolder model;
  const ScratchFolder scratch;
  const std::string file = (scratch.path() / "task.jsonl").string();
  const std::filesystem::path state = scratch.path() / "sweep.state";
  write_own_task(model, file, 12);
  const std::vector<std::string> plain = {"circuit", model.name(),      "--task",   file,
                                          "--parts", "attention-edges", "--method", "exact",
                                          "--json",  "--quiet"};
  std::vector<std::string> kept = plain;
  kept.insert(kept.end(), {"--state", state.string()});
  const ProgramRun whole = run_program(plain);
  ASSERT_EQ(whole.code, 0) << whole.err;
  const ProgramRun stopped =
      run_and_signal(kept, SIGINT, [&] { return std::filesystem::exists(state); });
  EXPECT_EQ(stopped.code, 130) << stopped.err;
  EXPECT_EQ(stopped.out, "");
  const ProgramRun resumed = run_program(kept);
  EXPECT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_EQ(nlohmann::json::parse(resumed.out)["models"],
            nlohmann::json::parse(whole.out)["models"]);
  // All of it is in the file now.
  EXPECT_EQ(run_program(kept).out, resumed.out);

  std::vector<std::string> other = kept;
  other.insert(other.end(), {"--replacement", "zero"});
  const ProgramRun stale = run_program(other);
  EXPECT_EQ(stale.code, 1);
  EXPECT_THAT(stale.err,
              AllOf(HasSubstr("another model, task, option or version"), HasSubstr("remove")));
  std::filesystem::resize_file(state, std::filesystem::file_size(state) - 3);
  const ProgramRun damaged = run_program(kept);
  EXPECT_EQ(damaged.code, 1);
  EXPECT_THAT(damaged.err, HasSubstr("damaged"));
}

TEST(CircuitCommand, RefusesOptionsThatDoNotGoTogether) {
  const ModelFolder model;
  const auto run = [&](const std::vector<std::string>& options) {
    std::vector<std::string> arguments = {"circuit", model.name(), "--task", "ioi"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    return run_program(arguments);
  };
  for (const std::vector<std::string>& options :
       {std::vector<std::string>{"--parts", "edges", "--replacement", "zero"},
        {"--parts", "edges", "--select", "greedy-add"},
        {"--parts", "attention-edges", "--select", "greedy"},
        {"--method", "ig", "--replacement", "mean"},
        {"--parts", "neurons"}}) {
    const ProgramRun refused = run(options);
    EXPECT_EQ(refused.code, 2) << refused.err;
    EXPECT_THAT(refused.err, HasSubstr(options.back()));
  }
}

TEST(CircuitCommand, ComparesMethods) {
  const ModelFolder model;
  const ScratchFolder scratch;
  const std::string file = (scratch.path() / "task.jsonl").string();
  const std::filesystem::path out = scratch.path() / "out";
  write_own_task(model, file, 12);
  const ProgramRun text = run_program({"circuit", model.name(), "--task", file, "--parts", "edges",
                                       "--method", "exact,eap,eap-ig", "--quiet"});
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.out, AllOf(HasSubstr("edges by 3 methods"), HasSubstr("ranks as eap-ig"),
                              HasSubstr("drop without it"), HasSubstr("estimate by eap ")));
  const ProgramRun run =
      run_program({"circuit", model.name(), "--task", file, "--parts", "edges", "--method",
                   "eap,exact", "--format", "svg", "--out", out, "--json", "--quiet"});
  const auto json = nlohmann::json::parse(run.out, nullptr, false);
  ASSERT_EQ(json["methods"].size(), 2u) << run.err;
  EXPECT_EQ(json["methods"][0]["method"], "attribution");
  EXPECT_GT(json["rank_correlations"][0]["spearman"], 0.3);
  EXPECT_TRUE(std::filesystem::exists(out / "task-edges-eap.json"));
  EXPECT_TRUE(std::filesystem::exists(out / "task-edges-exact.json"));
  const ProgramRun twice = run_program(
      {"circuit", model.name(), "--task", file, "--parts", "edges", "--method", "eap,attribution"});
  EXPECT_EQ(twice.code, 2);
  EXPECT_THAT(twice.err, HasSubstr("the method eap is named twice"));
}

TEST(CircuitCommand, SaysWhenThereAreTooFewPrompts) {
  const ModelFolder model;
  const ScratchFolder scratch;
  const std::string file = (scratch.path() / "task.jsonl").string();
  write_own_task(model, file, 4);
  const ProgramRun run = run_program({"circuit", model.name(), "--task", file, "--quiet"});
  EXPECT_EQ(run.code, 3) << run.err;
  EXPECT_THAT(run.out, AllOf(HasSubstr("too FEW prompts to tell"), HasSubstr("p = 0.062"),
                             HasSubstr("none claimed")));
  const ProgramRun one =
      run_program({"circuit", model.name(), "--task", file, "--prompts", "1", "--json", "--quiet"});
  const auto check = nlohmann::json::parse(one.out, nullptr, false)["models"][0]["check"];
  EXPECT_TRUE(check["metric"]["clean"]["standard_error"].is_null());
  EXPECT_EQ(check["enough_prompts"], false);
  EXPECT_EQ(check["least_p_value"], 0.5);
}

TEST(CircuitCommand, NamesWhatIsWrong) {
  const ModelFolder model;
  EXPECT_THAT(run_program({"circuit", model.name()}).err, HasSubstr("--task"));
  EXPECT_THAT(run_program({"circuit", model.name(), "--task", "ioi", "--method", "guess"}).err,
              HasSubstr("none of exact, attribution, ig, eap, eap-ig"));
  EXPECT_THAT(run_program({"circuit", model.name(), "--task", "ioi", "--replacement", "x"}).err,
              HasSubstr("'x' is none of corrupt, zero"));
}

}  // namespace
}  // namespace filigree::cli
