// Whether a graph is right: what ablating its features and heads does to the prediction, against
// what the graph says.
#pragma once

#include <array>
#include <vector>

#include "features/graph/changed_runs.h"
#include "study/trace/trace.h"

namespace filigree::study {

inline constexpr std::size_t kRunModes = 3;

struct AblatedFeature {
  std::int64_t node = 0;
  double influence = 0.0;
  double direct = 0.0, total = 0.0;             // changes of the target that the graph predicts
  std::array<double, kRunModes> measured = {};  // by RunMode
};

struct AblatedHead {
  HeadId head = {};
  double loading = 0.0;   // magnitude, over all pairs of tokens
  double measured = 0.0;  // change of the target, attention otherwise frozen
};

struct TraceValidation {
  std::vector<AblatedFeature> features = {};  // evenly over the ranks by influence
  std::vector<AblatedHead> heads = {};        // those that carry most
  // Rank correlation of influence and of the predicted total with the measured magnitude, by mode.
  std::array<double, kRunModes> influence_correlation = {}, total_correlation = {};
  double head_correlation = 0.0;  // of loading and magnitude
  // All of these features taken away at once: predicted by the direct effects, and measured.
  double group_direct = 0.0;
  std::array<double, kRunModes> group_measured = {};
};

// Of the first target, which must be a logit or a difference of two. Throws RequestError otherwise.
TraceValidation validate_trace(const TracedModel& traced, const TracedThrough& through,
                               std::int64_t features, const Context& context);

Json to_json(const TraceValidation& validation, const TracedModel& traced);

}  // namespace filigree::study
