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

}  // namespace

std::string HelpFormatter::make_help(const CLI::App* app, std::string /*name*/,
                                     CLI::AppFormatMode /*mode*/) const {
  std::string text = app->get_description() + "\n\nUsage: " + usage(*app) + "\n";

  std::vector<Entry> commands;
  for (const CLI::App* command : commands_under(*app))
    commands.push_back({command->get_name(), command->get_description()});
  text += section("Commands", commands);

  std::vector<Entry> arguments;
  std::vector<std::pair<std::string, std::vector<Entry>>> groups;  // in the order they appear
  for (const CLI::Option* option : app->get_options()) {
    if (option->get_positional()) {
      arguments.push_back(entry_of(*option));
      continue;
    }
    const std::string& group = option->get_group();
    if (group.empty()) continue;  // hidden
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
  if (!app->get_footer().empty()) text += "\n" + app->get_footer() + "\n";
  return text;
}

}  // namespace filigree::cli
