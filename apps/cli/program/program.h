// The program as a set of commands: their options (CLI11), help, and the mapping of every outcome
// to an exit code.
//
//   0 done   1 the run failed   2 wrong usage   3 done, but what was asked for cannot be had
//   130 interrupted   143 terminated   129, 138, 152 the same by SIGHUP, SIGUSR1, SIGXCPU
#pragma once

#include <CLI/App.hpp>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "apps/cli/program/help.h"
#include "apps/cli/program/job.h"
#include "apps/cli/program/knob_options.h"
#include "apps/cli/program/session.h"
#include "apps/cli/program/values.h"

namespace filigree::cli {

class Program {
 public:
  Program();

  // Whether a command computes with a model. Only then it has --device and --precision.
  enum class Computes {
    kNothing,
    kOnDevice,
    kOnRanks,  // and several processes can share its work
  };

  struct CommandText {
    std::string name;                   // of a group's command both words: "features show"
    std::string summary;                // one line, for the list of commands
    std::vector<std::string> examples;  // command lines, each with " # what for"
    Computes computes = Computes::kNothing;
    bool adapts = false;  // takes --adapter for its MODEL
  };

  // Adds a command with the options that all commands share. The caller adds its own to the result;
  // `run` is called once they have been read.
  CLI::App& add(const CommandText& text, std::function<void(Session&)> run);

  // Adds options for settings of the command `app`, which add() gave; they are set before it runs.
  void add_knobs(CLI::App& app, Knobs knobs);
  // None where the command has none.
  std::vector<Knob> knobs_of(const CLI::App& app) const;

  // Adds a name under which several commands stand, before these.
  void add_group(const std::string& name, const std::string& summary);

  const CLI::App& app() const { return app_; }
  // Those that can be run, groups taken apart.
  std::vector<const CLI::App*> commands() const;

  // `arguments` without the program's name. Prints messages to stderr, throws nothing.
  int run(std::vector<std::string> arguments);

 private:
  struct Command {
    std::function<void(Session&)> run;
    Computes computes = Computes::kNothing;
    std::unique_ptr<KnobOptions> knobs = {};
  };

  int parse_and_run(std::vector<std::string> arguments);
  int report(const std::string& message, int code);
  int report_usage(const std::string& command, const std::string& message);

  CLI::App app_;
  std::shared_ptr<HelpFormatter> help_;
  CommonOptions common_;
  std::map<const CLI::App*, Command> commands_;
  Job job_;
};

using Computes = Program::Computes;

// All commands and groups that stand under a name.
std::vector<const CLI::App*> commands_under(const CLI::App& app);
// "features show".
std::string command_name(const CLI::App& command);

// What a command that did its work ends with when the aim turned out to be out of reach.
inline constexpr int kOutOfReach = 3;

// The program with all its commands.
void add_all_commands(Program& program);

}  // namespace filigree::cli
