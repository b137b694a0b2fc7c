// How training went: of sparse runs loss gap, active edges and the multiplier over steps, of dense
// ones the loss, a chart each on one x axis. Steps at which something went wrong are marked.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "figure/figure.h"
#include "figure/theme.h"

namespace filigree::figure {

// Each list is empty or has a value for every step.
struct TrainingRun {
  std::string name = {};
  std::vector<double> steps = {};
  std::vector<double> loss = {};          // nats, above 0
  std::vector<double> loss_gap = {};      // nats over the teacher
  std::vector<double> active_edges = {};  // fraction; steps with none have no place on the log axis
  std::vector<double> multiplier = {};
  // A step and a word, such as "stopped"; on the uppermost chart that the run has.
  std::vector<std::pair<double, std::string>> marks = {};
};

struct TrainingCurves {
  std::string title = {};
  std::vector<TrainingRun> runs = {};
  std::optional<double> margin = {};  // the gap that is allowed, marked
  std::string caption = {};
};

// A quantity that no run has gets no chart. Throws Error when nothing is left or lengths differ.
Figure training_curves(const TrainingCurves& input, const Theme& theme);

}  // namespace filigree::figure
