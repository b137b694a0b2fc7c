// Training that closes attention.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "filigree/knobs.h"
#include "filigree/model.h"
#include "filigree/names.h"
#include "filigree/train.h"

namespace filigree {

// -------------------------------------------------------------------------------------------------
// The multiplier of a constrained minimisation: min E subject to gap <= 0, as min E + lambda *
// task.
//
// Damped dual ascent on log lambda (after GECO, Rezende & Viola 2018): the gap is averaged over
// steps, and every few steps
//
//   log lambda += rate * clip(gain * average, -limit, +limit)
//
// kept within [log min, log max]. The upper bound is the anti-windup: without it lambda grows by
// orders of magnitude while the loss recovers from the first strong pressure, and the sparsity that
// was won is given back. The gap's average forgets within a few tens of steps, so lambda leaves a
// bound soon after the gap turns.
//
// A run may press first and recover later: from step `recovery_from` on the bound is
// `recovery_max` instead. A low first bound closes more than the constraint bears, a higher second
// one wins the loss back where it is cheapest. The second bound holds before, too, while the gap is
// above `rescue_gap`: what is lost there may be lost for good.

struct MultiplierOptions {
  double initial = 1.0;
  double min = 1e-3;
  double max = 60.0;
  std::int64_t recovery_from = -1;  // steps observed; -1: never
  double recovery_max = 60.0;
  double rescue_gap = 0.25;  // above which lambda also rises so many times faster:
  double rescue_speed = 4.0;
  double rate = 0.2;
  double gain = 10.0;
  double limit = 0.5;
  double fall = 1.0;        // of the limit, downwards
  double averaging = 0.9;   // weight of the old average
  std::int64_t every = 10;  // steps between updates
};

Knobs knobs_of(MultiplierOptions& options);

struct MultiplierState {
  double log_lambda = 0.0;
  double average_gap = 0.0;
  std::int64_t observed = 0;  // steps
  // In a row at the upper bound, with a positive average gap that has not become smaller by a
  // twentieth: as long as it falls, the bound is no obstacle. Not counted before the last bound.
  std::int64_t steps_at_max = 0;
  double lowest_gap = 0.0;  // there; 0: not there
};

class Multiplier {
 public:
  // Throws Error for options that make no sense.
  explicit Multiplier(const MultiplierOptions& options);

  double lambda() const;
  double max() const;      // the bound that holds now
  bool last_bound() const;  // no higher one comes
  const MultiplierState& state() const { return state_; }
  void restore(const MultiplierState& state) { state_ = state; }

  // Takes one step's gap.
  void observe(double gap);

  // For gaps that are measured from another zero from now on.
  void shift_average(double by) { state_.average_gap += by; }

 private:
  bool rescues() const;

