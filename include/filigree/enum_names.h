// The names of an enumeration's values, from one table: to print, to parse, to list in help and in
// errors. The table stands beside the enumeration:
//
//   enum class Replacement { kCorrupt, kZero };
//   template <>
//   inline constexpr auto kNames<Replacement> = std::to_array<Named<Replacement>>(
//       {{Replacement::kCorrupt, "corrupt"}, {Replacement::kZero, "zero"}});
//
// This much is for headers that device code includes; filigree/names.h has the messages too.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace filigree {

template <typename Enum>
struct Named {
  Enum value;
  std::string_view name;
};

template <typename Enum>
inline constexpr std::array<Named<Enum>, 0> kNames = {};

template <typename Enum>
concept NamedEnum = (kNames<Enum>.size() > 0);

template <NamedEnum Enum>
constexpr std::string_view name_of(Enum value) {
  for (const Named<Enum>& named : kNames<Enum>)
    if (named.value == value) return named.name;
  return "unknown";
}

template <NamedEnum Enum>
std::optional<Enum> find_name(std::string_view name) {
  for (const Named<Enum>& named : kNames<Enum>)
    if (named.name == name) return named.value;
  return std::nullopt;
}

// In the order of the table.
template <NamedEnum Enum>
std::vector<std::string> names_of() {
  std::vector<std::string> names;
  for (const Named<Enum>& named : kNames<Enum>) names.emplace_back(named.name);
  return names;
}

}  // namespace filigree
