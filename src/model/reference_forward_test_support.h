// The forward pass in double precision, as plainly as it can be written, for tests. It reads the
// weights of a model and its configuration and shares no code with the decoder.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <vector>

#include "filigree/model.h"

namespace filigree {

class ReferenceForward {
 public:
  using Doubles = std::vector<double>;

  explicit ReferenceForward(const Model& model)
      : config_(model.config()), weights_(model.weights()) {
    for (const NamedParameter& parameter : model.parameters()) {
      const Tensor& value = parameter.variable.value();
      values_[parameter.variable.id()] = Doubles(value.values().begin(), value.values().end());
    }
    // Norms without weights have constants for them.
    for (const LayerWeights& layer : weights_.layers)
      for (const NormWeights* norm : std::initializer_list<const NormWeights*>{
               &layer.norm, &layer.mlp_norm, &weights_.final_norm})
        if (norm->weight.defined())
          values_.try_emplace(norm->weight.id(), norm->weight.value().values().begin(),
                              norm->weight.value().values().end());
    for (const LayerWeights& layer : weights_.layers)
      if (layer.mlp != nullptr && layer.mlp->norm.on())
        values_.try_emplace(layer.mlp->norm.weight.id(),
                            layer.mlp->norm.weight.value().values().begin(),
                            layer.mlp->norm.weight.value().values().end());
  }

  // To be moved about, for slopes.
  Doubles& values(const Variable& parameter) { return values_.at(parameter.id()); }

  // The logits [T, V] of one sequence.
  Doubles logits(const std::vector<std::int32_t>& ids) const {
    const auto T = static_cast<std::int64_t>(ids.size());
    const std::int64_t d = config_.width;
    Doubles x(static_cast<std::size_t>(T * d));
    for (std::int64_t t = 0; t < T; ++t)
      for (std::int64_t i = 0; i < d; ++i) {
        at(x, t, i, d) = of(weights_.token_embedding, ids[static_cast<std::size_t>(t)] * d + i) *
                         config_.embedding_scale;
        if (config_.positions == PositionKind::kLearned)
          at(x, t, i, d) += of(weights_.position_embedding, (config_.first_position + t) * d + i);
      }
    for (std::size_t l = 0; l < weights_.layers.size(); ++l) {
      const LayerWeights& layer = weights_.layers[l];
      const Doubles attended = attention(normalised(x, layer.norm), l);
      Doubles middle = x;
      add(middle, normalised(attended, layer.attention_post_norm));
      if (config_.mlp == MlpKind::kNone) {
        x = middle;
        continue;
      }
      const bool parallel = config_.residual == ResidualKind::kParallel;
      const Doubles& read = parallel ? x : middle;
      Doubles next = middle;
      add(next, normalised(perceptron(normalised(read, layer.mlp_norm), *layer.mlp),
                           layer.mlp_post_norm));
      x = next;
    }
    Doubles logits = linear(normalised(x, weights_.final_norm), weights_.output);
    for (double& logit : logits)
      logit = capped(logit * config_.logit_scale, static_cast<double>(config_.logit_soft_cap));
    return logits;
  }

  // Mean cross entropy of each position's target.
  double loss(const std::vector<std::int32_t>& ids,
              const std::vector<std::int32_t>& targets) const {
    const Doubles all = logits(ids);
    const std::size_t V = all.size() / ids.size();
    double total = 0.0;
    for (std::size_t t = 0; t < ids.size(); ++t) {
      double sum = 0.0;
      for (std::size_t v = 0; v < V; ++v) sum += std::exp(all[t * V + v]);
      total += std::log(sum) - all[t * V + static_cast<std::size_t>(targets[t])];
    }
    return total / static_cast<double>(ids.size());
  }

