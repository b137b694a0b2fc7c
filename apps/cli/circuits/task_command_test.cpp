// filigree task as a user calls it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <fstream>

#include "apps/cli/tests/run_program.h"
#include "apps/cli/tests/test_model.h"

namespace filigree::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Arguments = std::vector<std::string>;

TEST(TaskCommand, ListsTasksAndCorruptions) {
  const ProgramRun run = run_program({"task", "list"});
  EXPECT_EQ(run.code, 0);
  EXPECT_THAT(run.out, AllOf(HasSubstr("ioi: "), HasSubstr("third-person"),
                             HasSubstr("greater-than: "), HasSubstr("(prob-diff)")));
  const auto json = nlohmann::json::parse(run_program({"task", "list", "--json"}).out);
  EXPECT_GE(json["tasks"].size(), 11u);
}

TEST(TaskCommand, ShowsPromptsForATokenizer) {
  const std::string folder = golden("bpe-8k").string();
  const ProgramRun run = run_program({"task", "show", folder, "ioi", "--seed", "2"});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, AllOf(HasSubstr("clean"), HasSubstr("corrupt"), HasSubstr("answer"),
                             HasSubstr("prompts fit the tokenizer")));
  const auto json = nlohmann::json::parse(run_program({"task", "show", folder, "copy", "--prompts",
                                                       "4", "--corruption", "all-words", "--json"})
                                              .out);
  EXPECT_EQ(json["prompts"].size(), 4u);
  EXPECT_EQ(json["corruption"], "all-words");
  EXPECT_EQ(json["prompts"][0]["clean_tokens"].size(), json["prompts"][0]["corrupt_tokens"].size());
}

TEST(TaskCommand, DrawsPassagesFromAText) {
  const ModelFolder model;
  const std::string text = (model.path() / "my-text.txt").string();
  std::ofstream(text) << "The books on the table were old. The old man with two dogs has gone.\n";
  const Arguments show = {"task", "show", model.name(), "agreement-in-text", "--json"};
  const auto with = [](Arguments arguments, const Arguments& more) {
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  };
  const auto json = nlohmann::json::parse(run_program(with(show, {"--task-text", text})).out);
  EXPECT_EQ(json["text"], text);
  EXPECT_EQ(json["prompts"].size(), 2u);
  EXPECT_EQ(json["prompts"][0]["clean_tokens"].size(), json["prompts"][0]["corrupt_tokens"].size());
  // Without one, the model's own.
  std::ofstream(model.path() / "held-out.txt") << "The books on the table were old.\n";
  const auto own = nlohmann::json::parse(run_program(show).out);
  EXPECT_EQ(own["text"], (model.path() / "held-out.txt").string());
  EXPECT_EQ(own["prompts"][0]["clean"], "The books on the table");
  const ProgramRun check = run_program(
      {"task", "check", model.name(), "agreement-in-text", "--quiet", "--task-text", text});
  EXPECT_EQ(check.code, 3) << check.err;  // two prompts show nothing
  EXPECT_THAT(check.out, AllOf(HasSubstr("text " + text), HasSubstr("no more passages"),
                               HasSubstr("Take a longer text (--task-text FILE)")));
  const std::string list = run_program({"task", "list"}).out;
  for (const char* task : {"returning-word: ", "agreement-in-text: ", "closing-quote: "})
    EXPECT_THAT(list, ::testing::ContainsRegex("\n" + std::string(task) +
                                               "[^\n]*\\(logit-diff, --task-text FILE\\)"));
  const ProgramRun none = run_program({"task", "show", model.name(), "ioi", "--task-text", text});
  EXPECT_EQ(none.code, 2);
  EXPECT_THAT(none.err, HasSubstr("not drawn from a text"));
  EXPECT_THAT(run_program(with(show, {"--task-text", "absent.txt"})).err, HasSubstr("absent.txt"));
}

TEST(TaskCommand, SaysPlainlyThatARandomModelIsNotBetterThanChance) {
  const ModelFolder model;
  const ProgramRun run =
      run_program({"task", "check", model.name(), "pronoun", "--prompts", "40", "--quiet"});
  EXPECT_EQ(run.code, 3) << run.err;
  EXPECT_THAT(run.out, AllOf(HasSubstr("NOT better than chance"), HasSubstr("logit-diff"),
                             HasSubstr("dropped: ")));
  const ProgramRun json_run = run_program(
      {"task", "check", model.name(), "pronoun", "--prompts", "40", "--quiet", "--json"});
  const auto json = nlohmann::json::parse(json_run.out);
  EXPECT_EQ(json["better_than_chance"], false);
  EXPECT_EQ(json["fit"]["kept"], 40);
  EXPECT_EQ(json["chance"], 0.5);
}

TEST(TaskCommand, ReadsTasksFromFiles) {
  const ModelFolder model;
  const ScratchFolder scratch;
  const std::string file = (scratch.path() / "task.jsonl").string();
  std::ofstream(file) << R"({"clean": "the king", "corrupt": "the man", "answer": " of", )"
                      << R"("wrong": " to"})"
                      << "\n";
  const ProgramRun run = run_program({"task", "check", model.name(), file, "--quiet"});
  EXPECT_EQ(run.code, 3) << run.err;  // one prompt shows nothing
  EXPECT_THAT(run.out, HasSubstr("1 of 1 prompts fit"));
  std::ofstream(file, std::ios::app) << "{\"clean\": 3}\n";
  const ProgramRun bad = run_program({"task", "check", model.name(), file, "--quiet"});
  EXPECT_EQ(bad.code, 1);
  EXPECT_THAT(bad.err, HasSubstr("task.jsonl, line 2"));
}

TEST(TaskCommand, NamesWhatIsWrong) {
  EXPECT_THAT(run_program({"task", "lsit"}).err, HasSubstr("none of list, show, check"));
  EXPECT_EQ(run_program({"task", "show"}).code, 2);
  EXPECT_THAT(run_program({"task", "check"}).err, HasSubstr("MODEL is required"));
  const std::string folder = golden("bpe-8k").string();
  EXPECT_THAT(run_program({"task", "show", folder, "iio"}).err, HasSubstr("nearest are ioi"));
  EXPECT_THAT(run_program({"task", "show", folder, "no/such.jsonl"}).err,
              HasSubstr("no task file 'no/such.jsonl'"));
  EXPECT_THAT(run_program({"task", "show", folder, "ioi", "--metric", "x"}).err,
              HasSubstr("'x' is none of logit-diff"));
}

}  // namespace
}  // namespace filigree::cli
