// The rules of the command line, checked for every command and every option: what an option is
// called, what it takes, what help says of it, and how wrong values end.
#include <CLI/CLI.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "apps/cli/program/program.h"
#include "apps/cli/tests/run_program.h"

namespace filigree::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

// Commands that compute with a model, and so have --device.
const std::set<std::string> kComputing = {
    "attention", "bench", "circuit",  "compare", "demo",     "eval",
    "gates",     "lens",  "generate", "patch",   "pretrain", "features index",
    "run",       "serve", "sparsify", "task",    "trace",    "features train"};

// What is taken as it is: names of files and models, of what a task's own file names, and text.
// Everything else has a check.
const std::set<std::string> kFreeLabels = {"DIR",    "FILE", "GLOB", "MODEL", "NAME",
                                           "SHARDS", "TAP",  "TASK", "TEXT",  "TASK,..."};
const std::set<std::string> kFreeArguments = {"MODEL",  "DENSE",  "FEATURES", "FOLDER", "OTHER",
                                              "SHARDS", "SPARSE", "TASK",     "TEXT"};

// What a value of each kind never is.
const std::map<std::string, std::vector<std::string>> kNonsense = {
    {"number", {"x", "", "nan", "1e999", "-99999999999999999999"}},
    {"choice", {"no-such-name", ""}},
    {"choices", {"no-such-name", "", ","}},
    {"heads", {"L3Hx", "", "5"}},
    {"size", {"10XB", "-1"}},
    {"figure", {"picture.gif", "picture"}},
    {"tasks", {"no-such-task", "copy=x"}},
    {"places", {"L3Hx", "", "H3", "L3H1@", "L3H1,", "L3H1.resid"}},
    {"factors", {"L3H1", "L3H1=", "L3H1=x", "H3=1", "L3H1=1e999"}},
    {"patch", {"L3H1", "L3H1=", "=text", "H3=text"}},
    {"feature", {"L5", "5.123"}},
    {"feature-changes", {"L5", "L5F1", "L5F1=x", "L5H1=2", "L5F1@x=2", "L5F1=1,"}},
    {"setting", {"", "no-such-setting=1", "no-such-setting"}},
    {"address", {"localhost", "", "1.2.3", "example.org"}},
    {"ids", {"x", "1.5"}}};

struct CommandOption {
  const CLI::App* command;
  const CLI::Option* option;
  std::string where;  // "eval --split"
  ValueKind value;

  bool takes_value() const { return option->get_items_expected_max() > 0; }
};

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream words(text);
  return {std::istream_iterator<std::string>(words), {}};
}

class GrammarTest : public ::testing::Test {
 protected:
  GrammarTest() {
    add_all_commands(program_);
    for (const CLI::App* command : program_.commands()) {
      commands_.push_back(command);
      for (const CLI::Option* option : command->get_options()) {
        const std::string name = option->get_positional() && option->get_lnames().empty()
                                     ? option->get_name()
                                     : "--" + option->get_lnames().at(0);
        options_.push_back(
            {command, option, command_name(*command) + " " + name, value_kind(*option)});
      }
    }
  }

  void broken(const CommandOption& option, const std::string& rule) {
    broken_.push_back(option.where + ": " + rule);
  }

  Program program_;
  std::vector<const CLI::App*> commands_;
  std::vector<CommandOption> options_;
  std::vector<std::string> broken_;
};

// What a reader of --help has to take in.
TEST_F(GrammarTest, CommandsAndOptionsAreFew) {
  constexpr std::size_t kMaxCommands = 24, kMaxOptions = 110, kMaxOfSparsify = 18;
  EXPECT_GT(commands_.size(), 20u);
  EXPECT_LE(commands_.size(), kMaxCommands);
  std::set<std::string> names;
  for (const CLI::Option* option : program_.app().get_options())
    names.insert(option->get_lnames().begin(), option->get_lnames().end());
  for (const CommandOption& option : options_)
    names.insert(option.option->get_lnames().begin(), option.option->get_lnames().end());
  EXPECT_LE(names.size(), kMaxOptions);
  std::size_t of_sparsify = 0;
  for (const CommandOption& option : options_)
    if (command_name(*option.command) == "sparsify" &&
        option.option->get_group() != "Common options" && !option.option->get_positional())
      ++of_sparsify;
  EXPECT_LE(of_sparsify, kMaxOfSparsify);
}

