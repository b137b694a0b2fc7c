// What `filigree attention` found, as tables and as JSON.
#pragma once

#include <string>
#include <vector>

#include "apps/cli/attention/attention_analysis.h"
#include "filigree/analyze/statistics/comparison.h"

namespace filigree::cli {

// One model: every score. Two: their roles side by side. Then how many heads have each role.
std::string role_table(const std::vector<AnalysedModel>& models, const std::vector<HeadId>& heads);

// The model and its layers, and the heads if asked.
std::string statistics_table(const AnalysedModel& model, bool by_head);

// The two models as a whole with intervals and p-values; then the changes of layers and heads.
std::string comparison_table(const std::vector<ComparedStatistic>& rows, const std::string& first,
                             const std::string& second, bool by_head);

// The pairs of heads that correlate most.
std::string pair_table(const AnalysedModel& model);

Json roles_json(const AnalysedModel& model, const std::vector<HeadId>& heads);
Json pairs_json(const HeadPairs& pairs);

}  // namespace filigree::cli
