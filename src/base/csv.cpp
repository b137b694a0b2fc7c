#include "base/csv.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

namespace filigree {
namespace {

bool is_finite_number(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  double value = 0.0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  return failure == std::errc() && end == text.data() + text.size() && std::isfinite(value);
}

}  // namespace

std::string csv_field(std::string_view text) {
  // A tab or a line break before it makes no difference to a spreadsheet.
  const std::size_t first = text.find_first_not_of("\t\r\n ");
  const bool formula = first != std::string_view::npos &&
                       std::string_view("=+-@").find(text[first]) != std::string_view::npos &&
                       !is_finite_number(text);
  std::string field = formula ? "'" : "";
  field += text;
  if (field.find_first_of(",\"\r\n") == std::string::npos) return field;
  std::string quoted = "\"";
  for (const char c : field) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

std::string csv_number(double value) {
  return std::isfinite(value) ? fmt::format("{}", value) : std::string();
}

}  // namespace filigree
