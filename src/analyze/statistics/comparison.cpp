#include "filigree/analyze/statistics/comparison.h"

#include <algorithm>
#include <cmath>

#include "filigree/base/error.h"
#include "filigree/runtime/threads.h"

namespace filigree {
namespace {

// Maps are f32: rows that sum to one do so up to their last digits. A sign test would take those
// digits for a change, so that what is smaller than this counts as none.
constexpr double kRounding = 1e-6;

double change(double from, double to) {
  return std::abs(to - from) <= kRounding * std::max(1.0, std::abs(from)) ? 0.0 : to - from;
}

}  // namespace

std::vector<ComparedStatistic> compare_statistics(const AttentionStatistics& first,
                                                  const AttentionStatistics& second,
                                                  const ResamplingOptions& options) {
  require(
      first.heads() == second.heads() && first.prompts() == second.prompts(),
      "comparison: {} heads on {} prompts and {} heads on {} prompts; both models need the same",
      first.heads().size(), first.prompts(), second.heads().size(), second.prompts());
  const PairedResampler resampler(first.prompts(), options);
  std::vector<ComparedStatistic> rows(first.groups().size() * kStatistics);
  parallel_for(
      static_cast<std::int64_t>(rows.size()), 4, [&](std::int64_t begin, std::int64_t end) {
        for (auto r = static_cast<std::size_t>(begin); r < static_cast<std::size_t>(end); ++r) {
          ComparedStatistic& row = rows[r];
          row.group = first.groups()[r / kStatistics];
          row.statistic = static_cast<Statistic>(r % kStatistics);
          const std::vector<double> a = first.series(row.group, row.statistic);
          std::vector<double> difference = second.series(row.group, row.statistic);
          for (std::size_t p = 0; p < a.size(); ++p) difference[p] = change(a[p], difference[p]);
          row.first = first.mean(row.group, row.statistic);
          row.second = second.mean(row.group, row.statistic);
          row.change = row.second - row.first;
          row.interval = resampler.interval(difference);
          row.p = resampler.p_value(difference);
          row.least_p = resampler.least_p();
        }
      });
  return rows;
}

}  // namespace filigree
