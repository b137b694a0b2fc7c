#include "model/transformer_lens.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "filigree/error.h"
#include "filigree/names.h"
#include "model/family.h"
#include "model/hooked_state_dict.h"

namespace filigree {
namespace {

using Extents = std::vector<std::int64_t>;

constexpr const char* kEmbedding = "embed.W_E";

// The tensors by name, and which of them have been used.
class LensTensors {
 public:
  LensTensors(const std::vector<TensorView>& tensors, std::string source)
      : source_(std::move(source)) {
    for (const TensorView& view : tensors) by_name_.emplace(view.name, &view);
  }

  // Grouped keys and values are stored under a name with an underscore.
  const TensorView* find(const std::string& name) {
    auto found = by_name_.find(name);
    if (found == by_name_.end()) {
      const std::size_t dot = name.rfind('.') + 1;
      found = by_name_.find(name.substr(0, dot) + "_" + name.substr(dot));
    }
    if (found == by_name_.end()) return nullptr;
    used_.insert(found->first);
    return found->second;
  }
  const TensorView& at(const std::string& name) {
    const TensorView* found = find(name);
    require(found != nullptr, "'{}': tensor '{}' is missing", source_, name);
    return *found;
  }
  std::vector<float> values(const std::string& name, const Extents& shape) {
    return checked(at(name), shape);
  }
  // Nothing where there is none.
  std::vector<float> values_if_any(const std::string& name, const Extents& shape) {
    const TensorView* found = find(name);
    return found == nullptr ? std::vector<float>() : checked(*found, shape);
  }

  // Throws unless every tensor was used, or is a mask or a constant of TransformerLens.
  void require_all_used() const {
    std::vector<std::string> left;
    for (const auto& [name, view] : by_name_) {
      const bool constant = name.ends_with(".mask") || name.ends_with(".IGNORE") ||
                            name.ends_with(".rotary_sin") || name.ends_with(".rotary_cos");
      if (!constant && !used_.contains(name)) left.push_back(printable(name));
    }
    require(left.empty(), "'{}': tensors that such a model does not have: {}", source_,
            printable(join(left, ", "), 400));
  }
  const std::string& source() const { return source_; }

 private:
  std::vector<float> checked(const TensorView& view, const Extents& shape) const {
    require(view.shape == shape, "'{}': tensor '{}' is {}, not {}", source_, view.name,
            shape_text(view.shape), shape_text(shape));
    std::vector<float> values(static_cast<std::size_t>(view.element_count()));
    read_f32(view, values);
    return values;
  }

  std::string source_;
  std::map<std::string, const TensorView*> by_name_;
  std::set<std::string> used_;
};

bool all_zero(const std::vector<float>& values) {
  return std::ranges::all_of(values, [](float x) { return x == 0.0f; });
}

// Puts tensors into the places of a model's weights.
class Placing {
 public:
  Placing(LensTensors& from, const ModelConfig& config) : from_(from), config_(config) {}

  void norm(const std::string& name, const NormWeights& to) {
    if (!to.on()) return;
    const std::int64_t d = to.weight.size(0);
    const std::vector<float> gain = from_.values_if_any(name + ".w", {d});
    const float shift = to.around_one ? 1.0f : 0.0f;
    for (std::size_t i = 0; i < static_cast<std::size_t>(d); ++i)
      at(to.weight, static_cast<std::int64_t>(i)) = (gain.empty() ? 1.0f : gain[i]) - shift;
    put_bias(name + ".b", to.bias, 0, {d});
  }

  // heads of W [heads, in, D], each output of which is a row or column of the matrix.
  void into_heads(const std::string& letter, const LinearWeight& to, std::int64_t heads) {
    const std::int64_t d = config_.width, D = config_.head_width;
    const std::vector<float> w = from_.values(block_ + "attn.W_" + letter, {heads, d, D});
    for (std::int64_t h = 0; h < heads; ++h)
      for (std::int64_t i = 0; i < d; ++i)
        for (std::int64_t e = 0; e < D; ++e)
          element(to, i, h * D + e) = w[static_cast<std::size_t>((h * d + i) * D + e)];
    put_bias(block_ + "attn.b_" + letter, to.bias, to.begin, {heads, D});
  }

