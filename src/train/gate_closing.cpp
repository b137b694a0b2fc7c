#include <algorithm>
#include <numeric>

#include "filigree/evaluation.h"
#include "train/head_gates.h"

namespace filigree {
namespace {

constexpr float kStep = 0.25f;       // of a gate's bias; doubled up to
constexpr float kLargest = 16.0f;    // this, where it closes nothing
constexpr double kHeldShare = 0.95;  // of the open edges, by the heads that may be lowered
constexpr float kFinest = 0.04f;     // how near the last step comes to what is needed

using Step = GateClosing::Step;

// The heads with the most open edges, that together hold nearly all.
std::vector<std::size_t> heads_worth_lowering(const std::vector<double>& open_edges) {
  std::vector<std::size_t> order(open_edges.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return open_edges[a] > open_edges[b]; });
  const double all = std::accumulate(open_edges.begin(), open_edges.end(), 0.0);
  double held = 0.0;
  std::size_t count = 0;
  while (count < order.size() && held < kHeldShare * all) held += open_edges[order[count++]];
  order.resize(count);
  return order;
}

class Closing {
 public:
  Closing(Model& model, double most_edges, const std::function<EvaluationWindows()>& windows,
          const std::function<void(double)>& progress, Communicator* ranks)
      : model_(model), gates_(model), windows_(windows), progress_(progress), ranks_(ranks) {
    result_.most_edges = most_edges;
    result_.lowered.assign(gates_.heads(), 0.0f);
  }

  GateClosing run() {
    const Evaluation unmoved = evaluate(model_, windows_(), {}, ranks_);
    result_.loss = loss_ = unmoved.loss();
    result_.edges = edges_ = unmoved.connectivity().active_edges;
    if (progress_) progress_(edges_);
    if (!result_.reached())
      for (const std::size_t head : heads_worth_lowering(unmoved.open_edges)) weigh(head);
    while (!result_.reached() && !next_.empty()) {
      const auto cheapest = std::min_element(
          next_.begin(), next_.end(),
          [](const Weighed& a, const Weighed& b) { return a.loss_an_edge < b.loss_an_edge; });
      const Weighed chosen = *cheapest;
      next_.erase(cheapest);
      const std::size_t head = chosen.step.head;
      const float before = result_.lowered[head];
      // Measured already, unless other heads were lowered since.
      const bool as_then = chosen.after == result_.steps.size();
      take(as_then ? chosen.step : measured_step(head, chosen.step.lowered));
      if (result_.reached())
        shorten_last_step(before);
      else
        weigh(head);
    }
    gates_.move(result_.lowered, -1.0);
    return result_;
  }

 private:
  struct Weighed {
    Step step;
    double loss_an_edge = 0.0;  // per share of the edges
    std::size_t after = 0;      // as many steps it was weighed
  };

  Evaluation measure(const std::vector<float>& lowered) {
    gates_.move(lowered, -1.0);
    Evaluation found = evaluate(model_, windows_(), {}, ranks_);
    if (progress_) progress_(edges_);
    return found;
  }

  Step measured_step(std::size_t head, float lowered_by) {
    std::vector<float> lowered = result_.lowered;
    lowered[head] = lowered_by;
    const Evaluation found = measure(lowered);
    return {head, lowered_by, found.loss(), found.connectivity().active_edges};
  }

  // What the next step of a head would cost. One that closes nothing is no step: the gates of a
  // head may be open by far.
  void weigh(std::size_t head) {
    for (float by = kStep; by <= kLargest; by *= 2.0f) {
      const Step step = measured_step(head, result_.lowered[head] + by);
      if (step.edges >= edges_) continue;
      next_.push_back({step, (step.loss - loss_) / (edges_ - step.edges), result_.steps.size()});
      return;
    }
  }

  void take(const Step& step) {
    result_.lowered[step.head] = step.lowered;
    result_.steps.push_back(step);
    loss_ = step.loss;
    edges_ = step.edges;
  }

  void shorten_last_step(float too_little) {
    const std::size_t head = result_.steps.back().head;
    float enough = result_.lowered[head];
    while (enough - too_little > kFinest) {
      const float half = 0.5f * (enough + too_little);
      const Step shorter = measured_step(head, half);
      if (shorter.edges > result_.most_edges) {
        too_little = half;
        continue;
      }
      enough = half;
      result_.steps.pop_back();
      take(shorter);
    }
  }

  Model& model_;
  HeadGates gates_;
  const std::function<EvaluationWindows()>& windows_;
  const std::function<void(double)>& progress_;
  Communicator* ranks_;
  GateClosing result_;
  double loss_ = 0.0, edges_ = 1.0;  // as the gates are so far
  std::vector<Weighed> next_;        // the next step of every head
};

}  // namespace

GateClosing close_gates(Model& model, double most_edges,
                        const std::function<EvaluationWindows()>& windows,
                        const std::function<void(double edges)>& progress, Communicator* ranks) {
  return Closing(model, most_edges, windows, progress, ranks).run();
}

}  // namespace filigree