TEST_F(GrammarTest, OneWordForEachThing) {
  const std::set<std::string> old_words = {
      "head", "file", "figure",   "save",        "output",
      "o",    "case", "json-out", "prompt-file", "context-length"};
  for (const CommandOption& option : options_) {
    const std::vector<std::string>& names = option.option->get_lnames();
    for (const std::string& name : names) {
      if (old_words.contains(name)) broken(option, "an old word");
      if (!std::regex_match(name, std::regex("[a-z][a-z0-9]*(-[a-z0-9]+)*")))
        broken(option, "names of options are small letters with hyphens");
    }
    if (names.size() > 1) broken(option, "two names for one thing");
    if (!option.option->get_snames().empty() && option.option->get_snames()[0] != "h")
      broken(option, "a name of one letter");
  }
  EXPECT_THAT(broken_, IsEmpty());
}

// An option that several commands have takes the same kind of value everywhere.
TEST_F(GrammarTest, AWordMeansTheSameEverywhere) {
  std::map<std::string, CommandOption> first;
  for (const CommandOption& option : options_) {
    if (option.option->get_lnames().empty()) continue;
    const std::string name = option.option->get_lnames()[0];
    const auto [found, is_new] = first.emplace(name, option);
    if (is_new) continue;
    const CommandOption& other = found->second;
    // A file or a folder; one choice or several; what is shown differs too.
    const bool either = name == "out" || name == "show";
    if ((option.value.label != other.value.label && !either) ||
        (option.value.kind != other.value.kind && !either) ||
        option.takes_value() != other.takes_value())
      broken(option, "not what " + other.where + " takes");
  }
  EXPECT_THAT(broken_, IsEmpty());
}

TEST_F(GrammarTest, EveryValueIsCheckedOrFree) {
  for (const CommandOption& option : options_) {
    if (!option.takes_value()) continue;
    const bool argument = option.option->get_positional();
    const bool free = argument ? kFreeArguments.contains(option.option->get_name())
                               : kFreeLabels.contains(option.value.label);
    if (option.value.kind.empty() && !free)
      broken(option, "'" + option.value.label + "' is neither checked nor free text");
    if (!option.value.kind.empty() && !kNonsense.contains(option.value.kind))
      broken(option, "a kind that this test does not know: " + option.value.kind);
    if (!argument && option.value.label.empty()) broken(option, "help does not name its value");
    if (option.value.label == "PERCENT") broken(option, "shares are from 0 to 1");
  }
  EXPECT_THAT(broken_, IsEmpty());
}

TEST_F(GrammarTest, ChoicesAreListedInHelp) {
  for (const CommandOption& option : options_) {
    const std::string& description = option.option->get_description();
    for (const std::string& choice : option.value.choices) {
      if (description.find(choice) == std::string::npos) broken(option, "help lacks " + choice);
      if (!std::regex_match(choice, std::regex("[a-z0-9]+([-+][a-z0-9]+)*")))
        broken(option, "'" + choice + "' is not of small letters with hyphens");
    }
    const std::string fallback = option.option->get_default_str();
    if (option.value.choices.empty() || fallback.empty()) continue;
    for (const std::string& name : split_commas(fallback))
      if (std::find(option.value.choices.begin(), option.value.choices.end(), name) ==
          option.value.choices.end())
        broken(option, "its default '" + name + "' is no choice");
  }
  EXPECT_THAT(broken_, IsEmpty());
}

TEST_F(GrammarTest, EveryOptionIsExplained) {
  for (const CommandOption& option : options_) {
    const std::string& text = option.option->get_description();
    if (text.empty()) broken(option, "no description");
    if (text.ends_with('.')) broken(option, "descriptions end without a full stop");
    if (text.find("heldout") != std::string::npos) broken(option, "heldout");
  }
  EXPECT_THAT(broken_, IsEmpty());
}

