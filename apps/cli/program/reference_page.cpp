#include "apps/cli/program/reference_page.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>

#include "apps/cli/program/help.h"
#include "apps/cli/program/values.h"

namespace filigree::cli {
namespace {

constexpr const char* kCommon = "Common options";

// Of a cell of a Markdown table.
std::string cell(std::string text) {
  for (std::size_t at = 0; (at = text.find_first_of("|<>*_", at)) != std::string::npos; at += 2)
    text.insert(at, 1, '\\');
  return text;
}

std::string row(const std::string& name, const std::string& what, const std::string& usual) {
  return fmt::format("| `{}` | {} | {} |\n", name, cell(what), cell(usual));
}

std::string table(const std::string& heading, const std::string& rows) {
  return rows.empty() ? "" : fmt::format("\n| {} | | default |\n|---|---|---|\n{}", heading, rows);
}

std::string option_row(const CLI::Option& option) {
  std::string name = option.get_positional() ? option.get_name() : option.get_name(false, true);
  if (!option.get_positional() && option.get_items_expected_max() > 0)
    name += " " + value_kind(option).label;
  return row(name, option.get_description(), option.get_default_str());
}

std::string options_table(const CLI::App& command, bool common) {
  std::string rows;
  for (const CLI::Option* option : command.get_options())
    if ((option->get_group() == kCommon) == common) rows += option_row(*option);
  return table(common ? "option" : "argument or option", rows);
}

std::string settings_table(const std::vector<Knob>& knobs) {
  std::string rows;
  for (const Knob& knob : knobs) {
    if (knob.level != KnobLevel::kRecipe) continue;
    std::string range = knob.range_text();
    if (range.starts_with("of ")) range.erase(0, 3);
    rows += row(knob.name, range.empty() ? knob.what : fmt::format("{}; {}", knob.what, range),
                knob.default_text());
  }
  return table("setting", rows);
}

std::string command_section(const Program& program, const CLI::App& command) {
  std::string examples = command.get_footer();
  examples.erase(0, examples.find('\n') + 1);
  return fmt::format("\n## {}\n\n{}\n\n```\n{}\n```\n{}{}", command_name(command),
                     command.get_description(), examples, options_table(command, false),
                     settings_table(program.knobs_of(command)));
}

}  // namespace

std::string reference_page(const Program& program) {
  std::vector<const CLI::App*> commands = program.commands();
  std::sort(commands.begin(), commands.end(), [](const CLI::App* a, const CLI::App* b) {
    return command_name(*a) < command_name(*b);
  });
  std::string text =
      "# Commands\n\n"
      "Made by the program from its own declarations; a test compares the two. Settings are set "
      "with `--set NAME=VALUE` or in a file of `--recipe`, a JSON object. Their keys are their "
      "names with underscores.\n"
      "\n## Every command\n" +
      options_table(*commands.front(), true);
  for (const CLI::App* command : commands) text += command_section(program, *command);
  return text;
}

}  // namespace filigree::cli
