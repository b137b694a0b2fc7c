// Reading a model from a Hugging Face folder.
#include <atomic>
#include <bit>
#include <map>
#include <unordered_map>

#include "base/file_status.h"
#include "filigree/error.h"
#include "filigree/names.h"
#include "filigree/runtime.h"
#include "io/checkpoint.h"
#include "io/folder_checksums.h"
#include "io/matrix_type.h"
#include "io/safetensors.h"
#include "io/torch_file.h"
#include "json/object.h"
#include "model/adapters_file.h"
#include "model/families.h"
#include "model/gate_json.h"
#include "model/gguf_families.h"
#include "model/lens_state_dict.h"
#include "model/peft_adapter.h"
#include "model/stored_parameters.h"
#include "model/tied_weights.h"
#include "model/transformer_lens.h"

namespace filigree {
namespace {

std::atomic<std::int64_t> loads = 0;

constexpr std::int64_t kScanGrain = 1 << 18;

// True when any of the floats is infinite or not a number. Looks at the exponent bits only, so that
// the loop vectorises and runs at the speed of memory.
bool has_non_finite(const float* values, std::int64_t count) {
  std::uint32_t found = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint32_t exponent = std::bit_cast<std::uint32_t>(values[i]) & 0x7F800000u;
    found |= exponent == 0x7F800000u ? 1u : 0u;
  }
  return found != 0;
}

void warn_if_not_finite(const std::vector<NamedParameter>& parameters) {
  // One pass over all parameters, so that small ones do not each wake the threads.
  struct Piece {
    std::size_t parameter;
    std::int64_t begin, count;
  };
  std::vector<Piece> pieces;
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    const std::int64_t count = parameters[p].variable.shape().elements();
    for (std::int64_t i = 0; i < count; i += kScanGrain)
      pieces.push_back({p, i, std::min(kScanGrain, count - i)});
  }
  std::vector<std::atomic<bool>> bad(parameters.size());
  parallel_for(static_cast<std::int64_t>(pieces.size()), 1, [&](std::int64_t i, std::int64_t) {
    const Piece& piece = pieces[static_cast<std::size_t>(i)];
    const Tensor& value = parameters[piece.parameter].variable.value();
    if (has_non_finite(value.f32() + piece.begin, piece.count)) bad[piece.parameter].store(true);
  });
  for (std::size_t p = 0; p < parameters.size(); ++p)
    if (bad[p].load())
      warn("tensor '{}' holds values that are not finite; the model's output will not be either",
           parameters[p].name);
}

Variable read_parameter(const StoredParameter& stored, const ParameterSpec& spec,
                        const ModelConfig& config, const std::filesystem::path& folder) {
  const TensorView& view = *stored.values;
  const Shape& wanted = spec.shape;
  const std::vector<std::int64_t> extents = stored_shape(spec, stored.form);
  require(view.shape == extents, "'{}': tensor '{}' is {}, but config.json asks for {}",
          folder.string(), view.name, shape_text(view.shape), shape_text(extents));
  if (stored.scales != nullptr) {
    Tensor value = Tensor::empty(wanted);
    read_eight_bits(view, *stored.scales,
                    {value.mutable_f32(), static_cast<std::size_t>(value.elements())});
    return in_our_order(spec, value);
  }
  require(view.kind == TensorKind::kF32 || view.kind == TensorKind::kBf16 ||
              view.kind == TensorKind::kF16 || view.kind == TensorKind::kF64 ||
              is_quantised(view.kind),
          "'{}': tensor '{}' is {}; weights must be F64, F32, BF16 or F16, or quantised as in GGUF "
          "files",
          folder.string(), view.name, name_of(view.kind));
  if (view.kind == TensorKind::kF32 && view.aligned() && view.owner != nullptr &&
      !spec.reorders() && stored.form == StoredForm::kPlain)
    return Tensor::borrow(wanted, DType::kF32, view.owner, view.bytes().data());
  // A plain one is put into our order from our shape.
  Tensor value = Tensor::empty(stored.form == StoredForm::kPlain ? wanted : Shape(extents));
  read_f32(view, {value.mutable_f32(), static_cast<std::size_t>(value.elements())});
  return from_stored(spec, stored.form, config, value);
}

