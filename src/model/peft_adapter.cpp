#include "model/peft_adapter.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "base/atomic_file.h"
#include "base/file_status.h"
#include "base/folders.h"
#include "filigree/error.h"
#include "filigree/layers.h"
#include "filigree/names.h"
#include "filigree/ops.h"
#include "io/folder_checksums.h"
#include "io/safetensors.h"
#include "io/safetensors_writer.h"
#include "io/torch_file.h"
#include "json/json.h"
#include "json/object.h"
#include "model/copy_model.h"
#include "model/family.h"
#include "model/gate_json.h"

namespace filigree {
namespace {

namespace fs = std::filesystem;

constexpr const char* kAdapterWeights = "adapter_model.safetensors";
constexpr const char* kOlderAdapterWeights = "adapter_model.bin";
constexpr std::string_view kPeftPrefix = "base_model.model.";

JsonObject open_config(const fs::path& folder) { return JsonObject::open(folder / kAdapterConfig); }

// What peft can do to a layer and this program does not.
void refuse_other_methods(const JsonObject& config) {
  const std::string type = config.string_or("peft_type", "LORA");
  require(type == "LORA", "{}: peft_type '{}' is not supported; LORA is", config.source(),
          printable(type));
  for (const char* flag : {"use_dora", "use_qalora", "use_bdlora", "lora_bias"}) {
    const auto found = config.raw().find(flag);
    require(found == config.raw().end() || found->is_null() || *found == false,
            "{}: {} is not supported; merge the adapter with peft (merge_and_unload) and save the "
            "model",
            config.source(), flag);
  }
  for (const char* key : {"layer_replication", "target_parameters", "alora_invocation_tokens",
                          "trainable_token_indices", "arrow_config"}) {
    const auto found = config.raw().find(key);
    require(found == config.raw().end() || found->is_null() || found->empty(),
            "{}: {} is not supported; merge the adapter with peft (merge_and_unload) and save the "
            "model",
            config.source(), key);
  }
}

// Rank or alpha of a layer: that of the pattern which names it or the end of its name, after a dot.
std::optional<double> of_pattern(const JsonObject& config, const char* key,
                                 std::string_view layer) {
  if (!config.has(key)) return std::nullopt;
  const JsonObject patterns = config.object(key);
  for (const std::string& pattern : patterns.keys()) {
    const bool whole = pattern.starts_with('^');
    const std::string_view name = std::string_view(pattern).substr(whole ? 1 : 0);
    require(name.find_first_of("*+?()[]{}|\\^$") == std::string_view::npos,
            "{}: {} has the regular expression '{}'; names of layers are supported",
            config.source(), key, printable(pattern));
    if (layer == name || (!whole && layer.ends_with("." + std::string(name))))
      return patterns.number(pattern, 1e-6, 1e9);
  }
  return std::nullopt;
}

float scale_of(const JsonObject& config, std::string_view layer, std::int64_t rank) {
  const double alpha = of_pattern(config, "alpha_pattern", layer)
                           .value_or(config.number_or("lora_alpha", 8, 0, 1e9));
  const double asked =
      of_pattern(config, "rank_pattern", layer)
          .value_or(static_cast<double>(config.integer_or("r", 8, 1, kMostExtent)));
  require(asked == static_cast<double>(rank),
          "{}: the adapter of '{}' is to have the rank {} and has {}", config.source(),
          printable(layer), asked, rank);
  return static_cast<float>(alpha /
                            (config.boolean_or("use_rslora", false) ? std::sqrt(asked) : asked));
}

// The tensors of a layer, and what is no adapter but a whole tensor.
struct LayerAdapter {
  const TensorView* a = nullptr;
  const TensorView* b = nullptr;
  bool of_embedding = false;
};
struct AdapterTensors {
  std::vector<TensorView> tensors;
  std::map<std::string, LayerAdapter> layers;                    // by the layer's name
  std::vector<std::pair<std::string, const TensorView*>> whole;  // by the tensor's name
};

// Trained biases are called after the layer below the adapter.
std::string without_base_layer(std::string_view name) {
  constexpr std::string_view kBelow = ".base_layer.";
  const std::size_t at = name.find(kBelow);
  if (at == std::string_view::npos) return std::string(name);
  return std::string(name.substr(0, at + 1)) + std::string(name.substr(at + kBelow.size()));
}

AdapterTensors read_tensors(const fs::path& folder) {
  AdapterTensors found;
  const fs::path weights = folder / kAdapterWeights, older = folder / kOlderAdapterWeights;
  if (is_there(weights))
    found.tensors = SafetensorsFile::open(weights).tensors();
  else if (is_there(older))
    found.tensors = TorchFile::open(older).tensors();
  else
    fail("adapter '{}': there is no {}", folder.string(), kAdapterWeights);
  for (const TensorView& tensor : found.tensors) {
    std::string_view name = tensor.name;
    require(name.starts_with(kPeftPrefix), "adapter '{}': tensor '{}' does not begin with '{}'",
            folder.string(), printable(name), kPeftPrefix);
    name.remove_prefix(kPeftPrefix.size());
    // Older files have the adapter's own name in between: "lora_A.default.weight".
    const auto part = [&](std::string_view kind) -> LayerAdapter* {
      const std::size_t at = name.find("." + std::string(kind));
      if (at == std::string_view::npos) return nullptr;
      const std::string_view rest = name.substr(at + 1 + kind.size());
      require(rest.empty() || rest == ".weight" || rest == ".default" || rest == ".default.weight",
              "adapter '{}': tensor '{}' is nothing that this program knows in an adapter",
              folder.string(), printable(tensor.name));
      return &found.layers[std::string(name.substr(0, at))];
    };
    if (LayerAdapter* layer = part("lora_A"))
      layer->a = &tensor;
    else if (LayerAdapter* of_b = part("lora_B"))
      of_b->b = &tensor;
    else if (LayerAdapter* rows = part("lora_embedding_A"))
      rows->a = &tensor, rows->of_embedding = true;
    else if (LayerAdapter* columns = part("lora_embedding_B"))
      columns->b = &tensor, columns->of_embedding = true;
    else
      found.whole.emplace_back(without_base_layer(name), &tensor);
  }
  return found;
}

Tensor read_matrix(const TensorView& view) {
  Tensor value = Tensor::empty(Shape(view.shape));
  read_f32(view, {value.mutable_f32(), static_cast<std::size_t>(value.elements())});
  return value;
}

Tensor transposed_matrix(const Tensor& value) { return transpose(value, 0, 1).value(); }

// lora_B has a row for each of the parameter's, in the same order: where files have the heads' rows
// otherwise than we do, its rows too.
ParameterSpec with_rows_of(ParameterSpec spec, std::int64_t rows, std::int64_t width) {
  spec.shape = {rows, width};
  spec.file_shape = {};
  return spec;
}

// A matrix of the model that layers multiply with, and which way round it lies.
std::optional<bool> lies_out_in(const Model& model, const Variable& parameter) {
  const ModelWeights weights = model.weights();
  std::vector<const LinearWeight*> linear;
  for (const LayerWeights& layer : weights.layers) {
    for (const LinearWeight* w :
         {&layer.attention->q, &layer.attention->k, &layer.attention->v, &layer.attention->o})
      linear.push_back(w);
    if (layer.mlp != nullptr)
      for (const LinearWeight* w : {&layer.mlp->in, &layer.mlp->out, &layer.mlp->gate})
        linear.push_back(w);
  }
  linear.push_back(&weights.output);
  for (const LinearWeight* w : linear)
    if (w->weight.defined() && w->weight.value().raw() == parameter.value().raw()) return w->out_in;
  return std::nullopt;
}

// The parameters of a model by the names that adapters use.
class AdaptedParameters {
 public:
  AdaptedParameters(const Model& model, const fs::path& folder)
      : model_(model),
        folder_(folder),
        family_(family_of(model.config().family, folder.string())),
        specs_(family_.parameters(model.config())) {}