 private:
  static double& at(Doubles& x, std::int64_t row, std::int64_t column, std::int64_t width) {
    return x[static_cast<std::size_t>(row * width + column)];
  }
  static double at(const Doubles& x, std::int64_t row, std::int64_t column, std::int64_t width) {
    return x[static_cast<std::size_t>(row * width + column)];
  }
  static void add(Doubles& to, const Doubles& from) {
    for (std::size_t i = 0; i < to.size(); ++i) to[i] += from[i];
  }
  double of(const Variable& parameter, std::int64_t place) const {
    return values_.at(parameter.id())[static_cast<std::size_t>(place)];
  }

  static double capped(double x, double cap) { return cap == 0.0 ? x : cap * std::tanh(x / cap); }

  // By rows of as many numbers as the norm has weights, or where each head has its own, as a head.
  Doubles normalised(const Doubles& x, const NormWeights& norm, std::int64_t heads = 1) const {
    if (norm.kind == NormKind::kNone || !norm.has_weights()) return x;
    const bool apart = !norm.by_head.empty();
    const std::int64_t d = apart ? norm.by_head[0].size(0) : norm.weight.size(0) / heads;
    const std::int64_t rows = static_cast<std::int64_t>(x.size()) / d;
    Doubles y(x.size());
    for (std::int64_t r = 0; r < rows; ++r) {
      double mean = 0.0, square = 0.0;
      if (norm.kind == NormKind::kLayer)
        for (std::int64_t i = 0; i < d; ++i) mean += at(x, r, i, d) / static_cast<double>(d);
      for (std::int64_t i = 0; i < d; ++i)
        square += std::pow(at(x, r, i, d) - mean, 2.0) / static_cast<double>(d);
      for (std::int64_t i = 0; i < d; ++i) {
        const double weight = apart ? of(norm.by_head[static_cast<std::size_t>(r % heads)], i)
                                    : of(norm.weight, r % heads * d + i);
        at(y, r, i, d) = (at(x, r, i, d) - mean) / std::sqrt(square + config_.norm_epsilon) *
                         (weight + (config_.norm_around_one ? 1.0 : 0.0));
        if (norm.bias.defined()) at(y, r, i, d) += of(norm.bias, i);
      }
    }
    return y;
  }

  Doubles linear(const Doubles& x, const LinearWeight& w) const {
    const std::int64_t in = w.inputs(), out = w.outputs();
    const std::int64_t rows = static_cast<std::int64_t>(x.size()) / in;
    const std::int64_t row_length = w.weight.size(1);
    const Doubles& weight = values_.at(w.weight.id());
    Doubles y(static_cast<std::size_t>(rows * out));
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t o = 0; o < out; ++o) {
        double sum = w.bias.defined() ? of(w.bias, w.begin + o) : 0.0;
        for (std::int64_t i = 0; i < in; ++i)
          sum += at(x, r, i, in) *
                 weight[static_cast<std::size_t>(w.out_in ? (w.begin + o) * row_length + i
                                                          : i * row_length + w.begin + o)];
        at(y, r, o, out) = sum;
      }
    return y;
  }

