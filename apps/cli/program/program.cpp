#include "apps/cli/program/program.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>
#include <new>
#include <utility>

#include "apps/cli/program/choices.h"
#include "apps/cli/program/completion.h"
#include "apps/cli/program/help.h"
#include "base/lack_of_memory.h"
#include "base/mapped_file.h"
#include "filigree/error.h"
#include "filigree/model.h"
#include "filigree/names.h"
#include "filigree/runtime.h"
#include "filigree/train.h"
#include "filigree/version.h"

namespace filigree::cli {
namespace {

constexpr int kFailed = 1, kWrongUsage = 2;
constexpr int kMostThreads = 1024;

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : commands_under(app)) names.push_back(command->get_name());
  return names;
}

// Where a command went that scripts may still call: "; it is now: filigree info MODEL --prompt
// TEXT", or the names that are near.
std::string other_command(const std::string& word, const std::vector<std::string>& names) {
  if (word == "tokenize") return "; it is now: filigree info MODEL --prompt TEXT";
  return suggestion(word, names);
}

std::vector<std::string> long_option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

// What is wrong with arguments that CLI11 could not place, or "".
std::string unplaced_arguments(const CLI::App& app, const std::vector<Knob>& knobs) {
  const std::vector<std::string> unplaced = app.remaining();
  // An option first: a mistyped one leaves its value unplaced as well.
  for (const std::string& argument : unplaced) {
    if (!argument.starts_with("-") || argument.size() < 2) continue;
    const std::string name = argument.substr(0, argument.find('='));
    if (name.find(' ') != std::string::npos)
      return fmt::format(
          "'{}' looks like an option; write --prompt=TEXT where a text begins with '-'",
          printable(argument));
    for (const Knob& knob : knobs)
      if (name == "--" + knob.name)
        return fmt::format("'{}' is a setting: write --set {}=VALUE", name, knob.name);
    return fmt::format("unknown option '{}'{}", printable(name),
                       suggestion(name, long_option_names(app)));
  }
  if (unplaced.empty()) return "";
  return fmt::format(
      "unexpected argument '{}'{}", printable(unplaced[0]),
      unplaced[0].find(' ') == std::string::npos ? "; put quotes around text that has spaces" : "");
}

std::string wrong_usage(const CLI::App& app, const std::vector<Knob>& knobs,
                        const CLI::ParseError& error) {
  if (std::string text = unplaced_arguments(app, knobs); !text.empty()) return text;
  std::string text = error.what();
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr)
    text = text.substr(0, text.find(':')) + " needs a value";
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

// Where models compute.
Placement chosen_placement(const CommonOptions& options) {
  if (options.precision == DType::kBf16 && options.device == DeviceKind::kCpu)
    throw UsageError("--precision bf16 goes with --device cuda; the CPU computes in f32");
  const Placement placement = {options.device, options.precision};
  check_placement(placement);
  return placement;
}

std::string join_examples(const std::vector<std::string>& examples) {
  std::string text = "Examples";
  for (const std::string& example : examples) text += "\n  " + example;
  return text;
}

}  // namespace

Program::Program()
    : app_("Makes a transformer's attention sparse and shows what that reveals.", "filigree") {
  help_ = std::make_shared<HelpFormatter>([this](const CLI::App& app) { return knobs_of(app); });
  app_.formatter(help_);
  // CLI11 takes both out of its configuration files, which show_in_full_help_only() is marked by.
  app_.set_help_flag("-h,--help", "show this help")->configurable(true);
  app_.set_version_flag("--version", build_description(), "show what this build is")
      ->configurable(true);
  app_.add_option("--completion", "print a script that completes commands: bash or zsh")
      ->check(one_of({"bash", "zsh"}))
      ->type_name("NAME");
  app_.require_subcommand(1);
  app_.option_defaults()->take_last();  // of an option that is given twice the last one counts
  app_.footer("'filigree COMMAND --help' explains a command and gives examples.");
}

