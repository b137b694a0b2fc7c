#include "filigree/train/adamw.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "filigree/base/checksum.h"
#include "filigree/base/error.h"

namespace filigree {

AdamW::AdamW(const std::vector<ParameterGroup>& groups, const AdamWOptions& options)
    : options_(options) {
  for (const ParameterGroup& group : groups)
    for (const NamedParameter& parameter : group.parameters) {
      Tensor& value = parameter.variable.mutable_value();
      if (!value.writable()) value = value.clone();
      const auto zeros = [&] { return Tensor::zeros(value.shape(), DType::kF32, value.device()); };
      entries_.push_back(
          {parameter, zeros(), zeros(), group.weight_decay, group.learning_rate_factor, group.own});
    }
}

double AdamW::gradient_norm(Communicator* ranks) const {
  std::vector<Tensor> shared, own;
  for (const Entry& entry : entries_)
    if (entry.parameter.variable.grad().defined())
      (entry.own ? own : shared).push_back(entry.parameter.variable.grad());
  if (!has_own()) return global_norm(shared);
  const double here = global_norm(own);
  double squares[] = {here * here};
  if (ranks != nullptr) ranks->sum(squares);
  return std::hypot(global_norm(shared), std::sqrt(squares[0]));
}

double AdamW::step(float learning_rate, double clip, float gradient_scale, Communicator* ranks) {
  const double norm = gradient_norm(ranks) * static_cast<double>(gradient_scale);
  double factor = static_cast<double>(gradient_scale);
  if (clip > 0.0 && norm > clip) factor *= clip / norm;
  ++steps_;
  std::vector<AdamWUpdate> updates;
  for (Entry& entry : entries_) {
    const Variable& variable = entry.parameter.variable;
    if (!variable.grad().defined()) continue;
    AdamWUpdate update;
    update.step = {learning_rate * entry.learning_rate_factor,
                   options_.beta1,
                   options_.beta2,
                   options_.epsilon,
                   entry.weight_decay,
                   static_cast<float>(factor),
                   steps_};
    update.gradient = variable.grad();
    // The bf16 copy that a GPU computes with is refreshed in the same pass.
    update.bf16_copy = variable.working_copy();
    update.weight = variable.mutable_value();
    variable.set_working_copy(update.bf16_copy);
    update.first_moment = entry.first, update.second_moment = entry.second;
    updates.push_back(std::move(update));
  }
  adamw_steps(std::move(updates));
  return norm;
}

Settings AdamW::settings() const {
  float decay = 0.0f;
  std::uint64_t groups = 0;  // which parameters have which decay and factor
  for (const Entry& entry : entries_) {
    decay = std::max(decay, entry.weight_decay);
    if (!entry.own)
      groups = xxh64(fmt::format("{} {} {}", entry.parameter.name, entry.weight_decay,
                                 entry.learning_rate_factor),
                     groups);
  }
  return {{"beta1", decimal(options_.beta1)},
          {"beta2", decimal(options_.beta2)},
          {"epsilon", decimal(options_.epsilon)},
          {"weight_decay", decimal(decay)},
          {"parameter_groups", checksum_text(groups)}};
}

bool AdamW::has_own() const {
  return std::any_of(entries_.begin(), entries_.end(), [](const Entry& e) { return e.own; });
}

std::vector<std::pair<std::string, Tensor>> AdamW::state(Part part) const {
  std::vector<std::pair<std::string, Tensor>> state;
  for (const Entry& entry : entries_) {
    if (entry.own != (part == Part::kOwn)) continue;
    state.emplace_back("m." + entry.parameter.name, entry.first);
    state.emplace_back("v." + entry.parameter.name, entry.second);
  }
  return state;
}

void AdamW::restore(std::int64_t steps, const std::vector<std::pair<std::string, Tensor>>& state) {
  const std::map<std::string, Tensor> by_name(state.begin(), state.end());
  const auto take = [&](const std::string& name, Tensor& into) {
    const auto found = by_name.find(name);
    require(found != by_name.end(), "optimiser state: '{}' is missing", name);
    require(found->second.shape() == into.shape(), "optimiser state: '{}' is {}, not {}", name,
            found->second.shape().to_string(), into.shape().to_string());
    into.copy_from(found->second);
  };
  for (Entry& entry : entries_) {
    take("m." + entry.parameter.name, entry.first);
    take("v." + entry.parameter.name, entry.second);
  }
  steps_ = steps;
}

std::vector<ParameterGroup> decay_groups(const std::vector<NamedParameter>& parameters,
                                         float weight_decay) {
  ParameterGroup matrices{{}, weight_decay}, vectors{{}, 0.0f};
  for (const NamedParameter& parameter : parameters)
    (parameter.variable.shape().rank() >= 2 ? matrices : vectors).parameters.push_back(parameter);
  return {matrices, vectors};
}

std::vector<ParameterGroup> decay_groups(const Trainable& trained, float weight_decay) {
  std::vector<ParameterGroup> groups = decay_groups(trained.parameters(), weight_decay);
  for (ParameterGroup& group : decay_groups(trained.own_parameters(), weight_decay)) {
    group.own = true;
    groups.push_back(std::move(group));
  }
  return groups;
}

}  // namespace filigree
