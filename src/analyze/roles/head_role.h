// The role of a head: the one pattern that its scores show, or two.
//
//   "sink"  "previous"  "offset 4"  "sink+previous"  "diffuse"  "sink+induction"
//   "empty"    next to no attention at all
//   "other"    attention, but in none of the patterns: it depends on what the tokens are
//   "unclear"  too few tokens to tell
//
// Induction and duplicate come from other text than the rest, so they stand beside a role that the
// text gives, and take the place of "empty" and "other".
//
// The confidence is in 0..1: of a pattern the share of attention that it explains (of a hybrid,
// both together), of "empty" the share of empty rows, of "other" how far the best pattern is from
// being one; less for few rows.
#pragma once

#include <string>
#include <vector>

#include "filigree/analyze/roles/role_scores.h"

namespace filigree {

struct HeadRole {
  std::vector<Pattern> patterns;  // strongest first; none for "other" and "unclear"
  std::string name;
  double confidence = 0.0;
};

HeadRole classify(const RoleScores& scores, const RoleThresholds& thresholds = kRoleThresholds);

}  // namespace filigree
