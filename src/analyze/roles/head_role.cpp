#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <optional>

#include "filigree/names.h"
#include "filigree/roles.h"

namespace filigree {
namespace {

struct Part {
  Pattern pattern;
  double score;
};

// The patterns of the prompts, strongest first. A dotted diagonal may be both the best offset and
// one of several fragments, and a stripe may be a delimiter: each counts on the side that it is
// more of.
std::array<Part, 8> text_parts(const RoleScores& scores, const RoleThresholds& thresholds) {
  double offset = scores[Pattern::kOffset], fragmented = scores[Pattern::kFragmented];
  const double both = scores.offset_in_fragments;
  constexpr double kMostly = 2.0 / 3.0;
  if (both >= kMostly * fragmented)
    fragmented -= both;
  else
    offset -= both;
  double stripes = scores[Pattern::kStripes], delimiter = scores[Pattern::kDelimiter];
  if (scores.delimiters < thresholds.fewest_delimiters || delimiter < stripes)
    delimiter = 0.0;
  else
    stripes = 0.0;
  std::array<Part, 8> parts = {{{Pattern::kSink, scores[Pattern::kSink]},
                                {Pattern::kCurrent, scores[Pattern::kCurrent]},
                                {Pattern::kPrevious, scores[Pattern::kPrevious]},
                                {Pattern::kOffset, offset},
                                {Pattern::kStripes, stripes},
                                {Pattern::kDelimiter, delimiter},
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

// What the prompts show.
HeadRole text_role(const RoleScores& scores, const RoleThresholds& thresholds) {
  if (scores.rows >= thresholds.fewest_rows && scores[Pattern::kEmpty] >= thresholds.empty_rows)
    return {{Pattern::kEmpty},
            std::string(name_of(Pattern::kEmpty)),
            for_rows(scores[Pattern::kEmpty], scores.rows, thresholds)};
  if (scores.rows_with_mass < thresholds.fewest_rows) return {{}, "too few rows", 0.0};
  const auto parts = text_parts(scores, thresholds);
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
  role.confidence = for_rows(explained, scores.rows_with_mass, thresholds);
  return role;
}

// The strongest of the patterns that another text shows, if it is one.
std::optional<Pattern> content_role(const RoleScores& scores, std::initializer_list<Pattern> all,
                                    double least, const RoleThresholds& thresholds) {
  Pattern best = *all.begin();
  for (const Pattern pattern : all)
    if (scores[pattern] > scores[best]) best = pattern;
  if (scores[best] < least || scores.rows_of(best) < thresholds.fewest_rows) return std::nullopt;
  return best;
}

bool reads_names(Pattern pattern) {
  return pattern == Pattern::kNameMover || pattern == Pattern::kNegativeNameMover ||
         pattern == Pattern::kNameReader;
}

}  // namespace

std::string evidence_text(const HeadRole& role) {
  std::string text;
  for (const RoleEvidence& one : role.evidence) {
    const RoleText where = text_of(one.pattern);
    text += fmt::format(
        "{}{} {:.2f} {}{}", text.empty() ? "" : "; ", name_of(one.pattern), one.score,
        where == RoleText::kNames ? fmt::format("at the end of {} ioi sentences", one.rows)
                                  : fmt::format("in {} rows", one.rows),
        where == RoleText::kRepeated ? " of repeated text" : "");
    if (role.copying && reads_names(one.pattern))
      text += fmt::format(
          ", the name it reads at median rank {} of {}",
          with_thousands(static_cast<std::uint64_t>(std::llround(role.copying->median_rank))),
          with_thousands(static_cast<std::uint64_t>(role.copying->vocabulary)));
  }
  return text;
}

HeadRole classify(const RoleScores& scores, const RoleThresholds& thresholds) {
  HeadRole role = text_role(scores, thresholds);
  std::vector<Pattern> content;
  for (const std::optional<Pattern>& found :
       {content_role(scores, {Pattern::kInduction, Pattern::kDuplicate, Pattern::kNextToMatch},
                     thresholds.repeated, thresholds),
        content_role(scores,
                     {Pattern::kNameMover, Pattern::kNegativeNameMover, Pattern::kNameReader,
                      Pattern::kDuplicateName},
                     thresholds.names, thresholds)})
    if (found) content.push_back(*found);
  const bool alone = role.patterns.empty() || role.patterns[0] == Pattern::kEmpty;
  if (!content.empty()) {
    // One pattern of the prompts beside them says enough.
    role.patterns.resize(alone ? 0 : 1);
    double least = alone ? 1.0 : role.confidence;
    for (const Pattern pattern : content) {
      role.patterns.push_back(pattern);
      least = std::min(least, for_rows(scores[pattern], scores.rows_of(pattern), thresholds));
    }
    role.confidence = least;
  }
  if (!role.patterns.empty()) role.name = name_of(role.patterns, scores.offset);
  if (std::any_of(role.patterns.begin(), role.patterns.end(), reads_names))
    role.copying = scores.copying;
  for (const Pattern pattern : role.patterns)
    role.evidence.push_back({pattern, scores[pattern], scores.rows_of(pattern)});
  return role;
}

}  // namespace filigree
