#include "model/hooked_state_dict.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <map>

#include "filigree/error.h"
#include "filigree/names.h"
#include "model/family.h"

namespace filigree {
namespace {

using Extents = std::vector<std::int64_t>;

constexpr std::int64_t kContextUnknown = 2048;  // where nothing limits it

class LensShapes {
 public:
  LensShapes(const std::vector<TensorView>& tensors, const std::string& source) : source_(source) {
    for (const TensorView& view : tensors) by_name_.emplace(view.name, &view);
  }

  const TensorView* find(const std::string& name) const {
    const auto found = by_name_.find(name);
    return found == by_name_.end() ? nullptr : found->second;
  }
  bool has(const std::string& name) const { return find(name) != nullptr; }
  const Extents& shape(const std::string& name, std::size_t rank) const {
    const TensorView* view = find(name);
    require(view != nullptr, "'{}': tensor '{}' is missing", source_, name);
    require(view->shape.size() == rank, "'{}': tensor '{}' is {}, which is not of {} axes", source_,
            name, shape_text(view->shape), rank);
    return view->shape;
  }
  std::vector<float> values(const std::string& name) const {
    const TensorView* view = find(name);
    if (view == nullptr) return {};
    std::vector<float> values(static_cast<std::size_t>(view->element_count()));
    read_f32(*view, values);
    return values;
  }

 private:
  const std::string& source_;
  std::map<std::string, const TensorView*> by_name_;
};

// Whether the means over an axis of [outer, axis, inner] are zero, to rounding.
bool is_centred(const std::vector<float>& x, std::int64_t axis, std::int64_t inner) {
  if (axis < 2 || inner < 1 || x.empty() || x.size() % static_cast<std::size_t>(axis * inner) != 0)
    return false;
  double largest = 0.0, size = 0.0;
  const auto n = static_cast<std::size_t>(axis), step = static_cast<std::size_t>(inner);
  for (std::size_t outer = 0; outer * n * step < x.size(); ++outer)
    for (std::size_t i = 0; i < step; ++i) {
      double sum = 0.0;
      for (std::size_t j = 0; j < n; ++j) {
        const auto value = static_cast<double>(x[(outer * n + j) * step + i]);
        sum += value, size += value * value;
      }
      largest = std::max(largest, std::abs(sum) / static_cast<double>(axis));
    }
  return size > 0.0 && largest < 1e-4 * std::sqrt(size / static_cast<double>(x.size()));
}

// What shapes tell of the configuration, and what they do not.
class Inference {
 public:
  Inference(const std::vector<TensorView>& tensors, const nlohmann::json& settings,
            const std::string& source)
      : tensors_(tensors, source), source_(source), json_(nlohmann::json::object()) {
    if (!settings.is_null()) json_ = settings;
  }

  nlohmann::json run() {
    json_["model_type"] = "hooked_transformer";
    const Extents& embedding = tensors_.shape("embed.W_E", 2);
    const Extents& query = tensors_.shape("blocks.0.attn.W_Q", 3);
    std::int64_t layers = 1;
    while (tensors_.has(fmt::format("blocks.{}.attn.W_Q", layers))) ++layers;
    told("n_layers", layers);
    told("d_vocab", embedding[0]);
    told("d_model", embedding[1]);
    told("n_heads", query[0]);
    told("d_head", query[2]);
    told("d_vocab_out", tensors_.shape("unembed.W_U", 2)[1]);
    if (tensors_.has("blocks.0.attn._W_K"))
      told("n_key_value_heads", tensors_.shape("blocks.0.attn._W_K", 3)[0]);
    if (tensors_.has("blocks.0.attn.q_norm.w")) told("use_qk_norm", true);
    positions(embedding[1]);
    norm(embedding[1], query);
    mlp();
    assume("attention_dir", "causal");
    if (!json_.contains("attn_scale"))
      assume("use_attn_scale", true, "attention scale 1/sqrt(d_head)");
    return json_;
  }
  const std::string& assumed() const { return assumed_; }

 private:
  // A value that the shapes tell: settings may repeat it.
  template <typename T>
  void told(const char* key, const T& value) {
    const bool unset = !json_.contains(key) || json_[key].is_null() || json_[key] == -1;
    require(unset || json_[key] == value, "'{}': {} is {} in the settings, but the tensors say {}",
            source_, key, printable(json_[key].dump()), nlohmann::json(value).dump());
    json_[key] = value;
  }
  // A value that nothing tells, unless a setting does.
  template <typename T>
  void assume(const char* key, const T& value, std::string words = "") {
    if (json_.contains(key)) return;
    json_[key] = value;
    if (words.empty()) words = fmt::format("{} {}", key, value);
    assumed_ += (assumed_.empty() ? "" : ", ") + words;
  }

  void positions(std::int64_t width) {
    const TensorView* learned = tensors_.find("pos_embed.W_pos");
    const TensorView* sines = tensors_.find("blocks.0.attn.rotary_sin");
    const char* const kind = "positional_embedding_type";
    std::int64_t context = 0;
    if (learned != nullptr) {
      const Extents& shape = tensors_.shape("pos_embed.W_pos", 2);
      require(shape[1] == width, "'{}': tensor 'pos_embed.W_pos' is {}, but the width is {}",
              source_, shape_text(shape), width);
      context = shape[0];
      // Standard unless a setting says that they are added in every layer.
      if (!json_.contains(kind)) json_[kind] = "standard";
    } else if (sines != nullptr) {
      told(kind, "rotary");
      rotary(context);
    } else if (!json_.contains(kind)) {
      json_[kind] = "none";
    }
    if (const TensorView* mask = tensors_.find("blocks.0.attn.mask");
        context == 0 && mask != nullptr && mask->shape.size() == 2)
      context = mask->shape[0];
    if (learned != nullptr)
      told("n_ctx", context);
    else if (context > 0 && !json_.contains("n_ctx"))
      json_["n_ctx"] = context;
    else
      assume("n_ctx", kContextUnknown);
  }

