#include "filigree/circuit.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "filigree/error.h"

namespace filigree {
namespace {

std::vector<double> differences(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> result;
  for (std::size_t i = 0; i < a.size(); ++i) result.push_back(a[i] - b[i]);
  return result;
}

// Sizes in an order in which every few of them lie far apart, for those who watch the curve come
// about.
std::vector<std::size_t> roughly_first(const std::vector<std::size_t>& sizes) {
  constexpr std::size_t kFew = 4;
  const std::size_t rounds = (sizes.size() + kFew - 1) / kFew;
  std::vector<std::size_t> ordered;
  for (std::size_t first = 0; first < rounds; ++first)
    for (std::size_t k = first; k < sizes.size(); k += rounds) ordered.push_back(sizes[k]);
  return ordered;
}

}  // namespace

const CurvePoint* Curve::at(double level) const {
  const CurvePoint* found = nullptr;
  for (std::size_t i = points.size(); i-- > 0 && points[i].effect >= level;) found = &points[i];
  return found;
}

std::optional<std::size_t> Curve::size_at(double level) const {
  const CurvePoint* point = at(level);
  return point == nullptr ? std::nullopt : std::optional(point->kept);
}

double Curve::area() const {
  if (points.size() < 2) return 0;
  double sum = 0;
  for (std::size_t i = 1; i < points.size(); ++i)
    sum += (points[i].effect + points[i - 1].effect) / 2 *
           static_cast<double>(points[i].kept - points[i - 1].kept);
  return sum / static_cast<double>(points.back().kept);
}

std::vector<CurvePoint> curve_points(const std::vector<std::size_t>& sizes,
                                     const PatchedRuns& runs) {
  const std::vector<double> whole = differences(runs.clean, runs.corrupt);
  const double mean_whole = estimate(whole).mean;
  require(mean_whole != 0,
          "circuit: clean and corrupt prompts have the same mean metric; there is no effect to "
          "explain");
  std::vector<CurvePoint> points;
  for (std::size_t k = 0; k < sizes.size(); ++k) {
    const std::vector<double> part = differences(runs.patched[k], runs.corrupt);
    CurvePoint point;
    point.kept = point.parts = sizes[k];
    point.metric = estimate(runs.patched[k]).mean;
    point.effect = estimate(part).mean / mean_whole;
    // Of a ratio of means: the error of what the ratio leaves of each prompt.
    std::vector<double> rest;
    for (std::size_t i = 0; i < part.size(); ++i) rest.push_back(part[i] - point.effect * whole[i]);
    if (const std::optional<double> error = estimate(rest).error)
      point.error = *error / std::abs(mean_whole);
    points.push_back(point);
  }
  return points;
}

std::vector<std::size_t> spread_sizes(std::size_t all) {
  constexpr std::size_t kEach = 8;
  constexpr double kStep = 1.35;
  std::vector<std::size_t> sizes;
  for (std::size_t size = 0; size < all;
       size = size < kEach ? size + 1 : static_cast<std::size_t>(static_cast<double>(size) * kStep))
    sizes.push_back(size);
  sizes.push_back(all);
  return sizes;
}

Curve measured_curve(std::size_t all, std::vector<std::size_t> sizes, std::optional<double> level,
                     const PatchOptions& options, const MeasureSizes& run) {
  require(all > 0, "circuit: there are no parts to keep");
  sizes.insert(sizes.end(), {0, all});
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  require(sizes.back() == all, "circuit: {} parts cannot be kept of {}", sizes.back(), all);
  if (options.point) sizes = roughly_first(sizes);
  Curve curve;
  const auto measure = [&](const std::vector<std::size_t>& some) {
    PatchOptions watched = options;
    if (options.point)
      watched.seen = [&](std::size_t k, const PatchedRuns& so_far) {
        // The first prompts may have no effect that a share of could be explained.
        if (estimate(differences(so_far.clean, so_far.corrupt)).mean == 0) return;
        options.point(some.at(k), curve_points({some[k]}, so_far)[0].effect);
      };
    const PatchedRuns runs = run(some, watched);
    curve.clean = estimate(runs.clean);
    curve.corrupt = estimate(runs.corrupt);
    return curve_points(some, runs);
  };
  curve.points = measure(sizes);
  std::sort(curve.points.begin(), curve.points.end(),
            [](const CurvePoint& a, const CurvePoint& b) { return a.kept < b.kept; });
  while (level) {
    const CurvePoint* found = curve.at(*level);
    if (found == nullptr || found == curve.points.data()) break;
    const std::size_t gap = found->kept - (found - 1)->kept;
    if (gap < 2) break;
    const std::vector<std::size_t> middle = {found->kept - gap / 2};
    const auto place = curve.points.begin() + (found - curve.points.data());
    curve.points.insert(place, measure(middle)[0]);
  }
  return curve;
}

CircuitCurve keep_first(const Model& model, const std::vector<TaskPrompt>& prompts,
                        const std::vector<PatchTarget>& order, std::vector<std::size_t> sizes,
                        const PatchOptions& options, std::optional<double> level) {
  if (sizes.empty()) {
    sizes.resize(order.size() + 1);
    std::iota(sizes.begin(), sizes.end(), std::size_t{0});
  }
  CircuitCurve curve;
  static_cast<Curve&>(curve) = measured_curve(
      order.size(), std::move(sizes), level, options,
      [&](const std::vector<std::size_t>& kept, const PatchOptions& watched) {
        std::vector<PatchSet> sets;
        for (const std::size_t count : kept)
          sets.emplace_back(order.begin() + static_cast<std::ptrdiff_t>(count), order.end());
        return run_patched(model, prompts, sets, watched);
      });
  curve.order = order;
  return curve;
}

CircuitCurve keep_most_important(const Model& model, const std::vector<TaskPrompt>& prompts,
                                 const Importance& importance, std::vector<std::size_t> sizes,
                                 const PatchOptions& options) {
  std::vector<PatchTarget> order;
  for (const std::size_t i : importance.order()) order.push_back(importance.targets[i]);
  return keep_first(model, prompts, order, std::move(sizes), options);
}

std::vector<PatchTarget> greedy_order(const Model& model, const std::vector<TaskPrompt>& prompts,
                                      const Importance& importance, Greedy greedy,
                                      std::size_t candidates, const PatchOptions& options) {
  const bool removal = greedy == Greedy::kRemoval;
  // Those not decided yet, the next candidates first.
  std::vector<PatchTarget> open, decided;
  for (const std::size_t i : importance.order()) open.push_back(importance.targets[i]);
  if (removal) std::reverse(open.begin(), open.end());
  PatchOptions quiet = options;
  quiet.progress = {};
  const std::size_t all = open.size();
  while (!open.empty()) {
    const std::size_t tried = candidates == 0 ? open.size() : std::min(candidates, open.size());
    std::vector<PatchSet> sets;
    for (std::size_t i = 0; i < tried; ++i) {
      PatchSet set = removal ? decided : open;
      if (removal)
        set.push_back(open[i]);
      else
        set.erase(set.begin() + static_cast<std::ptrdiff_t>(i));
      sets.push_back(std::move(set));
    }
    const PatchedRuns runs = run_patched(model, prompts, sets, quiet);
    std::size_t best = 0;
    for (std::size_t i = 1; i < tried; ++i)
      if (estimate(runs.patched[i]).mean > estimate(runs.patched[best]).mean) best = i;
    decided.push_back(open[best]);
    open.erase(open.begin() + static_cast<std::ptrdiff_t>(best));
    if (options.progress)
      options.progress(static_cast<std::int64_t>(decided.size()), static_cast<std::int64_t>(all));
  }
  if (removal) std::reverse(decided.begin(), decided.end());
  return decided;
}

}  // namespace filigree