void Program::add_group(const std::string& name, const std::string& summary) {
  CLI::App* group = app_.add_subcommand(name, summary);
  group->set_help_flag("-h,--help", "show this help")->configurable(true)->group("Common options");
  group->require_subcommand(1);
  group->footer(fmt::format("'filigree {} COMMAND --help' explains one of them.", name));
}

CLI::App& Program::add(const CommandText& text, std::function<void(Session&)> run) {
  const std::size_t space = text.name.find(' ');
  CLI::App* command = space == std::string::npos
                          ? app_.add_subcommand(text.name, text.summary)
                          : app_.get_subcommand(text.name.substr(0, space))
                                ->add_subcommand(text.name.substr(space + 1), text.summary);
  command->set_help_flag("-h,--help", "show this help")
      ->configurable(true)
      ->group("Common options");
  command->footer(join_examples(text.examples));
  const auto common = [&](CLI::Option* option) { option->group("Common options"); };
  // What it asks for is done before CLI11 reads the arguments.
  common(command->add_flag_callback(
      "--help-all", [] {}, "show every option and setting"));
  common(command->add_flag("--json", common_.json, "print the result as one JSON document"));
  common(command->add_flag("--quiet", common_.quiet, "no progress, notes or warnings on stderr"));
  common(
      command->add_option("--threads", common_.threads, "threads that compute (default all cores)")
          ->check(whole_number(1, kMostThreads))
          ->type_name("N"));
  common(command->add_option("--seed", common_.seed, "seed of everything random")
             ->check(whole_number(0, INT64_MAX))
             ->type_name("N")
             ->default_str("0"));
  if (text.adapts)
    common(command
               ->add_option("--adapter", common_.adapter,
                            "low-rank adapter that MODEL gets: a folder as peft and sparsify "
                            "write them")
               ->type_name("DIR"));
  if (text.computes != Computes::kNothing) {
    common(add_choice(*command, "--device", common_.device, "where models compute"));
    common(add_choice(*command, "--precision", common_.precision,
                      "of activations; bf16 goes with --device cuda", {DType::kF32, DType::kBf16}));
  }
  commands_[command] = {std::move(run), text.computes};
  return *command;
}

void Program::add_knobs(CLI::App& app, Knobs knobs) {
  commands_.at(&app).knobs = std::make_unique<KnobOptions>();
  commands_.at(&app).knobs->add(app, std::move(knobs));
}

std::vector<Knob> Program::knobs_of(const CLI::App& app) const {
  const auto found = commands_.find(&app);
  if (found == commands_.end() || found->second.knobs == nullptr) return {};
  return found->second.knobs->all();
}

std::vector<const CLI::App*> commands_under(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

std::string command_name(const CLI::App& command) {
  const CLI::App* parent = command.get_parent();
  const bool inside = parent != nullptr && parent->get_parent() != nullptr;
  return inside ? fmt::format("{} {}", parent->get_name(), command.get_name()) : command.get_name();
}

std::vector<const CLI::App*> Program::commands() const {
  std::vector<const CLI::App*> commands;
  for (const CLI::App* command : commands_under(app_)) {
    const std::vector<const CLI::App*> inside = commands_under(*command);
    commands.insert(commands.end(), inside.begin(), inside.end());
    if (inside.empty()) commands.push_back(command);
  }
  return commands;
}

// With quotes around what a shell would take apart.
std::string command_line(const std::vector<std::string>& arguments) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./=:,+@%";
  std::string line = "filigree";
  for (const std::string& argument : arguments) {
    const bool plain = !argument.empty() && argument.find_first_not_of(kPlain) == std::string::npos;
    line += ' ';
    if (plain) {
      line += argument;
      continue;
    }
    line += '\'';
    for (const char c : argument) line += c == '\'' ? std::string("'\\''") : std::string(1, c);
    line += '\'';
  }
  return line;
}

int Program::report(const std::string& message, int code) {
  return job_.failed(": " + message, code);
}

int Program::report_usage(const std::string& command, const std::string& message) {
  const std::string name = command.empty() ? "filigree" : "filigree " + command;
  return job_.failed(
      fmt::format("{}: {} (see {} --help)", command.empty() ? "" : " " + command, message, name),
      kWrongUsage);
}

