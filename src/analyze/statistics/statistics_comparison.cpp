#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <set>

#include "filigree/error.h"
#include "filigree/runtime.h"
#include "filigree/statistics.h"

namespace filigree {
namespace {

// Maps are f32: rows that sum to one do so up to their last digits. A sign test would take those
// digits for a change, so that what is smaller than this counts as none.
constexpr double kRounding = 1e-6;

double change(double from, double to) {
  return std::abs(to - from) <= kRounding * std::max(1.0, std::abs(from)) ? 0.0 : to - from;
}

// The series of both models on the prompts on which both have a value.
struct Paired {
  std::vector<double> first, second, difference;
};

Paired paired(const std::vector<double>& first, const std::vector<double>& second) {
  Paired result;
  for (std::size_t p = 0; p < first.size(); ++p) {
    if (std::isnan(first[p]) || std::isnan(second[p])) continue;
    result.first.push_back(first[p]), result.second.push_back(second[p]);
    result.difference.push_back(change(first[p], second[p]));
  }
  return result;
}

double mean_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// Draws are made once for each number of prompts.
class Resamplers {
 public:
  explicit Resamplers(const ResamplingOptions& options) : options_(options) {}

  const PairedResampler& of(std::size_t count) {
    const std::lock_guard lock(mutex_);
    std::unique_ptr<PairedResampler>& resampler = by_count_[count];
    if (!resampler) resampler = std::make_unique<PairedResampler>(count, options_);
    return *resampler;
  }

 private:
  ResamplingOptions options_;
  std::mutex mutex_;
  std::map<std::size_t, std::unique_ptr<PairedResampler>> by_count_;
};

void require_alike(const AttentionStatistics& first, const AttentionStatistics& second) {
  require(
      first.heads() == second.heads() && first.prompts() == second.prompts(),
      "comparison: {} heads on {} prompts and {} heads on {} prompts; both models need the same",
      first.heads().size(), first.prompts(), second.heads().size(), second.prompts());
}

}  // namespace

std::vector<ComparedStatistic> compare_statistics(const AttentionStatistics& first,
                                                  const AttentionStatistics& second,
                                                  const ResamplingOptions& options) {
  require_alike(first, second);
  std::vector<bool> living = first.living();
  const std::vector<bool> other = second.living();
  for (std::size_t s = 0; s < living.size(); ++s) living[s] = living[s] && other[s];
  std::vector<ComparedStatistic> rows;
  for (const HeadGroup& group : first.groups())
    for (const Named<Over>& over : kNames<Over>) {
      if (of_living_heads(over.value) && group.scope == HeadGroup::Scope::kHead) continue;
      for (std::size_t s = 0; s < kStatistics; ++s) {
        ComparedStatistic& row = rows.emplace_back();
        row.group = group, row.over = over.value, row.statistic = static_cast<Statistic>(s);
      }
    }
  Resamplers resamplers(options);
  parallel_for(
      static_cast<std::int64_t>(rows.size()), 4, [&](std::int64_t begin, std::int64_t end) {
        for (auto r = static_cast<std::size_t>(begin); r < static_cast<std::size_t>(end); ++r) {
          ComparedStatistic& row = rows[r];
          const Paired pairs = paired(first.series(row.group, row.statistic, row.over, living),
                                      second.series(row.group, row.statistic, row.over, living));
          row.prompts = pairs.difference.size();
          if (row.prompts == 0) continue;
          const PairedResampler& resampler = resamplers.of(row.prompts);
          row.first = mean_of(pairs.first);
          row.second = mean_of(pairs.second);
          row.change = row.second - row.first;
          row.interval = resampler.interval(pairs.difference);
          if (row.group.scope == HeadGroup::Scope::kModel) {
            row.first_interval = resampler.interval(pairs.first);
            row.second_interval = resampler.interval(pairs.second);
          }
          row.p = resampler.p_value(pairs.difference);
          row.least_p = resampler.least_p();
        }
      });
  std::erase_if(rows, [](const ComparedStatistic& row) { return row.prompts == 0; });
  return rows;
}

std::vector<KeptConnections> compare_connections(const AttentionStatistics& first,
                                                 const AttentionStatistics& second,
                                                 const ResamplingOptions& options) {
  require_alike(first, second);
  const std::size_t prompts = first.prompts(), heads = first.heads().size();
  std::vector<double> had(prompts * heads), kept(prompts * heads);
  for (std::size_t p = 0; p < prompts; ++p)
    for (std::size_t s = 0; s < heads; ++s) {
      const auto *a = first.connections(p, s), *b = second.connections(p, s);
      if (a == nullptr || b == nullptr) return {};
      std::vector<std::uint32_t> both;
      std::set_intersection(a->begin(), a->end(), b->begin(), b->end(), std::back_inserter(both));
      had[p * heads + s] = static_cast<double>(a->size());
      kept[p * heads + s] = static_cast<double>(both.size());
    }
  std::vector<KeptConnections> rows;
  for (const HeadGroup& group : first.groups()) {
    // The share of a resample is near the mean of (kept - share had) / mean of had.
    std::vector<double> all(prompts, 0.0), still(prompts, 0.0);
    for (std::size_t p = 0; p < prompts; ++p)
      for (std::size_t s = group.first; s < group.first + group.count; ++s)
        all[p] += had[p * heads + s], still[p] += kept[p * heads + s];
    const double total = std::accumulate(all.begin(), all.end(), 0.0);
    if (total == 0.0) continue;
    KeptConnections row = {group,
                           std::accumulate(still.begin(), still.end(), 0.0) / total,
                           {},
                           static_cast<std::int64_t>(total)};
    std::vector<double> parts;
    for (std::size_t p = 0; p < prompts; ++p)
      parts.push_back((still[p] - row.kept * all[p]) * static_cast<double>(prompts) / total);
    row.interval = PairedResampler(prompts, options).interval(parts);
    if (row.interval)
      row.interval = Interval{std::max(0.0, row.kept + row.interval->low),
                              std::min(1.0, row.kept + row.interval->high)};
    rows.push_back(row);
  }
  return rows;
}

std::vector<ChangedHead> most_changed(const std::vector<ComparedStatistic>& rows,
                                      Statistic statistic, std::size_t count) {
  std::vector<ChangedHead> heads;
  std::set<HeadId> living;
  for (const ComparedStatistic& row : rows)
    if (row.group.scope == HeadGroup::Scope::kHead && row.over == Over::kAll) {
      const HeadId head = {row.group.layer, row.group.head};
      if (row.statistic == Statistic::kKeysPerQuery && row.first > 0.0 && row.second > 0.0)
        living.insert(head);
      if (row.statistic == statistic) heads.push_back({head, row.first, row.second});
    }
  std::erase_if(heads, [&](const ChangedHead& one) { return living.count(one.head) == 0; });
  std::stable_sort(heads.begin(), heads.end(), [](const ChangedHead& a, const ChangedHead& b) {
    return std::abs(a.second - a.first) > std::abs(b.second - b.first);
  });
  heads.resize(std::min(heads.size(), count));
  return heads;
}

}  // namespace filigree
