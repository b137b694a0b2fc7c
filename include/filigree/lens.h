// What weights and activations say of tokens.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "filigree/circuit.h"
#include "filigree/interventions.h"
#include "filigree/model.h"
#include "filigree/names.h"
#include "filigree/tasks.h"
#include "filigree/tokenizer.h"

namespace filigree {

// -------------------------------------------------------------------------------------------------
// What heads read for a token, for analyses of weights that need one vector a token.
//
// A token's embedding alone is a poor stand-in for what later heads read: in GPT-2 and its like the
// MLP of layer 0 rewrites it. Wang et al. (Interpretability in the Wild, 2022) therefore take the
// embedding as that MLP leaves it. Three kinds:
//
//   embedding  e                               what layer 0 reads, and the convention of Elhage et
//   al. mlp0       e + MLP_0(e), attention off     what layers above 0 read; layer 0 reads e text
//   the mean of the normalised stream before the layer, over a text's occurrences

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

// -------------------------------------------------------------------------------------------------
// The weights of single heads as the residual stream sees them.
//
// A head reads the stream through its layer's norm and writes back to it. With the norm's gain
// (and, where it centres, its centring) folded into the matrices that read,
//
//   values written   x V O      "OV circuit", rank D, V [d, D], O [D, d]
//   scores           x Q K^T y  "QK circuit", rank D, Q and K [d, D]
//
// for a query x and a key y, up to the norm's scale and without biases. Gains of norms on queries,
// keys and behind the attention, in families that have them, are folded in too, their scales not.
// Rotations of positions come between Q and K and are left out; so are soft caps.

struct HeadMatrices {
  Tensor q, k, v;      // [d, D], what the norm does folded in
  Tensor o;            // [D, d]
  float scale = 1.0f;  // of the scores
};

// Heads that share a key-value head have equal k and v. Adapters are added in.
HeadMatrices head_matrices(const NormWeights& norm, const AttentionWeights& w, std::int64_t head,
                           const NormWeights& post_norm = kNoNorm);

// Every head, layer by layer.
std::vector<HeadMatrices> all_head_matrices(const Model& model);

// [V, d], the final norm folded in: a stream x has the logits W x, up to the norm's scale and
// without biases.
Tensor folded_unembedding(const Model& model);

// -------------------------------------------------------------------------------------------------
// What heads do by their weights alone (Elhage et al., A Mathematical Framework for Transformer
// Circuits, 2021): which tokens a head copies, which it looks for, and which heads read what other
// heads wrote.

// Shares of positive eigenvalues (eigenvalues.h) of a head's circuits over the vocabulary, with the
// rows of E being what the head reads for each token.
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

// -------------------------------------------------------------------------------------------------
// Direct logit attribution: what each part of a model adds to the logits of a position.
//
// The residual stream is the sum of what the embedding, heads and MLPs wrote to it. With the scale
// of the final normalisation held at the run's own value, logits are an affine function of the
// stream, so that a difference of logits is the sum of one contribution a part. The slope is taken
// from the model's own backward pass: nothing here knows the family, its norm or its biases.
//
// Where a norm stands behind the attention, a head's part of what the layer adds is the one with
// the norm's denominator held at the run's value too (circuit/head_outputs.h). Logits with a soft
// cap are those before the cap: the order of tokens is the same, and they are a sum.

enum class PartKind {
  kEmbedding,
  kPositions,  // position embedding, where the model has one
  kHead,
  kAttentionBias,  // of a layer: what its output holds beside the heads'
  kMlp,            // with its bias
  kRest,           // what the stream holds that no tap names; 0 but for rounding in GPT-2
  kOutputBias,     // of the final norm and the unembedding
};
template <>
inline constexpr auto kNames<PartKind> =
    std::to_array<Named<PartKind>>({{PartKind::kEmbedding, "embedding"},
                                    {PartKind::kPositions, "positions"},
                                    {PartKind::kHead, "head"},
                                    {PartKind::kAttentionBias, "attention-bias"},
                                    {PartKind::kMlp, "mlp"},
                                    {PartKind::kRest, "rest"},
                                    {PartKind::kOutputBias, "output-bias"}});

struct Part {
  PartKind kind = PartKind::kHead;
  std::int64_t layer = -1, head = -1;
};
std::string name_of(const Part& part);  // "L3H7", "L3 MLP", "embedding", "L3 attention bias"

struct LogitAttribution {
  std::vector<Part> parts;
  // Of each prompt, or of each place of one prompt.
  std::vector<std::vector<double>> contributions;  // [part][prompt]
  std::vector<double> total;                       // [prompt]: the logit difference itself

