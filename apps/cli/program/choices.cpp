#include "apps/cli/program/choices.h"

#include <CLI/CLI.hpp>
#include <fmt/ranges.h>

namespace filigree::cli {
namespace detail {

CLI::Option* add_named(CLI::App& app, const std::string& name, TakeName take,
                       const std::vector<std::string>& names, const std::string& help,
                       const std::string& fallback) {
  CLI::Option* option = app.add_option_function<std::string>(
      name, std::move(take), fmt::format("{}: {}", help, any_of_text(names)));
  option->check(one_of(names))->type_name("NAME");
  if (!fallback.empty()) option->default_str(fallback);
  return option;
}

CLI::Option* add_named_list(CLI::App& app, const std::string& name, TakeNames take,
                            const std::vector<std::string>& names, const std::string& help,
                            const std::vector<std::string>& fallback) {
  CLI::Option* option = app.add_option_function<std::string>(
      name, [take = std::move(take)](const std::string& list) { take(split_commas(list)); },
      fmt::format("{}: one or several of {}", help, fmt::join(names, ", ")));
  option->check(some_of(names))->type_name("NAME,...");
  if (!fallback.empty()) option->default_str(fmt::format("{}", fmt::join(fallback, ",")));
  return option;
}

}  // namespace detail

CLI::Option* add_choice(CLI::App& app, const std::string& name, std::string& value,
                        const std::vector<std::string>& names, const std::string& help) {
  return detail::add_named(
      app, name, [&value](const std::string& chosen) { value = chosen; }, names, help, value);
}

CLI::Option* add_choices(CLI::App& app, const std::string& name, std::vector<std::string>& values,
                         const std::vector<std::string>& names, const std::string& help) {
  return detail::add_named_list(
      app, name, [&values](const std::vector<std::string>& chosen) { values = chosen; }, names,
      help, values);
}

}  // namespace filigree::cli
