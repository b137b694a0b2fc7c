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
#include <optional>
#include <vector>

#include "analyze/circuit/importance.h"

namespace filigree {

struct CurvePoint {
  std::size_t kept = 0;
  double metric = 0;  // mean
  double effect = 0;
  double error = 0;  // standard error of the effect, of the ratio of two means
};

struct CircuitCurve {
  std::vector<PatchTarget> order;  // by importance
  std::vector<CurvePoint> points;  // kept rises from 0 to all
  Estimate clean, corrupt;         // the metric

  // Nullopt when even the last points are below the level.
  std::optional<std::size_t> size_at(double level) const;
  // Mean of the effect over the share of parts kept, from none to all (trapezoids).
  double area() const;
};

// Keeps the first k of the importance's order for every k in `sizes` (empty: every k from 0 to N;
// 0 and N are always among them). Throws Error when clean and corrupt have the same mean metric.
CircuitCurve keep_most_important(const Model& model, const std::vector<TaskPrompt>& prompts,
                                 const Importance& importance, std::vector<std::size_t> sizes,
                                 const PatchOptions& options = {});

// The curve of given metrics, [point][prompt]: what keep_most_important computes from its runs.
std::vector<CurvePoint> curve_points(const std::vector<std::size_t>& sizes,
                                     const PatchedRuns& runs);

}  // namespace filigree
