// One model looked at on prompts: maps to a file, roles, statistics and head pairs, in as few
// passes as there can be.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "apps/cli/attention/attention_prompts.h"
#include "apps/cli/program/session.h"
#include "filigree/analyze/maps/map_file.h"
#include "filigree/analyze/pairs/head_pairs.h"
#include "filigree/analyze/roles/head_roles.h"
#include "filigree/analyze/statistics/statistics.h"

namespace filigree::cli {

struct AnalysisPlan {
  std::vector<HeadId> heads;
  bool roles = false, statistics = false, pairs = false;
  MapKind kind = MapKind::kWeights;  // of the maps that go to the file
  bool average = false;
  HeadMapConsumer also = {};  // sees every map too, prompt by prompt
};

struct AnalysedModel {
  std::string model;  // as the user named it
  std::string label;
  std::vector<RoleScores> roles;  // by head; empty unless asked for
  std::optional<AttentionStatistics> statistics;
  std::optional<HeadPairs> pairs;
};

// `maps` may be null. Shows a bar on stderr; throws Interrupted between layers.
AnalysedModel analyse_attention(const std::string& name, const std::string& label,
                                const PromptSet& prompts, const AnalysisPlan& plan, MapFile* maps,
                                const Session& session);

}  // namespace filigree::cli