  // W [in, out] with more axes of inputs, perhaps, in front.
  void linear(const std::string& name, const std::string& bias, const LinearWeight& to,
              const Extents& shape) {
    const std::vector<float> w = from_.values(block_ + name, shape);
    const std::int64_t outputs = to.outputs();
    for (std::int64_t i = 0; i < to.inputs(); ++i)
      for (std::int64_t o = 0; o < outputs; ++o)
        element(to, i, o) = w[static_cast<std::size_t>(i * outputs + o)];
    put_bias(block_ + bias, to.bias, to.begin, {outputs});
  }

  void put_bias(const std::string& name, const Variable& to, std::int64_t begin,
                const Extents& shape) {
    const std::vector<float> bias = from_.values_if_any(name, shape);
    if (to.defined()) {
      const std::int64_t count = Shape(shape).elements();
      for (std::int64_t i = 0; i < count; ++i)
        at(to, begin + i) = bias.empty() ? 0.0f : bias[static_cast<std::size_t>(i)];
    } else {
      require(all_zero(bias),
              "'{}': tensor '{}' is not zero, but models of the family {} have no such bias",
              from_.source(), name, config_.family);
    }
  }

  void begin_block(std::int64_t layer) { block_ = fmt::format("blocks.{}.", layer); }
  const std::string& block() const { return block_; }

  static float& at(const Variable& to, std::int64_t place) {
    return to.mutable_value().mutable_f32()[place];
  }
  static float& element(const LinearWeight& to, std::int64_t in, std::int64_t out) {
    const std::int64_t columns = to.weight.size(1);
    return at(to.weight,
              to.out_in ? (to.begin + out) * columns + in : in * columns + to.begin + out);
  }

 private:
  LensTensors& from_;
  const ModelConfig& config_;
  std::string block_;
};

// The first `rows` of a matrix with at least as many.
std::vector<float> first_rows(LensTensors& from, const std::string& name, std::int64_t rows,
                              std::int64_t columns) {
  const TensorView& view = from.at(name);
  require(view.shape.size() == 2 && view.shape[0] >= rows && view.shape[1] == columns,
          "'{}': tensor '{}' is {}, not [{}, {}] or padded beyond", from.source(), name,
          shape_text(view.shape), rows, columns);
  std::vector<float> all(static_cast<std::size_t>(view.element_count()));
  read_f32(view, all);
  all.resize(static_cast<std::size_t>(rows * columns));
  return all;
}

// The output matrix as [vocabulary, width], which the file has the other way round.
std::vector<float> unembedding(LensTensors& from, const ModelConfig& config) {
  const TensorView& view = from.at("unembed.W_U");
  const std::int64_t d = config.width, V = config.vocabulary;
  require(view.shape.size() == 2 && view.shape[0] == d && view.shape[1] >= V,
          "'{}': tensor 'unembed.W_U' is {}, not [{}, {}] or padded beyond", from.source(),
          shape_text(view.shape), d, V);
  std::vector<float> all(static_cast<std::size_t>(view.element_count()));
  read_f32(view, all);
  std::vector<float> turned(static_cast<std::size_t>(V * d));
  for (std::int64_t i = 0; i < d; ++i)
    for (std::int64_t v = 0; v < V; ++v)
      turned[static_cast<std::size_t>(v * d + i)] =
          all[static_cast<std::size_t>(i * view.shape[1] + v)];
  return turned;
}

// A bias of the logits has no place in these models, but that of the final norm does the same: the
// x for which W x is the bias, which there is where the norm was folded into both. Solved on some
// of the rows and checked on all; `off` receives how far it is off, as a share of the largest.
std::vector<float> norm_bias_for(const std::vector<float>& matrix, const std::vector<float>& bias,
                                 std::int64_t d, double& off) {
  const auto V = static_cast<std::int64_t>(bias.size());
  const auto n = static_cast<std::size_t>(d);
  const std::int64_t step = std::max<std::int64_t>(1, V / (4 * d));
  std::vector<double> a(n * n, 0.0), x(n, 0.0);
  for (std::int64_t v = 0; v < V; v += step) {
    const float* row = matrix.data() + v * d;
    for (std::size_t i = 0; i < n; ++i) {
      x[i] += static_cast<double>(row[i]) * static_cast<double>(bias[static_cast<std::size_t>(v)]);
      for (std::size_t j = 0; j <= i; ++j)
        a[i * n + j] += static_cast<double>(row[i]) * static_cast<double>(row[j]);
    }
  }
  // Cholesky; a little on the diagonal for directions that no row has.
  double trace = 0.0;
  for (std::size_t i = 0; i < n; ++i) trace += a[i * n + i];
  for (std::size_t i = 0; i < n; ++i) {
    a[i * n + i] += 1e-12 * trace;
    for (std::size_t j = 0; j <= i; ++j) {
      double sum = a[i * n + j];
      for (std::size_t k = 0; k < j; ++k) sum -= a[i * n + k] * a[j * n + k];
      a[i * n + j] = i == j ? std::sqrt(std::max(sum, 1e-300)) : sum / a[j * n + j];
    }
  }
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t k = 0; k < i; ++k) x[i] -= a[i * n + k] * x[k];
    x[i] /= a[i * n + i];
  }
  for (std::size_t i = n; i-- > 0;) {
    for (std::size_t k = i + 1; k < n; ++k) x[i] -= a[k * n + i] * x[k];
    x[i] /= a[i * n + i];
  }
  double worst = 0.0, largest = 0.0;
  for (std::int64_t v = 0; v < V; ++v) {
    double sum = 0.0;
    for (std::size_t i = 0; i < n; ++i)
      sum += static_cast<double>(matrix[static_cast<std::size_t>(v) * n + i]) * x[i];
    const auto wanted = static_cast<double>(bias[static_cast<std::size_t>(v)]);
    worst = std::max(worst, std::abs(sum - wanted));
    largest = std::max(largest, std::abs(wanted));
  }
  off = largest > 0.0 ? worst / largest : 0.0;
  return {x.begin(), x.end()};
}

