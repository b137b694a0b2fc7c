// Names of an enumeration's values (name_table.h), with what is said about one that is wrong.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/name_table.h"
#include "base/strings.h"

namespace filigree {

// "a", "a or b", "a, b or c".
std::string any_of_text(const std::vector<std::string>& names);

// Throws Error, "metric 'x' is not known; it is kl or accuracy", `what` being the thing that has
// the name.
template <NamedEnum Enum>
Enum parse_name(std::string_view name, std::string_view what) {
  if (const std::optional<Enum> value = find_name<Enum>(name)) return *value;
  fail("{} '{}' is not known; it is {}", what, printable(name), any_of_text(names_of<Enum>()));
}

}  // namespace filigree
