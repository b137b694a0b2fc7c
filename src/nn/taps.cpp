#include "filigree/taps.h"

#include "filigree/autograd.h"
#include "filigree/error.h"
#include "filigree/names.h"
#include "filigree/ops.h"

namespace filigree {
namespace {

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

}  // namespace

bool tap_matches(std::string_view pattern, std::string_view name) {
  while (true) {
    const std::size_t pattern_dot = pattern.find('.'), name_dot = name.find('.');
    const std::string_view part = pattern.substr(0, pattern_dot);
    if (part != "*" && part != name.substr(0, name_dot)) return false;
    const bool pattern_ends = pattern_dot == std::string_view::npos;
    const bool name_ends = name_dot == std::string_view::npos;
    if (pattern_ends || name_ends) return pattern_ends == name_ends;
    pattern.remove_prefix(pattern_dot + 1);
    name.remove_prefix(name_dot + 1);
  }
}

void Taps::observe(std::string pattern) {
  requests_.push_back({.pattern = std::move(pattern), .observed = true});
}

void Taps::observe_gradient(std::string pattern) {
  requests_.push_back({.pattern = std::move(pattern), .observed = true, .gradient = true});
}

void Taps::watch(std::string pattern, TapWatcher watcher) {
  requests_.push_back({.pattern = std::move(pattern), .watcher = std::move(watcher)});
}

void Taps::watch_gradient(std::string pattern, TapWatcher watcher) {
  requests_.push_back({.pattern = std::move(pattern), .gradient_watcher = std::move(watcher)});
}

void Taps::intervene(std::string pattern, Intervention intervention) {
  requests_.push_back({.pattern = std::move(pattern), .intervention = std::move(intervention)});
}

void Taps::bind(const std::vector<std::string>& known) {
  bound_.clear();
  values_.clear();
  passed_.clear();
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    const Request& request = requests_[i];
    bool found = false;
    for (const std::string& name : known) {
      if (!tap_matches(request.pattern, name)) continue;
      found = true;
      Bound& bound = bound_[name];
      bound.observed = bound.observed || request.observed;
      bound.gradient = bound.gradient || request.gradient;
      if (request.intervention) bound.interventions.push_back(i);
      if (request.watcher) bound.watchers.push_back(i);
      if (request.gradient_watcher) bound.gradient_watchers.push_back(i);
    }
    if (!found)
      fail("taps: the model has no tap '{}'; the nearest are {}", printable(request.pattern),
           listed(nearest_names(request.pattern, known, 3)));
  }
}

bool Taps::wants(std::string_view name) const { return bound_.find(name) != bound_.end(); }

bool Taps::wants_inside(std::string_view prefix) const {
  const auto found = bound_.lower_bound(prefix);
  return found != bound_.end() && found->first.starts_with(prefix);
}

bool Taps::needs_graph(std::string_view name) const {
  const auto found = bound_.find(name);
  return found != bound_.end() && (found->second.gradient || !found->second.interventions.empty() ||
                                   !found->second.gradient_watchers.empty());
}

namespace {

// The value with a place in the tape at which its gradient is shown.
Variable shown_gradient(const Variable& value, std::string name, std::vector<TapWatcher> watchers,
                        bool on_device) {
  if (Tape::current() == nullptr) return value;
  Variable result = Variable::result(value.value());
  const Variable* const input = &value;
  Tape::current()->add(result, std::span(&input, 1),
                       [value, name = std::move(name), watchers = std::move(watchers),
                        on_device](const Tensor& grad) {
                         const Tensor shown = on_device ? grad : grad.on_host();
                         for (const TapWatcher& watcher : watchers) watcher(name, shown);
                         if (value.requires_grad()) value.accumulate_grad(grad);
                       });
  return result;
}

}  // namespace

Variable Taps::pass(std::string_view name, Variable value) {
  const auto found = bound_.find(name);
  if (found == bound_.end()) return value;
  for (std::size_t i : found->second.interventions) {
    const Variable given = on_device_ ? value : placed(value, DeviceKind::kCpu);
    const Variable changed = requests_[i].intervention(given);
    require(changed.defined(), "taps: the intervention on '{}' returned nothing", name);
    require(changed.shape() == value.shape(), "taps: the intervention on '{}' turned {} into {}",
            name, value.shape().to_string(), changed.shape().to_string());
    if (changed.id() != given.id())
      value = placed(changed, value.value().device(), value.value().dtype());
  }
  if (found->second.gradient) {
    // A constant (every parameter frozen) becomes a leaf here, so that gradients exist at the tap.
    if (!value.requires_grad()) value = Variable(value.value(), true);
    value.retain_grad();
  }
  if (!found->second.gradient_watchers.empty()) {
    std::vector<TapWatcher> watchers;
    for (std::size_t i : found->second.gradient_watchers)
      watchers.push_back(requests_[i].gradient_watcher);
    value = shown_gradient(value, std::string(name), std::move(watchers), on_device_);
  }
  if (found->second.watchers.empty() && !found->second.observed) return value;
  const Tensor seen = shown(value.value());
  for (std::size_t i : found->second.watchers) requests_[i].watcher(name, seen);
  if (found->second.observed) {
    // Without a gradient to wait for, memory of the GPU is not held for the copy's sake.
    const bool host_only = value.value().on_gpu() && !on_device_ && !found->second.gradient;
    values_.insert_or_assign(std::string(name), Observed{host_only ? Variable(seen) : value, seen});
    passed_.emplace_back(name);
  }
  return value;
}

const Taps::Observed& Taps::observed(std::string_view name) const {
  const auto found = values_.find(name);
  if (found == values_.end()) {
    const auto bound = bound_.find(name);
    require(bound != bound_.end() && bound->second.observed,
            "taps: '{}' was not observed in the last run", printable(name));
    fail("taps: the last run did not pass '{}'", name);
  }
  return found->second;
}

const Tensor& Taps::value(std::string_view name) const { return observed(name).value; }

const Tensor& Taps::gradient(std::string_view name) const {
  const Observed& tapped = observed(name);
  require(bound_.find(name)->second.gradient, "taps: no gradient was asked for at '{}'", name);
  require(tapped.variable.grad().defined(),
          "taps: no gradient has reached '{}'; was backward() run?", name);
  if (on_device_ || !tapped.variable.grad().on_gpu()) return tapped.variable.grad();
  tapped.gradient = tapped.variable.grad().on_host();
  return tapped.gradient;
}

}  // namespace filigree
