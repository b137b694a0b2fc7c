// Statistics and their comparison as JSON and as CSV, for programs to read. Numbers have all their
// digits. The columns are described in docs/analysis.md.
#pragma once

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

#include "filigree/statistics.h"

namespace filigree {

// {"model": {"peak": ..., "attending_rows": {"peak": ...}, "living_heads": {...}, ...},
//  "layers": [{"layer": 0, ...}],
//  "heads": [{"name": "L0H0", "layer": 0, "head": 0, ...}]}
// null where nothing is there to be averaged.
nlohmann::ordered_json statistics_json(const AttentionStatistics& statistics);

// The same shape; every statistic is {"first", "second", "change", "reduction" (of the first, null
// where that is 0), "low", "high", "p", "least_p", "prompts"}, with low and high null for a single
// prompt; beside them "direct_connections_kept": {"share", "low", "high", "of"}.
nlohmann::ordered_json comparison_json(const std::vector<ComparedStatistic>& rows,
                                       const std::vector<KeptConnections>& connections);

// Heading: model,scope,layer,head,over,peak,row_mass,... One line a group and what it is taken
// over; `model` is a name for the first column.
std::string statistics_csv_heading();
std::string statistics_csv(const AttentionStatistics& statistics, const std::string& model);

// scope,layer,head,over,statistic,first,second,change,low,high,p,reduction,prompts with a heading.
std::string comparison_csv(const std::vector<ComparedStatistic>& rows,
                           const std::vector<KeptConnections>& connections);

}  // namespace filigree