  struct Found {
    const Variable& value;
    const ParameterSpec& spec;
  };
  Found find(const std::string& tensor) const {
    const std::string name = family_.canonical_name(model_.config(), tensor);
    require(!name.empty() || !tensor.starts_with("lm_head"),
            "adapter '{}': '{}' is adapted, which the base model shares with its embedding; merge "
            "the adapter with peft (merge_and_unload) and save the model",
            folder_.string(), printable(tensor));
    for (std::size_t p = 0; p < specs_.size(); ++p)
      if (specs_[p].name == name) return {model_.parameters()[p].variable, specs_[p]};
    fail("adapter '{}': it is for '{}', which the base model, of the family {}, does not have",
         folder_.string(), printable(tensor), model_.config().family);
  }

  void merge(const std::string& layer, const LayerAdapter& adapter,
             const JsonObject& config) const {
    require(adapter.a != nullptr && adapter.b != nullptr,
            "adapter '{}': of '{}' it has {} and not {}", folder_.string(), printable(layer),
            adapter.a != nullptr ? "lora_A" : "lora_B", adapter.a != nullptr ? "lora_B" : "lora_A");
    const Found found = find(layer + ".weight");
    const std::optional<bool> out_in =
        adapter.of_embedding ? std::optional<bool>(false) : lies_out_in(model_, found.value);
    require(out_in.has_value() && found.value.shape().rank() == 2 && !found.spec.by_head,
            "adapter '{}': '{}' is no layer that adapters can be put on", folder_.string(),
            printable(layer));
    require(!adapter.of_embedding || !model_.config().tied_embeddings,
            "adapter '{}': it is for the embedding, which the base model shares with its output "
            "layer; merge the adapter with peft (merge_and_unload) and save the model",
            folder_.string());
    const std::int64_t in = found.value.size(*out_in ? 1 : 0),
                       out = found.value.size(*out_in ? 0 : 1);
    const std::int64_t rank = adapter.a->shape.empty() ? 0 : adapter.a->shape[0];
    require(rank >= 1 && adapter.a->shape == std::vector<std::int64_t>({rank, in}) &&
                adapter.b->shape == std::vector<std::int64_t>({out, rank}),
            "adapter '{}': the matrices of '{}' are {} and {}; for a layer from {} to {} they "
            "would be [rank, {}] and [{}, rank]",
            folder_.string(), printable(layer), shape_text(adapter.a->shape),
            shape_text(adapter.b->shape), in, out, in, out);
    const Tensor b = in_our_order(with_rows_of(found.spec, out, rank), read_matrix(*adapter.b));
    const DeviceKind device = found.value.value().device();
    merge_lora({.weight = found.value, .bias = {}, .out_in = *out_in},
               {.down = transposed_matrix(read_matrix(*adapter.a)).to(device),
                .up = transposed_matrix(b).to(device),
                .scale = scale_of(config, layer, rank)});
  }

