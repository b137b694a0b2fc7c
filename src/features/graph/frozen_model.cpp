#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "filigree/error.h"
#include "filigree/trace.h"

namespace filigree {
namespace {

Variable on_host(const Variable& x) { return x.defined() ? Variable(x.value().on_host()) : x; }

// A norm without its denominator: what vector . norm(x) is of x, and of the norm's bias.
struct FoldedRow {
  std::vector<double> vector;
  double constant = 0.0;
};

FoldedRow behind_norm(const NormWeights& norm, std::span<const double> vector) {
  FoldedRow folded = {std::vector<double>(vector.begin(), vector.end())};
  if (!norm.on()) return folded;
  const Tensor weight = norm.gain().value().on_host();
  for (std::size_t c = 0; c < vector.size(); ++c)
    folded.vector[c] *= static_cast<double>(weight.f32()[c]);
  if (norm.bias.defined()) {
    const Tensor bias = norm.bias.value().on_host();
    for (std::size_t c = 0; c < vector.size(); ++c)
      folded.constant += vector[c] * static_cast<double>(bias.f32()[c]);
  }
  if (norm.centres()) {
    const double mean = std::accumulate(folded.vector.begin(), folded.vector.end(), 0.0) /
                        static_cast<double>(vector.size());
    for (double& x : folded.vector) x -= mean;
  }
  return folded;
}

StreamReading reading(const NormWeights& norm, std::int64_t stage, std::int64_t position,
                      float scale, std::span<const double> vector) {
  const FoldedRow folded = behind_norm(norm, vector);
  StreamReading result{stage, {{position, std::vector<float>(vector.size())}}, folded.constant};
  for (std::size_t c = 0; c < vector.size(); ++c)
    result.parts[0].vector[c] = static_cast<float>(folded.vector[c] * static_cast<double>(scale));
  return result;
}

// Whether a norm multiplies by 1 and adds nothing.
bool is_plain(const NormWeights& norm) {
  const Tensor gain = norm.gain().value().on_host();
  bool plain = std::ranges::all_of(gain.values(), [](float x) { return x == 1.0f; });
  if (norm.bias.defined()) {
    const Tensor bias = norm.bias.value().on_host();
    plain = plain && std::ranges::all_of(bias.values(), [](float x) { return x == 0.0f; });
  }
  return plain;
}

std::vector<float> inverses(const Tensor& scale) {
  std::vector<float> result(scale.values().begin(), scale.values().end());
  for (float& x : result) x = 1.0f / x;
  return result;
}

// What a norm makes of a vector that is added to its input, but for the denominator.
void pass_norm(const NormWeights& norm, std::span<double> vector) {
  if (!norm.on()) return;
  if (norm.centres()) {
    const double mean =
        std::accumulate(vector.begin(), vector.end(), 0.0) / static_cast<double>(vector.size());
    for (double& x : vector) x -= mean;
  }
  const Tensor gain = norm.gain().value().on_host();
  for (std::size_t c = 0; c < vector.size(); ++c) vector[c] *= static_cast<double>(gain.f32()[c]);
}

// Matrices of the attention, and what its biases write: sum over keys of weight times the value of
// the biases, through the output matrix and the norm behind it.
void fold_attention(const FrozenModel& frozen, const LayerWeights& weights,
                    std::span<const float> post_scale, FrozenLayer& layer) {
  const AttentionWeights& attention = *weights.attention;
  const std::int64_t D = frozen.head_width, width = frozen.width, n = frozen.positions;
  layer.value = Tensor::empty({frozen.key_heads, D, width});
  layer.output = Tensor::empty({frozen.heads, D, width});
  std::vector<double> value_bias(static_cast<std::size_t>(frozen.key_heads * D));
  const LinearWeight value = on_host(attention.v);
  for (std::int64_t e = 0; e < frozen.key_heads * D; ++e) {
    const FoldedRow folded = behind_norm(weights.norm, output_row(value, e));
    std::copy(folded.vector.begin(), folded.vector.end(), layer.value.mutable_f32() + e * width);
    value_bias[static_cast<std::size_t>(e)] = folded.constant + output_bias(value, e);
  }
  const Tensor output = attention.o.weight.value().on_host();
  const NormWeights& behind = weights.attention_post_norm;
  std::vector<double> written(static_cast<std::size_t>(width));
  for (std::int64_t e = 0; e < frozen.heads * D; ++e) {
    for (std::int64_t c = 0; c < width; ++c)
      written[static_cast<std::size_t>(c)] = static_cast<double>(
          output.f32()[attention.o.out_in ? c * frozen.heads * D + e : e * width + c]);
    pass_norm(behind, written);
    std::copy(written.begin(), written.end(), layer.output.mutable_f32() + e * width);
  }

  layer.attention_bias = Tensor::zeros({n, width});
  const Tensor bias_behind =
      behind.on() && behind.bias.defined() ? behind.bias.value().on_host() : Tensor();
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t c = 0; c < width; ++c)
      written[static_cast<std::size_t>(c)] =
          attention.o.bias.defined() ? output_bias(attention.o, c) : 0.0;
    pass_norm(behind, written);
    for (std::int64_t h = 0; h < frozen.heads; ++h) {
      const float* weight = layer.weights.f32() + (h * n + i) * n;
      const double open = std::accumulate(weight, weight + i + 1, 0.0);
      const std::int64_t group = h / (frozen.heads / frozen.key_heads);
      for (std::int64_t e = 0; e < D; ++e) {
        const double z = open * value_bias[static_cast<std::size_t>(group * D + e)];
        const float* row = layer.output.f32() + (h * D + e) * width;
        for (std::int64_t c = 0; c < width; ++c)
          written[static_cast<std::size_t>(c)] += z * static_cast<double>(row[c]);
      }
    }
    for (std::int64_t c = 0; c < width; ++c)
      layer.attention_bias.mutable_f32()[i * width + c] =
          static_cast<float>(written[static_cast<std::size_t>(c)] *
                             static_cast<double>(post_scale[static_cast<std::size_t>(i)])) +
          (bias_behind.defined() ? bias_behind.f32()[c] : 0.0f);
  }
}

