// bench on models small enough for a test.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <fstream>

#include "apps/cli/tests/run_program.h"
#include "apps/cli/tests/test_model.h"

namespace filigree::cli {
namespace {

using ::testing::HasSubstr;

const std::vector<std::string> kTiny = {"--layers", "2",  "--layer-heads", "4",
                                        "--width",  "32", "--vocab",       "100"};

std::vector<std::string> with_tiny(std::vector<std::string> arguments) {
  arguments.insert(arguments.end(), kTiny.begin(), kTiny.end());
  return arguments;
}

TEST(Bench, MeasuresEveryCaseAgainstTheCeiling) {
  const ScratchFolder scratch;
  const ProgramRun run =
      run_program(with_tiny({"bench", "--json", "--quiet", "--set", "runs=1", "--set",
                             "ceiling-size=64", "--set", "scratch=" + scratch.path().string()}));
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(run.err, "");
  const nlohmann::json json = nlohmann::json::parse(run.out);
  EXPECT_GT(json["ceiling"]["matrix_gflops"].get<double>(), 0.0);
  EXPECT_GT(json["ceiling"]["multiply_add_gflops"].get<double>(), 0.0);
  EXPECT_GT(json["ceiling"]["read_gb_per_s"].get<double>(), 0.0);
  EXPECT_FALSE(json["machine"]["cpu"].get<std::string>().empty());
  std::vector<std::string> names;
  for (const auto& row : json["cases"]) {
    names.push_back(row["case"]);
    EXPECT_GT(row["seconds"].get<double>(), 0.0);
    EXPECT_EQ(row["runs"], 1);
    if (row["case"] == "load-warm") {
      EXPECT_TRUE(row["gflops"].is_null());
      continue;
    }
    EXPECT_NEAR(row["share_of_ceiling"].get<double>(),
                row["gflops"].get<double>() / json["ceiling"]["matrix_gflops"].get<double>(), 1e-9);
  }
  EXPECT_THAT(names, ::testing::ElementsAre("forward-maps-b1-t16", "forward-maps-b1-t128",
                                            "forward-maps-b1-t1024", "train-dense-b4-t256",
                                            "train-gated-b4-t256", "load-warm"));
  EXPECT_TRUE(std::filesystem::is_empty(scratch.path())) << "the saved model was left behind";
}

TEST(Bench, RunsOnlyTheCasesThatAreAskedFor) {
  const ProgramRun run =
      run_program(with_tiny({"bench", "--set", "runs=1", "--set", "ceiling-size=64", "--cases",
                             "forward-maps-b1-t128,forward-maps-b1-t16"}));
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("\nforward-maps-b1-t16 "));
  EXPECT_THAT(run.out, HasSubstr("\nforward-maps-b1-t128 "));
  EXPECT_THAT(run.out, ::testing::Not(HasSubstr("train-dense")));
}

TEST(Bench, RefusesWhatCannotBe) {
  ProgramRun run = run_program({"bench", "--width", "33", "--layer-heads", "4"});
  EXPECT_EQ(run.code, 2);
  EXPECT_THAT(run.err, HasSubstr("a width of 33 is not a multiple of 4 heads"));
  run = run_program({"bench", "--cases", "step-dense-b32-t1024"});
  EXPECT_EQ(run.code, 2);
  EXPECT_THAT(run.err, HasSubstr("there is no case 'step-dense-b32-t1024' on cpu"));
  run = run_program(with_tiny({"bench", "--quiet", "--set", "ceiling-size=64", "--cases",
                               "load-warm", "--set", "scratch=/nonexistent"}));
  EXPECT_EQ(run.code, 1);
  EXPECT_THAT(run.err, HasSubstr("cannot make a temporary folder in '/nonexistent'"));
}

}  // namespace
}  // namespace filigree::cli
