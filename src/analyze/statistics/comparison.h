// Statistics of two models on the same prompts, side by side: usually a dense model and its sparse
// twin.
#pragma once

#include <optional>
#include <vector>

#include "analyze/statistics/resampling.h"
#include "analyze/statistics/statistics.h"

namespace filigree {

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