// Parameter name -> what the checkpoint has of it. Every tensor must stand for a parameter or be
// known to be superfluous, and no two for the same one.
std::unordered_map<std::string, StoredParameter> match_tensors(
    const std::vector<StoredParameter>& parameters, const Family& family, const ModelConfig& config,
    const std::vector<ParameterSpec>& specs, const std::string& source) {
  std::unordered_map<std::string, StoredParameter> tensors;
  for (const ParameterSpec& spec : specs) tensors.emplace(spec.name, StoredParameter());
  std::string unknown;
  for (const StoredParameter& stored : parameters) {
    const std::string name = family.canonical_name(config, stored.name);
    if (name.empty()) continue;
    const auto found = tensors.find(name);
    if (found == tensors.end()) {
      unknown += (unknown.empty() ? "'" : ", '") + printable(stored.name) + "'";
      continue;
    }
    require(found->second.values == nullptr, "'{}': tensors '{}' and '{}' are the same parameter",
            source, found->second.name, stored.name);
    found->second = stored;
  }
  if (!unknown.empty())
    warn("'{}': tensors that a {} model does not have are ignored: {}", source, config.family,
         printable(unknown, 400));
  return tensors;
}

// What any config.json may say and no family's forward pass does.
void refuse_what_is_not_computed(const JsonObject& json) {
  require(!json.has("quantization_config"),
          "{}: quantization_config: the weights are quantised, which is not supported; take the "
          "checkpoint in bf16, f16 or f32",
          json.source());
  for (const char* key :
       {"is_encoder_decoder", "add_cross_attention", "use_bidirectional_attention"})
    require(!json.boolean_or(key, false),
            "{}: {} is not supported; only decoders with causal attention are", json.source(), key);
  require(!json.has("pruned_heads") || json.raw()["pruned_heads"].empty(),
          "{}: pruned_heads is not supported; save the model with all heads", json.source());
}

bool is_gguf_file(const std::filesystem::path& path) {
  return has_gguf_ending(path) && is_file(path);
}

bool is_state_dict(const std::filesystem::path& path) {
  return has_torch_ending(path) && is_file(path);
}

ModelConfig config_from(const JsonObject& json) {
  refuse_what_is_not_computed(json);
  // TransformerLens's own configurations have no model_type.
  const bool lens = !json.has("model_type") && json.has("d_model") && json.has("n_ctx");
  const std::string family =
      lens ? std::string(kHookedTransformerFamily.model_type) : json.string("model_type");
  ModelConfig config = family_of(family, json.source()).read_config(json);
  if (json.has("gate")) config.gate = read_gate(json.object("gate"), config);
  return config;
}

// The configuration of a state dict: that of a JSON file beside it, which of TransformerLens's
// names need say only what the tensors do not.
ModelConfig state_dict_config(const std::filesystem::path& file, nlohmann::json settings) {
  std::filesystem::path beside = file;
  beside.replace_extension(".json");
  if (!is_there(beside)) beside = file.parent_path() / "config.json";
  if (is_there(beside)) {
    const JsonObject json = JsonObject::open(beside);
    if (json.string_or("model_type", kHookedTransformerFamily.model_type.data()) !=
        kHookedTransformerFamily.model_type)
      return config_from(json);
    nlohmann::json found = json.raw();
    if (settings.is_object()) found.update(settings);
    settings = std::move(found);
  }
  const Checkpoint checkpoint = Checkpoint::open(file);
  require(has_transformer_lens_names(checkpoint.tensors()),
          "model '{}': a state dict needs its config.json beside it; put it there, or make a "
          "model folder with 'convert --config FILE'",
          file.string());
  return transformer_lens_config(lens_tensors(checkpoint.tensors(), file.string()), settings,
                                 file.string());
}

// The adapters that save_model kept: a "lora" section and a file of tensors.
void read_adapters(const std::filesystem::path& folder, Model& model, const LoadOptions& options) {
  const JsonObject json(model.config().source, (folder / "config.json").string());
  if (!json.has("lora")) return;
  const JsonObject section = json.object("lora");
  LoraOptions lora;
  lora.rank = section.integer("rank", 1);
  lora.alpha = section.number("alpha");
  const SafetensorsFile file = SafetensorsFile::open(folder / kAdaptersFile);
  model.add_lora(lora, 0);
  model.set_requires_grad(false);
  for (const NamedParameter& parameter : model.lora_parameters()) {
    const Variable& variable = parameter.variable;
    variable.mutable_value() =
        read_parameter({parameter.name, &file.at(parameter.name)},
                       {parameter.name, variable.shape()}, model.config(), folder)
            .value();
  }
  require(file.tensors().size() == model.lora_parameters().size(),
          "'{}': {} tensors, but adapters on {} layers are {}", file.source(),
          file.tensors().size(), model.config().layers, model.lora_parameters().size());
  if (options.warn_about_values) warn_if_not_finite(model.lora_parameters());
}

