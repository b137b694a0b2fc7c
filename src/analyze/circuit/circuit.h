// Circuits: the few parts that explain a task, the others taking corrupt (or mean, or zero) values.
//
// Parts are kept in the order of their importance. The effect of keeping the first k of N is
//
//   e(k) = (M(k) - M_corrupt) / (M_clean - M_corrupt)
//
// of the mean metrics: 1 for all of them, and 0 for none of them when the parts are all heads, the
// replacement is the corrupt value and clean and corrupt prompts end with the same token. The size
// of the circuit at a level is the smallest k from which on e never falls below it again.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "analyze/circuit/importance.h"

namespace filigree {

struct CurvePoint {
  std::size_t kept = 0;   // of the order
  std::size_t parts = 0;  // what is left of them without those that lead nowhere
  double metric = 0;      // mean
  double effect = 0;
  std::optional<double> error = {};  // standard error of the effect, a ratio of two means
};

struct Curve {
  std::vector<CurvePoint> points;  // kept rises from 0 to all
  Estimate clean, corrupt;         // the metric

  // The point from which on the effect of all points is at least `level`; null when even the last
  // one is below it.
  const CurvePoint* at(double level) const;
  // Its number of kept parts.
  std::optional<std::size_t> size_at(double level) const;
  // Mean of the effect over the share of parts kept, from none to all (trapezoids).
  double area() const;
};

struct CircuitCurve : Curve {
  std::vector<PatchTarget> order;
};

// Keeps the first k of the order for every k in `sizes` (empty: every k from 0 to N; 0 and N are
// always among them); with a level, the size there is searched for (measured_curve). Throws Error
// when clean and corrupt have the same mean metric.
CircuitCurve keep_first(const Model& model, const std::vector<TaskPrompt>& prompts,
                        const std::vector<PatchTarget>& order, std::vector<std::size_t> sizes,
                        const PatchOptions& options = {}, std::optional<double> level = {});
// In the order of the importance.
CircuitCurve keep_most_important(const Model& model, const std::vector<TaskPrompt>& prompts,
                                 const Importance& importance, std::vector<std::size_t> sizes,
                                 const PatchOptions& options = {});

// An order by measured effects instead of single importances, which miss that parts stand in for
// each other. Removal starts from the whole model and takes away, again and again, the part whose
// loss leaves the highest metric; addition starts from nothing and adds the part that brings the
// highest, which misses parts that do nothing without each other. At each step only the
// `candidates` parts that are next by importance are tried (0: all).
enum class Greedy { kRemoval, kAddition };
std::vector<PatchTarget> greedy_order(const Model& model, const std::vector<TaskPrompt>& prompts,
                                      const Importance& importance, Greedy greedy,
                                      std::size_t candidates, const PatchOptions& options = {});

// The curve of given metrics, [point][prompt]: what keep_first computes from its runs.
std::vector<CurvePoint> curve_points(const std::vector<std::size_t>& sizes,
                                     const PatchedRuns& runs);

// For parts too many to try every number of them: every size up to a few, then ever further apart.
std::vector<std::size_t> spread_sizes(std::size_t all);

// A curve at `sizes` (0 and `all` are added). With a level, sizes between the point at that level
// and the one before it are tried as well, halving the gap, until none is left, so that the size at
// the level is exact as long as the effect rises between neighbouring points.
// `run` measures some sizes under the options that it is given: those of the call, which see each
// run where options.point wants to see points.
using MeasureSizes =
    std::function<PatchedRuns(const std::vector<std::size_t>& sizes, const PatchOptions& options)>;
Curve measured_curve(std::size_t all, std::vector<std::size_t> sizes, std::optional<double> level,
                     const PatchOptions& options, const MeasureSizes& run);

}  // namespace filigree