constexpr double kMostOff = 1e-3;

void place_ends(LensTensors& from, const ModelConfig& config, const ModelWeights& to,
                const std::vector<float>& output) {
  const std::int64_t d = config.width, V = config.vocabulary;
  std::vector<float> embedding = first_rows(from, kEmbedding, V, d);
  for (float& x : embedding) x /= static_cast<float>(config.embedding_scale);
  std::ranges::copy(embedding, &Placing::at(to.token_embedding, 0));
  if (config.positions == PositionKind::kLearned) {
    const std::vector<float> positions = first_rows(from, "pos_embed.W_pos", config.context, d);
    std::ranges::copy(positions, &Placing::at(to.position_embedding, 0));
  }
  Placing put(from, config);
  put.norm("ln_final", to.final_norm);
  if (!config.tied_embeddings) std::ranges::copy(output, &Placing::at(to.output.weight, 0));
  std::vector<float> bias;
  if (const TensorView* found = from.find("unembed.b_U")) {
    bias.resize(static_cast<std::size_t>(found->element_count()));
    read_f32(*found, bias);
    require(static_cast<std::int64_t>(bias.size()) >= V,
            "'{}': unembed.b_U has {} numbers for {} tokens", from.source(), bias.size(), V);
    bias.resize(static_cast<std::size_t>(V));
  }
  if (all_zero(bias)) return;
  if (to.output.bias.defined()) {
    std::ranges::copy(bias, &Placing::at(to.output.bias, 0));
    return;
  }
  require(to.final_norm.bias.defined(),
          "'{}': unembed.b_U is not zero, but models of the family {} have no such bias",
          from.source(), config.family);
  double off = 0.0;
  const std::vector<float> more = norm_bias_for(output, bias, d, off);
  require(off <= kMostOff,
          "'{}': unembed.b_U is a bias of the logits that no bias of the final norm gives, and "
          "models of this family have no other; it is off by {:.3g} of the largest",
          from.source(), off);
  for (std::int64_t i = 0; i < d; ++i)
    Placing::at(to.final_norm.bias, i) += more[static_cast<std::size_t>(i)];
}

}  // namespace

namespace {

// A GPT-2 as TransformerLens has it: its extents; an output layer that is the embedding, or norms
// folded into what follows, and with them a bias of the logits that a norm's bias gives.
bool is_gpt2(const ModelConfig& c, LensTensors& from) {
  const bool shaped = c.positions == PositionKind::kLearned && c.mlp == MlpKind::kPlain &&
                      c.norm == NormKind::kLayer && c.outputs() == c.vocabulary &&
                      c.heads * c.head_width == c.width && c.mlp_width == 4 * c.width &&
                      c.key_heads == c.heads;
  if (!shaped) return false;
  const std::vector<float> output = unembedding(from, c);
  const std::vector<float> bias = from.values_if_any("unembed.b_U", {c.vocabulary});
  if (from.find("ln_final.w") != nullptr)
    return all_zero(bias) && output == from.values(kEmbedding, {c.vocabulary, c.width});
  double off = 0.0;
  if (!all_zero(bias)) norm_bias_for(output, bias, c.width, off);
  return off <= kMostOff;
}

}  // namespace

