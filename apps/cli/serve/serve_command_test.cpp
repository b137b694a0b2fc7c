// filigree serve as a user starts and ends it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "apps/cli/tests/run_program.h"
#include "apps/cli/tests/test_model.h"
#include "filigree/study.h"

namespace filigree::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;

TEST(ServeCommand, PrintsItsAddressAndEndsOnCtrlC) {
  const ModelFolder model;
  const ProgramRun run = run_and_interrupt({"serve", model.name(), "--port", "0"});
  EXPECT_EQ(run.code, 130);
  EXPECT_THAT(run.out, MatchesRegex(".* at http://127\\.0\\.0\\.1:[0-9]+/\n"));
  EXPECT_THAT(run.err, HasSubstr("Ctrl-C"));
}

TEST(ServeCommand, ForOtherMachinesHasAToken) {
  const ModelFolder model;
  const ProgramRun run =
      run_and_interrupt({"serve", model.name(), "--port", "0", "--host", "127.0.0.1", "--json"});
  EXPECT_EQ(run.code, 130);
  const auto json = nlohmann::json::parse(run.out);
  const std::string token = json.at("token");
  EXPECT_EQ(token.size(), 32u);
  EXPECT_THAT(json.at("address").get<std::string>(), HasSubstr("/#token=" + token));
  EXPECT_GT(json.at("port"), 0);
}

TEST(ServeCommand, ShowsThePairOfTheDemoUnlessToldOtherwise) {
  if (!study::find_named_model(study::kReferenceDense) ||
      !study::find_named_model(study::kReferenceSparse))
    GTEST_SKIP() << "the larger pair is not here";
  const ProgramRun run = run_and_interrupt({"serve", "--port", "0", "--json"});
  EXPECT_EQ(run.code, 130) << run.err;
  const nlohmann::json pair = {study::kReferenceDense, study::kReferenceSparse};
  EXPECT_EQ(nlohmann::json::parse(run.out).at("models"), pair);
}

TEST(ServeCommand, RefusesTooManyModels) {
  const ProgramRun run = run_program({"serve", "a", "b", "c"});
  EXPECT_EQ(run.code, 2);
  EXPECT_THAT(run.err, HasSubstr("at most 2"));
}

}  // namespace
}  // namespace filigree::cli