// Where results are written: "file of ..." or "folder of ...".
TEST_F(GrammarTest, OutIsDescribedAlike) {
  for (const CommandOption& option : options_) {
    if (!option.where.ends_with(" --out")) continue;
    const std::string& text = option.option->get_description();
    const std::string begin = option.value.label == "DIR" ? "folder of " : "file of ";
    if (option.value.label != "DIR" && option.value.label != "FILE")
      broken(option, "its value is a FILE or a DIR");
    if (!text.starts_with(begin)) broken(option, "described as '" + text + "'");
  }
  EXPECT_THAT(broken_, IsEmpty());
}

TEST_F(GrammarTest, NonsenseEndsWithTwoAndNamesTheOption) {
  for (const CommandOption& option : options_) {
    const auto nonsense = kNonsense.find(option.value.kind);
    if (nonsense == kNonsense.end()) continue;
    const std::string name = option.where.substr(option.where.rfind(' ') + 1);
    for (const std::string& value : nonsense->second) {
      std::vector<std::string> arguments = words_of(command_name(*option.command));
      if (name.starts_with("--")) {
        arguments.push_back(name + "=" + value);
      } else {
        for (const CLI::Option* before : option.command->get_options())
          if (before == option.option)
            break;
          else if (before->get_positional() && value_kind(*before).kind.empty())
            arguments.emplace_back("m");
        arguments.push_back(value);
      }
      if (value.empty() && !name.starts_with("--")) continue;
      const ProgramRun run = run_program(arguments);
      if (run.code != 2 || run.err.find(name) == std::string::npos || !run.out.empty())
        broken(option, "'" + value + "' ends with " + std::to_string(run.code) + ": " + run.err);
    }
  }
  EXPECT_THAT(broken_, IsEmpty());
}

TEST_F(GrammarTest, OnlyWhatComputesHasADevice) {
  std::set<std::string> with_device, with_precision;
  for (const CommandOption& option : options_) {
    if (option.where.ends_with(" --device")) with_device.insert(command_name(*option.command));
    if (option.where.ends_with(" --precision"))
      with_precision.insert(command_name(*option.command));
  }
  EXPECT_EQ(with_device, kComputing);
  EXPECT_EQ(with_precision, kComputing);
  const ProgramRun run = run_program({"info", "--show", "devices", "--device", "cpu"});
  EXPECT_EQ(run.code, 2);
  EXPECT_THAT(run.err, HasSubstr("unknown option '--device'"));
}

// Examples are command lines that could be typed: every option in them exists.
TEST_F(GrammarTest, ExamplesAreOfThisProgram) {
  for (const CLI::App* command : commands_) {
    SCOPED_TRACE(command_name(*command));
    const std::string footer = command->get_footer();
    ASSERT_THAT(footer, StartsWith("Examples\n  "));
    std::istringstream lines(footer);
    std::string line;
    std::getline(lines, line);
    while (std::getline(lines, line)) {
      EXPECT_THAT(line, HasSubstr("filigree " + command_name(*command)));
      std::istringstream words(line.substr(line.find("filigree")));
      for (std::string word; words >> word && word != "|" && word != ">";) {
        if (!word.starts_with("--") || word.size() == 2) continue;
        EXPECT_NE(command->get_option_no_throw(word), nullptr) << word << " in " << line;
      }
    }
  }
}

// The command's model comes first, then the rest.
TEST_F(GrammarTest, ModelsComeFirst) {
  for (const CLI::App* command : commands_) {
    std::vector<std::string> arguments;
    for (const CLI::Option* option : command->get_options())
      if (option->get_positional()) arguments.push_back(option->get_name());
    const auto model = std::find(arguments.begin(), arguments.end(), "MODEL");
    if (model == arguments.end() || model == arguments.begin()) continue;
    EXPECT_EQ(arguments[0], "ACTION") << command->get_name();
    EXPECT_EQ(model - arguments.begin(), 1) << command->get_name();
  }
}

}  // namespace
}  // namespace filigree::cli
