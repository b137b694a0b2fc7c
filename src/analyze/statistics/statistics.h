// Statistics of the heads of a model over prompts, and their means over heads, layers and the
// model.
//
// Every prompt counts the same, and every head: the value of a layer on a prompt is the mean over
// its chosen heads, that of the model the mean over all chosen heads. What is kept is one number a
// prompt, head and statistic, so that two models can be compared prompt by prompt (comparison.h).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "filigree/analyze/maps/capture.h"
#include "filigree/analyze/statistics/map_statistics.h"

namespace filigree {

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

  // Mean over the group's heads on each prompt.
  std::vector<double> series(const HeadGroup& group, Statistic statistic) const;
  // And over the prompts.
  double mean(const HeadGroup& group, Statistic statistic) const;

 private:
  std::vector<HeadId> heads_;
  std::size_t prompts_;
  std::vector<HeadGroup> groups_;
  std::vector<StatisticValues> values_;  // [prompt, slot]
};

}  // namespace filigree
