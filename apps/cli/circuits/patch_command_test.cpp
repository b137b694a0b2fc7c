// filigree patch as a user calls it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <filesystem>

#include "apps/cli/tests/run_program.h"
#include "apps/cli/tests/test_figures.h"
#include "apps/cli/tests/test_task.h"

namespace filigree::cli {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

class PatchCommand : public ::testing::Test {
 protected:
  void SetUp() override { write_own_task(model_, task_, 40); }

  nlohmann::json json_of(std::vector<std::string> more) const {
    std::vector<std::string> arguments = {"patch", model_.name(), "--task",
                                          task_,   "--json",      "--quiet"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const ProgramRun run = run_program(arguments);
    EXPECT_EQ(run.code, 0) << run.err;
    return nlohmann::json::parse(run.out, nullptr, false);
  }

  std::string error_of(std::vector<std::string> more) const {
    std::vector<std::string> arguments = {"patch", model_.name(), "--task", task_};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const ProgramRun run = run_program(arguments);
    EXPECT_NE(run.code, 0);
    return run.err;
  }

  const ModelFolder model_;
  const ScratchFolder scratch_;
  const std::string task_ = (scratch_.path() / "task.jsonl").string();
};

TEST_F(PatchCommand, SweepsHeadsAndDrawsThem) {
  const std::string figure = (scratch_.path() / "heads.svg").string();
  std::vector<std::string> arguments = {"patch", model_.name(), model_.name(), "--task",
                                        task_,   "--top",       "3",           "--quiet"};
  arguments.insert(arguments.end(), {"--out", figure});
  const ProgramRun run = run_program(arguments);
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, AllOf(HasSubstr("z by layer-head"), HasSubstr("effect lost")));
  expect_figure(figure);
}

TEST_F(PatchCommand, ResidualStreamDecidesInBothDirections) {
  for (const char* direction : {"noising", "denoising"}) {
    SCOPED_TRACE(direction);
    const auto json =
        json_of({"--site", "resid,mlp-out", "--set", std::string("direction=") + direction});
    const auto& sites = json["models"][0]["sites"];
    ASSERT_EQ(sites.size(), 2u);
    EXPECT_EQ(sites[0]["by"], "layer-position");
    ASSERT_EQ(sites[0]["effect"].size(), 2u);
    const std::size_t columns = sites[0]["columns"].size();
    ASSERT_EQ(sites[0]["effect"][0].size(), columns);
    ASSERT_EQ(sites[0]["standard_error"][1].size(), columns);
    EXPECT_GT(sites[0]["clean"]["mean"].get<double>(), sites[0]["corrupt"]["mean"].get<double>());
    // Something must matter, and nothing is infinite.
    double most = 0;
    for (const auto& row : sites[0]["effect"])
      for (const auto& value : row) most = std::max(most, std::abs(value.get<double>()));
    EXPECT_GT(most, 0.05);
    EXPECT_LT(most, 100);
  }
}

TEST_F(PatchCommand, KnowsEverySiteAndReplacement) {
  for (const char* site : {"resid-mid", "attn-out", "q", "k", "v", "pattern"})
    EXPECT_EQ(json_of({"--site", site})["models"][0]["sites"][0]["site"], site);
  for (const char* replacement : {"zero", "mean", "mean-by-position"})
    EXPECT_EQ(json_of({"--replacement", replacement})["replacement"], replacement);
}

// Few prompts of one length may be too few to tell from chance, which the exit code says.
TEST_F(PatchCommand, KeepsPromptsOfOneLength) {
  const ProgramRun run =
      run_program({"patch", model_.name(), "--task", task_, "--site", "z", "--set",
                   "by=layer-position", "--set", "one-length=true", "--json", "--quiet"});
  ASSERT_THAT(run.code, AnyOf(0, 3)) << run.err;
  const auto json = nlohmann::json::parse(run.out);
  const auto all = json_of({"--site", "z", "--set", "by=layer-position"});
  const auto &one = json["models"][0], &every = all["models"][0];
  EXPECT_LT(one["prompts"].get<int>(), every["prompts"].get<int>());
  EXPECT_EQ(every["sites"][0]["from_end"], true);
  if (!one["sites"].empty()) {
    EXPECT_EQ(one["sites"][0]["from_end"], false);
  }
}

TEST_F(PatchCommand, SaysWhatItDidWithThePrompts) {
  write_awkward_prompts(task_);
  const auto text_of = [&](std::vector<std::string> more) {
    std::vector<std::string> arguments = {"patch", model_.name(), "--task", task_, "--quiet"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_program(arguments).out;
  };
  EXPECT_THAT(text_of({"--set", "by=layer-position"}),
              AllOf(HasSubstr("40 of 42 prompts fit"),
                    HasSubstr("1 dropped: an answer is more than one token (--first-token"),
                    HasSubstr("prompts of one length run together"),
                    HasSubstr("positions counted from the end")));
  EXPECT_THAT(text_of({"--first-token"}),
              AllOf(HasSubstr("41 of 42"), HasSubstr("the first token stands for the answer"),
                    Not(HasSubstr("counted from the end"))));
  EXPECT_THAT(text_of({"--set", "by=layer-position", "--set", "one-length=true"}),
              AllOf(HasSubstr("40 of 42 prompts fit"), HasSubstr("of 40 have the commonest length"),
                    Not(HasSubstr("counted from the end"))));
}

TEST_F(PatchCommand, MarksWhatIsNotBetterThanChance) {
  const ProgramRun run =
      run_program({"patch", model_.name(), "--task", "pronoun", "--prompts", "20", "--quiet"});
  EXPECT_EQ(run.code, 3) << run.err;
  EXPECT_THAT(run.out, HasSubstr("NOT better than chance"));
}

TEST_F(PatchCommand, NamesWhatIsWrong) {
  EXPECT_THAT(error_of({"--site", "soul"}), HasSubstr("none of resid, resid-mid"));
  EXPECT_THAT(error_of({"--site", "resid", "--set", "by=layer-head"}), HasSubstr("has no heads"));
  EXPECT_THAT(error_of({"--set", "by=head"}), HasSubstr("layer-head"));
  EXPECT_THAT(error_of({"--set", "direction=denoising", "--replacement", "zero"}),
              HasSubstr("go with noising"));
  EXPECT_THAT(error_of({"--out", "x.gif"}), HasSubstr(".svg, .pdf or .png"));
  EXPECT_THAT(error_of({"--replacement", "x"}), HasSubstr("'x' is none of corrupt, zero, mean"));
}

}  // namespace
}  // namespace filigree::cli
