#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "filigree/autograd.h"
#include "filigree/error.h"
#include "filigree/lens.h"
#include "filigree/ops.h"

namespace filigree {
namespace {

constexpr std::int64_t kRowsAtOnce = 1024;
constexpr std::int64_t kWindow = 512;
constexpr std::size_t kNotThere = std::numeric_limits<std::size_t>::max();

// The model's kind of norm with a gain of 1 and no bias, on the CPU.
NormWeights plain_norm(const Model& model, std::int64_t d) {
  NormWeights plain = model.weights().final_norm;
  plain.weight = Tensor::full({d}, 1.0f);
  plain.around_one = false;
  plain.factor = 1.0f;
  if (plain.bias.defined()) plain.bias = Tensor::zeros({d});
  return plain;
}

// The vectors of some tokens, on the model's device.
Variable embedded(const Model& model, std::span<const TokenId> tokens) {
  const Tensor ids = Tensor::from_ids({static_cast<std::int64_t>(tokens.size())}, tokens);
  const Variable rows =
      embedding(model.weights().token_embedding, ids, model.placement().precision);
  const auto factor = static_cast<float>(model.config().embedding_scale);
  return factor != 1.0f ? scale(rows, factor) : rows;
}

// e + MLP_0(e), with the norms before and behind the MLP.
Variable through_first_mlp(const Model& model, const Variable& x) {
  const LayerWeights layer = model.weights().layers.at(0);
  const Variable read = normalise(x, layer.mlp_norm, TapScope());
  return add(x, normalise(mlp(read, *layer.mlp, TapScope()), layer.mlp_post_norm, TapScope()));
}

TokenRows rows_of(const Model& model, TokenInput input, const std::vector<TokenId>& tokens) {
  const auto count = static_cast<std::int64_t>(tokens.size());
  const std::int64_t d = model.config().width;
  TokenRows rows = {input, tokens, Tensor::empty({count, d})};
  for (std::int64_t begin = 0; begin < count; begin += kRowsAtOnce) {
    const std::int64_t end = std::min(begin + kRowsAtOnce, count);
    const Variable x =
        embedded(model, std::span(tokens).subspan(static_cast<std::size_t>(begin),
                                                  static_cast<std::size_t>(end - begin)));
    const Tensor some =
        (input == TokenInput::kFirstMlp ? through_first_mlp(model, x) : x).value().on_host();
    std::copy_n(some.f32(), (end - begin) * d, rows.stream.mutable_f32() + begin * d);
  }
  return rows;
}

}  // namespace

std::string description_of(TokenInput input) {
  switch (input) {
    case TokenInput::kEmbedding: return "token embeddings";
    case TokenInput::kFirstMlp: return "embeddings through the MLP of layer 0";
    case TokenInput::kText: break;
  }
  return "mean inputs over text";
}

std::int64_t TokenRows::row_of(TokenId token) const {
  const auto found = std::lower_bound(tokens.begin(), tokens.end(), token);
  return found != tokens.end() && *found == token ? found - tokens.begin() : -1;
}

Tensor normalised(const Model& model, const TokenRows& rows) {
  if (rows.input == TokenInput::kText) return rows.stream;
  const NoGrad no_grad;
  return normalise(rows.stream, plain_norm(model, rows.stream.size(1)), TapScope()).value();
}

TokenInputs::TokenInputs(const Model& model, TokenInput input, std::vector<TokenId> tokens)
    : input_(input) {
  require(input != TokenInput::kText, "token inputs: means over text need a text");
  // Where layers are attention only the streams of later ones begin as the embeddings, too.
  if (model.config().mlp == MlpKind::kNone) input_ = input = TokenInput::kEmbedding;
  if (tokens.empty()) {
    tokens.resize(static_cast<std::size_t>(model.config().vocabulary));
    std::iota(tokens.begin(), tokens.end(), TokenId{0});
  }
  std::sort(tokens.begin(), tokens.end());
  tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
  require(tokens.front() >= 0 && tokens.back() < model.config().vocabulary,
          "token inputs: token {} is outside the vocabulary of {}",
          tokens.front() < 0 ? tokens.front() : tokens.back(), model.config().vocabulary);
  const NoGrad no_grad;
  rows_.push_back(rows_of(model, TokenInput::kEmbedding, tokens));
  row_set_.assign(static_cast<std::size_t>(model.config().layers), 0);
  if (input != TokenInput::kFirstMlp || row_set_.size() < 2) return;
  rows_.push_back(rows_of(model, TokenInput::kFirstMlp, tokens));
  std::fill(row_set_.begin() + 1, row_set_.end(), std::size_t{1});
}

TokenInputs TokenInputs::of_texts(const Model& model, std::span<const std::vector<TokenId>> texts,
                                  std::span<const std::int64_t> layers,
                                  const std::function<void(std::int64_t)>& progress) {
  const NoGrad no_grad;
  TokenInputs inputs;
  inputs.row_set_.assign(static_cast<std::size_t>(model.config().layers), kNotThere);
  TokenRows empty = {TokenInput::kText, {}, {}};
  for (const std::vector<TokenId>& ids : texts)
    empty.tokens.insert(empty.tokens.end(), ids.begin(), ids.end());
  require(!empty.tokens.empty(), "token inputs: the text is empty");
  std::sort(empty.tokens.begin(), empty.tokens.end());
  empty.tokens.erase(std::unique(empty.tokens.begin(), empty.tokens.end()), empty.tokens.end());
  const auto count = static_cast<std::int64_t>(empty.tokens.size());
  const std::int64_t d = model.config().width;
  std::int64_t end_layer = 0;
  for (const std::int64_t layer : layers) {
    require(layer >= 0 && layer < model.config().layers, "token inputs: there is no layer {}",
            layer);
    inputs.row_set_[static_cast<std::size_t>(layer)] = inputs.rows_.size();
    inputs.rows_.push_back(empty);
    inputs.rows_.back().stream = Tensor::zeros({count, d});
    end_layer = std::max(end_layer, layer + 1);
  }
  const NormWeights plain = plain_norm(model, d);
  std::vector<float> occurrences(static_cast<std::size_t>(count), 0.0f);
  std::int64_t done = 0;
  for (const std::vector<TokenId>& ids : texts)
    for (std::size_t begin = 0; begin < ids.size();) {
      const std::size_t T = std::min({static_cast<std::size_t>(kWindow), ids.size() - begin,
                                      static_cast<std::size_t>(model.config().context)});
      const std::span<const TokenId> window = std::span(ids).subspan(begin, T);
      std::vector<std::int64_t> rows;
      for (const TokenId id : window) rows.push_back(empty.row_of(id));
      for (const std::int64_t row : rows) ++occurrences[static_cast<std::size_t>(row)];
      const auto length = static_cast<std::int64_t>(T);
      Taps taps;
      for (const std::int64_t layer : layers) {
        float* sums =
            inputs.rows_[inputs.row_set_[static_cast<std::size_t>(layer)]].stream.mutable_f32();
        taps.watch(fmt::format("blocks.{}.hook_resid_pre", layer), [&, sums](std::string_view,
                                                                             const Tensor& stream) {
          const Tensor read =
              normalise(stream.on_host().reshape({length, d}), plain, TapScope()).value();
          for (std::size_t t = 0; t < T; ++t)
            for (std::int64_t i = 0; i < d; ++i)
              sums[rows[t] * d + i] += read.f32()[static_cast<std::int64_t>(t) * d + i];
        });
      }
      model.residual_before(end_layer, Tensor::from_ids({1, length}, window), {.taps = &taps});
      begin += T, done += length;
      if (progress) progress(done);
    }
  for (TokenRows& rows : inputs.rows_) {
    float* means = rows.stream.mutable_f32();
    for (std::int64_t t = 0; t < count; ++t)
      for (std::int64_t i = 0; i < d; ++i)
        means[t * d + i] /= occurrences[static_cast<std::size_t>(t)];
  }
  return inputs;
}

const TokenRows& TokenInputs::of_layer(std::int64_t layer) const {
  const std::size_t set = row_set_.at(static_cast<std::size_t>(layer));
  require(set != kNotThere, "token inputs: layer {} was not asked for", layer);
  return rows_[set];
}

}  // namespace filigree