  void turn(Doubles& x, std::int64_t heads, const RotaryAngles& angles) const {
    const std::int64_t D = config_.head_width, half = (config_.rotary_width + 1) / 2;
    const std::int64_t rows = static_cast<std::int64_t>(x.size()) / D;
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t i = 0; i < half; ++i) {
        const double angle =
            static_cast<double>(r / heads) * step_of(i, angles, static_cast<double>(rows / heads));
        const double cosine = std::cos(angle) * angles.scaling.amplitude;
        const double sine = std::sin(angle) * angles.scaling.amplitude;
        const double a = at(x, r, i, D), b = at(x, r, i + half, D);
        at(x, r, i, D) = a * cosine - b * sine;
        at(x, r, i + half, D) = b * cosine + a * sine;
      }
  }

  // As transformers' modeling_rope_utils has it: of a run of `length` positions, llama3 by wave
  // lengths.
  double step_of(std::int64_t pair, const RotaryAngles& angles, double length) const {
    const RotaryScaling& s = angles.scaling;
    const auto dim = static_cast<double>(config_.rotary_width), place = static_cast<double>(pair);
    const double step = std::pow(angles.base, -2.0 * place / dim);
    const double original = s.original_context;
    switch (s.kind) {
      case RotaryScaling::Kind::kNone: return step;
      case RotaryScaling::Kind::kLinear: return step / s.factor;
      case RotaryScaling::Kind::kDynamic: {
        if (length <= original) return step;
        const double base = angles.base * std::pow(s.factor * length / original - (s.factor - 1.0),
                                                   dim / (dim - 2.0));
        return std::pow(base, -2.0 * place / dim);
      }
      case RotaryScaling::Kind::kLongRope:
        return step / (length > original ? s.far : s.near)[static_cast<std::size_t>(pair)];
      case RotaryScaling::Kind::kYarn: {
        const auto bound = [&](double turns) {
          return dim * std::log(original / (turns * 2.0 * M_PI)) / (2.0 * std::log(angles.base));
        };
        double low = bound(s.high_frequency), high = bound(s.low_frequency);
        if (s.whole_pairs) low = std::floor(low), high = std::ceil(high);
        low = std::max(low, 0.0), high = std::min(high, dim - 1.0);
        if (low == high) high += 0.001;
        const double ramp = std::clamp((place - low) / (high - low), 0.0, 1.0);
        return step / s.factor * ramp + step * (1.0 - ramp);
      }
      case RotaryScaling::Kind::kLlama3: break;
    }
    const double wave = 2.0 * M_PI / step;
    if (wave > original / s.low_frequency) return step / s.factor;
    if (wave < original / s.high_frequency) return step;
    const double smooth =
        (original / wave - s.low_frequency) / (s.high_frequency - s.low_frequency);
    return (1.0 - smooth) * step / s.factor + smooth * step;
  }

  Doubles clipped(Doubles x) const {
    const auto most = static_cast<double>(config_.clip_qkv);
    if (most > 0.0)
      for (double& value : x) value = std::clamp(value, -most, most);
    return x;
  }

  Doubles attention(const Doubles& x, std::size_t layer) const {
    const AttentionWeights& w = *weights_.layers[layer].attention;
    const std::int64_t H = config_.heads, G = config_.key_heads, D = config_.head_width;
    Doubles placed = x;
    if (config_.positions == PositionKind::kShortformer)
      for (std::size_t i = 0; i < placed.size(); ++i)
        placed[i] += of(weights_.position_embedding, static_cast<std::int64_t>(i));
    const bool own = config_.query_key_norm == QueryKeyNorm::kEachHead;
    Doubles q = normalised(clipped(linear(placed, w.q)), w.q_norm, own ? H : 1);
    Doubles k = normalised(clipped(linear(placed, w.k)), w.k_norm, own ? G : 1);
    const Doubles v = clipped(linear(x, w.v));
    const std::int64_t window = config_.window(static_cast<std::int64_t>(layer));
    const auto index = static_cast<std::int64_t>(layer);
    if (config_.turns(index)) {
      turn(q, H, config_.rotary_angles(index));
      turn(k, G, config_.rotary_angles(index));
    }
    double scale = config_.attention_scale != 0.0 ? config_.attention_scale
                                                  : 1.0 / std::sqrt(static_cast<double>(D));
    if (config_.scale_by_layer) scale /= static_cast<double>(layer + 1);
    const std::int64_t T = static_cast<std::int64_t>(q.size()) / (H * D);
    Doubles z(q.size());
    for (std::int64_t h = 0; h < H; ++h) {
      const std::int64_t g = h / (H / G);
      for (std::int64_t t = 0; t < T; ++t) {
        Doubles pattern;
        double sum = 0.0;
        const std::int64_t end = config_.bidirectional ? T : t + 1;
        for (std::int64_t s = 0; s < end; ++s) {
          if (window > 0 && t - s >= window) {
            pattern.push_back(0.0);
            continue;
          }
          double score = 0.0;
          for (std::int64_t i = 0; i < D; ++i)
            score += at(q, t, h * D + i, H * D) * at(k, s, g * D + i, G * D);
          pattern.push_back(
              std::exp(capped(score * scale, static_cast<double>(config_.score_soft_cap))));
          sum += pattern.back();
        }
        for (std::int64_t s = 0; s < end; ++s)
          for (std::int64_t i = 0; i < D; ++i)
            at(z, t, h * D + i, H * D) +=
                pattern[static_cast<std::size_t>(s)] / sum * at(v, s, g * D + i, G * D);
      }
    }
    return linear(z, w.o);
  }

  double activated(double x) const {
    switch (config_.activation) {
      case Activation::kNone: return x;
      case Activation::kGeluNew:
        return x / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
      case Activation::kGelu: return x / 2 * (1 + std::erf(x / std::sqrt(2.0)));
      case Activation::kRelu: return std::max(x, 0.0);
      case Activation::kSilu: return x / (1 + std::exp(-x));
    }
    return x;
  }

  // x softmax(x) over rows of the hidden width.
  Doubles solu(Doubles x) const {
    const auto width = static_cast<std::size_t>(config_.mlp_width);
    for (std::size_t begin = 0; begin < x.size(); begin += width) {
      double sum = 0.0;
      for (std::size_t i = begin; i < begin + width; ++i) sum += std::exp(x[i]);
      for (std::size_t i = begin; i < begin + width; ++i) x[i] *= std::exp(x[i]) / sum;
    }
    return x;
  }

  // All experts at all tokens, those that are not among the largest by a gate of 0.
  Doubles mixture(const Doubles& x, const MlpWeights& w) const {
    const Doubles logits = linear(x, w.router);
    const std::size_t E = w.experts.size(), d = static_cast<std::size_t>(config_.width);
    Doubles y(x.size());
    for (std::size_t e = 0; e < E; ++e) {
      Doubles hidden = linear(x, w.experts[e].gate);
      const Doubles up = linear(x, w.experts[e].in);
      for (std::size_t i = 0; i < hidden.size(); ++i) hidden[i] = activated(hidden[i]) * up[i];
      const Doubles out = linear(hidden, w.experts[e].out);
      for (std::size_t t = 0; t < x.size() / d; ++t) {
        const double* row = logits.data() + t * E;
        double all = 0.0, of_chosen = 0.0;
        for (std::size_t f = 0; f < E; ++f) {
          const double weight = std::exp(row[f]);
          all += weight;
          if (std::count_if(row, row + E, [&](double other) { return other > row[f]; }) <
              config_.experts_per_token)
            of_chosen += weight;
        }
        if (std::count_if(row, row + E, [&](double other) { return other > row[e]; }) >=
            config_.experts_per_token)
          continue;
        const double gate = std::exp(row[e]) / (config_.expert_gates_sum_to_one ? of_chosen : all);
        for (std::size_t i = 0; i < d; ++i) y[t * d + i] += gate * out[t * d + i];
      }
    }
    return y;
  }

  Doubles perceptron(const Doubles& x, const MlpWeights& w) const {
    if (config_.mlp == MlpKind::kExperts) return mixture(x, w);
    if (config_.mlp == MlpKind::kSolu)
      return linear(normalised(solu(linear(x, w.in)), w.norm), w.out);
    Doubles hidden = linear(x, config_.mlp == MlpKind::kGated ? w.gate : w.in);
    for (double& value : hidden) value = activated(value);
    if (config_.mlp == MlpKind::kGated) {
      const Doubles up = linear(x, w.in);
      for (std::size_t i = 0; i < hidden.size(); ++i) {
        hidden[i] *= up[i];
        if (w.product_bias.defined())
          hidden[i] += of(w.product_bias, static_cast<std::int64_t>(i) % config_.mlp_width);
      }
    }
    return linear(hidden, w.out);
  }

  ModelConfig config_;
  ModelWeights weights_;
  std::map<const void*, Doubles> values_;
};

}  // namespace filigree
