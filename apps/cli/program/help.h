// The layout of --help: usage, arguments, options, examples, within the width of the terminal.
// --help-all adds the options that few need, and the settings that have none.
#pragma once

#include <CLI/App.hpp>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "filigree/knobs.h"

namespace filigree::cli {

// Leaves an option out of --help.
void show_in_full_help_only(CLI::Option& option);
bool in_full_help_only(const CLI::Option& option);

class HelpFormatter : public CLI::FormatterBase {
 public:
  // Of a command.
  using KnobsOf = std::function<std::vector<Knob>(const CLI::App&)>;
  explicit HelpFormatter(KnobsOf knobs_of) : knobs_of_(std::move(knobs_of)) {}

  // Whether everything is shown; --help-all sets it.
  void show_all() { all_ = true; }

  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override;

 private:
  KnobsOf knobs_of_;
  bool all_ = false;
};

}  // namespace filigree::cli
