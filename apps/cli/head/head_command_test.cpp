// filigree head as a user calls it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "apps/cli/tests/run_program.h"
#include "apps/cli/tests/test_figures.h"
#include "apps/cli/tests/test_task.h"

namespace filigree::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(HeadCommand, SaysWhatAHeadDoes) {
  const ModelFolder model;
  const ScratchFolder scratch;
  const std::string task = (scratch.path() / "task.jsonl").string();
  write_own_task(model, task, 8);
  const std::string figure = (scratch.path() / "head.svg").string();
  std::vector<std::string> arguments = {"head",   model.name(), "L1H2",  "--task", task,
                                        "--twin", model.name(), "--top", "3",      "--quiet"};
  std::vector<std::string> drawn = arguments;
  drawn.insert(drawn.end(), {"--out", figure});
  const ProgramRun run = run_program(drawn);
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, AllOf(HasSubstr("L1H2 of "), HasSubstr("role "), HasSubstr("copying "),
                             HasSubstr("strongest edges"), HasSubstr("direct effect"),
                             HasSubstr("composition by weights"), HasSubstr("without it")));
  EXPECT_THAT(run.out, HasSubstr("whose maps correlate 1.00 (the same place)"));
  expect_figure(figure);
  arguments.emplace_back("--json");
  const ProgramRun json_run = run_program(arguments);
  const auto json = nlohmann::json::parse(json_run.out, nullptr, false);
  EXPECT_EQ(json["facts"]["name"], "L1H2");
  EXPECT_EQ(json["facts"]["edges"].size(), 3u);
  EXPECT_EQ(json["twin"]["facts"]["name"], "L1H2");
}

TEST(HeadCommand, NamesWhatIsWrong) {
  const ModelFolder model;
  const auto error = [&](std::vector<std::string> arguments, int code) {
    arguments.insert(arguments.begin(), {"head", model.name()});
    const ProgramRun run = run_program(arguments);
    EXPECT_EQ(run.code, code) << run.err;
    return run.err;
  };
  EXPECT_THAT(error({"L1"}, 2), HasSubstr("a page is about one"));
  EXPECT_THAT(error({"head"}, 2), HasSubstr("not a choice of heads"));
  EXPECT_THAT(error({"L7H0"}, 1), HasSubstr("no 'L7H0'"));
  EXPECT_THAT(error({"L1H0", "--heads", "L0H0"}, 2), HasSubstr("leave HEAD out"));
  EXPECT_THAT(error({"--task", "ioi"}, 2), HasSubstr("are of one head"));
  EXPECT_THAT(error({"L1H0", "--task", "no-such-task"}, 1), HasSubstr("no-such-task"));
}

}  // namespace
}  // namespace filigree::cli
