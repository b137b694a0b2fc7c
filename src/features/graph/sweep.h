// Sweeps through a frozen model, many readings or sources at a time: downwards, the gradient of
// each reading with respect to the stream, layer by layer; upwards, what each source becomes. All
// is matrix products. Arrays are [positions, batch, width], positions those that can matter.
#pragma once

#include <functional>
#include <span>

#include "filigree/features/graph/graph_sources.h"

namespace filigree {

struct SweepWatch {
  // Downwards: the gradients behind and before a layer's parts, as they lie.
  std::function<void(std::int64_t layer, const Tensor& gradient)> behind_mlp;
  std::function<void(std::int64_t layer, const Tensor& gradient)> behind_attention;
  std::function<void(const Tensor& gradient)> at_embedding;
  // Of each attention layer what bypasses it: downwards the gradient of the stream beside it,
  // upwards the stream before it.
  std::function<void(std::int64_t layer, const Tensor& stream)> beside_attention;
  // Downwards the gradient of what a head mixes, upwards its values without the denominators of
  // norms (those are in the pattern): [positions, batch, D].
  std::function<void(std::int64_t layer, std::int64_t head, const Tensor& part)> head;
};

// The readings' gradients, from the last stage that is read down to the embeddings.
void sweep_down(const FrozenModel& frozen, std::span<const StreamReading* const> readings,
                const SweepWatch& watch);

// What each source becomes, from the embeddings to the end.
void sweep_up(const FrozenModel& frozen, const GraphSources& sources,
              std::span<const std::int32_t> chosen, const SweepWatch& watch);

// Direct effects [readings, sources + 1] of all sources on each reading, the biases' last; with
// the readings' own constants among these, a row sums up to the reading's value.
Tensor direct_effects(const FrozenModel& frozen, const GraphSources& sources,
                      std::span<const StreamReading* const> readings);

}  // namespace filigree
