// Statistics and their comparison as JSON and as CSV, for programs to read. Numbers have all their
// digits. The columns are described in docs/analysis.md.
#pragma once

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

#include "filigree/analyze/statistics/comparison.h"
#include "filigree/analyze/statistics/statistics.h"

namespace filigree {

// {"model": {"peak": ...}, "layers": [{"layer": 0, ...}],
//  "heads": [{"name": "L0H0", "layer": 0, "head": 0, ...}]}
nlohmann::ordered_json statistics_json(const AttentionStatistics& statistics);

// The same shape; every statistic is {"first", "second", "change", "low", "high", "p"}, with low
// and high null for a single prompt.
nlohmann::ordered_json comparison_json(const std::vector<ComparedStatistic>& rows);

// Heading: model,scope,layer,head,peak,row_mass,... One line a group; `model` is a name for the
// first column.
std::string statistics_csv_heading();
std::string statistics_csv(const AttentionStatistics& statistics, const std::string& model);

// scope,layer,head,statistic,first,second,change,low,high,p with a heading.
std::string comparison_csv(const std::vector<ComparedStatistic>& rows);

}  // namespace filigree