[[noreturn]] void missing(const Checkpoint& checkpoint, const ParameterSpec& spec) {
  std::vector<std::string> names;
  for (const TensorView& view : checkpoint.tensors()) names.push_back(view.name);
  fail("'{}': tensor '{}' {} is missing{}", checkpoint.folder().string(), spec.name,
       spec.stored_shape().to_string(), nearest_tensor_names(spec.name, names));
}

}  // namespace

ModelConfig parse_model_config(const nlohmann::json& json, const std::string& source) {
  return config_from(JsonObject(json, source));
}

ModelConfig read_model_config(const std::filesystem::path& folder, const nlohmann::json& lens) {
  if (is_gguf_file(folder))
    return config_from(JsonObject(gguf_config(GgufFile::open(folder)), folder.string()));
  if (is_state_dict(folder)) return state_dict_config(folder, lens);
  require(!is_peft_adapter(folder),
          "'{}' is an adapter of '{}' and no model by itself; 'filigree convert' makes one of it",
          folder.string(), is_peft_adapter(folder) ? base_of_adapter(folder) : "");
  require(is_folder(folder),
          "model '{}': no such folder; a model is a folder with config.json and *.safetensors",
          folder.string());
  return config_from(JsonObject::open(folder / "config.json"));
}

std::unique_ptr<Model> load_model(const std::filesystem::path& folder, const LoadOptions& options) {
  ModelConfig config = options.config ? *options.config : read_model_config(folder);
  if (!config.assumed.empty())
    warn(
        "'{}': the file does not tell everything about the model; taken to be: {}. If that is "
        "wrong, say so under TransformerLens's names in a JSON file of that name beside it, or "
        "with 'convert --set'",
        folder.string(), config.assumed);
  if (has_checksums(folder)) require_whole(folder, options.check);
  const Family& family = family_of(config.family, folder.string());
  const Checkpoint checkpoint = Checkpoint::open(folder);
  if (has_transformer_lens_names(checkpoint.tensors()) &&
      (&family != &kHookedTransformerFamily || is_state_dict(folder))) {
    const std::vector<TensorView> tensors = lens_tensors(checkpoint.tensors(), folder.string());
    auto model = model_from_transformer_lens(tensors, config, folder.string());
    if (options.warn_about_values) warn_if_not_finite(model->parameters());
    model->place(options.placement);
    ++loads;
    return model;
  }
  // A config may ask for more layers than any file holds; compare before listing them all.
  require(config.layers <= static_cast<std::int64_t>(checkpoint.tensors().size()),
          "'{}': config.json asks for {} layers, but the weights are only {} tensors",
          folder.string(), config.layers, checkpoint.tensors().size());
  std::vector<StoredParameter> stored_parameters = parameters_of(checkpoint, config);
  config = settle_tied_weights(family, std::move(config), stored_parameters, folder.string());
  const std::vector<ParameterSpec> specs = family.parameters(config);
  const auto tensors = match_tensors(stored_parameters, family, config, specs, folder.string());
  std::vector<NamedParameter> parameters;
  for (const ParameterSpec& spec : specs) {
    const StoredParameter& stored = tensors.at(spec.name);
    if (stored.values == nullptr && spec.may_be_absent) {
      parameters.push_back({spec.name, Tensor::zeros(spec.shape)});
      continue;
    }
    if (stored.values == nullptr) missing(checkpoint, spec);
    parameters.push_back({spec.name, read_parameter(stored, spec, config, folder)});
  }
  if (options.warn_about_values) warn_if_not_finite(parameters);
  auto model = family.build(config, std::move(parameters));
  model->set_gate(config.gate);
  read_adapters(folder, *model, options);
  model->place(options.placement);
  ++loads;
  return model;
}

std::int64_t models_loaded() { return loads; }

}  // namespace filigree
