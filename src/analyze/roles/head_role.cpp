#include "filigree/analyze/roles/head_role.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace filigree {
namespace {

struct Part {
  Pattern pattern;
  double score;
};

// The patterns of the text, strongest first. A dotted diagonal may be both the best offset and one
// of several fragments: it counts on the side that it is more of.
std::array<Part, 7> text_parts(const RoleScores& scores) {
  double offset = scores[Pattern::kOffset], fragmented = scores[Pattern::kFragmented];
  const double both = scores.offset_in_fragments;
  constexpr double kMostly = 2.0 / 3.0;
  if (both >= kMostly * fragmented)
    fragmented -= both;
  else
    offset -= both;
  std::array<Part, 7> parts = {{{Pattern::kSink, scores[Pattern::kSink]},
                                {Pattern::kCurrent, scores[Pattern::kCurrent]},
                                {Pattern::kPrevious, scores[Pattern::kPrevious]},
                                {Pattern::kOffset, offset},
                                {Pattern::kStripes, scores[Pattern::kStripes]},
                                {Pattern::kFragmented, fragmented},
                                {Pattern::kDiffuse, scores[Pattern::kDiffuse]}}};
  std::stable_sort(parts.begin(), parts.end(),
                   [](const Part& a, const Part& b) { return a.score > b.score; });
  return parts;
}

double for_rows(double confidence, std::int64_t rows, const RoleThresholds& thresholds) {
  const auto n = static_cast<double>(rows);
  return std::clamp(confidence, 0.0, 1.0) * n / (n + thresholds.confidence_rows);
}

std::string name_of(const std::vector<Pattern>& patterns, std::int64_t offset) {
  std::string name;
  for (const Pattern pattern : patterns) {
    if (!name.empty()) name += '+';
    name += filigree::name_of(pattern);
    if (pattern == Pattern::kOffset) name += fmt::format(" {}", offset);
  }
  return name;
}

// What the ordinary text shows.
HeadRole text_role(const RoleScores& scores, const RoleThresholds& thresholds) {
  if (scores.rows < thresholds.fewest_rows) return {{}, "unclear", 0.0};
  if (scores[Pattern::kEmpty] >= thresholds.empty_rows)
    return {{Pattern::kEmpty},
            std::string(name_of(Pattern::kEmpty)),
            for_rows(scores[Pattern::kEmpty], scores.rows, thresholds)};
  const auto parts = text_parts(scores);
  const bool second = parts[1].score >= thresholds.hybrid_part;
  const bool hybrid = second && parts[0].score + parts[1].score >= thresholds.hybrid_total;
  if (parts[0].score < thresholds.role && !hybrid)
    return {{},
            "other",
            for_rows(1.0 - parts[0].score / thresholds.role, scores.rows_with_mass, thresholds)};
  HeadRole role;
  role.patterns = {parts[0].pattern};
  double explained = parts[0].score;
  if (hybrid) {
    role.patterns.push_back(parts[1].pattern);
    explained += parts[1].score;
  }
  role.name = name_of(role.patterns, scores.offset);
  role.confidence = for_rows(explained, scores.rows_with_mass, thresholds);
  return role;
}

}  // namespace

HeadRole classify(const RoleScores& scores, const RoleThresholds& thresholds) {
  HeadRole role = text_role(scores, thresholds);
  const Pattern repeated = scores[Pattern::kInduction] >= scores[Pattern::kDuplicate]
                               ? Pattern::kInduction
                               : Pattern::kDuplicate;
  if (scores[repeated] < thresholds.repeated) return role;
  const double confidence = for_rows(scores[repeated], scores.repeated_rows_with_mass, thresholds);
  const bool alone = role.patterns.empty() || role.patterns[0] == Pattern::kEmpty;
  if (alone) {
    role.patterns.clear();
    role.confidence = confidence;
  } else {
    role.confidence = std::min(role.confidence, confidence);
  }
  role.patterns.push_back(repeated);
  role.name = name_of(role.patterns, scores.offset);
  return role;
}

}  // namespace filigree
