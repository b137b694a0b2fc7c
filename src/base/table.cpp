#include "base/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/utf8.h"
#include "filigree/error.h"

namespace filigree {
namespace {

constexpr std::size_t kColumnGap = 2;  // spaces between columns

struct CodeRange {
  char32_t first, last;
};

// Blocks rather than single characters: what a monospaced terminal shows in two cells.
constexpr CodeRange kWide[] = {
    {0x1100, 0x115F},   {0x2E80, 0xA4CF},   {0xAC00, 0xD7A3},   {0xF900, 0xFAFF},
    {0xFE30, 0xFE6F},   {0xFF00, 0xFF60},   {0xFFE0, 0xFFE6},   {0x1F300, 0x1F64F},
    {0x1F680, 0x1F6FF}, {0x1F900, 0x1FAFF}, {0x20000, 0x3FFFD},
};
// Combining marks, joiners and variation selectors.
constexpr CodeRange kNone[] = {
    {0x0300, 0x036F}, {0x200B, 0x200F}, {0x20D0, 0x20FF}, {0xFE00, 0xFE0F}, {0xFE20, 0xFE2F}};

template <std::size_t N>
bool is_in(char32_t code, const CodeRange (&ranges)[N]) {
  return std::any_of(std::begin(ranges), std::end(ranges), [code](const CodeRange& range) {
    return code >= range.first && code <= range.last;
  });
}

}  // namespace

std::size_t display_width(std::string_view text) {
  std::size_t width = 0;
  while (!text.empty()) {
    const Utf8Sequence next = utf8_sequence(text);
    if (!next.is_character())
      ++width;  // shown as a replacement character
    else
      width += is_in(next.code, kNone) ? 0 : is_in(next.code, kWide) ? 2 : 1;
    text.remove_prefix(next.length);
  }
  return width;
}

Table::Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

void Table::add(std::vector<std::string> cells) {
  require(cells.size() == columns_.size(), "table: {} cells for {} columns", cells.size(),
          columns_.size());
  rows_.push_back(std::move(cells));
}

std::string Table::text(std::size_t indent) const {
  std::vector<std::vector<std::string>> lines;
  const bool titled = std::any_of(columns_.begin(), columns_.end(),
                                  [](const Column& column) { return !column.title.empty(); });
  if (titled) {
    lines.emplace_back();
    for (const Column& column : columns_) lines.back().push_back(column.title);
  }
  lines.insert(lines.end(), rows_.begin(), rows_.end());

  std::vector<std::size_t> widths(columns_.size(), 0);
  for (const auto& line : lines)
    for (std::size_t c = 0; c < line.size(); ++c)
      widths[c] = std::max(widths[c], display_width(line[c]));
  // A rule under the heading.
  if (titled) {
    std::vector<std::string> rule;
    for (const std::size_t width : widths) rule.emplace_back(width, '-');
    lines.insert(lines.begin() + 1, std::move(rule));
  }

  std::string text;
  for (const auto& line : lines) {
    std::string row(indent, ' ');
    for (std::size_t c = 0; c < line.size(); ++c) {
      const std::string padding(widths[c] - display_width(line[c]), ' ');
      row += columns_[c].align == Align::kLeft ? line[c] + padding : padding + line[c];
      if (c + 1 < line.size()) row.append(kColumnGap, ' ');
    }
    row.erase(row.find_last_not_of(' ') + 1);
    text += row + "\n";
  }
  return text;
}

std::string wrap(std::string_view text, std::size_t columns, std::size_t indent) {
  std::string out;
  std::size_t used = indent;
  bool line_is_empty = true;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    const std::size_t width = display_width(word);
    if (!line_is_empty && used + 1 + width > columns) {
      out += "\n" + std::string(indent, ' ');
      used = indent;
    } else if (!line_is_empty) {
      out += ' ';
      ++used;
    }
    out += word;
    used += width;
    line_is_empty = false;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

std::string format_seconds(double seconds) {
  if (seconds < 0.9995e-3) return fmt::format("{:.0f} us", seconds * 1e6);
  if (seconds < 0.9995) return fmt::format("{:.3g} ms", seconds * 1e3);
  return seconds < 99.95 ? fmt::format("{:.3g} s", seconds) : fmt::format("{:.0f} s", seconds);
}

}  // namespace filigree