  Estimate of(std::size_t part) const { return estimate(contributions[part]); }
  // Indices of the parts, the largest absolute mean first.
  std::vector<std::size_t> order() const;
};

struct AttributionOptions {
  std::int64_t tokens_at_once = 1024;
  std::function<void(std::size_t done)> progress = {};  // prompts; may throw to stop
};

// Of the mean logit of each prompt's answers less that of its wrong answers; a prompt without wrong
// answers has the logit itself. The clean prompts are run. Throws Error for a prompt without an
// answer and for tokens that the model does not have.
LogitAttribution attribute_logits(const Model& model, const std::vector<TaskPrompt>& prompts,
                                  const AttributionOptions& options = {});

// A logit of one prompt, or a difference of logits: after the token at `position`.
struct ReadLogit {
  std::int64_t position = 0;
  std::vector<TokenId> answers = {}, wrong = {};  // as those of a TaskPrompt
};

// The same at several positions of one prompt, from a single run, in which `changes` (null: none)
// are made. What a change takes away or adds at a part is the part's; what it does to the stream
// itself is the rest's. Throws Error as above, and for positions that there are not or that come
// twice.
LogitAttribution attribute_positions(const Model& model, const std::vector<TokenId>& ids,
                                     const std::vector<ReadLogit>& logits,
                                     AppliedInterventions* changes = nullptr);

// -------------------------------------------------------------------------------------------------
// The logit lens: what a model would predict if it stopped early. The residual stream after each
// attention and each MLP goes through the model's own final normalisation and unembedding.

enum class LensPlace { kBefore, kMiddle, kAfter };  // hook_resid_pre, _mid, _post

struct LensPoint {
  LensPlace place = LensPlace::kAfter;
  std::int64_t layer = 0;
};
std::string name_of(const LensPoint& point);  // "L3 resid_mid"
std::string tap_name(const LensPoint& point);

struct LensToken {
  TokenId id = 0;
  double probability = 0;
};

// One point at one position.
struct LensCell {
  std::vector<LensToken> top;  // the likeliest first; equal ones by id
  // Of the token that was asked about.
  std::int64_t rank = -1;  // 0: the likeliest
  double log_probability = 0;
};

struct LogitLens {
  std::vector<LensPoint> points;  // in the order of the computation
  std::int64_t positions = 0;
  std::vector<LensCell> cells;  // [point][position]

  const LensCell& at(std::size_t point, std::int64_t position) const {
    return cells[point * static_cast<std::size_t>(positions) + static_cast<std::size_t>(position)];
  }
};

struct LensOptions {
  std::int64_t top = 5;
  bool middle = false;  // also after each attention
  // The token to rank at every position; none: the prompt's own next token, where there is one.
  std::optional<TokenId> token = {};
  AppliedInterventions* interventions = nullptr;  // what the run changes; null: nothing
  std::function<void(std::size_t done, std::size_t total)> progress = {};  // points
};

// The stream before layer 0, then after each layer (and, asked for, its attention). Throws Error
// for an empty prompt and a token outside the vocabulary.
LogitLens logit_lens(const Model& model, const std::vector<TokenId>& ids,
                     const LensOptions& options = {});

// The cells of one point, from the stream [1, T, width] there; options.top and options.token count.
std::vector<LensCell> read_stream(const Model& model, const std::vector<TokenId>& ids,
                                  const Tensor& stream, const LensOptions& options = {});

// -------------------------------------------------------------------------------------------------
// One kind of patch at every layer and head, or every layer and position: what a heat map shows.
//
//   noising    runs on the clean prompt in which the part takes its corrupt (or zero, or mean)
//              value; the effect is the share of the metric's difference that is lost:
//              (M_clean - M) / (M_clean - M_corrupt)
//   denoising  runs on the corrupt prompt in which the part takes its clean value; the effect is
//              the share that is restored: (M - M_corrupt) / (M_clean - M_corrupt)
//
// In both, 0 is a part that does not matter and 1 one that decides alone; values outside occur.

enum class SweepAxis { kHead, kExpert, kPosition };
enum class PatchDirection { kNoising, kDenoising };

template <>
inline constexpr auto kNames<SweepAxis> = std::to_array<Named<SweepAxis>>(
    {{SweepAxis::kHead, "layer-head"},
     {SweepAxis::kExpert, "layer-expert"},
     {SweepAxis::kPosition, "layer-position"}});
template <>
inline constexpr auto kNames<PatchDirection> = std::to_array<Named<PatchDirection>>(
    {{PatchDirection::kNoising, "noising"}, {PatchDirection::kDenoising, "denoising"}});

struct SweepOptions {
  Site site = Site::kZ;
  SweepAxis axis = SweepAxis::kHead;
  PatchDirection direction = PatchDirection::kNoising;
  PatchOptions patch = {};
};

struct PatchSweep {
  std::int64_t layers = 0;
  std::int64_t columns = 0;  // heads (of keys for k and v), experts or positions
  // Positions count from the end (-columns to -1) when prompts have different lengths: what a
  // prompt has before them is not patched.
  bool from_end = false;
  std::vector<Estimate> effects;  // [layer][column]; errors of a ratio of means
  Estimate clean, corrupt;        // the metric

  const Estimate& at(std::int64_t layer, std::int64_t column) const {
    return effects[static_cast<std::size_t>(layer * columns + column)];
  }
};

// Throws Error when the site has no heads and the sweep is by head, or no experts and it is by
// expert, for the embedding, when clean and corrupt have the same mean metric, and for denoising
// with a replacement other than kCorrupt (of which it is the mirror image) or the metric kKl (which
// is about the clean prediction).
PatchSweep sweep_patches(const Model& model, const std::vector<TaskPrompt>& given,
                         const SweepOptions& options);

// What stands at each of the sweep's positions in all clean prompts: a token, or -1 where they
// differ.
std::vector<TokenId> common_tokens(const std::vector<TaskPrompt>& prompts);

}  // namespace filigree
