#include "model/family.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>

#include "filigree/error.h"
#include "filigree/names.h"
#include "model/families.h"

namespace filigree {

const Family& family_of(std::string_view model_type, const std::string& source) {
  static const Family* const kFamilies[] = {&kGpt2Family,       &kGptNeoFamily,
                                            &kGptNeoxFamily,    &kGptJFamily,
                                            &kGptBigCodeFamily, &kOptFamily,
                                            &kLlamaFamily,      &kMistralFamily,
                                            &kQwen2Family,      &kQwen3Family,
                                            &kQwen3MoeFamily,   &kOlmoFamily,
                                            &kOlmo2Family,      &kOlmo3Family,
                                            &kOlmoeFamily,      &kSmolLm3Family,
                                            &kGemmaFamily,      &kGemma2Family,
                                            &kGemma3TextFamily, &kGemma3Family,
                                            &kPhiFamily,        &kPhi3Family,
                                            &kStableLmFamily,   &kStarcoder2Family,
                                            &kCohereFamily,     &kHookedTransformerFamily};
  std::string known;
  for (const Family* family : kFamilies) {
    if (family->model_type == model_type) return *family;
    known += fmt::format("{}'{}'", known.empty() ? "" : ", ", family->model_type);
  }
  fail("{}: model_type '{}' is not one this program runs; it runs {}", source,
       printable(model_type), known);
}

void read_gpt2_extents(const JsonObject& json, ModelConfig& config) {
  config.layers = json.integer("n_layer", 1, 10000);
  config.heads = config.key_heads = json.integer("n_head", 1, 10000);
  config.width = json.integer("n_embd", 1, kMostExtent);
  require(config.width % config.heads == 0, "{}: n_embd {} is not a multiple of n_head {}",
          json.source(), config.width, config.heads);
  config.head_width = config.width / config.heads;
  config.mlp_width = json.integer_or("n_inner", 4 * config.width, 1, kMostExtent);
  config.context = json.integer("n_positions", 1, kMostExtent);
  config.vocabulary = json.integer("vocab_size", 1, kMostExtent);
  config.norm_epsilon = json.number_or("layer_norm_epsilon", 1e-5, 0.0, 1.0);
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

// Pairs of the first `width` rows (or numbers) of each head, beside each other or half a width
// apart.
Tensor with_pairs(const ParameterSpec& spec, const Tensor& value, bool apart) {
  Tensor result = value.clone();
  const std::int64_t rows = value.size(0), row = value.elements() / rows;
  const std::int64_t D = rows / spec.paired_heads, half = spec.paired_width / 2;
  for (std::int64_t h = 0; h < spec.paired_heads; ++h)
    for (std::int64_t i = 0; i < 2 * half; ++i) {
      const std::int64_t beside = h * D + 2 * (i % half) + i / half, own = h * D + i;
      std::copy_n(value.f32() + (apart ? beside : own) * row, row,
                  result.mutable_f32() + (apart ? own : beside) * row);
    }
  return result;
}

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
  if (spec.paired_heads != 0) return with_pairs(spec, value, true);
  if (spec.by_head) return exchanged(value, spec.file_shape[0], spec.file_shape[1]);
  return spec.interleaved_heads == 0 ? value : exchanged(value, spec.interleaved_heads, 3);
}

Tensor in_file_order(const ParameterSpec& spec, const Tensor& value) {
  if (spec.paired_heads != 0) return with_pairs(spec, value, false);
  if (spec.by_head) return exchanged(value, spec.file_shape[1], spec.file_shape[0]);
  return spec.interleaved_heads == 0 ? value : exchanged(value, 3, spec.interleaved_heads);
}

namespace {

constexpr double kLeastBase = 1.0, kMostBase = 1e12;

// One section of rotary positions, or what a file without one says of them.
class RotarySection {
 public:
  RotarySection(const JsonObject& json, const ModelConfig& config, const RotaryKeys& keys,
                double base, double share)
      : json_(json), config_(config), keys_(keys), base_(base), share_(share) {}

