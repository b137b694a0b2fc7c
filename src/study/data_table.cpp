#include "study/data_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/csv.h"
#include "filigree/error.h"
#include "filigree/names.h"

namespace filigree::study {
namespace {

void check_rows(const DataTable& table) {
  for (const std::vector<std::string>& row : table.rows)
    require(row.size() == table.columns.size(), "table '{}': a row of {} fields under {} headings",
            printable(table.caption), row.size(), table.columns.size());
}

std::string latex_field(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '\\': out += "\\textbackslash{}"; break;
      case '~': out += "\\textasciitilde{}"; break;
      case '^': out += "\\textasciicircum{}"; break;
      case '<': out += "\\textless{}"; break;
      case '>': out += "\\textgreater{}"; break;
      case '"': out += "\\textquotedbl{}"; break;
      case '\n': out += ' '; break;
      case '&':
      case '%':
      case '$':
      case '#':
      case '_':
      case '{':
      case '}': out += '\\'; [[fallthrough]];
      default: out += c;
    }
  }
  return out;
}

bool is_not_finite(std::string_view text) {
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  return text == "nan" || text == "inf";
}

// Of numbers, of which some may be missing or not finite.
bool is_numeric(const DataTable& table, std::size_t column) {
  bool any = false;
  for (const std::vector<std::string>& row : table.rows) {
    const std::string& text = row[column];
    if (text.empty() || is_not_finite(text)) continue;
    const std::size_t digit = text[0] == '-' || text[0] == '+' ? 1 : 0;
    if (digit >= text.size() || text[digit] < '0' || text[digit] > '9') return false;
    any = true;
  }
  return any;
}

template <typename Field>
std::string joined(const std::vector<std::string>& row, std::string_view separator, Field field) {
  std::string text;
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (i > 0) text += separator;
    text += field(row[i]);
  }
  return text;
}

}  // namespace

std::string csv_of(const DataTable& table) {
  check_rows(table);
  std::string text = joined(table.columns, ",", csv_field) + "\n";
  std::vector<bool> numeric;
  for (std::size_t i = 0; i < table.columns.size(); ++i) numeric.push_back(is_numeric(table, i));
  for (const std::vector<std::string>& row : table.rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (i > 0) text += ',';
      if (!numeric[i] || !is_not_finite(row[i])) text += csv_field(row[i]);
    }
    text += '\n';
  }
  return text;
}

std::string latex_of(const DataTable& table) {
  check_rows(table);
  std::string form;
  for (std::size_t i = 0; i < table.columns.size(); ++i) form += is_numeric(table, i) ? 'r' : 'l';
  std::string text = "% needs \\usepackage{booktabs}\n\\begin{table}\n  \\centering\n";
  if (!table.caption.empty())
    text += fmt::format("  \\caption{{{}}}\n", latex_field(table.caption));
  text += fmt::format("  \\begin{{tabular}}{{{}}}\n    \\toprule\n", form);
  text += "    " + joined(table.columns, " & ", latex_field) + " \\\\\n    \\midrule\n";
  for (const std::vector<std::string>& row : table.rows)
    text += "    " + joined(row, " & ", latex_field) + " \\\\\n";
  return text + "    \\bottomrule\n  \\end{tabular}\n\\end{table}\n";
}

}  // namespace filigree::study
