// What heads do.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "filigree/maps.h"
#include "filigree/names.h"
#include "filigree/tokenizer.h"

namespace filigree {

// -------------------------------------------------------------------------------------------------
// Every number that decides a head's role. docs/analysis.md says what each does.

struct RoleThresholds {
  // Rows with less mass than this are empty; a head whose share of such rows is at least
  // `empty_rows` is empty.
  double empty_row_mass = 0.05;
  double empty_rows = 0.95;

  // A cell is strong when it has this share of its row's mass, and this many times an even share.
  double strong_share = 0.05;
  double strong_over_even = 2.0;

  // A key is a stripe when it is strong in this share of the rows after it, and there are so many.
  double stripe_rows = 0.5;
  int stripe_fewest_rows = 4;

  // A diagonal is dotted when it has more strong cells than chance by this many standard deviations
  // and `dotted_extra`, but is filled less than `solid`; fragmented means several dotted ones.
  double dotted_deviations = 4.0;
  double dotted_extra = 2.0;
  double solid = 0.5;
  int fewest_dotted = 2;

  // A pattern is a head's role from `role` on; two are a hybrid when each has `hybrid_part` and
  // they have `hybrid_total` together.
  double role = 0.4;
  double hybrid_part = 0.25;
  double hybrid_total = 0.6;
  // On repeated text, for induction, duplicate and next-to-match.
  double repeated = 0.3;
  // On sentences with names, for the roles of names.
  double names = 0.5;
  // A head raises (lowers) a name that it reads when the name is among this share of the vocabulary
  // that it raises (lowers) most.
  double copied_share = 0.01;
  // So many delimiters must have been there to be looked at.
  int fewest_delimiters = 3;

  // Fewer rows with attention give no role: one edge is no pattern. The confidence is multiplied by
  // rows / (rows + confidence_rows).
  int fewest_rows = 4;
  double confidence_rows = 4.0;
};

inline constexpr RoleThresholds kRoleThresholds = {};

// -------------------------------------------------------------------------------------------------
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

// -------------------------------------------------------------------------------------------------
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

// -------------------------------------------------------------------------------------------------
// Sentences of the task ioi ("When Mary and John went to the store, John gave a drink to") with
// where their names stand: what shows heads that read names.

struct NameProbe {
  Prompt prompt = {};
  std::int64_t receiver = 0;           // the name that is said once, Mary
  std::int64_t first = 0, second = 0;  // both mentions of the other, John
};

struct NameProbeOptions {
  std::size_t prompts = 48;
  std::uint64_t seed = 0;
  std::int64_t vocabulary = 0, context = 0;  // of the model
};

// Fewer, or none, where the tokenizer makes several tokens of the names.
std::vector<NameProbe> make_name_probes(const Tokenizer& tokenizer,
                                        const NameProbeOptions& options);

// -------------------------------------------------------------------------------------------------
// Random text that is repeated: where induction heads (look for the token after the last time the
// current one was seen) and duplicate-token heads (look for that time itself) show themselves.

struct RepeatedText {
  std::vector<Prompt> prompts;  // all of start + 2 * period tokens
  std::int64_t start = 0;       // tokens before the first block: 1 with a first token, else 0
  std::int64_t period = 0;
};

struct RepeatedTextOptions {
  std::int64_t period = 50;  // less where the context is too short for it
  std::size_t samples = 2;
  std::uint64_t seed = 0;
  std::optional<TokenId> first = {};  // an end-of-text token, say, which takes up the sink
};

// Tokens drawn evenly from `ids`, without doubles inside a block while there are enough of them.
// Throws Error when there are no ids; no prompts at all when the context is below 2 * 2 tokens.
RepeatedText make_repeated_text(std::span<const TokenId> ids, std::int64_t context,
                                const RepeatedTextOptions& options);

// -------------------------------------------------------------------------------------------------
// The roles of many heads at once, fed by capture_maps.

class HeadRoles {
 public:
  explicit HeadRoles(std::size_t heads) : roles_(heads) {}

  // A HeadMapConsumer for ordinary text. `delimiters` says of every token of each prompt whether it
  // is one; empty: not known.
  void add(std::span<const HeadMap> heads, const std::vector<std::vector<bool>>& delimiters = {});
  // Runs the model on repeated text.
  void add_repeated(const Model& model, const RepeatedText& text, const std::vector<HeadId>& heads,
                    AppliedInterventions* interventions = nullptr);

  // Runs the model on sentences with names.
  void add_names(const Model& model, const std::vector<NameProbe>& probes,
                 const std::vector<HeadId>& heads, AppliedInterventions* interventions = nullptr);

  // By slot.
  std::vector<RoleScores> scores() const;

 private:
  std::vector<RoleAccumulator> roles_;
};

}  // namespace filigree
