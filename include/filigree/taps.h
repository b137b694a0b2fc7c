// Taps: the window into a running model.
//
// Every intermediate has a name, TransformerLens's where it has one: "blocks.3.attn.hook_pattern",
// "blocks.3.hook_resid_pre". An observer keeps a tap's value, an intervention replaces it, and a
// gradient can be asked for at any tap:
//
//   Taps taps;
//   taps.observe("blocks.*.attn.hook_pattern");           // * stands for any one layer
//   taps.intervene("blocks.0.attn.hook_z", [](const Variable& z) { return scale(z, 0.0f); });
//   model.forward(ids, {.taps = &taps});
//   const Tensor& pattern = taps.value("blocks.3.attn.hook_pattern");
//
// A name that the model does not have is an Error that lists the nearest ones, never a silent
// no-op. A tap that a run does not pass (because of its options) is an Error when its value is
// read.
//
// watch() is observe() without the keeping: the caller sees each value as the model passes it, one
// layer after the other, so that maps of all layers never lie in memory together.
//
// Whatever device a model computes on, values, gradients and what interventions and watchers are
// given are f32 on the CPU, unless stay_on_device() says otherwise. An intervention may return a
// value of either device.
//
// Reading a value, changing it and differentiating at it may cost different amounts: a model takes
// its fused paths where nothing asks for what they skip.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "filigree/autograd.h"

namespace filigree {

using Intervention = std::function<Variable(const Variable&)>;
using TapWatcher = std::function<void(std::string_view name, const Tensor& value)>;

class Taps {
 public:
  // Names may hold '*' for one dot-separated part. Interventions on one tap run in the order given;
  // an observer sees the value after them.
  void observe(std::string pattern);
  // Also keeps the gradient that a later backward() brings.
  void observe_gradient(std::string pattern);
  // Calls `watcher` while the model runs, with the value that an observer would keep.
  void watch(std::string pattern, TapWatcher watcher);
  // Calls `watcher` while backward() runs, with the gradient at the tap, which nothing keeps.
  void watch_gradient(std::string pattern, TapWatcher watcher);
  // The result must have the tap's shape.
  void intervene(std::string pattern, Intervention intervention);
  // Leaves everything that is shown where the model computes it and in its precision, for analyses
  // whose own operations run there: nothing is copied to the CPU at any tap.
  void stay_on_device() { on_device_ = true; }

  // After a run. Throws Error when the tap was not asked for or not passed.
  const Tensor& value(std::string_view name) const;
  // After backward(). Throws Error when no gradient reached the tap.
  const Tensor& gradient(std::string_view name) const;
  // Names observed in the last run, in the order the model passed them.
  const std::vector<std::string>& passed() const { return passed_; }

  // For models. bind() checks every request against the names the model has and forgets the values
  // of the last run.
  void bind(const std::vector<std::string>& known);
  bool wants(std::string_view name) const;           // observed, watched, changed or differentiated
  bool wants_inside(std::string_view prefix) const;  // any tap whose name begins so
  bool needs_graph(std::string_view name) const;     // changed or differentiated
  Variable pass(std::string_view name, Variable value);

 private:
  struct Request {
    std::string pattern = {};
    bool observed = false;
    bool gradient = false;
    Intervention intervention = {};
    TapWatcher watcher = {};
    TapWatcher gradient_watcher = {};
  };
  // What was asked of one tap; indices into requests_.
  struct Bound {
    bool observed = false;
    bool gradient = false;
    std::vector<std::size_t> interventions;
    std::vector<std::size_t> watchers;
    std::vector<std::size_t> gradient_watchers;
  };

  // A value that the last run passed, and its copies on the CPU where it lies elsewhere.
  struct Observed {
    Variable variable = {};
    Tensor value = {};
    mutable Tensor gradient = {};
  };
  const Observed& observed(std::string_view name) const;
  // As watchers and observers see it.
  Tensor shown(const Tensor& value) const { return on_device_ ? value : value.on_host(); }

  bool on_device_ = false;
  std::vector<Request> requests_;
  std::map<std::string, Bound, std::less<>> bound_;
  std::map<std::string, Observed, std::less<>> values_;
  std::vector<std::string> passed_;
};

// A place in the tree of tap names: the taps (or none) and a prefix such as "blocks.3.attn.".
class TapScope {
 public:
  TapScope() = default;
  TapScope(Taps* taps, std::string prefix) : taps_(taps), prefix_(std::move(prefix)) {}

  TapScope inside(std::string_view part) const {
    return taps_ == nullptr ? TapScope() : TapScope(taps_, prefix_ + std::string(part) + ".");
  }
  bool wants(std::string_view name) const {
    return taps_ != nullptr && taps_->wants(prefix_ + std::string(name));
  }
  bool wants_any() const { return taps_ != nullptr && taps_->wants_inside(prefix_); }
  bool needs_graph(std::string_view name) const {
    return taps_ != nullptr && taps_->needs_graph(prefix_ + std::string(name));
  }
  Variable operator()(std::string_view name, Variable value) const {
    return taps_ == nullptr ? value : taps_->pass(prefix_ + std::string(name), std::move(value));
  }

 private:
  Taps* taps_ = nullptr;
  std::string prefix_;
};

// True when `name` fits `pattern`, in which '*' stands for one dot-separated part.
bool tap_matches(std::string_view pattern, std::string_view name);

}  // namespace filigree
