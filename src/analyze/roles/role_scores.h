// How much of a head's attention follows each of the known patterns.
//
// All scores are shares of mass. With w_ij >= 0 the weights, m_i = sum_j w_ij the mass of row i
// (1 for softmax, anything from 0 for gated attention) and M = sum_i m_i over the rows i >= 2, in
// which first, current and previous token are three different keys:
//
//   share of a pattern P = sum of w_ij over its cells / M
//   score = (share - even) / (1 - even), at least 0
//
// where `even` is the share that P would have if every row spread its mass evenly over its keys. So
// 0 is what an indifferent head has, 1 is all, also on short prompts; and rows without mass count
// for nothing: there is no division by a row's mass anywhere. A head without any mass has 0
// everywhere, and empty = 1.
//
//   sink        j = 0                    current     j = i
//   previous    j = i - 1                offset      j = i - k, j >= 1, for the best k >= 2
//   diffuse     sum_ij min(w_ij, m_i / (i + 1)): what the row has in common with an even one
//   stripes     keys j >= 1 that are strong in most rows after them (cells i - j >= 2)
//   fragmented  strong cells on several dotted diagonals (i - j >= 2, j >= 1, no stripes, and not a
//               band of neighbouring offsets from 2 on)
//   empty       share of the rows that have next to no mass
//   induction   on a text that repeats after P tokens: j = i - P + 1, rows of the repetition
//   duplicate   likewise j = i - P
//   next-to-match   likewise j = i - P + 2 or i - P - 1: beside where those two look
//   delimiter   keys j >= 1 that are punctuation or line breaks
//   name-mover  from the last token of sentences like "When Mary and John went to the store, John
//               gave a drink to" to the first mention of either name, by a head whose weights raise
//               the logit of the name that it reads
//   negative-name-mover  likewise, by one that lowers it
//   name-reader likewise, by one that does neither, or of which that is not known
//   duplicate-name  likewise to the second mention of the name that is said twice
//
// "Strong" and "dotted" are defined by role_thresholds.h.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "analyze/roles/role_thresholds.h"
#include "base/names.h"

namespace filigree {

enum class Pattern {
  kSink,
  kCurrent,
  kPrevious,
  kOffset,
  kDiffuse,
  kStripes,
  kFragmented,
  kEmpty,
  kInduction,
  kDuplicate,
  kNextToMatch,
  kDelimiter,
  kNameMover,
  kDuplicateName,
  kNegativeNameMover,
  kNameReader,
};
inline constexpr std::size_t kPatterns = 16;

template <>
inline constexpr auto kNames<Pattern> =
    std::to_array<Named<Pattern>>({{Pattern::kSink, "sink"},
                                   {Pattern::kCurrent, "current"},
                                   {Pattern::kPrevious, "previous"},
                                   {Pattern::kOffset, "offset"},
                                   {Pattern::kDiffuse, "diffuse"},
                                   {Pattern::kStripes, "stripes"},
                                   {Pattern::kFragmented, "fragmented"},
                                   {Pattern::kEmpty, "empty"},
                                   {Pattern::kInduction, "induction"},
                                   {Pattern::kDuplicate, "duplicate"},
                                   {Pattern::kNextToMatch, "next-to-match"},
                                   {Pattern::kDelimiter, "delimiter"},
                                   {Pattern::kNameMover, "name-mover"},
                                   {Pattern::kDuplicateName, "duplicate-name"},
                                   {Pattern::kNegativeNameMover, "negative-name-mover"},
                                   {Pattern::kNameReader, "name-reader"}});

// What a pattern is measured on.
enum class RoleText { kPrompts, kRepeated, kNames };

template <>
inline constexpr auto kNames<RoleText> =
    std::to_array<Named<RoleText>>({{RoleText::kPrompts, "prompts"},
                                    {RoleText::kRepeated, "repeated-text"},
                                    {RoleText::kNames, "ioi-sentences"}});
RoleText text_of(Pattern pattern);

// Where a name stands among the logits that a head's weights give for reading it.
struct NameCopying {
  double median_rank = 0;  // over names; 1: raised most, `vocabulary`: lowered most
  std::int64_t vocabulary = 0;
  std::int64_t names = 0;
};

struct RoleScores {
  std::array<double, kPatterns> score = {};
  std::int64_t offset = 0;           // the k of kOffset; 0: there is none
  double offset_in_fragments = 0.0;  // of kFragmented, the part on that offset
  std::int64_t rows = 0;             // rows i >= 2, of all prompts
  std::int64_t rows_with_mass = 0;   // not empty
  std::int64_t repeated_rows = 0;    // likewise, of the repetitions
  std::int64_t repeated_rows_with_mass = 0;
  std::int64_t name_rows = 0;  // likewise, of the sentences with names: one each
  std::int64_t name_rows_with_mass = 0;
  std::int64_t delimiters = 0;  // in the prompts, the first token aside
  std::optional<NameCopying> copying = {};

