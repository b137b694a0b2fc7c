// Statistics of the models beside each other: one small chart for each statistic, one bar a model
// (or, with groups, one a model and layer), with intervals. On a logarithmic axis, where a bar's
// length would mean nothing, dots stand for bars.
#pragma once

#include <string>
#include <vector>

#include "figure/axis.h"
#include "figure/figure.h"
#include "figure/theme.h"

namespace filigree::figure {

struct Estimate {
  double value = 0;
  double low = 0, high = 0;  // the interval; both equal to the value: none is drawn
};

struct Statistic {
  std::string name = {};                 // "peak weight"
  std::string note = {};                 // below the name: the change with its interval and p-value
  AxisSpec axis = {};                    // its label is not drawn: the name stands above
  std::vector<std::string> groups = {};  // below the bars, such as layers; none: one group
  // estimates[model][group].
  std::vector<std::vector<Estimate>> estimates = {};
};

struct StatisticsBars {
  std::string title = {};
  std::vector<std::string> models = {};
  std::vector<Statistic> statistics = {};
  std::string caption = {};
};

// Throws Error, naming the statistic, where numbers are missing, not finite or outside their
// interval.
Figure statistics_bars(const StatisticsBars& input, const Theme& theme);

}  // namespace filigree::figure
