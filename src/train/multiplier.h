// The multiplier of a constrained minimisation: min E subject to gap <= 0, as min E + lambda *
// task.
//
// Damped dual ascent on log lambda (after GECO, Rezende & Viola 2018): the gap is averaged over
// steps, and every few steps
//
//   log lambda += rate * clip(gain * average, -limit, +limit)
//
// kept within [log least, log most]. The upper bound is the anti-windup: without it lambda grows by
// orders of magnitude while the loss recovers from the first strong pressure, and the sparsity that
// was won is given back. The gap's average forgets within a few tens of steps, so lambda leaves a
// bound soon after the gap turns.
//
// A run may press first and recover later: from step `recovery_from` on the bound is
// `recovery_most` instead. A low first bound closes more than the constraint bears, a higher second
// one wins the loss back where it is cheapest. The second bound holds before, too, while the gap is
// above `alarm`: what is lost there may be lost for good.
#pragma once

#include <cstdint>

namespace filigree {

struct MultiplierOptions {
  double initial = 1.0;
  double least = 1e-3;
  double most = 60.0;
  std::int64_t recovery_from = -1;  // steps observed; -1: never
  double recovery_most = 60.0;
  double alarm = 0.25;  // above which lambda also rises so many times faster:
  double hurry = 4.0;
  double rate = 0.2;
  double gain = 10.0;
  double limit = 0.5;
  double fall = 1.0;        // of the limit, downwards
  double averaging = 0.9;   // weight of the old average
  std::int64_t every = 10;  // steps between updates
};

struct MultiplierState {
  double log_lambda = 0.0;
  double average_gap = 0.0;
  std::int64_t observed = 0;  // steps
  // In a row at the upper bound, with a positive average gap that has not become smaller by a
  // twentieth: as long as it falls, the bound is no obstacle. Not counted before the last bound.
  std::int64_t steps_at_most = 0;
  double lowest_gap = 0.0;  // there; 0: not there
};

class Multiplier {
 public:
  // Throws Error for options that make no sense.
  explicit Multiplier(const MultiplierOptions& options);

  double lambda() const;
  double most() const;      // the bound that holds now
  bool last_bound() const;  // no higher one comes
  const MultiplierState& state() const { return state_; }
  void restore(const MultiplierState& state) { state_ = state; }

  // Takes one step's gap.
  void observe(double gap);

  // For gaps that are measured from another zero from now on.
  void shift_average(double by) { state_.average_gap += by; }

 private:
  bool alarmed() const;

  MultiplierOptions options_;
  MultiplierState state_;
};

}  // namespace filigree
