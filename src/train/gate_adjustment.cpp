#include <algorithm>

#include "filigree/evaluation.h"
#include "train/head_gates.h"

namespace filigree {
namespace {

constexpr float kShiftStep = 0.25f;
constexpr int kShifts = 8;  // up to 2, where a gate was open with a chance of one in eight
constexpr double kScaleStep = 0.25;
constexpr int kMostUp = 8, kMostDown = 4;  // steps of the scale
constexpr int kInVain = 2;                 // tries above the lowest loss, after which it is taken

using Measured = GateAdjustment::Measured;
using Windows = std::function<EvaluationWindows()>;

// For every head the shift with which its certain gates open as many edges as sampled ones, from
// how it is `unmoved` on.
std::vector<float> matching_shifts(Model& model, HeadGates& gates, const Evaluation& unmoved,
                                   const Windows& windows, Communicator* ranks) {
  const std::vector<float> together(gates.heads(), 1.0f);
  std::vector<float> shifts(gates.heads(), 0.0f);
  const std::vector<double>& wanted = unmoved.expected_edges;
  std::vector<double> before = unmoved.open_edges;
  for (int step = 1; step <= kShifts; ++step) {
    const float shift = kShiftStep * static_cast<float>(step);
    gates.move(together, shift);
    const Evaluation now = evaluate(model, windows(), {}, ranks);
    for (std::size_t h = 0; h < gates.heads(); ++h) {
      if (before[h] >= wanted[h]) continue;  // found already
      const double gain = now.open_edges[h] - before[h];
      const double part =
          now.open_edges[h] >= wanted[h] && gain > 0 ? (wanted[h] - before[h]) / gain : 1.0;
      shifts[h] = shift - kShiftStep * (1.0f - static_cast<float>(part));
    }
    before = now.open_edges;
  }
  return shifts;
}

}  // namespace

GateAdjustment adjust_gates(Model& model, double most_loss, const Windows& windows,
                            Communicator* ranks) {
  HeadGates gates(model);
  GateAdjustment result;
  result.most_loss = most_loss;
  const Evaluation unmoved = evaluate(model, windows(), {}, ranks);
  result.head_shifts = matching_shifts(model, gates, unmoved, windows, ranks);

  const auto noted = [&](double scale, const Evaluation& found) {
    result.tried.push_back({scale, found.loss(), found.connectivity().active_edges});
    return result.tried.back();
  };
  const auto measure = [&](double scale) {
    gates.move(result.head_shifts, scale);
    return noted(scale, evaluate(model, windows(), {}, ranks));
  };
  Measured best = noted(0.0, unmoved);
  if (best.loss <= most_loss) {
    for (int step = 1; step <= kMostDown; ++step) {
      const Measured lower = measure(-kScaleStep * step);
      if (lower.loss > most_loss) break;
      best = lower;
    }
  } else {
    int in_vain = 0;
    for (int step = 1; step <= kMostUp && best.loss > most_loss && in_vain < kInVain; ++step) {
      const Measured higher = measure(kScaleStep * step);
      in_vain = higher.loss < best.loss ? 0 : in_vain + 1;
      if (in_vain == 0) best = higher;
    }
  }
  gates.move(result.head_shifts, best.scale);
  result.chosen = best;
  return result;
}

}  // namespace filigree