// What readings are made of, read often and a row at a time.
ModelWeights weights_on_host(const Model& model) {
  ModelWeights weights = model.weights();
  const auto fetch = [](NormWeights& norm) {
    norm.weight = on_host(norm.weight), norm.bias = on_host(norm.bias);
  };
  for (LayerWeights& layer : weights.layers) {
    fetch(layer.norm);
    fetch(layer.mlp_norm);
    fetch(layer.attention_post_norm);
  }
  fetch(weights.final_norm);
  weights.output = on_host(weights.output);
  return weights;
}

Tensor one_row(const Tensor& rows, std::int64_t row) {
  return rows.defined() ? rows.rows(row, row + 1).clone() : Tensor();
}

// Cell (position, position) of each head.
Tensor diagonal_cell(const Tensor& maps, std::int64_t position) {
  const std::int64_t heads = maps.size(0), n = maps.size(1);
  Tensor cell = Tensor::empty({heads, 1, 1});
  for (std::int64_t h = 0; h < heads; ++h)
    cell.mutable_f32()[h] = maps.f32()[(h * n + position) * n + position];
  return cell;
}

}  // namespace

LinearWeight on_host(const LinearWeight& w) {
  return {on_host(w.weight), on_host(w.bias), w.out_in, w.begin, w.count};
}

std::vector<double> output_row(const LinearWeight& w, std::int64_t output) {
  const Tensor weight = w.weight.value().on_host();
  const std::int64_t inputs = w.inputs(), all = w.weight.size(w.out_in ? 0 : 1);
  std::vector<double> row(static_cast<std::size_t>(inputs));
  for (std::int64_t i = 0; i < inputs; ++i)
    row[static_cast<std::size_t>(i)] =
        weight.f32()[w.out_in ? (w.begin + output) * inputs + i : i * all + w.begin + output];
  return row;
}

double output_bias(const LinearWeight& w, std::int64_t output) {
  if (!w.bias.defined()) return 0.0;
  return w.bias.value().on_host().f32()[w.begin + output];
}

StreamReading FrozenModel::read_attention(std::int64_t l, std::int64_t position,
                                          std::span<const double> vector) const {
  return reading(weights.layers[static_cast<std::size_t>(l)].norm, 2 * l, position,
                 layer(l).attention_scale[static_cast<std::size_t>(position)], vector);
}

