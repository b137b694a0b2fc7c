#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

#include "base/utf8.h"
#include "filigree/names.h"

namespace filigree {
namespace {

// True for the C0 and C1 control characters, which a terminal may obey, and for those that make it
// show text in another order than it has.
bool is_control(char32_t code) {
  return code < 0x20 || (code >= 0x7F && code < 0xA0) || (code >= 0x202A && code <= 0x202E) ||
         (code >= 0x2066 && code <= 0x2069);
}

void append_escaped(std::string& out, std::string_view bytes) {
  for (const char c : bytes) out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
}

}  // namespace

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  return row[b.size()];
}

std::vector<std::string> nearest_names(std::string_view name,
                                       const std::vector<std::string>& candidates,
                                       std::size_t count) {
  // A name from an untrusted file may be megabytes long; the distance is quadratic.
  constexpr std::size_t kLongestCompared = 256;
  name = name.substr(0, kLongestCompared);
  std::vector<std::pair<std::size_t, std::size_t>> ranked;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const std::string_view candidate = std::string_view(candidates[i]).substr(0, kLongestCompared);
    ranked.emplace_back(edit_distance(name, candidate), i);
  }
  std::sort(ranked.begin(), ranked.end());
  std::vector<std::string> nearest;
  for (std::size_t i = 0; i < std::min(count, ranked.size()); ++i)
    nearest.push_back(candidates[ranked[i].second]);
  return nearest;
}

std::string join(std::span<const std::string> parts, std::string_view separator) {
  std::string text;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) text += separator;
    text += parts[i];
  }
  return text;
}

std::string human_bytes(std::uint64_t bytes) {
  static constexpr const char* kUnits[] = {"B", "kB", "MB", "GB", "TB", "PB"};
  if (bytes < 1000) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  // 999.95 and above would print as 1000.0.
  while (value >= 999.95 && unit + 1 < std::size(kUnits)) {
    value /= 1000.0;
    ++unit;
  }
  return fmt::format("{:.1f} {}", value, kUnits[unit]);
}

std::string percent(double share) {
  return share >= 0.9995 ? fmt::format("{:.0f} %", 100.0 * share)
                         : fmt::format("{:.3g} %", 100.0 * share);
}

std::string with_thousands(std::uint64_t value) {
  std::string digits = fmt::format("{}", value);
  for (std::size_t i = digits.size(); i > 3;) {
    i -= 3;
    digits.insert(i, ",");
  }
  return digits;
}

std::string counted(std::uint64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", with_thousands(count), noun, count == 1 ? "" : "s");
}

std::string printable(std::string_view text, std::size_t limit) {
  std::string out;
  std::size_t used = 0;
  while (used < text.size()) {
    const std::string_view rest = text.substr(used);
    const Utf8Sequence next = utf8_sequence(rest);
    const std::size_t taken = next.is_character() ? next.length : 1;
    if (used + taken > limit) {
      out += "...";
      break;
    }
    if (!next.is_character() || is_control(next.code)) {
      append_escaped(out, rest.substr(0, taken));
    } else {
      out += rest.substr(0, taken);
    }
    used += taken;
  }
  return out;
}

std::string terminal_text(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Utf8Sequence next = utf8_sequence(text);
    const std::size_t taken = next.is_character() ? next.length : 1;
    const bool layout = text[0] == '\n' || text[0] == '\t';
    if (!layout && (!next.is_character() || is_control(next.code)))
      append_escaped(out, text.substr(0, taken));
    else
      out += text.substr(0, taken);
    text.remove_prefix(taken);
  }
  return out;
}

std::string terminal_json(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Utf8Sequence next = utf8_sequence(text);
    const std::size_t taken = next.is_character() ? next.length : 1;
    // Those below a space are layout: inside strings JSON has none of them.
    if (next.is_character() && next.code >= 0x7F && is_control(next.code))
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(next.code));
    else
      out += text.substr(0, taken);
    text.remove_prefix(taken);
  }
  return out;
}

}  // namespace filigree
