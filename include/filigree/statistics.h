// Statistics of attention maps.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "filigree/maps.h"
#include "filigree/model.h"
#include "filigree/names.h"

namespace filigree {

// -------------------------------------------------------------------------------------------------
// Intervals and p-values for the mean of paired differences, without assumptions on how they are
// distributed.
//
//   interval   bootstrap: the differences are drawn anew with replacement many times; the interval
//              is between the quantiles of the means that this gives
//   p-value    permutation: if the two sides of a pair could be swapped, every difference could
//   have
//              the other sign; p is the share of sign patterns whose mean is at least as far from 0
//
// Up to kExactPairs differences all sign patterns are gone through and p is exact; beyond, as many
// as there are resamples are drawn and p = (1 + those) / (1 + resamples), which is never 0.
//
// The draws are a function of (seed, count, resamples): series of one length share them.

struct ResamplingOptions {
  std::size_t resamples = 2000;
  double confidence = 0.95;
  std::uint64_t seed = 0;
};

struct Interval {
  double low = 0.0, high = 0.0;
};

class PairedResampler {
 public:
  static constexpr std::size_t kExactPairs = 12;

  // For series of `count` differences. Throws Error for a count of 0 or options that make no sense.
  PairedResampler(std::size_t count, const ResamplingOptions& options);

  // Nothing for a single difference.
  std::optional<Interval> interval(std::span<const double> differences) const;
  double p_value(std::span<const double> differences) const;
  // The smallest p that so many differences can give: all of one sign.
  double least_p() const;

