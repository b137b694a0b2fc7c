// Options whose value is one of a few names, or several of them with commas. The names are those of
// an enumeration (filigree/names.h): help lists them with the default, a wrong one is refused with
// the nearest, shells complete them.
//
//   add_choice(app, "--theme", style.theme, "colours of figures");
//   --theme NAME   colours of figures: light, dark or print (default light)
#pragma once

#include <CLI/App.hpp>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/cli/program/values.h"
#include "filigree/names.h"

namespace filigree::cli {

// One of names that are known only when the program runs, such as those of tasks. `value` is the
// default; with an empty one there is none.
CLI::Option* add_choice(CLI::App& app, const std::string& name, std::string& value,
                        const std::vector<std::string>& names, const std::string& help);
// Some of them.
CLI::Option* add_choices(CLI::App& app, const std::string& name, std::vector<std::string>& values,
                         const std::vector<std::string>& names, const std::string& help);

namespace detail {

using TakeName = std::function<void(const std::string&)>;
using TakeNames = std::function<void(const std::vector<std::string>&)>;
CLI::Option* add_named(CLI::App& app, const std::string& name, TakeName take,
                       const std::vector<std::string>& names, const std::string& help,
                       const std::string& fallback);
CLI::Option* add_named_list(CLI::App& app, const std::string& name, TakeNames take,
                            const std::vector<std::string>& names, const std::string& help,
                            const std::vector<std::string>& fallback);

template <NamedEnum Enum>
std::vector<std::string> names_among(const std::vector<Enum>& among) {
  std::vector<std::string> names;
  for (const Enum value : among) names.emplace_back(name_of(value));
  return among.empty() ? names_of<Enum>() : names;
}

}  // namespace detail

// `value` is the default. With `among` only these values can be chosen.
template <NamedEnum Enum>
CLI::Option* add_choice(CLI::App& app, const std::string& name, Enum& value,
                        const std::string& help, const std::vector<Enum>& among = {}) {
  return detail::add_named(
      app, name, [&value](const std::string& chosen) { value = *find_name<Enum>(chosen); },
      detail::names_among(among), help, std::string(name_of(value)));
}

// Nothing unless it is given.
template <NamedEnum Enum>
CLI::Option* add_choice(CLI::App& app, const std::string& name, std::optional<Enum>& value,
                        const std::string& help, const std::vector<Enum>& among = {}) {
  return detail::add_named(
      app, name, [&value](const std::string& chosen) { value = find_name<Enum>(chosen); },
      detail::names_among(among), help, value ? std::string(name_of(*value)) : "");
}

// Some of them, in the order they are written.
template <NamedEnum Enum>
CLI::Option* add_choices(CLI::App& app, const std::string& name, std::vector<Enum>& values,
                         const std::string& help, const std::vector<Enum>& among = {}) {
  std::vector<std::string> fallback;
  for (const Enum value : values) fallback.emplace_back(name_of(value));
  return detail::add_named_list(
      app, name,
      [&values](const std::vector<std::string>& chosen) {
        values.clear();
        for (const std::string& one : chosen) values.push_back(*find_name<Enum>(one));
      },
      detail::names_among(among), help, fallback);
}

}  // namespace filigree::cli
