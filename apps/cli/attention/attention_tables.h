// What `filigree attention` and `filigree compare` found, as tables for a terminal.
#pragma once

#include <string>
#include <vector>

#include "filigree/attention_study.h"
#include "filigree/statistics.h"

namespace filigree::cli {

// One model: every score. Two: their roles side by side. Then how many heads have each role.
std::string role_table(const std::vector<study::AnalysedModel>& models);

// The model and its layers, and the heads if asked.
std::string statistics_table(const study::AnalysedModel& model, bool by_head);

// The two models as a whole with intervals and p-values, over all heads and rows and over those
// that attend; what is left of connections, the heads that changed most, the changes of layers and
// heads.
std::string comparison_table(const std::vector<ComparedStatistic>& rows,
                             const std::vector<KeptConnections>& connections,
                             const std::vector<study::AnalysedModel>& models, bool by_head);

// The pairs of heads that correlate most.
std::string pair_table(const study::AnalysedModel& model);

}  // namespace filigree::cli