  MultiplierOptions options_;
  MultiplierState state_;
};

// -------------------------------------------------------------------------------------------------
// Sparse post-training: as few open edges as possible at the teacher's loss.
//
//   loss = (objective(E) + lambda * task) / (1 + lambda)      objective = log E or E
//   task = (1 - kd) CE(student) + kd KL(teacher || student)
//   gap  = CE(student) - CE(teacher) - margin                 (or CE(student) - target)
//
// E is the expected share of open edges, averaged over layers, heads and the batch. With a head
// power p below 1 the objective takes (mean of e^p)^(1/p) in its place, e being the shares of
// single heads in single windows: an edge of a head that has few others open in its window then
// costs more than one of a head that has many, so that few heads do what many shared. Lambda
// follows the gap; the teacher is the dense model on the same batch, its gates
// ignored. All of this is about the global batch where several ranks share it: E is averaged before
// its logarithm.
//
// A head whose gate logits are all large feels no pressure, because the slope of its expected edges
// vanishes, yet it weighs in E as much as it can; bias and weights alone would need many thousand
// steps to come back from there. `max_open` brings such heads back: as long as more than that
// share of a head's edges is expected open, its bias is lowered a little after every step, which
// changes hardly an output while the gates are saturated.
//
// A teacher that has read its text several times knows it partly by heart, and a gap on that text
// is then larger than on text that neither has seen. `held_out_gap` measures the latter, with
// certain gates, now and then in the recovery; the difference is taken off the gap from there on.

enum class EdgeObjective { kLog, kLinear };
template <>
inline constexpr auto kNames<EdgeObjective> = std::to_array<Named<EdgeObjective>>(
    {{EdgeObjective::kLog, "log"}, {EdgeObjective::kLinear, "linear"}});

struct SparsificationOptions {
  EdgeObjective objective = EdgeObjective::kLog;
  double head_power = 1.0;            // p
  double margin = 0.01;               // nats that the student may lose
  std::optional<double> target = {};  // a fixed cross entropy instead of the teacher's
  double distillation = 0.5;          // kd
  MultiplierOptions multiplier = {};
  double max_open = 1.0;  // of a head's edges; less than 1 needs a bias for every head
  std::uint64_t seed = 0;  // of the gate noise
  // Train with the gates as they are used afterwards instead of sampled ones: for the end, when
  // what is open is decided.
  bool certain_gates = false;
  // Give up when lambda has rested on its upper bound this many steps and the gap is still above
  // the tolerance: the constraint cannot be met.
  std::int64_t patience = 2000;
  double tolerance = 0.05;
  // Give up too when fewer expected edges than this share are left at a gap above the tolerance:
  // gates that have closed so far pass no gradient that could open them again.
  double min_edges = 1e-6;
  // CE(student) - CE(teacher) on held-out text, the same on every rank; nothing: the gap is that of
  // the training batches. Every so many steps of the recovery.
  std::function<double(Communicator&)> held_out_gap = {};
  std::int64_t held_out_every = 0;

  // What serves models of any size: strong pressure first, recovery at a higher bound for the last
  // two fifths of the steps, and a multiplier that answers to gaps of the size of the budget. Every
  // head needs its own gate bias.
  static SparsificationOptions of_budget(double nats, std::int64_t steps);
  static constexpr double kRecovery = 0.4;  // of the steps
};

// All that a user may set: not the seed, and not what measures held-out text.
Knobs knobs_of(SparsificationOptions& options);

class Sparsification : public Objective {
 public:
  // `student` must have a gate. `teacher` is not changed; it may be null only with a fixed target
  // and no distillation.
  Sparsification(Model& student, const Model* teacher, const SparsificationOptions& options);

  Variable loss(const Batch& batch, std::int64_t micro_step, Communicator& ranks,
                Metrics& metrics) override;
  void after_step(const Metrics& metrics) override;
  std::optional<std::string> stop_reason() const override;
  std::optional<std::string> take_warning() override;
  Settings settings() const override;
  nlohmann::json state() const override;
  void restore(const nlohmann::json& state) override;

  double lambda() const { return multiplier_.lambda(); }

 private:
  // A stretch of steps in which lambda does not fall: the lowest average gap in it, and lambda
  // then.
  struct Growth {
    double lowest_gap = 0.0, log_lambda = 0.0, last_log_lambda = 0.0;
    bool begun = false, warned = false;
  };
  // The first head whose scores grew as fast as its bias was lowered.
  struct RunawayHead {
    std::optional<HeadId> head = {};
    bool warned = false;
  };
  // What a run tells once that makes its sparsity worth nothing: hardly an edge is left, or the
  // student's loss lies below the teacher's by more than it was allowed to lie above.
  struct Warned {
    bool closed = false, below = false;
  };
  std::optional<std::string> take_finding();
  void follow_growth();
  void compare_with_held_out(Communicator& ranks);
  double measure_heads(const Tensor& shares, double all_rows, Communicator& ranks);
  void lower_open_heads();

  Model& student_;
  const Model* teacher_;
  SparsificationOptions options_;
  Multiplier multiplier_;
  Growth growth_;
  RunawayHead runaway_;
  Warned warned_;
  double window_edges_ = 0.0;    // causal pairs of a window, over all heads
  double expected_edges_ = 1.0;  // of the last step
  // Of the training batches: how far their gap lies above that of held-out text, and the steps
  // after which this was measured.
  double memorised_ = 0.0;
  std::int64_t compared_after_ = 0;
  // Expected shares of the heads, added up over the batches of this step; with max_open < 1.
  std::vector<double> head_shares_;
  std::int64_t batches_ = 0;
};

}  // namespace filigree
