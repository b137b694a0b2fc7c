// Statistics of two models on the same prompts, side by side: usually a dense model and its sparse
// twin.
#pragma once

#include <optional>
#include <vector>

#include "filigree/analyze/statistics/resampling.h"
#include "filigree/analyze/statistics/statistics.h"

namespace filigree {

struct ComparedStatistic {
  HeadGroup group;
  Statistic statistic = Statistic::kPeak;
  double first = 0.0, second = 0.0;  // means over the prompts
  double change = 0.0;               // second - first
  std::optional<Interval> interval;  // of the change; nothing for a single prompt
  double p = 1.0;                    // that the change is none
  double least_p = 0.0;              // the smallest that so many prompts can give

  // A change that every prompt shows the same way says no more than this many prompts can.
  bool at_least_p() const { return p <= least_p; }
};

// For every group (model, layers, heads) and every statistic in turn. Throws Error unless both have
// the same heads and the same number of prompts.
std::vector<ComparedStatistic> compare_statistics(const AttentionStatistics& first,
                                                  const AttentionStatistics& second,
                                                  const ResamplingOptions& options = {});

}  // namespace filigree
