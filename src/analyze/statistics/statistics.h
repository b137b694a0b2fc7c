// Statistics of the heads of a model over prompts, and their means over heads, layers and the
// model.
//
// Every prompt counts the same, and every head: the value of a layer on a prompt is the mean over
// its chosen heads, that of the model the mean over all chosen heads. Of a sparse model most heads
// may be dead and most rows empty, so that each is also given over the living heads (those that
// have an open edge in some prompt), over the rows that attend, and over both. What is kept is a
// few numbers a prompt, head and statistic, so that two models can be compared prompt by prompt
// (comparison.h).
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/maps/capture.h"
#include "analyze/statistics/map_statistics.h"
#include "model/living_heads.h"

namespace filigree {

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

}  // namespace filigree
