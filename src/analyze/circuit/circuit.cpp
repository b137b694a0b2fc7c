#include "analyze/circuit/circuit.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"

namespace filigree {
namespace {

std::vector<double> differences(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> result;
  for (std::size_t i = 0; i < a.size(); ++i) result.push_back(a[i] - b[i]);
  return result;
}

}  // namespace

std::optional<std::size_t> CircuitCurve::size_at(double level) const {
  std::optional<std::size_t> size;
  for (std::size_t i = points.size(); i-- > 0 && points[i].effect >= level;) size = points[i].kept;
  return size;
}

double CircuitCurve::area() const {
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
    point.kept = sizes[k];
    point.metric = estimate(runs.patched[k]).mean;
    point.effect = estimate(part).mean / mean_whole;
    // Of a ratio of means: the error of what the ratio leaves of each prompt.
    std::vector<double> rest;
    for (std::size_t i = 0; i < part.size(); ++i) rest.push_back(part[i] - point.effect * whole[i]);
    point.error = estimate(rest).error / std::abs(mean_whole);
    points.push_back(point);
  }
  return points;
}

CircuitCurve keep_most_important(const Model& model, const std::vector<TaskPrompt>& prompts,
                                 const Importance& importance, std::vector<std::size_t> sizes,
                                 const PatchOptions& options) {
  const std::size_t all = importance.targets.size();
  require(all > 0, "circuit: there are no parts to keep");
  if (sizes.empty()) {
    sizes.resize(all + 1);
    std::iota(sizes.begin(), sizes.end(), std::size_t{0});
  }
  sizes.insert(sizes.end(), {0, all});
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  require(sizes.back() == all, "circuit: {} parts cannot be kept of {}", sizes.back(), all);

  CircuitCurve curve;
  for (const std::size_t i : importance.order()) curve.order.push_back(importance.targets[i]);
  std::vector<PatchSet> sets;
  for (const std::size_t kept : sizes)
    sets.emplace_back(curve.order.begin() + static_cast<std::ptrdiff_t>(kept), curve.order.end());
  const PatchedRuns runs = run_patched(model, prompts, sets, options);
  curve.clean = estimate(runs.clean);
  curve.corrupt = estimate(runs.corrupt);
  curve.points = curve_points(sizes, runs);
  return curve;
}

}  // namespace filigree
