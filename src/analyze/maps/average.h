// Maps averaged over prompts of one length, within a bound on memory.
//
// The sums of all heads of a large model do not fit anywhere: 144 maps of 1,024 tokens are 600 MB.
// The heads are taken in groups whose sums fit the budget, and the prompts are run once for each
// group: time for memory, and the same result whatever the budget.
#pragma once

#include <cstddef>
#include <functional>
#include <span>

#include "filigree/analyze/maps/capture.h"

namespace filigree {

struct AverageOptions {
  std::vector<HeadId> heads = {};
  MapKind kind = MapKind::kWeights;
  std::size_t budget_bytes = std::size_t{256} << 20;  // for the sums; at least one head is taken
};

// Receives the heads in order: its index in `heads` and its map [T, T], valid during the call.
using MeanMapConsumer = std::function<void(std::size_t slot, std::span<const float> map)>;

// Throws Error unless there are prompts and all have one length, naming two that differ.
void average_maps(const Model& model, std::span<const Prompt> prompts,
                  const AverageOptions& options, const MeanMapConsumer& consumer);

// The common length. Throws Error as average_maps does.
std::int64_t common_length(std::span<const Prompt> prompts);

}  // namespace filigree
