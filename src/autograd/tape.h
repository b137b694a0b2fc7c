// Records operations so that their gradients can be computed in reverse order.
//
//   Tape tape;                       // operations on this thread are recorded from here on
//   Variable loss = ...;
//   tape.backward(loss);             // gradients are in parameter.grad()
//
// Without a Tape nothing is recorded and intermediates are freed at once. Tapes nest: the innermost
// records. A tape is used by the thread that made it.
#pragma once

#include <functional>
#include <initializer_list>
#include <span>
#include <unordered_set>
#include <vector>

#include "autograd/variable.h"

namespace filigree {

class Tape {
 public:
  Tape();
  ~Tape();
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;

  // The tape that records on this thread, or null.
  static Tape* current();

  // Starts from d(result)/d(result) = `seed` (1 for a one-element result) and runs the closures
  // backwards. Each closure is dropped once run, and with it the tensors it had saved, so a tape
  // serves one backward().
  void backward(Variable result, Tensor seed = Tensor());

  // Before anything is recorded: backward() then calls `watcher` with every leaf that was used, as
  // soon as its gradient is final, while closures of earlier operations are still to run. The order
  // depends on what was recorded alone. A leaf that the result does not depend on is shown too,
  // with its gradient as it was.
  void watch_leaves(std::function<void(const Variable& leaf)> watcher);

  // Adds a closure that reads the output's gradient and adds to those of `inputs` alone.
  void add(Variable output, std::span<const Variable* const> inputs,
           std::function<void(const Tensor& grad)> backward);

  std::size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    Variable output;
    std::function<void(const Tensor& grad)> backward;
    std::vector<Variable> first_used;  // leaves: this closure is the last that adds to them
  };
  std::vector<Entry> entries_;
  std::function<void(const Variable& leaf)> leaf_watcher_;
  std::unordered_set<const void*> leaves_seen_;
  Tape* previous_;
  bool spent_ = false;
};

// True when an operation on these inputs must be recorded.
bool needs_grad(std::initializer_list<const Variable*> inputs);

// Wraps the value an operation computed. When a tape records and an input requires a gradient, the
// result does too, and `backward` runs with the result's gradient if the gradient reaches it.
template <typename Backward>
Variable make_result(Tensor value, std::initializer_list<const Variable*> inputs,
                     Backward&& backward) {
  if (!needs_grad(inputs)) return Variable(std::move(value));
  Variable result = Variable::result(std::move(value));
  Tape::current()->add(result, inputs, std::forward<Backward>(backward));
  return result;
}

// Stops recording on this thread while it lives.
class NoGrad {
 public:
  NoGrad();
  ~NoGrad();
  NoGrad(const NoGrad&) = delete;
  NoGrad& operator=(const NoGrad&) = delete;

 private:
  Tape* paused_;
};

}  // namespace filigree