  // The angles of position 1 tell the base, and whether neighbours are turned together.
  void rotary(std::int64_t& context) {
    const Extents& shape = tensors_.shape("blocks.0.attn.rotary_sin", 2);
    context = shape[0];
    const std::int64_t turned = shape[1];
    told("rotary_dim", turned);
    const std::vector<float> sines = tensors_.values("blocks.0.attn.rotary_sin");
    const std::vector<float> cosines = tensors_.values("blocks.0.attn.rotary_cos");
    if (context < 2 || turned < 4 || cosines.size() != sines.size()) return;
    const auto row = static_cast<std::size_t>(turned);
    const auto angle = [&](std::size_t place) {
      return std::atan2(static_cast<double>(sines[row + place]),
                        static_cast<double>(cosines[row + place]));
    };
    require(std::abs(angle(0) - angle(1)) > 1e-4,
            "'{}': rotary positions turn neighbouring elements together (rotary_adjacent_pairs), "
            "which is not supported",
            source_);
    if (json_.contains("rotary_base")) return;
    // angle(1) is base^(-2 / turned).
    const double base = std::pow(angle(1), -0.5 * static_cast<double>(turned));
    if (!(base >= 1.0 && base <= 1e12)) return;
    json_["rotary_base"] =
        std::abs(base - std::round(base)) < 1e-3 * base ? std::round(base) : base;
  }

  void mlp() {
    const bool there = tensors_.has("blocks.0.mlp.W_in");
    told("attn_only", !there);
    if (!there) return;
    told("d_mlp", tensors_.shape("blocks.0.mlp.W_in", 2)[1]);
    const bool gated = tensors_.has("blocks.0.mlp.W_gate");
    if (gated) told("gated_mlp", true);
    if (tensors_.has("blocks.0.mlp.ln.w")) told("act_fn", "solu_ln");
    // Folded are models that were trained on text, whose activation it is.
    assume("act_fn", gated ? "silu" : (folded_ ? "gelu_new" : "relu"));
    assume("parallel_attn_mlp", false, "attention before MLP");
  }

  void norm(std::int64_t width, const Extents& query) {
    const char* const key = "normalization_type";
    if (tensors_.has("blocks.0.ln1.w")) {
      told(key, tensors_.has("blocks.0.ln1.b") ? "LN" : "RMS");
      return;
    }
    if (json_.contains(key)) return;
    // TransformerLens folds norms into the weights that read the stream, and centres those.
    folded_ = is_centred(tensors_.values("blocks.0.attn.W_Q"), width, query[2]) ||
              is_centred(tensors_.values("embed.W_E"), width, 1);
    if (folded_)
      assume(key, "LNPre", "normalization_type LNPre (the weights are centred, as folding does)");
    else
      assume(key, nullptr, "no normalisation");
  }

  LensShapes tensors_;
  std::string source_, assumed_;
  bool folded_ = false;
  nlohmann::json json_;
};

}  // namespace

ModelConfig hooked_config(const std::vector<TensorView>& tensors, const nlohmann::json& settings,
                          const std::string& source) {
  Inference inference(tensors, settings, source);
  ModelConfig config = parse_model_config(inference.run(), source);
  config.assumed = inference.assumed();
  return config;
}

std::unique_ptr<Model> hooked_model(const std::vector<TensorView>& tensors,
                                    const ModelConfig& config, const std::string& source) {
  const Family& family = family_of(config.family, source);
  std::map<std::string, const TensorView*> left;
  for (const TensorView& view : tensors)
    if (const std::string name = family.canonical_name(config, view.name); !name.empty())
      left.emplace(name, &view);
  require(config.layers <= static_cast<std::int64_t>(tensors.size()),
          "'{}': {} layers, but only {} tensors", source, config.layers, tensors.size());
  // Shapes are compared before memory is taken for what the configuration promises.
  const std::vector<ParameterSpec> specs = family.parameters(config);
  for (const ParameterSpec& spec : specs) {
    const auto found = left.find(spec.name);
    require(found != left.end() || spec.may_be_absent, "'{}': tensor '{}' {} is missing", source,
            spec.name, spec.stored_shape().to_string());
    const std::span<const std::int64_t> wanted = spec.stored_shape().extents();
    require(found == left.end() || std::ranges::equal(found->second->shape, wanted),
            "'{}': tensor '{}' is {}, not {}", source, spec.name,
            found == left.end() ? "" : shape_text(found->second->shape),
            spec.stored_shape().to_string());
  }
  auto model = make_model(config, 0);
  for (std::size_t p = 0; p < specs.size(); ++p) {
    const auto found = left.find(specs[p].name);
    if (found == left.end()) continue;  // made as zeros
    Tensor value = Tensor::empty(specs[p].shape);
    read_f32(*found->second, {value.mutable_f32(), static_cast<std::size_t>(value.elements())});
    model->parameters()[p].variable.mutable_value() = in_our_order(specs[p], value);
    left.erase(found);
  }
  std::vector<std::string> names;
  for (const auto& [name, view] : left) names.push_back(printable(name));
  require(names.empty(), "'{}': tensors that such a model does not have: {}", source,
          printable(join(names, ", "), 400));
  return model;
}

}  // namespace filigree