StreamReading FrozenModel::read_mlp(std::int64_t l, std::int64_t position,
                                    std::span<const double> vector) const {
  return reading(weights.layers[static_cast<std::size_t>(l)].mlp_norm, 2 * l + 1, position,
                 layer(l).mlp_scale[static_cast<std::size_t>(position)], vector);
}

StreamReading FrozenModel::read_final(std::int64_t position, std::span<const double> vector) const {
  return reading(weights.final_norm, 2 * depth(), position,
                 final_scale[static_cast<std::size_t>(position)], vector);
}

FrozenModel FrozenModel::alone(std::int64_t position) const {
  const auto p = static_cast<std::size_t>(position);
  FrozenModel one = *this;
  one.positions = 1;
  one.ids = {ids[p]};
  one.final_scale = {final_scale[p]};
  one.token_embedding = one_row(token_embedding, position);
  one.position_embedding = one_row(position_embedding, position);
  for (FrozenLayer& layer : one.layers) {
    layer.pattern = diagonal_cell(layer.pattern, position);
    layer.weights = diagonal_cell(layer.weights, position);
    layer.attention_scale = {layer.attention_scale[p]};
    layer.mlp_scale = {layer.mlp_scale[p]};
    if (!layer.skip_scale.empty()) layer.skip_scale = {layer.skip_scale[p]};
    for (Tensor* rows : {&layer.attention_bias, &layer.query, &layer.key, &layer.projected_query,
                         &layer.projected_key, &layer.query_scale, &layer.key_scale,
                         &layer.mlp_input, &layer.mlp_output})
      *rows = one_row(*rows, position);
  }
  return one;
}

namespace {

// 1 / denominators of the norm on queries or keys for each head, [positions, heads]: heads have one
// each, or all of a token the same.
Tensor scales_by_head(const Tensor& denominators, std::int64_t positions, std::int64_t heads) {
  Tensor scales = Tensor::empty({positions, heads});
  const std::int64_t each = denominators.elements() / positions;
  for (std::int64_t p = 0; p < positions; ++p)
    for (std::int64_t h = 0; h < heads; ++h)
      scales.mutable_f32()[p * heads + h] =
          1.0f / denominators.f32()[p * each + (each == 1 ? 0 : h)];
  return scales;
}

void require_unclipped(const Tensor& values, float bound, std::int64_t layer,
                       std::int64_t positions) {
  const std::int64_t each = values.elements() / positions;
  for (std::int64_t i = 0; i < values.elements(); ++i)
    require(std::abs(values.f32()[i]) < bound,
            "trace: layer {} clips a value at {} at token {}, so that what its heads carry from "
            "there is not linear; trace another prompt",
            layer, bound, i / each);
}

// The tap of a layer's queries or keys as the scores read them.
const char* read_tap(const ModelConfig& config, std::int64_t layer, bool query) {
  if (config.turns(layer)) return query ? "attn.hook_rot_q" : "attn.hook_rot_k";
  if (config.query_key_norm != QueryKeyNorm::kNone)
    return query ? "attn.q_norm.hook_normalized" : "attn.k_norm.hook_normalized";
  return query ? "attn.hook_q" : "attn.hook_k";
}

}  // namespace

