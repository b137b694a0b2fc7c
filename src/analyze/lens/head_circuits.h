// What heads do by their weights alone (Elhage et al., A Mathematical Framework for Transformer
// Circuits, 2021): which tokens a head copies, which it looks for, and which heads read what other
// heads wrote.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "analyze/lens/head_matrices.h"
#include "analyze/lens/token_inputs.h"
#include "base/names.h"
#include "text/token_id.h"

namespace filigree {

// Shares of positive eigenvalues (eigenvalues.h) of a head's circuits over the vocabulary, with the
// rows of E being what the head reads for each token (token_inputs.h).
struct HeadCircuitScores {
  double copying = 0;   // of E V O U: 1 raises the tokens it reads, -1 lowers them
  double matching = 0;  // of E Q K^T E^T: 1 looks for its own token, -1 away from it
};

// Of the heads that are numbered through, layer by layer, in the order of `chosen`. Through d x d
// products over the tokens, shared by the heads of a layer, and D x D eigenvalue problems.
std::vector<HeadCircuitScores> head_circuit_scores(const Model& model, const TokenInputs& inputs,
                                                   const std::vector<HeadMatrices>& heads,
                                                   const std::vector<std::size_t>& chosen);

struct TokenPair {
  TokenId from = 0;  // OV: the token attended to; QK: the query
  TokenId to = 0;    // OV: the token whose logit rises; QK: the key
  double score = 0;
};

struct PairOptions {
  std::size_t top = 20;
  std::vector<TokenId> from = {};  // only these; none: every token that has an input
  bool lowest = false;             // the smallest entries instead, the smallest first
  bool one_each = false;           // of each token only its largest (smallest) entry
  std::function<void(std::int64_t done, std::int64_t total)> progress = {};  // tokens
};

// The largest entries of a head's circuit over the vocabulary, the largest first; equal ones by
// tokens. Rows are normalised, so that entries are what the head would do in a stream that holds
// the token alone. Throws Error for a token of options.from that has no row.
std::vector<TokenPair> top_ov_pairs(const Model& model, const TokenRows& inputs,
                                    const HeadMatrices& head, const PairOptions& options = {});
std::vector<TokenPair> top_qk_pairs(const Model& model, const TokenRows& inputs,
                                    const HeadMatrices& head, const PairOptions& options = {});
// The same by tokens: for each of options.from the `top` keys that it looks for most.
std::vector<std::vector<TokenPair>> top_keys_of(const Model& model, const TokenRows& inputs,
                                                const HeadMatrices& head,
                                                const PairOptions& options);

// What a head writes for a token that it reads: the token's row through OV and the unembedding,
// less the mean over all tokens, which changes no prediction.
struct WrittenForToken {
  TokenId token = 0;
  double own_effect = 0;            // on the logit of the token itself
  std::int64_t own_rank = 0;        // 0: raised most
  std::int64_t own_rank_below = 0;  // 0: lowered most
  TokenId raised = 0, lowered = 0;  // the most
};
// Tokens without a row are left out.
std::vector<WrittenForToken> written_for(const Model& model, const TokenRows& inputs,
                                         const HeadMatrices& head,
                                         const std::vector<TokenId>& tokens);
// The same of streams that the head's values were already read from: x V, [n, D], of one token
// each.
std::vector<WrittenForToken> written_for_values(const Model& model, const Tensor& values,
                                                const Tensor& o,
                                                const std::vector<TokenId>& tokens);

// How much a later head reads what an earlier one wrote, as its query, key or value:
//
//   Q  ||V_a O_a Q_b K_b^T||   K  ||V_a O_a K_b Q_b^T||   V  ||V_a O_a V_b O_b||
//
// (Frobenius norms) over the product of the norms of the two circuits.
enum class Composition { kQuery, kKey, kValue };
inline constexpr std::size_t kCompositions = 3;
template <>
inline constexpr auto kNames<Composition> = std::to_array<Named<Composition>>(
    {{Composition::kQuery, "q"}, {Composition::kKey, "k"}, {Composition::kValue, "v"}});

struct CompositionScores {
  std::int64_t layers = 0, heads = 0;
  double random = 0;  // the expected score of random matrices of these sizes
  // [composition][earlier head][later head], heads numbered through; 0 where the layer is not
  // later.
  std::vector<std::vector<float>> scores;

  double at(Composition composition, std::int64_t earlier, std::int64_t later) const {
    return scores[static_cast<std::size_t>(composition)]
                 [static_cast<std::size_t>(earlier * layers * heads + later)];
  }
};

// Between all pairs of heads of an earlier and a later layer, through D x D cores.
CompositionScores composition_scores(const Model& model, const std::vector<HeadMatrices>& heads);

// The mean score of pairs of random circuits of width d and rank D, from seeded samples.
double random_composition(std::int64_t d, std::int64_t D);

}  // namespace filigree