ModelConfig transformer_lens_config(const std::vector<TensorView>& tensors,
                                    const nlohmann::json& settings, const std::string& source) {
  const ModelConfig toy = hooked_config(tensors, settings, source);
  LensTensors from(tensors, source);
  if (!settings.is_null() || !is_gpt2(toy, from)) return toy;
  const nlohmann::json json = {{"model_type", "gpt2"},
                               {"architectures", {"GPT2LMHeadModel"}},
                               {"activation_function", "gelu_new"},
                               {"layer_norm_epsilon", 1e-5},
                               {"n_layer", toy.layers},
                               {"n_head", toy.heads},
                               {"n_embd", toy.width},
                               {"n_inner", toy.mlp_width},
                               {"n_positions", toy.context},
                               {"vocab_size", toy.vocabulary},
                               {"tie_word_embeddings", true}};
  return parse_model_config(json, source);
}

std::unique_ptr<Model> model_from_transformer_lens(const std::vector<TensorView>& tensors,
                                                   ModelConfig config, const std::string& source) {
  if (config.family == "hooked_transformer") return hooked_model(tensors, config, source);
  LensTensors from(tensors, source);
  const std::vector<ParameterSpec> specs = family_of(config.family, source).parameters(config);
  const bool paired =
      std::ranges::any_of(specs, [](const ParameterSpec& spec) { return spec.paired_heads != 0; });
  require(config.query_key_norm == QueryKeyNorm::kNone && !paired && config.logit_scale == 1.0 &&
              config.first_position == 0,
          "'{}': models of the family {} are not read under TransformerLens's names", source,
          config.family);
  // Before memory is taken for what the configuration promises.
  require(config.layers <= static_cast<std::int64_t>(tensors.size()),
          "'{}': {} layers, but only {} tensors", source, config.layers, tensors.size());
  const std::vector<float> output = unembedding(from, config);
  if (config.tied_embeddings) {
    // Folding a norm into the output layer parts the two.
    const std::vector<float> embedding =
        first_rows(from, kEmbedding, config.vocabulary, config.width);
    const auto scale = static_cast<float>(config.embedding_scale);
    const bool equal = std::ranges::equal(
        embedding, output, [&](float a, float b) { return std::abs(a / scale - b) <= 1e-6f; });
    if (!equal) {
      config.source["tie_word_embeddings"] = false;
      const GateConfig gate = config.gate;
      config = parse_model_config(config.source, source);
      config.gate = gate;
    }
  }
  auto model = make_model(config, 0);
  const ModelWeights to = model->weights();
  Placing put(from, config);
  const std::int64_t d = config.width, D = config.head_width, hidden = config.mlp_width;
  for (std::int64_t l = 0; l < config.layers; ++l) {
    const LayerWeights& layer = to.layers[static_cast<std::size_t>(l)];
    put.begin_block(l);
    put.norm(put.block() + "ln1", layer.norm);
    put.norm(put.block() + "ln1_post", layer.attention_post_norm);
    put.into_heads("Q", layer.attention->q, config.heads);
    put.into_heads("K", layer.attention->k, config.key_heads);
    put.into_heads("V", layer.attention->v, config.key_heads);
    put.linear("attn.W_O", "attn.b_O", layer.attention->o, {config.heads, D, d});
    put.norm(put.block() + "ln2", layer.mlp_norm);
    put.norm(put.block() + "ln2_post", layer.mlp_post_norm);
    if (config.mlp == MlpKind::kGated)
      put.linear("mlp.W_gate", "mlp.b_gate", layer.mlp->gate, {d, hidden});
    put.linear("mlp.W_in", "mlp.b_in", layer.mlp->in, {d, hidden});
    put.linear("mlp.W_out", "mlp.b_out", layer.mlp->out, {hidden, d});
  }
  place_ends(from, config, to, output);
  from.require_all_used();
  return model;
}

}  // namespace filigree
