#include "model/family.h"

#include <algorithm>

#include "filigree/error.h"
#include "filigree/names.h"
#include "model/families.h"

namespace filigree {

const Family& family_of(std::string_view model_type, const std::string& source) {
  static const Family* const kFamilies[] = {&kGpt2Family,
                                            &kGptNeoFamily,
                                            &kGptNeoxFamily,
                                            &kLlamaFamily,
                                            &kMistralFamily,
                                            &kQwen2Family,
                                            &kQwen3Family,
                                            &kOlmoFamily,
                                            &kOlmo2Family,
                                            &kGemma2Family,
                                            &kHookedTransformerFamily};
  std::string known;
  for (const Family* family : kFamilies) {
    if (family->model_type == model_type) return *family;
    known += fmt::format("{}'{}'", known.empty() ? "" : ", ", family->model_type);
  }
  fail("{}: model_type '{}' is not one this program runs; it runs {}", source,
       printable(model_type), known);
}

Activation read_activation(const JsonObject& json, std::string_view key,
                           std::string_view fallback) {
  struct Known {
    std::string_view name;
    Activation activation;
  };
  // Several names are one function.
  static constexpr Known kKnown[] = {
      {"gelu_new", Activation::kGeluNew},  {"gelu_pytorch_tanh", Activation::kGeluNew},
      {"gelu_fast", Activation::kGeluNew}, {"gelu", Activation::kGelu},
      {"relu", Activation::kRelu},         {"silu", Activation::kSilu},
      {"swish", Activation::kSilu}};
  const std::string name = json.string_or(key, std::string(fallback));
  std::vector<std::string> names;
  for (const Known& known : kKnown) {
    if (known.name == name) return known.activation;
    names.emplace_back(known.name);
  }
  fail("{}: {} '{}' is not supported; it may be {}", json.source(), key, printable(name),
       any_of_text(names));
}

namespace {

// The other order of q, k and v: [first, second, D] blocks of `row` numbers become [second, first].
Tensor exchanged(const Tensor& value, std::int64_t first, std::int64_t second) {
  Tensor result = value.like(value.shape());
  const std::int64_t block = value.elements() / (first * second);
  for (std::int64_t i = 0; i < first; ++i)
    for (std::int64_t j = 0; j < second; ++j)
      std::copy_n(value.f32() + (i * second + j) * block, block,
                  result.mutable_f32() + (j * first + i) * block);
  return result;
}

}  // namespace

Tensor in_our_order(const ParameterSpec& spec, const Tensor& value) {
  if (spec.by_head) return exchanged(value, spec.file_shape[0], spec.file_shape[1]);
  return spec.interleaved_heads == 0 ? value : exchanged(value, spec.interleaved_heads, 3);
}

Tensor in_file_order(const ParameterSpec& spec, const Tensor& value) {
  if (spec.by_head) return exchanged(value, spec.file_shape[1], spec.file_shape[0]);
  return spec.interleaved_heads == 0 ? value : exchanged(value, 3, spec.interleaved_heads);
}

void read_rotary(const JsonObject& json, ModelConfig& config, const RotaryKeys& older) {
  constexpr double kLeast = 1.0, kMost = 1e12;
  config.positions = PositionKind::kRotary;
  config.rotary_base = json.number_or(
      older.base, json.number_or("rope_theta", 10000.0, kLeast, kMost), kLeast, kMost);
  double share = json.number_or("partial_rotary_factor", older.default_share, 0.0, 1.0);
  if (older.share != nullptr) share = json.number_or(older.share, share, 0.0, 1.0);
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    if (!json.has(key)) continue;
    const JsonObject section = json.object(key);
    // The older key is "type".
    const std::string kind = section.string_or("rope_type", section.string_or("type", "default"));
    RotaryScaling& scaling = config.rotary_scaling;
    std::vector<std::string> known = {"rope_type", "type", "rope_theta", "partial_rotary_factor"};
    if (kind == "default") {
      scaling.kind = RotaryScaling::Kind::kNone;
    } else if (kind == "linear" || kind == "llama3") {
      scaling.kind = kind == "linear" ? RotaryScaling::Kind::kLinear : RotaryScaling::Kind::kLlama3;
      scaling.factor = section.number("factor", 1.0, 1e6);
      known.insert(known.end(), {"factor", "original_max_position_embeddings"});
    } else {
      fail(
          "{}: {} asks for rotary positions of the kind '{}', which is not supported; 'default', "
          "'linear' and 'llama3' are",
          json.source(), key, printable(kind));
    }
    if (kind == "llama3") {
      scaling.low_frequency = section.number("low_freq_factor", 1e-6, 1e6);
      scaling.high_frequency = section.number("high_freq_factor", 1e-6, 1e6);
      scaling.original_context = section.number("original_max_position_embeddings", 1.0, 1e9);
      require(scaling.low_frequency < scaling.high_frequency,
              "{}: {}.low_freq_factor {} is not below high_freq_factor {}", json.source(), key,
              scaling.low_frequency, scaling.high_frequency);
      known.insert(known.end(), {"low_freq_factor", "high_freq_factor"});
    }
    for (const std::string& found : section.keys())
      require(
          std::ranges::find(known, found) != known.end() || !section.has(found),
          "{}: {}.{} is not something this program does with rotary positions of the kind '{}'; "
          "it knows {}",
          json.source(), key, printable(found), kind, any_of_text(known));
    config.rotary_base = section.number_or("rope_theta", config.rotary_base, kLeast, kMost);
    share = section.number_or("partial_rotary_factor", share, 0.0, 1.0);
  }
  require(
      older.share != nullptr || share == 1.0,
      "{}: partial_rotary_factor {} is not supported in this family; its heads are turned whole",
      json.source(), share);
  config.rotary_width = static_cast<std::int64_t>(static_cast<double>(config.head_width) * share);
  require(
      config.rotary_width > 0 && (config.rotary_width + 1) / 2 * 2 <= config.head_width,
      "{}: rotary positions turn pairs of a head's elements; {} of {} do not fit, an even number "
      "would",
      json.source(), config.rotary_width, config.head_width);
}

std::vector<std::int64_t> read_windows(const JsonObject& json, std::int64_t layers,
                                       std::int64_t window,
                                       const std::function<bool(std::int64_t)>& slides) {
  std::vector<std::int64_t> windows;
  if (json.has("layer_types")) {
    const nlohmann::json& types = json.array("layer_types");
    require(static_cast<std::int64_t>(types.size()) == layers,
            "{}: layer_types has {} entries for {} layers", json.source(), types.size(), layers);
    for (const nlohmann::json& type : types) {
      const std::string name = type.is_string() ? type.get<std::string>() : type.dump();
      require(name == "full_attention" || name == "sliding_attention",
              "{}: layer_types holds '{}'; this program computes 'full_attention' and "
              "'sliding_attention'",
              json.source(), printable(name));
      require(name == "full_attention" || window > 0,
              "{}: layer_types asks for sliding_attention, but sliding_window is not given",
              json.source());
      windows.push_back(name == "full_attention" ? 0 : window);
    }
  } else {
    for (std::int64_t l = 0; l < layers; ++l) windows.push_back(slides(l) ? window : 0);
  }
  if (std::ranges::all_of(windows, [](std::int64_t w) { return w == 0; })) return {};
  return windows;
}

bool flag_of(const ModelConfig& config, std::string_view key, bool fallback) {
  return JsonObject(config.source, "config.json").boolean_or(key, fallback);
}

}  // namespace filigree
