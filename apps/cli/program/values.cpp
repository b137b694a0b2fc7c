#include "apps/cli/program/values.h"

#include <CLI/CLI.hpp>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <utility>

#include "filigree/maps.h"
#include "filigree/names.h"

namespace filigree::cli {
namespace {

// CLI11 keeps a description with each check and shows it after the option's label and a colon.
constexpr char kBeforeKind = ':', kBeforeChoices = '=', kBetweenChoices = '|';

template <typename Number>
bool parse_number(const std::string& text, Number& value) {
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  return failure == std::errc() && end == text.data() + text.size();
}

std::string none_of(const std::string& name, const std::vector<std::string>& names) {
  if (std::find(names.begin(), names.end(), name) != names.end()) return "";
  const std::string wrong =
      names.size() == 2
          ? fmt::format("'{}' is neither {} nor {}", printable(name), names[0], names[1])
          : fmt::format("'{}' is none of {}", printable(name), fmt::join(names, ", "));
  return wrong + suggestion(name, names);
}

std::string choices_text(const char* kind, const std::vector<std::string>& names) {
  return fmt::format("{}{}{}", kind, kBeforeChoices,
                     fmt::join(names, std::string(1, kBetweenChoices)));
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  while (begin <= text.size()) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

}  // namespace

CLI::Validator whole_number(std::int64_t least, std::int64_t most) {
  return CLI::Validator(
      [least, most](std::string& text) {
        std::int64_t value = 0;
        if (parse_number(text, value) && value >= least && value <= most) return std::string();
        if (most == INT64_MAX)
          return fmt::format("'{}' is not a whole number of at least {}", printable(text), least);
        return fmt::format("'{}' is not a whole number from {} to {}", printable(text), least,
                           most);
      },
      "number");
}

CLI::Validator number(double least, double most) {
  return CLI::Validator(
      [least, most](std::string& text) {
        double value = 0.0;
        if (parse_number(text, value) && value >= least && value <= most) return std::string();
        return fmt::format("'{}' is not a number from {} to {}", printable(text), least, most);
      },
      "number");
}

CLI::Validator number_above(double bound, double most) {
  return CLI::Validator(
      [bound, most](std::string& text) {
        double value = 0.0;
        if (parse_number(text, value) && value > bound && value <= most) return std::string();
        return fmt::format("'{}' is not a number above {} and up to {}", printable(text), bound,
                           most);
      },
      "number");
}

CLI::Validator one_of(std::vector<std::string> names) {
  const std::string description = choices_text("choice", names);
  return CLI::Validator(
      [names = std::move(names)](std::string& name) { return none_of(name, names); }, description);
}

CLI::Validator some_of(std::vector<std::string> names) {
  const std::string description = choices_text("choices", names);
  return CLI::Validator(
      [names = std::move(names)](std::string& list) {
        for (const std::string& name : split_commas(list))
          if (std::string wrong = none_of(name, names); !wrong.empty()) return wrong;
        return std::string();
      },
      description);
}

CLI::Validator head_list() {
  return checked_by("heads", [](const std::string& text) { check_heads(text); });
}

CLI::Validator figure_file() {
  return checked_by("figure", [](const std::string& text) {
    const std::string ending = std::filesystem::path(text).extension().string();
    require(ending == ".svg" || ending == ".pdf" || ending == ".png",
            "'{}': the ending must be .svg, .pdf or .png", printable(text));
  });
}

CLI::Validator checked_by(const std::string& kind, std::function<void(const std::string&)> check) {
  return CLI::Validator(
      [check = std::move(check)](std::string& text) {
        try {
          check(text);
          return std::string();
        } catch (const Error& error) {
          return std::string(error.what());
        }
      },
      kind);
}

std::uint64_t parse_size(const std::string& text) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [stopped, failure] = std::from_chars(text.data(), end, value);
  std::string unit(stopped, end);
  while (unit.starts_with(' ')) unit.erase(0, 1);
  double factor = 0;
  for (const auto& [name, bytes] :
       {std::pair{"", 1.0}, std::pair{"B", 1.0}, std::pair{"kB", 1e3}, std::pair{"KB", 1e3},
        std::pair{"MB", 1e6}, std::pair{"GB", 1e9}, std::pair{"TB", 1e12}})
    if (unit == name) factor = bytes;
  const double size = value * factor;
  require(failure == std::errc() && size >= 1 && size <= 1e15,
          "'{}' is not a size; write it as 500kB, 10MB or 1.5GB", printable(text));
  return static_cast<std::uint64_t>(size);
}

ValueKind value_kind(const CLI::Option& option) {
  const std::string text = option.get_type_name();
  ValueKind value;
  const std::size_t colon = text.find(kBeforeKind);
  value.label = text.substr(0, colon);
  if (colon == std::string::npos) return value;
  const std::string kind = text.substr(colon + 1);
  const std::size_t equals = kind.find(kBeforeChoices);
  value.kind = kind.substr(0, equals);
  if (equals != std::string::npos) value.choices = split(kind.substr(equals + 1), kBetweenChoices);
  return value;
}

std::string suggestion(const std::string& name, const std::vector<std::string>& known) {
  const std::vector<std::string> nearest = nearest_names(name, known, 1);
  if (nearest.empty()) return "";
  const std::size_t distance = edit_distance(name, nearest[0]);
  const bool begins = !name.empty() && nearest[0].starts_with(name);
  if (!begins && distance > std::max<std::size_t>(2, name.size() / 3)) return "";
  return fmt::format("; did you mean '{}'?", nearest[0]);
}

std::vector<std::string> split_commas(const std::string& text) { return split(text, ','); }

}  // namespace filigree::cli
