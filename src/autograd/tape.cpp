#include <utility>

#include "filigree/autograd.h"
#include "filigree/error.h"

namespace filigree {
namespace {

thread_local Tape* current_tape = nullptr;

}  // namespace

Tape::Tape() : previous_(std::exchange(current_tape, this)) {}
Tape::~Tape() { current_tape = previous_; }
Tape* Tape::current() { return current_tape; }

void Tape::watch_leaves(std::function<void(const Variable& leaf)> watcher) {
  require(entries_.empty(), "tape: leaves are watched from the first operation on, not after {}",
          entries_.size());
  leaf_watcher_ = std::move(watcher);
}

void Tape::add(Variable output, std::span<const Variable* const> inputs,
               std::function<void(const Tensor& grad)> backward) {
  Entry entry{std::move(output), std::move(backward), {}};
  if (leaf_watcher_)
    for (const Variable* input : inputs)
      if (input->is_leaf() && leaves_seen_.insert(input->id()).second)
        entry.first_used.push_back(*input);
  entries_.push_back(std::move(entry));
}

void Tape::backward(Variable result, Tensor seed) {
  require(!spent_, "backward: this tape has already been run; record the computation again");
  require(result.requires_grad(),
          "backward: the result does not depend on anything that requires a gradient");
  if (!seed.defined()) {
    require(result.shape().elements() == 1,
            "backward: a result of {} needs a seed gradient of the same shape",
            result.shape().to_string());
    seed = Tensor::full(result.shape(), 1.0f, result.value().device());
  }
  spent_ = true;
  // Closures must not record themselves.
  NoGrad no_grad;
  result.accumulate_grad(std::move(seed));
  result = Variable();
  while (!entries_.empty()) {
    Entry entry = std::move(entries_.back());
    entries_.pop_back();
    if (entry.output.grad().defined()) {  // otherwise it does not influence the result
      const Tensor grad = entry.output.take_grad();
      entry.backward(grad);
    }
    for (const Variable& leaf : entry.first_used) leaf_watcher_(leaf);
  }
}

bool needs_grad(std::initializer_list<const Variable*> inputs) {
  if (current_tape == nullptr) return false;
  for (const Variable* input : inputs)
    if (input->requires_grad()) return true;
  return false;
}

NoGrad::NoGrad() : paused_(std::exchange(current_tape, nullptr)) {}
NoGrad::~NoGrad() { current_tape = paused_; }

}  // namespace filigree