FrozenModel freeze_model(const Model& model, std::span<const std::int32_t> ids,
                         const std::string& mlp_input, const std::string& mlp_output) {
  require(!ids.empty(), "trace: the prompt has no tokens");
  require(!model.lora(), "trace: the model has adapters; merge them first");
  const ModelConfig& config = model.config();
  const auto n = static_cast<std::int64_t>(ids.size());
  FrozenModel frozen;
  frozen.positions = n, frozen.width = config.width;
  frozen.heads = config.heads, frozen.key_heads = config.key_heads;
  frozen.head_width = config.head_width;
  frozen.parallel = config.residual == ResidualKind::kParallel;
  frozen.device = model.placement().device;
  frozen.ids.assign(ids.begin(), ids.end());
  frozen.weights = weights_on_host(model);

  const LayerWeights& any = frozen.weights.layers.front();
  require(config.norm != NormKind::kNone && config.mlp != MlpKind::kNone && !config.bidirectional &&
              config.positions != PositionKind::kShortformer &&
              (!config.lens_taps || is_plain(any.mlp_norm)),
          "trace: attribution graphs need causal attention, MLPs and norms whose weights are "
          "folded into what follows; this {} model is of another kind",
          config.family);
  const bool learned = config.positions == PositionKind::kLearned;
  Taps taps;
  taps.observe("hook_embed");
  if (learned) taps.observe("hook_pos_embed");
  const bool before = config.branch_norms != BranchNorms::kAfter;
  const bool after = config.branch_norms != BranchNorms::kBefore;
  const bool normed = config.query_key_norm != QueryKeyNorm::kNone;
  const bool clips = config.clip_qkv > 0.0f;
  require(!normed || config.norm == NormKind::kRms,
          "trace: a {} model takes the mean off queries and keys, which is not known here",
          config.family);
  std::vector<std::string> names = {"attn.hook_pattern", mlp_input, mlp_output};
  if (before) names.insert(names.end(), {"ln1.hook_scale", "ln2.hook_scale"});
  if (after) names.emplace_back("ln1_post.hook_scale");
  if (normed) names.insert(names.end(), {"attn.q_norm.hook_scale", "attn.k_norm.hook_scale"});
  if (clips) names.insert(names.end(), {"attn.hook_q", "attn.hook_k", "attn.hook_v"});
  for (const std::string& name : names) taps.observe("blocks.*." + name);
  for (std::int64_t l = 0; l < config.layers; ++l)
    for (const bool of_queries : {true, false})
      taps.observe(fmt::format("blocks.{}.{}", l, read_tap(config, l, of_queries)));
  taps.observe("ln_final.hook_scale");
  const Variable logits =
      model.forward(Tensor::from_ids({1, n}, ids),
                    {.taps = &taps, .precise_logits = true, .uncapped_logits = true});
  frozen.logit_soft_cap = config.logit_soft_cap;
  frozen.score_soft_cap = config.score_soft_cap;
  frozen.logits =
      logits.value().reshape({n, logits.size(2)}).rows(n - 1, n).clone().reshape({logits.size(2)});
  frozen.token_embedding = taps.value("hook_embed").reshape({n, frozen.width});
  if (learned) frozen.position_embedding = taps.value("hook_pos_embed").reshape({n, frozen.width});
  frozen.final_scale = inverses(taps.value("ln_final.hook_scale"));

  for (std::int64_t l = 0; l < config.layers; ++l) {
    const auto value = [&](const std::string& name) {
      return taps.value(fmt::format("blocks.{}.{}", l, name));
    };
    FrozenLayer layer;
    const std::vector<float> ones(static_cast<std::size_t>(n), 1.0f);
    layer.attention_scale = before ? inverses(value("ln1.hook_scale")) : ones;
    layer.mlp_scale = before ? inverses(value("ln2.hook_scale")) : ones;
    const std::vector<float> post_scale = after ? inverses(value("ln1_post.hook_scale")) : ones;
    if (normed) {
      layer.query_scale = scales_by_head(value("attn.q_norm.hook_scale"), n, frozen.heads);
      layer.key_scale = scales_by_head(value("attn.k_norm.hook_scale"), n, frozen.key_heads);
    }
    if (clips) {
      require_unclipped(value("attn.hook_v"), config.clip_qkv, l, n);
      layer.projected_query = value("attn.hook_q").reshape({n, frozen.heads, frozen.head_width});
      layer.projected_key = value("attn.hook_k").reshape({n, frozen.key_heads, frozen.head_width});
    }
    layer.weights = value("attn.hook_pattern").reshape({frozen.heads, n, n});
    layer.query = value(read_tap(config, l, true)).reshape({n, frozen.heads, frozen.head_width});
    layer.key = value(read_tap(config, l, false)).reshape({n, frozen.key_heads, frozen.head_width});
    layer.mlp_input = value(mlp_input).reshape({n, frozen.width});
    layer.mlp_output = value(mlp_output).reshape({n, frozen.width});
    layer.pattern = layer.weights.clone();
    for (std::int64_t i = 0; i < layer.pattern.elements(); ++i)
      layer.pattern.mutable_f32()[i] *= layer.attention_scale[static_cast<std::size_t>(i % n)] *
                                        post_scale[static_cast<std::size_t>(i / n % n)];
    fold_attention(frozen, frozen.weights.layers[static_cast<std::size_t>(l)], post_scale, layer);
    frozen.layers.push_back(std::move(layer));
  }
  return frozen;
}

}  // namespace filigree
