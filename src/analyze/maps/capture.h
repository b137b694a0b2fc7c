// Attention maps of a model on prompts, layer by layer.
//
// The maps of one layer exist at a time: the model passes them (nn/taps.h), the caller sees each
// chosen head, and the memory is used again for the next layer. So 144 heads at 1,024 tokens need
// the memory of 12.
//
// i is the query, j the key, and only cells j <= i mean anything:
//
//   weights         A_ij, after the gate for a sparse model: what the head mixes with
//   scores          s_ij = q_i . k_j * scale, before softmax and gate; minus infinity above the
//                   diagonal and outside the window that some layers have
//   gate            e_ij, 0 or 1; 1 at every causal edge of a model without gates
//   value-weighted  A_ij |v_j| / max_j' |v_j'|: how much a key's value can matter, not only how
//                   much it is looked at. |v| is the Euclidean norm of the head's value vector, the
//                   maximum is over the prompt's tokens, so that the map stays in 0..1.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "analyze/interventions/applied_interventions.h"
#include "analyze/maps/head_selection.h"
#include "analyze/prompt.h"
#include "base/names.h"
#include "model/model.h"

namespace filigree {

enum class MapKind { kWeights, kScores, kGate, kValueWeighted };

template <>
inline constexpr auto kNames<MapKind> =
    std::to_array<Named<MapKind>>({{MapKind::kWeights, "weights"},
                                   {MapKind::kScores, "scores"},
                                   {MapKind::kGate, "gate"},
                                   {MapKind::kValueWeighted, "value-weighted"}});

// One head on one prompt. The views are T x T, row by row (values: T), and valid during the call
// only. `weights` is always there, the others where CaptureOptions asked for them.
struct HeadMap {
  std::size_t prompt = 0;  // index of the prompt
  std::size_t slot = 0;    // index of the head in CaptureOptions::heads
  HeadId head = {};
  std::int64_t length = 0;  // T
  std::int64_t window = 0;  // keys that a query sees, its own the last; 0: all
  std::span<const float> weights = {};
  std::span<const float> scores = {};
  std::span<const float> gate = {};  // empty for a model without gates: every edge is open
  std::span<const float> value_norms = {};
};

struct CaptureOptions {
  std::vector<HeadId> heads = {};  // sorted, as parse_heads gives them
  bool scores = false;
  bool gate = false;
  bool value_norms = false;
  // Neighbouring prompts of one length run together while they have at most this many tokens. 0:
  // one by one, so that all layers of a prompt come before the next prompt.
  std::int64_t batch_tokens = 0;
  AppliedInterventions* interventions = nullptr;  // what the runs change; null: nothing
  // Sees the logits [B, T, V] of each run; empty: those of one position are computed and dropped.
  std::function<void(const Tensor& logits)> logits = {};

  static CaptureOptions of(std::vector<HeadId> heads, MapKind kind);
};

// Receives the chosen heads of one layer and one prompt, in order of the heads; it may look at them
// in parallel. Layers come in order; so do prompts within a layer.
using HeadMapConsumer = std::function<void(std::span<const HeadMap>)>;

// Throws Error for a prompt that is empty, longer than the model's context or has ids that the
// model does not know, and for heads it does not have.
void capture_maps(const Model& model, std::span<const Prompt> prompts,
                  const CaptureOptions& options, const HeadMapConsumer& consumer);

// The map of one kind, from views that hold what it needs (CaptureOptions::of), into `out` [T, T].
void fill_map(const HeadMap& head, MapKind kind, std::span<float> out);

// What capture_maps checks, for callers that want to fail before long work.
void check_prompts(std::span<const Prompt> prompts, const ModelConfig& config);

}  // namespace filigree
