#include <algorithm>
#include <cmath>
#include <map>
#include <span>

#include "base/checksum.h"
#include "filigree/error.h"
#include "filigree/train.h"

namespace filigree {

namespace {

// Shares begin at multiples of it, so that kernels find their elements where they lie well.
constexpr std::int64_t kAlignment = 64;

Tensor flat(const Tensor& tensor) { return tensor.reshape({tensor.elements()}); }

std::span<float> elements(Tensor tensor) {
  return {tensor.mutable_data<float>(), static_cast<std::size_t>(tensor.elements())};
}

}  // namespace

AdamW::AdamW(const std::vector<ParameterGroup>& groups, const AdamWOptions& options,
             Communicator* sharing)
    : ranks_(sharing), options_(options) {
  for (const ParameterGroup& group : groups)
    for (const NamedParameter& parameter : group.parameters) {
      Tensor& value = parameter.variable.mutable_value();
      if (!value.writable()) value = value.clone();
      entries_.push_back({parameter,
                          group.weight_decay,
                          group.learning_rate_factor,
                          group.own,
                          {0, value.elements()},
                          {},
                          {}});
    }
  if (sharing != nullptr) share_out();
  for (Entry& entry : entries_) {
    const Tensor& value = entry.parameter.variable.value();
    const std::int64_t count = own_share(entry, value).elements();
    entry.first = Tensor::zeros({count}, DType::kF32, value.device());
    entry.second = Tensor::zeros({count}, DType::kF32, value.device());
  }
}

// All elements in a row are cut into equal parts, so that a rank has few parameters and of most of
// them all.
void AdamW::share_out() {
  const auto elements_of = [](const Entry& entry) { return entry.shares.back(); };
  std::int64_t total = 0;
  for (const Entry& entry : entries_)
    if (!entry.own) total += elements_of(entry);
  std::int64_t before = 0;
  for (Entry& entry : entries_) {
    if (entry.own) continue;
    const std::int64_t count = elements_of(entry);
    entry.shares.clear();
    for (int rank = 0; rank <= ranks_->size(); ++rank) {
      const std::int64_t cut =
          std::clamp<std::int64_t>(total * rank / ranks_->size() - before, 0, count);
      entry.shares.push_back(cut == count ? count : cut / kAlignment * kAlignment);
    }
    before += count;
  }
}

Tensor AdamW::own_share(const Entry& entry, const Tensor& whole) const {
  const std::size_t rank =
      entry.shares.size() > 2 ? static_cast<std::size_t>(ranks_->rank()) : std::size_t{0};
  return flat(whole).rows(entry.shares[rank], entry.shares[rank + 1]);
}

// Of arrays that lie here as a whole, each beside what it belongs to: the part of every rank.
std::vector<std::vector<std::span<float>>> AdamW::shares_of(
    const std::vector<std::pair<const Entry*, Tensor>>& wholes) const {
  std::vector<std::vector<std::span<float>>> of_ranks(static_cast<std::size_t>(ranks_->size()));
  for (const auto& [entry, whole] : wholes)
    for (std::size_t rank = 0; rank < of_ranks.size(); ++rank)
      if (entry->shares[rank] < entry->shares[rank + 1])
        of_ranks[rank].push_back(
            elements(flat(whole).rows(entry->shares[rank], entry->shares[rank + 1])));
  return of_ranks;
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
  std::vector<std::pair<const Entry*, Tensor>> shared;  // of which other ranks have parts
  for (Entry& entry : entries_) {
    const Variable& variable = entry.parameter.variable;
    if (!variable.grad().defined()) continue;
    const bool all_here = entry.first.elements() == variable.value().elements();
    // The bf16 copy that a GPU computes with is refreshed in the same pass. Where others have parts
    // of the value it is made again from what they send.
    const Tensor copy = all_here ? variable.working_copy() : Tensor();
    Tensor& value = variable.mutable_value();
    variable.set_working_copy(copy);
    if (ranks_ != nullptr && !entry.own) shared.emplace_back(&entry, value);
    if (entry.first.elements() == 0) continue;
    AdamWUpdate update;
    update.step = {learning_rate * entry.learning_rate_factor,
                   options_.beta1,
                   options_.beta2,
                   options_.epsilon,
                   entry.weight_decay,
                   static_cast<float>(factor),
                   steps_};
    update.gradient = own_share(entry, variable.grad());
    if (copy.defined()) update.bf16_copy = flat(copy);
    update.weight = own_share(entry, value);
    update.first_moment = entry.first, update.second_moment = entry.second;
    updates.push_back(std::move(update));
  }
  adamw_steps(std::move(updates));
  if (!shared.empty()) ranks_->all_gather(shares_of(shared), shared[0].second.device());
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

std::uint64_t AdamW::bytes() const {
  std::uint64_t bytes = 0;
  for (const Entry& entry : entries_) bytes += entry.first.bytes() + entry.second.bytes();
  return bytes;
}

Tensor AdamW::fetch(const Entry& entry, const Tensor& share) const {
  const Shape& shape = entry.parameter.variable.shape();
  if (ranks_ == nullptr || entry.own) return share.to(DeviceKind::kCpu).reshape(shape);
  Tensor whole = Tensor::empty(shape);
  own_share(entry, whole).copy_from(share);
  ranks_->all_gather(shares_of({{&entry, whole}}), DeviceKind::kCpu);
  return whole;
}

std::vector<AdamWMoment> AdamW::state(Part part) const {
  std::vector<AdamWMoment> state;
  for (const Entry& entry : entries_) {
    if (entry.own != (part == Part::kOwn)) continue;
    const auto add = [&](const char* prefix, const Tensor& share) {
      state.push_back({prefix + entry.parameter.name, entry.parameter.variable.shape(),
                       [this, &entry, share] { return fetch(entry, share); }});
    };
    add("m.", entry.first);
    add("v.", entry.second);
  }
  std::sort(state.begin(), state.end(),
            [](const AdamWMoment& a, const AdamWMoment& b) { return a.name < b.name; });
  return state;
}

void AdamW::restore(std::int64_t steps, const std::vector<std::pair<std::string, Tensor>>& state) {
  const std::map<std::string, Tensor> by_name(state.begin(), state.end());
  const auto take = [&](const std::string& name, const Entry& entry, Tensor& into) {
    const Shape& shape = entry.parameter.variable.shape();
    const auto found = by_name.find(name);
    require(found != by_name.end(), "optimiser state: '{}' is missing", name);
    require(found->second.shape() == shape, "optimiser state: '{}' is {}, not {}", name,
            found->second.shape().to_string(), shape.to_string());
    into.copy_from(own_share(entry, found->second));
  };
  for (Entry& entry : entries_) {
    take("m." + entry.parameter.name, entry, entry.first);
    take("v." + entry.parameter.name, entry, entry.second);
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
