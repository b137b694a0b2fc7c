#include "filigree/model.h"

#include <algorithm>

#include "filigree/error.h"
#include "filigree/ops.h"
#include "filigree/random.h"
#include "filigree/runtime.h"
#include "model/family.h"

namespace filigree {
namespace {

constexpr std::int64_t kRandomGrain = 1 << 16;

Variable initial_value(const ParameterSpec& spec, std::uint64_t seed, std::uint64_t stream) {
  if (spec.initial == Initial::kZeros) return Tensor::zeros(spec.shape);
  if (spec.initial == Initial::kOnes) return Tensor::full(spec.shape, 1.0f);
  Tensor value = Tensor::empty(spec.shape);
  float* data = value.mutable_f32();
  parallel_for(value.elements(), kRandomGrain, [&](std::int64_t begin, std::int64_t end) {
    const std::span<float> range(data + begin, static_cast<std::size_t>(end - begin));
    fill_normal(range, seed, stream, static_cast<std::uint64_t>(begin));
    for (float& x : range) x *= spec.deviation;
  });
  return value;
}

}  // namespace

Variable Model::forward(const Tensor& ids, const ForwardOptions& options) const {
  Variable logits = linear(final_hidden(ids, options), output_layer());
  logits = TapScope(options.taps, "").inside("unembed")("hook_out", logits);
  if (config_.logit_soft_cap > 0.0f && !options.uncapped_logits)
    logits = soft_cap(logits, config_.logit_soft_cap);
  return options.logits_on_device ? logits : placed(logits, DeviceKind::kCpu);
}

Variable Model::final_hidden(const Tensor& ids, const ForwardOptions& options) const {
  require(!options.end_layer, "forward: a run to the logits does not end before layer {}",
          options.end_layer.value_or(0));
  return checked_run(ids, options);
}

Variable Model::residual_before(std::int64_t layer, const Tensor& ids,
                                const ForwardOptions& options) const {
  const std::int64_t first = options.start != nullptr ? options.start->layer : 0;
  require(layer >= first && layer <= config_.layers,
          "forward: a run from layer {} cannot end before layer {}; the model has {}", first, layer,
          config_.layers);
  ForwardOptions own = options;
  own.end_layer = layer;
  own.last_position_only = false;
  return checked_run(ids, own);
}

Variable Model::checked_run(const Tensor& ids, const ForwardOptions& options) const {
  require(ids.defined() && ids.shape().rank() == 2 && ids.elements() > 0,
          "forward: the token ids must be [batch, positions] and not empty, they are {}",
          ids.defined() ? ids.shape().to_string() : "undefined");
  const std::int64_t past = options.cache != nullptr ? options.cache->length() : 0;
  require(past + ids.size(1) <= config_.context,
          "forward: {} positions are more than the model's context of {}", past + ids.size(1),
          config_.context);
  const std::int64_t cached = past > 0 ? options.cache->longest_run() : 0;
  require(past == 0 || config_.same_angles(cached, past + ids.size(1)),
          "forward: the positions of this model are turned by other angles in a run of {} tokens "
          "than in the cached run of {}; run the text anew",
          past + ids.size(1), cached);
  const std::int32_t* id = ids.i32();
  for (std::int64_t i = 0; i < ids.elements(); ++i)
    if (id[i] < 0 || id[i] >= config_.vocabulary)
      fail("forward: token id {} at position {} is outside the vocabulary of {}", id[i],
           i % ids.size(1), config_.vocabulary);
  if (options.start != nullptr) {
    const ForwardStart& start = *options.start;
    require(start.layer >= 0 && start.layer + (start.after_attention ? 1 : 0) <= config_.layers,
            "forward: there is no layer {} to start at; the model has {}", start.layer,
            config_.layers);
    require(!start.after_attention || config_.residual == ResidualKind::kSequential,
            "forward: the attention and the MLP of a layer read the same stream, so that there is "
            "nothing to start with between them");
    require(!start.after_attention || config_.mlp != MlpKind::kNone,
            "forward: a layer of attention only has no MLP to start at");
    const Shape expected = {ids.size(0), ids.size(1), config_.width};
    require(start.residual.defined() && start.residual.shape() == expected,
            "forward: the residual to start with is {}, not {}",
            start.residual.defined() ? start.residual.shape().to_string() : "undefined",
            expected.to_string());
  }
  if (options.taps != nullptr) options.taps->bind(tap_names_);
  if (options.reports != nullptr)
    options.reports->assign(config_.gate.on() ? static_cast<std::size_t>(config_.layers) : 0, {});
  Variable hidden = run(ids, options);
  if (options.cache != nullptr) options.cache->advance(ids.size(1));
  return hidden;
}

std::int64_t Model::parameter_count() const {
  std::int64_t count = 0;
  for (const NamedParameter& parameter : parameters_)
    count += parameter.variable.shape().elements();
  for (const NamedParameter& parameter : lora_parameters_)
    count += parameter.variable.shape().elements();
  return count;
}

void Model::set_gate(const GateConfig& gate) {
  const std::int64_t all = config_.layers * config_.heads;
  const auto count = static_cast<std::int64_t>(gate.bias.size());
  require(count == 0 || count == 1 || count == all,
          "gate: {} biases for {} layers of {} heads; give one, or one a layer and head", count,
          config_.layers, config_.heads);
  config_.gate = gate;
  gate_biases_.clear();
  std::erase_if(tap_names_, [](const std::string& name) { return name.ends_with(".hook_gate"); });
  for (std::int64_t l = 0; gate.on() && l < config_.layers; ++l) {
    const std::int64_t width = count == 1 ? 1 : config_.heads;
    const std::size_t begin = count == 1 ? 0 : static_cast<std::size_t>(l * width);
    const auto biases = std::span(gate.bias).subspan(begin, static_cast<std::size_t>(width));
    gate_biases_.emplace_back(Tensor::from({width}, biases).to(placement_.device));
    tap_names_.push_back(fmt::format("blocks.{}.attn.hook_gate", l));
  }
}

void Model::store_gate() {
  if (!config_.gate.on()) return;
  const bool shared = config_.gate.bias.size() == 1;
  config_.gate.bias.clear();
  for (const Variable& bias : gate_biases_) {
    const Tensor here = bias.value().on_host();
    config_.gate.bias.insert(config_.gate.bias.end(), here.values().begin(), here.values().end());
    if (shared) break;
  }
}

std::optional<GateOptions> Model::gate_of(std::size_t layer, const ForwardOptions& options) const {
  if (!config_.gate.on() || options.gates == GateMode::kIgnored) return std::nullopt;
  GateOptions gate;
  gate.bias = gate_biases_[layer];
  gate.sample = options.gates == GateMode::kSampled;
  gate.noise = options.noise;
  gate.noise.layer = static_cast<std::uint32_t>(layer);
  return gate;
}

GateReport* Model::report_of(std::size_t layer, const ForwardOptions& options) {
  if (options.reports == nullptr || layer >= options.reports->size()) return nullptr;
  return &(*options.reports)[layer];
}

void Model::set_requires_grad(bool on) {
  if (on && !lora_)
    for (const NamedParameter& parameter : parameters_)
      require(parameter.variable.value().dtype() == DType::kF32,
              "the weight '{}' is in {} alone and cannot be trained; train adapters on it "
              "(add_lora), or load the model with f32 weights",
              parameter.name, name_of(parameter.variable.value().dtype()));
  for (NamedParameter& parameter : lora_ ? lora_parameters_ : parameters_)
    parameter.variable.set_requires_grad(on);
}

void Model::clear_grads() {
  for (NamedParameter& parameter : parameters_) parameter.variable.clear_grad();
  for (NamedParameter& parameter : lora_parameters_) parameter.variable.clear_grad();
  for (Variable& bias : gate_biases_) bias.clear_grad();
}

std::unique_ptr<KeyValueCache> Model::make_cache(std::int64_t batch, std::int64_t capacity) const {
  return make_cache(batch, capacity, 0, config_.layers);
}

std::unique_ptr<KeyValueCache> Model::make_cache(std::int64_t batch, std::int64_t capacity,
                                                 std::int64_t first, std::int64_t end) const {
  require(!config_.bidirectional,
          "a cache of keys and values needs causal attention; this model's is bidirectional, so "
          "that every position changes with what follows it");
  return std::make_unique<KeyValueCache>(end - first, batch, std::min(capacity, config_.context),
                                         config_.key_heads, config_.head_width, placement_.device,
                                         placement_.precision, first);
}

void Model::place(const Placement& placement) {
  check_placement(placement);
  clear_grads();
  const auto move = [&](const Variable& variable) {
    variable.mutable_value() = variable.value().to(placement.device);
  };
  for (const NamedParameter& parameter : parameters_) move(parameter.variable);
  for (const NamedParameter& parameter : lora_parameters_) move(parameter.variable);
  for (const Variable& bias : gate_biases_) move(bias);
  for (const Variable& constant : constants_) move(constant);
  placement_ = placement;
}

std::unique_ptr<Model> make_model(const ModelConfig& config, std::uint64_t seed,
                                  const Placement& placement) {
  const Family& family = family_of(config.family, "make_model");
  std::vector<NamedParameter> parameters;
  for (const ParameterSpec& spec : family.parameters(config))
    parameters.push_back({spec.name, initial_value(spec, seed, parameters.size())});
  auto model = family.build(config, std::move(parameters));
  model->set_gate(config.gate);
  model->place(placement);
  return model;
}

std::int64_t parameter_count(const ModelConfig& config) {
  std::int64_t count = 0;
  for (const ParameterSpec& spec : family_of(config.family, "parameter_count").parameters(config))
    require(!__builtin_add_overflow(count, spec.shape.elements(), &count),
            "a {} model of {} layers has more parameters than 64 bits can count", config.family,
            config.layers);
  return count;
}

}  // namespace filigree
