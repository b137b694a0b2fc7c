// Small tables for papers and spreadsheets: the same rows as CSV and as LaTeX.
#pragma once

#include <string>
#include <vector>

namespace filigree::study {

struct DataTable {
  std::string caption = {};               // of LaTeX
  std::vector<std::string> columns = {};  // headings
  std::vector<std::vector<std::string>> rows = {};
};

// With a heading; fields that hold a comma, quote or line break are quoted (RFC 4180).
std::string csv_of(const DataTable& table);

// A table environment with the rules of booktabs. Columns whose fields all begin like a number are
// set to the right. Everything that LaTeX would read as a command is escaped.
std::string latex_of(const DataTable& table);

}  // namespace filigree::study
