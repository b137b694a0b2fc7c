#include <fmt/format.h>

#include <algorithm>

#include "base/table.h"
#include "filigree/lens_study.h"
#include "filigree/names.h"

namespace filigree::study {
namespace {

constexpr std::int64_t kShownPositions = 8;  // of the table; figure and JSON have all

// The likeliest token of every point at the last positions.
std::string likeliest_table(const LensOfModel& found) {
  const std::int64_t first = std::max<std::int64_t>(0, found.lens.positions - kShownPositions);
  std::vector<Table::Column> columns = {{"after"}};
  for (std::int64_t t = first; t < found.lens.positions; ++t)
    columns.push_back({"'" + found.shown[found.ids[static_cast<std::size_t>(t)]] + "'"});
  Table table(columns);
  for (std::size_t p = 0; p < found.lens.points.size(); ++p) {
    std::vector<std::string> cells = {name_of(found.lens.points[p])};
    for (std::int64_t t = first; t < found.lens.positions; ++t) {
      const LensToken& best = found.lens.at(p, t).top[0];
      cells.push_back(fmt::format("'{}' {:.0f} %", found.shown[best.id], 100 * best.probability));
    }
    table.add(std::move(cells));
  }
  return table.text(2);
}

// The last position in full.
std::string last_position_text(const LensOfModel& found, std::size_t top) {
  std::vector<Table::Column> columns = {{"after"}};
  if (found.token)
    columns.insert(columns.end(), {{"rank", Align::kRight}, {"log p", Align::kRight}});
  columns.push_back({"likeliest next tokens"});
  Table table(columns);
  for (std::size_t p = 0; p < found.lens.points.size(); ++p) {
    const LensCell& cell = found.lens.at(p, found.lens.positions - 1);
    std::vector<std::string> cells = {name_of(found.lens.points[p])};
    if (found.token) {
      cells.push_back(std::to_string(cell.rank + 1));
      cells.push_back(fmt::format("{:.2f}", cell.log_probability));
    }
    std::string words;
    for (std::size_t i = 0; i < std::min(top, cell.top.size()); ++i)
      words += fmt::format("{}'{}' {:.1f} %", i == 0 ? "" : ", ", found.shown[cell.top[i].id],
                           100 * cell.top[i].probability);
    cells.push_back(words);
    table.add(std::move(cells));
  }
  return table.text(2);
}

}  // namespace

std::string text_of(const LensResult& result) {
  std::string text = changed_text(result.request.interventions);
  for (const LensOfModel& found : result.models) {
    text += fmt::format("{}{}\n\n", text.empty() ? "" : "\n", printable(found.label));
    text += likeliest_table(found);
    text +=
        fmt::format("\n  at the last token{}\n",
                    found.token ? fmt::format(", with the rank of '{}'", found.shown[*found.token])
                                : std::string());
    text += last_position_text(found, static_cast<std::size_t>(result.request.top));
  }
  return text;
}

}  // namespace filigree::study
