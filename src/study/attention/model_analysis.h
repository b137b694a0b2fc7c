// One model looked at on prompts: roles, statistics and head pairs, and whoever else wants to see
// the maps, in as few passes as there can be.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analyze/maps/average.h"
#include "analyze/pairs/head_pairs.h"
#include "analyze/roles/head_roles.h"
#include "analyze/statistics/statistics.h"
#include "study/attention/prompts.h"
#include "study/interventions.h"

namespace filigree::study {

struct AnalysisPlan {
  std::vector<HeadId> heads = {};
  bool roles = false, statistics = false, pairs = false;
  // Maps of one kind for somebody else. `each` sees those of every layer, one prompt after the
  // other, in views that hold what the kind needs; `mean` those over all prompts, which must be of
  // one length. Either may be empty.
  MapKind kind = MapKind::kWeights;
  HeadMapConsumer each = {};
  MeanMapConsumer mean = {};
  // With the model's tokens. On the repeated text of roles only what means the same for any text.
  Interventions interventions = {};
};

struct AnalysedModel {
  std::string model = {};  // as the user named it
  std::string label = {};
  std::int64_t parameters = 0;
  std::vector<HeadId> heads = {};
  // By head; empty unless asked for.
  std::vector<RoleScores> role_scores = {};
  std::vector<HeadRole> roles = {};
  std::optional<AttentionStatistics> statistics = {};
  std::optional<HeadPairs> pairs = {};
};

// Reports prompts under the model's label; throws Stopped between layers.
AnalysedModel analyse_model(const LoadedModel& model, const PromptSet& prompts,
                            const AnalysisPlan& plan, const Context& context);

// Role, confidence, patterns with their evidence, and every score.
Json role_json(const HeadRole& role, const RoleScores& scores);

// What was not asked for is null.
Json to_json(const AnalysedModel& model);

}  // namespace filigree::study
