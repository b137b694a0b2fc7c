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
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "analyze/interventions/applied_interventions.h"
#include "analyze/task/metric.h"
#include "model/model.h"

namespace filigree {

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

}  // namespace filigree
