// Variables that know their gradients.
#pragma once

#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "filigree/tensor.h"

namespace filigree {

// -------------------------------------------------------------------------------------------------
// A tensor in a differentiable computation.
//
// A Variable is a handle: copies refer to the same value and the same gradient, and as with a
// pointer a const handle may change what it refers to. Parameters and other leaves are made with
// requires_grad; results of operations require a gradient when an input does and a Tape records.
// Gradients of leaves, and of results marked with retain_grad(), stay after backward(); those of
// other results are dropped as soon as they have been used.
//
// A gradient lies on its value's device and has its element type: that of a bf16 activation is
// bf16, that of an f32 parameter f32. A parameter that computes in bf16 keeps its f32 value and a
// rounded working copy beside it (as()).

class Variable {
 public:
  Variable() = default;  // undefined
  // A constant, unless `requires_grad`. Implicit: a Tensor may be used wherever a Variable may.
  Variable(Tensor value, bool requires_grad = false)  // NOLINT(google-explicit-constructor)
      : node_(std::make_shared<Node>()) {
    node_->value = std::move(value);
    node_->requires_grad = requires_grad;
    node_->retain_grad = requires_grad;
  }

  // The result of a recorded operation: requires a gradient, but keeps it only if asked to.
  static Variable result(Tensor value) {
    Variable variable(std::move(value));
    variable.node_->requires_grad = true;
    variable.node_->is_result = true;
    return variable;
  }

  bool defined() const { return node_ != nullptr; }
  const Tensor& value() const { return node_->value; }
  // Drops the working copy, which the change makes wrong.
  Tensor& mutable_value() const {
    node_->working_copy = Tensor();
    return node_->value;
  }
  // The value, or its copy in another element type, which is made once and kept for the next time;
  // several threads may ask for it at once.
  const Tensor& as(DType dtype) const;
  // The copy that as() has made, or undefined. An optimiser that changes the value refreshes the
  // copy itself and puts it back after mutable_value().
  const Tensor& working_copy() const { return node_->working_copy; }
  void set_working_copy(Tensor copy) const { node_->working_copy = std::move(copy); }
  const Shape& shape() const { return node_->value.shape(); }
  std::int64_t size(int axis) const { return node_->value.size(axis); }

  bool requires_grad() const { return node_ && node_->requires_grad; }
  // Requires a gradient and is no result of a recorded operation: a parameter, for example.
  bool is_leaf() const { return requires_grad() && !node_->is_result; }
  void set_requires_grad(bool on) const { node_->requires_grad = node_->retain_grad = on; }
  // Keeps the gradient of a result after backward(), as leaves keep theirs.
  void retain_grad() const { node_->retain_grad = true; }
  bool retains_grad() const { return node_->retain_grad; }

  // Undefined until backward() has reached this variable.
  const Tensor& grad() const { return node_->grad; }
  void clear_grad() const { node_->grad = Tensor(); }

  // Adds to the gradient. The first contribution is taken over without a copy.
  void accumulate_grad(Tensor contribution) const;
  // The gradient as memory to add into: zeros when there was none. For kernels that accumulate.
  Tensor& grad_to_add_into() const;
  // The same for kernels that can write all of it instead: where there was none `add` becomes false
  // and the contents are undefined.
  Tensor& grad_to_write(bool& add) const;
  // The gradient for its producer's backward; dropped from the variable unless retained.
  Tensor take_grad() const;

  // In a backward closure: true when nobody but it and the tape can read this result again, so that
  // its memory may be overwritten.
  bool last_use() const {
    return node_->is_result && !node_->retain_grad && node_.use_count() == 2 &&
           node_->value.unique() && node_->value.writable();
  }

  // Identity of the value, shared by copies.
  const void* id() const { return node_.get(); }

 private:
  struct Node {
    Tensor value;
    Tensor grad;
    Tensor working_copy;
    bool is_result = false;
    bool requires_grad = false;
    bool retain_grad = false;
  };
  std::shared_ptr<Node> node_;
};

// -------------------------------------------------------------------------------------------------
// A parameter under the name it has in a checkpoint.

struct NamedParameter {
  std::string name;
  Variable variable;
};

// -------------------------------------------------------------------------------------------------
// Records operations so that their gradients can be computed in reverse order.
//
//   Tape tape;                       // operations on this thread are recorded from here on
//   Variable loss = ...;
//   tape.backward(loss);             // gradients are in parameter.grad()
//
// Without a Tape nothing is recorded and intermediates are freed at once. Tapes nest: the innermost
// records. A tape is used by the thread that made it.

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