 private:
  std::size_t count_;
  ResamplingOptions options_;
  std::vector<std::uint8_t> draws_;  // [resamples, count]: how often each is drawn
  std::vector<std::int8_t> signs_;   // [resamples, count]: 1 or -1
};

// The q-quantile, between neighbours in proportion (as NumPy's default); `sorted` is not empty.
double quantile(std::span<const double> sorted, double q);

// -------------------------------------------------------------------------------------------------
// Numbers of one attention map.
//
// With w_ij the weights, m_i = sum_j w_ij, over the rows i >= 1 (row 0 has one key and no choice;
// it is the only row of a single token):
//
//   peak                mean over rows of max_j w_ij
//   row_mass            mean of m_i: 1 for softmax, less after gates
//   entropy             mean over the rows with mass of -sum_j p_ij log p_ij, p_ij = w_ij / m_i, in
//                       nats; 0 when no row has mass
//   diagonal_dominance  1 when the mean weight on the main diagonal is above that on every offset
//                       1 .. T/2 (those that at least half of the rows have), else 0
//   sink_mass           mean of w_i0
//   active_edges        open edges / causal pairs inside the head's window, over all rows: gates
//                       that are open; without gates every edge, however small its weight
//   keys_per_query      open edges / rows, over all rows
//   empty_rows          share of the rows whose weights are all exactly 0
//   diagonal_weight     mean of w_ii                previous_weight   mean of w_i,i-1
//   strong_off_diagonal 1 when a weight above 0.5 lies off the diagonal (j < i), else 0
//   discretisation      share of the mass that is in weights above 0.9
//   direct_connections  cells off the diagonal with a weight of at least 0.1, per row
//   reads_heads_q, _k, _v   share of what the head reads along its query, key and value that
//   earlier
//                       heads wrote (cross_layer.h)
//   cross_layer_q, _k, _v   earlier heads that wrote at least 5 % of it
//
// Each is given over all rows, and over the rows that attend (some weight is not 0), where those of
// heads together are pooled: a sum and what it is divided by. A row of a gated head may be empty,
// and means over all rows then say more of how many are than of what the others hold.

enum class Statistic {
  kPeak,
  kRowMass,
  kEntropy,
  kDiagonalDominance,
  kSinkMass,
  kActiveEdges,
  kKeysPerQuery,
  kEmptyRows,
  kDiagonalWeight,
  kPreviousWeight,
  kStrongOffDiagonal,
  kDiscretisation,
  kDirectConnections,
  kReadsHeadsQ,
  kReadsHeadsK,
  kReadsHeadsV,
  kCrossLayerQ,
  kCrossLayerK,
  kCrossLayerV,
};
inline constexpr std::size_t kStatistics = 19;

template <>
inline constexpr auto kNames<Statistic> =
    std::to_array<Named<Statistic>>({{Statistic::kPeak, "peak"},
                                     {Statistic::kRowMass, "row_mass"},
                                     {Statistic::kEntropy, "entropy"},
                                     {Statistic::kDiagonalDominance, "diagonal_dominance"},
                                     {Statistic::kSinkMass, "sink_mass"},
                                     {Statistic::kActiveEdges, "active_edges"},
                                     {Statistic::kKeysPerQuery, "keys_per_query"},
                                     {Statistic::kEmptyRows, "empty_rows"},
                                     {Statistic::kDiagonalWeight, "diagonal_weight"},
                                     {Statistic::kPreviousWeight, "previous_weight"},
                                     {Statistic::kStrongOffDiagonal, "strong_off_diagonal"},
                                     {Statistic::kDiscretisation, "discretisation"},
                                     {Statistic::kDirectConnections, "direct_connections"},
                                     {Statistic::kReadsHeadsQ, "reads_heads_q"},
                                     {Statistic::kReadsHeadsK, "reads_heads_k"},
                                     {Statistic::kReadsHeadsV, "reads_heads_v"},
                                     {Statistic::kCrossLayerQ, "cross_layer_q"},
                                     {Statistic::kCrossLayerK, "cross_layer_k"},
                                     {Statistic::kCrossLayerV, "cross_layer_v"}});
// Whether it is a share of edges, rows, maps, mass or what is read: its differences are points.
constexpr bool is_share(Statistic statistic) {
  switch (statistic) {
    case Statistic::kDiagonalDominance:
    case Statistic::kActiveEdges:
    case Statistic::kEmptyRows:
    case Statistic::kStrongOffDiagonal:
    case Statistic::kDiscretisation:
    case Statistic::kReadsHeadsQ:
    case Statistic::kReadsHeadsK:
    case Statistic::kReadsHeadsV: return true;
    default: return false;
  }
}
// "row mass".
std::string heading_of(Statistic statistic);

using StatisticValues = std::array<double, kStatistics>;

struct MapStatistics {
  StatisticValues all = {};
  // Over the rows that attend: a statistic is its sum over its weight. All weights are 0 for a map
  // without such a row.
  StatisticValues attending_sum = {}, attending_weight = {};
  // Cells off the diagonal with a weight of at least kDirectConnection, numbered row by row.
  std::vector<std::uint32_t> connections = {};
};

inline constexpr float kDirectConnection = 0.1f, kStrong = 0.5f, kDiscrete = 0.9f;

// What heads read of earlier ones is not a number: a map does not show it. `weights` and `gate` are
// [T, T] row by row; `gate` may be empty (no gates). T is at least 1. `window`: keys that a query
// sees, 0 for all.
MapStatistics map_statistics(std::span<const float> weights, std::span<const float> gate,
                             std::int64_t T, std::int64_t window = 0);

// -------------------------------------------------------------------------------------------------
// Statistics of the heads of a model over prompts, and their means over heads, layers and the
// model.
//
// Every prompt counts the same, and every head: the value of a layer on a prompt is the mean over
// its chosen heads, that of the model the mean over all chosen heads. Of a sparse model most heads
// may be dead and most rows empty, so that each is also given over the living heads (those that
// have an open edge in some prompt), over the rows that attend, and over both. What is kept is a
// few numbers a prompt, head and statistic, so that two models can be compared prompt by prompt.

// What a statistic is taken over.
enum class Over { kAll, kAttendingRows, kLivingHeads, kLivingHeadsAttendingRows };
template <>
inline constexpr auto kNames<Over> =
    std::to_array<Named<Over>>({{Over::kAll, "all"},
                                {Over::kAttendingRows, "attending_rows"},
                                {Over::kLivingHeads, "living_heads"},
                                {Over::kLivingHeadsAttendingRows, "living_heads_attending_rows"}});
constexpr bool of_living_heads(Over over) {
  return over == Over::kLivingHeads || over == Over::kLivingHeadsAttendingRows;
}
constexpr bool of_attending_rows(Over over) {
  return over == Over::kAttendingRows || over == Over::kLivingHeadsAttendingRows;
}

// "all heads, all rows", "living heads, rows that attend".
std::string_view heading_of(Over over);

// Some heads that are averaged together.
struct HeadGroup {
  enum class Scope { kModel, kLayer, kHead };
  Scope scope = Scope::kModel;
  std::int64_t layer = -1;           // of kLayer and kHead
  std::int64_t head = -1;            // of kHead
  std::size_t first = 0, count = 0;  // slots, which are neighbours