  // What the head writes for the names that it reads makes a name-reader a name-mover or a negative
  // one; to be called once.
  void set_copying(const NameCopying& found, const RoleThresholds& thresholds = kRoleThresholds);

  // Rows with mass of the text that a pattern is measured on.
  std::int64_t rows_of(Pattern pattern) const;

  double operator[](Pattern pattern) const { return score[static_cast<std::size_t>(pattern)]; }
  double& operator[](Pattern pattern) { return score[static_cast<std::size_t>(pattern)]; }
};

// Takes the maps of one head one after the other, of prompts of any lengths; the shares are of the
// mass of all of them together. Stripes and diagonals are looked for in each map by itself.
class RoleAccumulator {
 public:
  explicit RoleAccumulator(const RoleThresholds& thresholds = kRoleThresholds)
      : thresholds_(thresholds) {}

  // Weights [T, T] row by row; cells above the diagonal are not looked at. `delimiters` says of
  // each token whether it is one; empty: not known.
  void add(std::span<const float> weights, std::int64_t length,
           const std::vector<bool>& delimiters = {});

  // A map of text that has `start` tokens and then `period` tokens twice.
  void add_repeated(std::span<const float> weights, std::int64_t length, std::int64_t start,
                    std::int64_t period);

  // A map of a sentence that ends where a name is to come: the first mentions of both names, and
  // the second of one of them.
  void add_names(std::span<const float> weights, std::int64_t length, std::int64_t receiver,
                 std::int64_t first, std::int64_t second);

  RoleScores scores() const;

 private:
  struct StrongCell {
    std::int64_t row, key;
    float weight;
  };

  void scan(std::span<const float> weights, std::int64_t length);
  void find_stripes(std::int64_t length);
  void find_fragments(std::int64_t length);
  void find_delimiters(std::span<const float> weights, std::int64_t length,
                       const std::vector<bool>& delimiters);

  RoleThresholds thresholds_;

  // Over all maps.
  std::int64_t rows_ = 0, rows_with_mass_ = 0;
  double mass_ = 0.0;
  double sink_ = 0.0, current_ = 0.0, previous_ = 0.0;
  double common_ = 0.0;  // with an even row
  double stripes_ = 0.0, stripes_even_ = 0.0;
  double fragments_ = 0.0;
  std::vector<double> even_;     // of each row number: its mass / its keys
  std::vector<double> offsets_;  // mass by i - j, cells j >= 1
  std::vector<double> fragments_by_offset_;
  std::int64_t repeated_rows_ = 0, repeated_rows_with_mass_ = 0;
  double repeated_mass_ = 0.0, repeated_even_ = 0.0, induction_ = 0.0, duplicate_ = 0.0;
  double next_to_match_ = 0.0;
  std::int64_t delimiters_ = 0;
  double delimiter_mass_ = 0.0, delimiter_even_ = 0.0;
  std::int64_t name_rows_ = 0, name_rows_with_mass_ = 0;
  double name_mass_ = 0.0, name_even_ = 0.0, first_names_ = 0.0, second_name_ = 0.0;

  // Of the map at hand.
  std::vector<double> row_mass_, column_mass_;
  std::vector<std::int64_t> column_strong_;
  std::vector<StrongCell> strong_;
  std::vector<bool> is_stripe_;
};

}  // namespace filigree
