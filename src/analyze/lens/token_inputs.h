// What heads read for a token, for analyses of weights that need one vector a token.
//
// A token's embedding alone is a poor stand-in for what later heads read: in GPT-2 and its like the
// MLP of layer 0 rewrites it. Wang et al. (Interpretability in the Wild, 2022) therefore take the
// embedding as that MLP leaves it. Three kinds:
//
//   embedding  e                               what layer 0 reads, and the convention of Elhage et
//   al. mlp0       e + MLP_0(e), attention off     what layers above 0 read; layer 0 reads e text
//   the mean of the normalised stream before the layer, over a text's occurrences
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/names.h"
#include "model/model.h"
#include "text/token_id.h"

namespace filigree {

enum class TokenInput { kEmbedding, kFirstMlp, kText };
template <>
inline constexpr auto kNames<TokenInput> =
    std::to_array<Named<TokenInput>>({{TokenInput::kEmbedding, "embedding"},
                                      {TokenInput::kFirstMlp, "mlp0"},
                                      {TokenInput::kText, "text"}});

// For headings: "embeddings through the MLP of layer 0".
std::string description_of(TokenInput input);

// One row of the residual stream a token.
struct TokenRows {
  TokenInput input = TokenInput::kEmbedding;
  std::vector<TokenId> tokens = {};  // ascending
  Tensor stream = {};                // [tokens, d]

  // The row of a token; -1 for one that has none (it does not occur in the text).
  std::int64_t row_of(TokenId token) const;
};

// What a layer's norm, its gain and bias aside, shows of a stream that holds the row alone; rows of
// kText are that already.
Tensor normalised(const Model& model, const TokenRows& rows);

class TokenInputs {
 public:
  // Of `tokens`, or of the whole vocabulary, without running the model. `input` must not be kText.
  // Throws Error for tokens outside the vocabulary.
  TokenInputs(const Model& model, TokenInput input, std::vector<TokenId> tokens = {});
  // Of the tokens that occur in the texts, each of which the model reads in windows of at most 512
  // tokens. Only the layers that are named can be asked for.
  static TokenInputs of_texts(const Model& model, std::span<const std::vector<TokenId>> texts,
                              std::span<const std::int64_t> layers,
                              const std::function<void(std::int64_t tokens)>& progress = {});

  TokenInput input() const { return input_; }
  const TokenRows& of_layer(std::int64_t layer) const;

 private:
  TokenInputs() = default;

  TokenInput input_ = TokenInput::kText;
  std::vector<TokenRows> rows_;
  std::vector<std::size_t> row_set_;  // of each layer, its number in rows_
};

}  // namespace filigree