  std::string name() const;  // "model", "L3", "L3H4"
};

// The model, then its layers, then its heads, as far as they are chosen.
std::vector<HeadGroup> groups_of(const std::vector<HeadId>& heads);

class AttentionStatistics {
 public:
  AttentionStatistics(std::vector<HeadId> heads, std::size_t prompts);

  // A HeadMapConsumer; for a gated model the gate must be captured (CaptureOptions::gate).
  void add(std::span<const HeadMap> heads);

  const std::vector<HeadId>& heads() const { return heads_; }
  std::size_t prompts() const { return prompts_; }
  const std::vector<HeadGroup>& groups() const { return groups_; }

  // What the head of the slot reads of earlier heads on a prompt: shares and heads along q, k, v.
  void add_reads(std::size_t prompt, std::size_t slot, const std::array<double, 3>& shares,
                 const std::array<double, 3>& heads);

  // By slot.
  std::vector<bool> living() const;
  // As counted over all prompts; of the chosen heads.
  LivingHeads living_heads() const;

  // Of the group's heads on each prompt: the mean, or over rows that attend what these have
  // together. Not a number on a prompt on which nothing is there to be averaged. `living` are the
  // heads that count where only living ones do.
  std::vector<double> series(const HeadGroup& group, Statistic statistic, Over over,
                             const std::vector<bool>& living) const;
  std::vector<double> series(const HeadGroup& group, Statistic statistic,
                             Over over = Over::kAll) const;
  // And over the prompts that have one; not a number where none has.
  double mean(const HeadGroup& group, Statistic statistic, Over over = Over::kAll) const;
  // Cells off the diagonal that the slot's head connects on a prompt; nothing where there were too
  // many to be kept.
  const std::vector<std::uint32_t>* connections(std::size_t prompt, std::size_t slot) const;

 private:
  std::vector<HeadId> heads_;
  std::size_t prompts_;
  std::vector<HeadGroup> groups_;
  std::vector<MapStatistics> values_;  // [prompt, slot]
  std::vector<std::int64_t> lengths_;  // of the prompts
  std::size_t kept_connections_ = 0;
  bool connections_kept_ = true;
};

// -------------------------------------------------------------------------------------------------
// Statistics of two models on the same prompts, side by side: usually a dense model and its sparse
// twin.

struct ComparedStatistic {
  HeadGroup group;
  Statistic statistic = Statistic::kPeak;
  // kLivingHeads: the heads that live in both models.
  Over over = Over::kAll;
  std::size_t prompts = 0;           // on which both models have a value
  double first = 0.0, second = 0.0;  // means over those
  double change = 0.0;               // second - first
  std::optional<Interval> interval;  // of the change; nothing for a single prompt
  // Of the means themselves, of the model as a whole alone.
  std::optional<Interval> first_interval, second_interval;
  double p = 1.0;        // that the change is none
  double least_p = 0.0;  // the smallest that so many prompts can give

  // A change that every prompt shows the same way says no more than this many prompts can.
  bool at_least_p() const { return p <= least_p; }
};

// For every group (model, layers, heads), what it is taken over, and every statistic in turn, as
// far as there is a value: a head alone is not taken over living heads, and a group without such
// heads or rows is left out. Throws Error unless both have the same heads and the same number of
// prompts.
std::vector<ComparedStatistic> compare_statistics(const AttentionStatistics& first,
                                                  const AttentionStatistics& second,
                                                  const ResamplingOptions& options = {});

// Of the direct connections (kDirectConnection) that the first model's heads have, the share that
// the same head of the second has too.
struct KeptConnections {
  HeadGroup group;
  double kept = 0.0;                 // of all of them together, over all prompts
  std::optional<Interval> interval;  // bootstrap over the prompts; nothing for a single one
  std::int64_t connections = 0;      // of the first model
};
// Of every group whose heads have any; nothing at all where there were too many to be kept.
std::vector<KeptConnections> compare_connections(const AttentionStatistics& first,
                                                 const AttentionStatistics& second,
                                                 const ResamplingOptions& options = {});

// Of the heads that live in both models, those of which a statistic changed most: that the others
// died is another thing to say.
struct ChangedHead {
  HeadId head = {};
  double first = 0.0, second = 0.0;
};
std::vector<ChangedHead> most_changed(const std::vector<ComparedStatistic>& rows,
                                      Statistic statistic, std::size_t count);

}  // namespace filigree