int Program::parse_and_run(std::vector<std::string> arguments) {
  if (!arguments.empty() && arguments[0] == "help") {
    arguments.erase(arguments.begin());
    arguments.emplace_back("--help");
  }
  if (arguments.empty()) {
    if (launched_rank() == 0) std::cerr << app_.help() << std::flush;
    return job_.failed("", kWrongUsage);
  }
  if (arguments[0] == "--completion" && arguments.size() == 2 &&
      (arguments[1] == "bash" || arguments[1] == "zsh")) {
    write_stdout(completion_script(app_, arguments[1]));
    return 0;
  }
  // The command and, of a group, the one inside: words before the first option.
  const CLI::App* chosen_app = &app_;
  for (const std::string& word : arguments) {
    const std::vector<std::string> names = command_names(*chosen_app);
    if (names.empty() || word.starts_with("-")) break;
    if (std::find(names.begin(), names.end(), word) == names.end())
      return report_usage(
          chosen_app == &app_ ? "" : chosen_app->get_name(),
          fmt::format("unknown command '{}'{}", printable(word), other_command(word, names)));
    chosen_app = chosen_app->get_subcommand(word);
  }
  const CLI::App& target = *chosen_app;
  const auto is_help = [](const std::string& word) {
    return word == "-h" || word == "--help" || word == "--help-all";
  };
  for (const std::string& word : arguments) {
    if (word == "--") break;
    if (word != "--help-all") continue;
    help_->show_all();
    if (launched_rank() == 0) write_stdout(target.help());
    return 0;
  }
  if (&target != &app_ && !command_names(target).empty() &&
      std::none_of(arguments.begin(), arguments.end(), is_help))
    return report_usage(target.get_name(), "say which: " + any_of_text(command_names(target)));
  const std::string command = &target == &app_ ? "" : command_name(target);
  const std::string line = command_line(arguments);
  try {
    std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants them
    app_.parse(std::move(arguments));
  } catch (const CLI::CallForHelp&) {
    if (launched_rank() == 0) write_stdout(target.help());
    return 0;
  } catch (const CLI::CallForVersion&) {
    if (launched_rank() == 0) write_stdout(build_description() + "\n");
    return 0;
  } catch (const CLI::ParseError& error) {
    return report_usage(command, wrong_usage(target, knobs_of(target), error));
  }

  set_warning_handler([quiet = common_.quiet || launched_rank() > 0](const std::string& message) {
    if (!quiet) std::cerr << "filigree: warning: " << terminal_text(message) << '\n' << std::flush;
  });
  try {
    const Command& chosen = commands_.at(&target);
    job_.join(command, chosen.computes == Computes::kOnRanks, common_);
    const Placement placement = chosen_placement(common_);
    if (common_.threads > 0) set_num_threads(common_.threads);
    Session session(command, common_, line, placement, job_.ranks());
    if (chosen.knobs != nullptr) chosen.knobs->apply();
    chosen.run(session);
    require_unchanged_files();
    return interrupted() ? interrupted_exit_code() : session.exit_code();
  } catch (const UsageError& error) {
    return report_usage(command, error.what());
  } catch (const study::RequestError& error) {
    return report_usage(command, error.what());
  }
}

int Program::run(std::vector<std::string> arguments) {
  try {
    return parse_and_run(std::move(arguments));
  } catch (const Interrupted&) {
    return job_.failed("", interrupted_exit_code());
  } catch (const Diverged& error) {
    return report(error.what(), kOutOfReach);
  } catch (const Error& error) {
    return report(error.what(), kFailed);
  } catch (const LackOfMemory& error) {
    return report(error.what(), kFailed);
  } catch (const std::bad_alloc&) {
    return report("not enough memory", kFailed);
  } catch (const std::filesystem::filesystem_error& error) {
    return report(
        fmt::format("'{}': {}", printable(error.path1().string(), 400), error.code().message()),
        kFailed);
  } catch (const std::exception& error) {
    return report(fmt::format("unexpected failure: {}", error.what()), kFailed);
  }
}

}  // namespace filigree::cli