  // `nested` in the sections of kinds of layers.
  void read(const JsonObject& section, const std::string& name, bool nested) {
    section_ = &section, name_ = name;
    // The older key is "type".
    kind_ = section.string_or("rope_type", section.string_or("type", "default"));
    known_ = {"rope_type", "type", "rope_theta", "partial_rotary_factor"};
    base_ = section.number_or("rope_theta", base_, kLeastBase, kMostBase);
    share_ = section.number_or("partial_rotary_factor", share_, 0.0, 1.0);
    scaling_ = {};
    if (keys_.longrope_context > 0.0 && kind_ != "default") {
      require(kind_ == "longrope" || kind_ == "su" || kind_ == "yarn",
              "{}: {} asks for rotary positions of the kind '{}', which this family does not have; "
              "'default' and 'longrope' are",
              json_.source(), name_, printable(kind_));
      kind_ = "longrope";
    }
    if (kind_ == "linear") {
      scaling_.kind = RotaryScaling::Kind::kLinear;
      read_factor();
      know({"original_max_position_embeddings"});
    } else if (kind_ == "llama3") {
      read_llama3();
    } else if (kind_ == "yarn") {
      read_yarn(nested);
    } else if (kind_ == "dynamic") {
      scaling_.kind = RotaryScaling::Kind::kDynamic;
      read_factor();
      scaling_.original_context = static_cast<double>(config_.context);
      know({"original_max_position_embeddings"});
    } else if (kind_ == "longrope") {
      read_longrope();
    } else {
      require(kind_ == "default",
              "{}: {} asks for rotary positions of the kind '{}', which is not supported; "
              "'default', 'linear', 'llama3', 'yarn', 'dynamic' and 'longrope' are",
              json_.source(), name_, printable(kind_));
    }
    for (const std::string& found : section.keys())
      require(
          std::ranges::find(known_, found) != known_.end() || !section.has(found),
          "{}: {}.{} is not something this program does with rotary positions of the kind '{}'; "
          "it knows {}",
          json_.source(), name_, printable(found), kind_, any_of_text(known_));
  }

  RotaryAngles angles() const { return {base_, scaling_}; }
  double share() const { return share_; }

 private:
  void know(std::initializer_list<const char*> keys) {
    known_.insert(known_.end(), keys.begin(), keys.end());
  }

  void read_factor() {
    scaling_.factor = section_->number("factor", 1.0, 1e6);
    know({"factor"});
  }

  // The context that a model was first trained on: of the model, of the section, or the whole.
  void read_original_context() {
    const char* const key = "original_max_position_embeddings";
    know({key});
    if (keys_.longrope_context > 0.0)
      scaling_.original_context = json_.number_or(key, keys_.longrope_context, 1.0, 1e9);
    else
      scaling_.original_context = json_.number_or(
          key, section_->number_or(key, static_cast<double>(config_.context), 1.0, 1e9), 1.0, 1e9);
  }
  // Without a factor, by how much the context is longer.
  void read_optional_factor() {
    know({"factor"});
    const double longer =
        std::max(1.0, static_cast<double>(config_.context) / scaling_.original_context);
    scaling_.factor = section_->number_or("factor", longer, 1.0, 1e6);
  }
  bool read_amplitude() {
    know({"attention_factor"});
    scaling_.amplitude = section_->number_or("attention_factor", 1.0, 0.0, 1e6);
    return section_->has("attention_factor");
  }

  void read_llama3() {
    scaling_.kind = RotaryScaling::Kind::kLlama3;
    read_factor();
    read_original_context();
    scaling_.low_frequency = section_->number("low_freq_factor", 1e-6, 1e6);
    scaling_.high_frequency = section_->number("high_freq_factor", 1e-6, 1e6);
    require(scaling_.low_frequency < scaling_.high_frequency,
            "{}: {}.low_freq_factor {} is not below high_freq_factor {}", json_.source(), name_,
            scaling_.low_frequency, scaling_.high_frequency);
    know({"low_freq_factor", "high_freq_factor"});
  }

  // Numbers that transformers takes for absent where they are 0.
  double unless_zero(const char* key, double fallback) const {
    const double value = section_->number_or(key, 0.0, 0.0, 1e6);
    return value != 0.0 ? value : fallback;
  }

  void read_yarn(bool nested) {
    require(base_ > 1.0, "{}: yarn needs a rope_theta above 1, not {}", json_.source(), base_);
    scaling_.kind = RotaryScaling::Kind::kYarn;
    read_original_context();
    read_optional_factor();
    scaling_.low_frequency = unless_zero("beta_slow", 1.0);
    scaling_.high_frequency = unless_zero("beta_fast", 32.0);
    const double scale = unless_zero("mscale", 0.0), of_all = unless_zero("mscale_all_dim", 0.0);
    const auto amplitude = [&](double times) {
      return scaling_.factor <= 1.0 ? 1.0 : 0.1 * times * std::log(scaling_.factor) + 1.0;
    };
    if (!read_amplitude())
      scaling_.amplitude =
          scale != 0.0 && of_all != 0.0 ? amplitude(scale) / amplitude(of_all) : amplitude(1.0);
    // transformers looks for this one in the outer section only.
    scaling_.whole_pairs = section_->boolean_or("truncate", true) || nested;
    know({"beta_slow", "beta_fast", "mscale", "mscale_all_dim", "truncate"});
  }

