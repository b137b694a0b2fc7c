// The role of a head: the one pattern that its scores show, or two.
//
//   "sink"  "previous"  "offset 4"  "sink+previous"  "diffuse"  "sink+induction"
//   "empty"    next to no attention at all
//   "other"    attention, but in none of the patterns: it depends on what the tokens are
//   "too few rows"  attention in too few rows to tell: one edge is no pattern
//
// Roles of content (induction, duplicate, next-to-match; name-mover, negative-name-mover,
// name-reader, duplicate-name) come from other text than the rest, so they stand beside the first
// pattern that the prompts show, and take the place of "empty", "other" and "too few rows". Each is
// told with its evidence: how much of the attention it explains, in how many rows, of what text.
//
// The confidence is in 0..1: of a pattern the share of attention that it explains (of a hybrid,
// both together), of "empty" the share of empty rows, of "other" how far the best pattern is from
// being one; less for few rows.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analyze/roles/role_scores.h"

namespace filigree {

struct RoleEvidence {
  Pattern pattern = Pattern::kSink;
  double score = 0.0;     // share of the attention, less what an even spread has
  std::int64_t rows = 0;  // with attention; of "empty" all
};

struct HeadRole {
  std::vector<Pattern> patterns;  // strongest first; none for "other" and "too few rows"
  std::string name;
  double confidence = 0.0;
  std::vector<RoleEvidence> evidence = {};  // of the patterns, in their order
  std::optional<NameCopying> copying = {};  // of a head that reads names, where it is known
};

// "sink 0.81 in 12 rows; name-mover 0.67 at the end of 48 ioi sentences, the name it reads at
// median rank 2 of 16,384"; "" without a pattern.
std::string evidence_text(const HeadRole& role);

HeadRole classify(const RoleScores& scores, const RoleThresholds& thresholds = kRoleThresholds);

}  // namespace filigree
