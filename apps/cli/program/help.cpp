#include "apps/cli/program/help.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "apps/cli/program/program.h"
#include "apps/cli/program/values.h"
#include "base/progress.h"
#include "base/table.h"

namespace filigree::cli {
namespace {

constexpr std::size_t kMostColumns = 100;     // longer lines are hard to read
constexpr std::size_t kWidestLabel = 26;      // a longer one gets a line to itself
constexpr std::size_t kIndent = 2, kGap = 2;  // before a label and after it

struct Entry {
  std::string label;
  std::string description;
};

std::string value_name(const CLI::Option& option) {
  const std::string name = value_kind(option).label;
  if (name.empty() || option.get_items_expected_max() == 0) return "";
  const bool many = option.get_items_expected_max() > 1;
  const std::string shown = many ? name + "..." : name;
  return option.get_items_expected_min() == 0 ? " [" + shown + "]" : " " + shown;
}

Entry entry_of(const CLI::Option& option) {
  Entry entry;
  if (option.get_positional()) {
    entry.label = option.get_name();
    if (option.get_items_expected_max() > 1) entry.label += "...";
  } else {
    entry.label = option.get_name(false, true);  // "-h,--help"
    if (const std::size_t comma = entry.label.find(','); comma != std::string::npos)
      entry.label.insert(comma + 1, " ");
    entry.label += value_name(option);
  }
  entry.description = option.get_description();
  if (!option.get_default_str().empty())
    entry.description += fmt::format(" (default {})", option.get_default_str());
  return entry;
}

std::string section(const std::string& title, const std::vector<Entry>& entries) {
  if (entries.empty()) return "";
  const auto columns = std::min<std::size_t>(
      kMostColumns, static_cast<std::size_t>(std::max(40, terminal_columns(STDOUT_FILENO))));
  std::size_t widest = 0;
  for (const Entry& entry : entries)
    if (entry.label.size() <= kWidestLabel) widest = std::max(widest, entry.label.size());
  const std::size_t start = kIndent + widest + kGap;
  std::string text = "\n" + title + "\n";
  for (const Entry& entry : entries) {
    text += std::string(kIndent, ' ') + entry.label;
    const std::size_t end = kIndent + entry.label.size();
    text += end + kGap <= start ? std::string(start - end, ' ') : "\n" + std::string(start, ' ');
    text += wrap(entry.description, columns - 1, start) + "\n";
  }
  return text;
}

std::string usage(const CLI::App& app) {
  std::string line = app.get_name();
  for (const CLI::App* parent = app.get_parent(); parent != nullptr; parent = parent->get_parent())
    line = fmt::format("{} {}", parent->get_name(), line);
  if (!commands_under(app).empty()) return line + " COMMAND [OPTIONS]";
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_positional()) {
      if (option->get_required()) line += " " + option->get_name() + value_name(*option);
      continue;
    }
    std::string name = option->get_name();
    if (option->get_items_expected_max() > 1) name += "...";
    line += option->get_required() ? " " + name : " [" + name + "]";
  }
  return line + " [OPTIONS]";
}

// "smallest weight of the task: above 0 (default 2)".
Entry entry_of(const Knob& knob) {
  std::string range = knob.range_text();
  if (range.starts_with("of ")) range.erase(0, 3);
  std::string text = knob.what;
  if (!range.empty()) text += ": " + range;
  if (const std::string usual = knob.default_text(); !usual.empty())
    text += fmt::format(" (default {})", usual);
  return {knob.name, std::move(text)};
}

// The settings that have no option, under their headings.
std::string settings_text(const std::vector<Knob>& knobs) {
  std::string text, heading;
  std::vector<Entry> entries;
  const auto close = [&] {
    text += section("Settings: " + heading, entries);
    entries.clear();
  };
  for (const Knob& knob : knobs) {
    if (knob.level != KnobLevel::kRecipe) continue;
    if (knob.section != heading) close();
    heading = knob.section;
    entries.push_back(entry_of(knob));
  }
  close();
  return text;
}

}  // namespace

// CLI11's own configuration files are not used, so its mark for them is free.
void show_in_full_help_only(CLI::Option& option) { option.configurable(false); }
bool in_full_help_only(const CLI::Option& option) { return !option.get_configurable(); }

std::string HelpFormatter::make_help(const CLI::App* app, std::string /*name*/,
                                     CLI::AppFormatMode /*mode*/) const {
  std::string text = app->get_description() + "\n\nUsage: " + usage(*app) + "\n";

  std::vector<Entry> commands;
  for (const CLI::App* command : commands_under(*app))
    commands.push_back({command->get_name(), command->get_description()});
  text += section("Commands", commands);

  std::vector<Entry> arguments;
  std::vector<std::pair<std::string, std::vector<Entry>>> groups;  // in the order they appear
  const std::vector<Knob> knobs = knobs_of_(*app);
  auto left_out =
      static_cast<std::size_t>(std::count_if(knobs.begin(), knobs.end(), [](const Knob& knob) {
        return knob.level == KnobLevel::kRecipe;
      }));
  for (const CLI::Option* option : app->get_options()) {
    if (option->get_positional()) {
      arguments.push_back(entry_of(*option));
      continue;
    }
    const std::string& group = option->get_group();
    if (group.empty()) continue;  // hidden
    if (!all_ && in_full_help_only(*option)) {
      ++left_out;
      continue;
    }
    auto found = std::find_if(groups.begin(), groups.end(),
                              [&](const auto& known) { return known.first == group; });
    if (found == groups.end()) found = groups.insert(groups.end(), {group, {}});
    found->second.push_back(entry_of(*option));
  }
  // The options a command shares with all others come last.
  std::stable_partition(groups.begin(), groups.end(),
                        [](const auto& group) { return group.first != "Common options"; });
  text += section("Arguments", arguments);
  for (const auto& [group, entries] : groups) text += section(group, entries);
  if (all_)
    text += settings_text(knobs);
  else if (left_out > 0)
    text += fmt::format("\n--help-all shows {} more options and settings.\n", left_out);
  if (!app->get_footer().empty()) text += "\n" + app->get_footer() + "\n";
  return text;
}

}  // namespace filigree::cli