  void read_longrope() {
    scaling_.kind = RotaryScaling::Kind::kLongRope;
    read_original_context();
    read_optional_factor();
    if (!read_amplitude() && scaling_.factor > 1.0) {
      require(scaling_.original_context > 1.0,
              "{}: longrope needs original_max_position_embeddings above 1, not {}", json_.source(),
              scaling_.original_context);
      scaling_.amplitude =
          std::sqrt(1.0 + std::log(scaling_.factor) / std::log(scaling_.original_context));
    }
    scaling_.near = factors("short_factor"), scaling_.far = factors("long_factor");
    know({"short_factor", "long_factor"});
  }

  std::vector<double> factors(const char* key) const {
    std::vector<double> values;
    for (const nlohmann::json& value : section_->array(key)) {
      require(value.is_number() && value.get<double>() > 0.0 && std::isfinite(value.get<double>()),
              "{}: {}.{} holds {}; it must be a list of positive numbers", json_.source(), name_,
              key, printable(value.dump(), 40));
      values.push_back(value.get<double>());
    }
    return values;
  }

  const JsonObject& json_;
  const ModelConfig& config_;
  const RotaryKeys& keys_;
  double base_, share_;
  const JsonObject* section_ = nullptr;
  std::string name_, kind_;
  std::vector<std::string> known_;
  RotaryScaling scaling_;
};

// What scaling asks of the elements that are turned.
void check_scaling(const JsonObject& json, const RotaryScaling& scaling, std::int64_t width) {
  require(scaling.kind != RotaryScaling::Kind::kDynamic || width > 2,
          "{}: dynamic rotary positions need more than 2 turned elements of a head, not {}",
          json.source(), width);
  if (scaling.kind != RotaryScaling::Kind::kLongRope) return;
  for (const std::vector<double>* factors : {&scaling.near, &scaling.far})
    require(static_cast<std::int64_t>(factors->size()) == (width + 1) / 2,
            "{}: longrope has {} factors for the {} pairs of a head", json.source(),
            factors->size(), (width + 1) / 2);
}

}  // namespace

void read_rotary(const JsonObject& json, ModelConfig& config, const RotaryKeys& keys) {
  config.positions = PositionKind::kRotary;
  const double base = json.number_or(
      keys.base, json.number_or("rope_theta", keys.default_base, kLeastBase, kMostBase), kLeastBase,
      kMostBase);
  double share = json.number_or("partial_rotary_factor", keys.default_share, 0.0, 1.0);
  if (keys.share != nullptr) share = json.number_or(keys.share, share, 0.0, 1.0);
  RotarySection all(json, config, keys, base, share);
  if (keys.by_layer) {
    const double window_base =
        keys.window_base == nullptr
            ? base
            : json.number_or(keys.window_base, keys.default_window_base, kLeastBase, kMostBase);
    RotarySection windows(json, config, keys, window_base, share);
    if (json.has("rope_scaling")) all.read(json.object("rope_scaling"), "rope_scaling", true);
    if (json.has("rope_parameters")) {
      const JsonObject sections = json.object("rope_parameters");
      const auto read = [&](const char* name, RotarySection& to) {
        if (sections.has(name))
          to.read(sections.object(name), std::string("rope_parameters.") + name, true);
      };
      read("full_attention", all);
      read("sliding_attention", windows);
    }
    config.window_rotary = windows.angles();
    require(windows.share() == all.share(),
            "{}: layers that turn different shares of a head, {} and {}, are not supported",
            json.source(), all.share(), windows.share());
  } else {
    for (const char* key : {"rope_scaling", "rope_parameters"})
      if (json.has(key)) all.read(json.object(key), key, false);
  }
  config.rotary_base = all.angles().base;
  config.rotary_scaling = all.angles().scaling;
  require(
      keys.share != nullptr || all.share() == 1.0,
      "{}: partial_rotary_factor {} is not supported in this family; its heads are turned whole",
      json.source(), all.share());
  config.rotary_width =
      static_cast<std::int64_t>(static_cast<double>(config.head_width) * all.share());
  require(
      config.rotary_width > 0 && (config.rotary_width + 1) / 2 * 2 <= config.head_width,
      "{}: rotary positions turn pairs of a head's elements; {} of {} do not fit, an even number "
      "would",
      json.source(), config.rotary_width, config.head_width);
  check_scaling(json, config.rotary_scaling, config.rotary_width);
  if (config.window_rotary) check_scaling(json, config.window_rotary->scaling, config.rotary_width);
  // What it is for: runs longer than the context of the training.
  if (config.rotary_scaling.kind == RotaryScaling::Kind::kDynamic)
    config.context =
        std::min(kMostExtent, static_cast<std::int64_t>(config.rotary_scaling.factor *
                                                        static_cast<double>(config.context)));
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