  // A layer that was trained as a whole.
  void replace(const std::string& tensor, const TensorView& view) const {
    const Found found = find(tensor);
    const std::span<const std::int64_t> extents = found.spec.stored_shape().extents();
    require(std::ranges::equal(view.shape, extents),
            "adapter '{}': tensor '{}' is {}, and the base model's is {}", folder_.string(),
            printable(view.name), shape_text(view.shape), found.spec.stored_shape().to_string());
    Tensor value = Tensor::empty(found.spec.shape);
    read_f32(view, {value.mutable_f32(), static_cast<std::size_t>(value.elements())});
    found.value.mutable_value() = in_our_order(found.spec, value).to(found.value.value().device());
  }

 private:
  const Model& model_;
  const fs::path& folder_;
  const Family& family_;
  std::vector<ParameterSpec> specs_;
};

std::optional<GateConfig> gates_beside(const fs::path& folder, const ModelConfig& base) {
  if (!is_there(folder / kGatesFile)) return std::nullopt;
  return read_gate(JsonObject::open(folder / kGatesFile), base);
}

// Adapters of one parameter: of the whole matrix, or of ranges of its outputs.
struct ParameterAdapters {
  std::size_t parameter = 0;
  std::vector<std::pair<const LinearWeight*, const LoraAdapter*>> ranges = {};
};

std::vector<ParameterAdapters> adapters_by_parameter(const Model& model,
                                                     const ModelWeights& weights) {
  std::vector<ParameterAdapters> result;
  const std::vector<NamedParameter>& parameters = model.parameters();
  for (const LayerWeights& layer : weights.layers) {
    const AttentionWeights& w = *layer.attention;
    const std::pair<const LinearWeight*, const LoraAdapter*> projections[] = {
        {&w.q, &w.lora.q}, {&w.k, &w.lora.k}, {&w.v, &w.lora.v}, {&w.o, &w.lora.o}};
    for (const auto& projection : projections) {
      const auto parameter = static_cast<std::size_t>(
          std::ranges::find_if(parameters,
                               [&](const NamedParameter& p) {
                                 return p.variable.value().raw() ==
                                        projection.first->weight.value().raw();
                               }) -
          parameters.begin());
      if (result.empty() || result.back().parameter != parameter)
        result.push_back({.parameter = parameter});
      result.back().ranges.push_back(projection);
    }
  }
  return result;
}

// The last two parts of a layer's name, which peft compares with the end of every layer's.
std::string target_of(std::string_view layer) {
  const std::size_t last = layer.rfind('.');
  const std::size_t before = last == std::string_view::npos || last == 0
                                 ? std::string_view::npos
                                 : layer.rfind('.', last - 1);
  return std::string(before == std::string_view::npos ? layer : layer.substr(before + 1));
}

}  // namespace

bool is_peft_adapter(const fs::path& folder) {
  return is_file(folder / kAdapterConfig) && !is_there(folder / "config.json");
}

std::string base_of_adapter(const fs::path& folder) {
  const JsonObject config = open_config(folder);
  const std::string base = config.string_or("base_model_name_or_path", "");
  require(!base.empty(),
          "{}: it does not say which model the adapter is for; name the model and "
          "give the adapter with --adapter",
          config.source());
  return base;
}

ModelConfig adapted_config(ModelConfig base, const fs::path& folder) {
  if (std::optional<GateConfig> gates = gates_beside(folder, base)) base.gate = std::move(*gates);
  return base;
}

std::unique_ptr<Model> adapted_model(const Model& base, const fs::path& folder) {
  const JsonObject config = open_config(folder);
  refuse_other_methods(config);
  if (has_checksums(folder)) require_whole(folder, ChecksumDepth::kContents);
  const AdapterTensors adapter = read_tensors(folder);
  std::unique_ptr<Model> model = copy_model(base, CopiedWeights::kShared);
  const AdaptedParameters parameters(*model, folder);
  // Whole tensors first: an adapter may lie on one of them.
  for (const auto& [name, tensor] : adapter.whole) parameters.replace(name, *tensor);
  for (const auto& [layer, matrices] : adapter.layers) parameters.merge(layer, matrices, config);
  if (const std::optional<GateConfig> gates = gates_beside(folder, base.config()))
    model->set_gate(*gates);
  return model;
}

bool has_peft_names(const ModelConfig& config) {
  return std::ranges::none_of(family_of(config.family, "adapter").parameters(config),
                              [](const ParameterSpec& spec) { return spec.by_head; });
}

PeftAdapter peft_adapter_of(const Model& model, const std::string& base) {
  require(model.lora().has_value(), "adapter of '{}': the model has none", base);
  require(has_peft_names(model.config()),
          "adapter of '{}': peft has no names for the parameters of the family {}", base,
          model.config().family);
  const LoraOptions& options = *model.lora();
  const std::vector<ParameterSpec> specs =
      family_of(model.config().family, "adapter").parameters(model.config());
  const ModelWeights weights = model.weights();
  PeftAdapter result;
  std::set<std::string> targets;
  nlohmann::json ranks = nlohmann::json::object(), alphas = nlohmann::json::object();
  bool in_out = false;
  for (const ParameterAdapters& adapters : adapters_by_parameter(model, weights)) {
    const ParameterSpec& spec = specs[adapters.parameter];
    const std::string layer = spec.name.substr(0, spec.name.rfind('.'));
    const auto parts = static_cast<std::int64_t>(adapters.ranges.size());
    const LinearWeight& first = *adapters.ranges[0].first;
    const std::int64_t rank = options.rank * parts, in = first.inputs(),
                       out = first.weight.size(first.out_in ? 0 : 1);
    in_out = in_out || !first.out_in;
    Tensor a = Tensor::empty({rank, in}), b = Tensor::zeros({out, rank});
    for (std::int64_t part = 0; part < parts; ++part) {
      const auto& [weight, adapter] = adapters.ranges[static_cast<std::size_t>(part)];
      const Tensor down = transposed_matrix(adapter->down.value().to(DeviceKind::kCpu)),
                   up = transposed_matrix(adapter->up.value().to(DeviceKind::kCpu));
      std::copy_n(down.f32(), down.elements(), a.mutable_f32() + part * options.rank * in);
      for (std::int64_t row = 0; row < weight->outputs(); ++row)
        std::copy_n(up.f32() + row * options.rank, options.rank,
                    b.mutable_f32() + (weight->begin + row) * rank + part * options.rank);
    }
    const std::string target = target_of(layer);
    targets.insert(target);
    if (parts > 1)
      ranks[target] = rank, alphas[target] = options.alpha * static_cast<double>(parts);
    result.names.push_back(fmt::format("{}{}.lora_A.weight", kPeftPrefix, layer));
    result.matrices.push_back(std::move(a));
    result.names.push_back(fmt::format("{}{}.lora_B.weight", kPeftPrefix, layer));
    result.matrices.push_back(in_file_order(with_rows_of(spec, out, rank), b));
  }
  result.config = {{"peft_type", "LORA"},
                   {"task_type", "CAUSAL_LM"},
                   {"base_model_name_or_path", base},
                   {"revision", nullptr},
                   {"inference_mode", true},
                   {"r", options.rank},
                   {"lora_alpha", options.alpha},
                   {"lora_dropout", 0.0},
                   {"target_modules", targets},
                   {"rank_pattern", ranks},
                   {"alpha_pattern", alphas},
                   {"fan_in_fan_out", in_out},
                   {"bias", "none"},
                   {"modules_to_save", nullptr},
                   {"init_lora_weights", true},
                   {"use_rslora", false},
                   {"use_dora", false}};
  return result;
}

void save_peft_adapter(const PeftAdapter& adapter, const ModelConfig& config,
                       const fs::path& folder) {
  make_folders(folder);
  // The configuration makes the folder an adapter: it goes first and comes last.
  for (const char* file : {kChecksumsFile, kAdapterConfig, kGatesFile}) remove_file(folder / file);
  std::vector<TensorToWrite> tensors;
  for (std::size_t m = 0; m < adapter.matrices.size(); ++m) {
    const Tensor& matrix = adapter.matrices[m];
    tensors.push_back(tensor_to_write(adapter.names[m], TensorKind::kF32,
                                      {matrix.size(0), matrix.size(1)},
                                      std::span(matrix.raw(), matrix.bytes())));
  }
  write_safetensors(folder / kAdapterWeights, std::move(tensors));
  std::vector<std::string> files = {kAdapterWeights};
  if (config.gate.on()) {
    write_file_atomically(folder / kGatesFile, json_text(folder / kGatesFile, gate_json(config)));
    files.push_back(kGatesFile);
  }
  const fs::path last = folder / kAdapterConfig;
  const std::string text = json_text(last, adapter.config);
  write_checksums(folder, files, {{kAdapterConfig, text}});
  write_file_atomically(last, text);
}

}  // namespace filigree
