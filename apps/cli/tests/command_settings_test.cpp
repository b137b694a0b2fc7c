// Settings are declared once (filigree/knobs.h): what follows from one declaration, and that the
// page of commands says what the program does.
#include <CLI/CLI.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "apps/cli/commands.h"
#include "apps/cli/program/program.h"
#include "apps/cli/program/reference_page.h"
#include "apps/cli/tests/run_program.h"
#include "apps/cli/tests/test_model.h"
#include "filigree/train.h"
#include "support/files.h"

namespace filigree::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// As a study declares them; `novel` is the field that somebody added.
struct Example {
  std::int64_t steps = 10;
  double novel = 0.25;
};

Knobs knobs_of(Example& example) {
  Knobs knobs;
  knobs.section("Training");
  knobs.count({.name = "steps", .what = "steps in all", .level = KnobLevel::kBasic}, example.steps,
              {.min = 1});
  knobs.number({.name = "novel-share", .what = "share that is novel", .unit = "nats"},
               example.novel, {.min = 0.0, .max = 1.0});
  return knobs;
}

class SettingsTest : public ::testing::Test {
 protected:
  SettingsTest() {
    CLI::App& app = program_.add({"try", "Try settings.", {"filigree try --set novel-share=1"}},
                                 [this](Session&) { ran_ = true; });
    program_.add_knobs(app, knobs_of(example_));
  }

  // What stands on stdout and stderr.
  std::string output_of(const std::vector<std::string>& arguments, int code) {
    ::testing::internal::CaptureStdout();
    ::testing::internal::CaptureStderr();
    EXPECT_EQ(program_.run(arguments), code);
    const std::string out = ::testing::internal::GetCapturedStdout();
    return out + ::testing::internal::GetCapturedStderr();
  }

  Program program_;
  Example example_;
  bool ran_ = false;
};

TEST_F(SettingsTest, OneDeclarationIsSeenEverywhere) {
  // Help: the basic ones in --help, all with their range and default in --help-all.
  EXPECT_THAT(output_of({"try", "--help"}, 0),
              AllOf(HasSubstr("--steps N"), HasSubstr("(default 10)"),
                    Not(HasSubstr("novel-share ")), HasSubstr("--help-all shows 1 more")));
  EXPECT_THAT(output_of({"try", "--help-all"}, 0),
              AllOf(HasSubstr("Settings: Training"),
                    HasSubstr("share that is novel: from 0 to 1 (default 0.25 nats)")));
  // The reference page.
  EXPECT_THAT(reference_page(program_),
              HasSubstr("| `novel-share` | share that is novel; from 0 to 1 | 0.25 nats |"));
  // JSON, and the identity of a run.
  EXPECT_EQ(knobs_of(example_).values().dump(), R"({"steps":10,"novel_share":0.25})");
  EXPECT_EQ(recorded(example_).to_json().dump(), R"({"novel_share":0.25,"steps":10})");
}

TEST_F(SettingsTest, OptionsCountBeforeSetAndSetBeforeTheRecipe) {
  const ScratchFolder folder;
  write_file(folder.path() / "r.json", R"({"steps": 3, "novel_share": 0.5})");
  output_of({"try", "--recipe", (folder.path() / "r.json").string()}, 0);
  EXPECT_TRUE(ran_);
  EXPECT_EQ(example_.steps, 3);
  EXPECT_EQ(example_.novel, 0.5);
}

TEST_F(SettingsTest, MayBeWrittenInPlace) {
  output_of({"try", "--recipe", R"({"steps": 3, "novel_share": 0.5})", "--steps", "7", "--set",
             "novel-share=1"},
            0);
  EXPECT_EQ(example_.steps, 7);
  EXPECT_EQ(example_.novel, 1.0);
}

TEST_F(SettingsTest, WrongOnesEndWithTwoAndSetNothing) {
  EXPECT_THAT(output_of({"try", "--set", "novel-share=2"}, 2),
              HasSubstr("--set: novel-share: '2' is not a number from 0 to 1"));
  EXPECT_THAT(output_of({"try", "--set", "novel-shar=1"}, 2), HasSubstr("did you mean"));
  EXPECT_THAT(output_of({"try", "--set", "novel-share"}, 2), HasSubstr("NAME=VALUE"));
  EXPECT_THAT(output_of({"try", "--novel-share", "1"}, 2), HasSubstr("--set novel-share=VALUE"));
  EXPECT_THAT(output_of({"try", "--recipe", R"({"novel_share": 2})"}, 2),
              HasSubstr("novel_share: '2' is not"));
  EXPECT_THAT(output_of({"try", "--recipe", "{"}, 2), HasSubstr("--recipe"));
  EXPECT_THAT(output_of({"try", "--recipe", "/no/such/file"}, 2), HasSubstr("/no/such/file"));
  EXPECT_FALSE(ran_);
  EXPECT_EQ(example_.novel, 0.25);
}

// FILIGREE_UPDATE_PAGES=1 writes the page anew.
TEST(ReferencePage, IsWhatTheProgramDeclares) {
  Program program;
  add_all_commands(program);
  const std::string page = reference_page(program);
  const std::filesystem::path file =
      std::filesystem::path(FILIGREE_SOURCE_DIR) / "docs" / "commands.md";
  if (std::getenv("FILIGREE_UPDATE_PAGES") != nullptr) std::ofstream(file) << page;
  EXPECT_EQ(read_file(file), page) << "run this test with FILIGREE_UPDATE_PAGES=1";
}

}  // namespace
}  // namespace filigree::cli
