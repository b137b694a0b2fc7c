// Maps averaged over prompts of one length, within a bound on memory.
//
// The sums of all heads of a large model do not fit anywhere: 144 maps of 1,024 tokens are 600 MB.
// Where they fit the budget they can be taken along in a pass that is made anyway (MeanMaps). Else
// average_maps takes the heads in groups whose sums fit, and runs the prompts once for each group:
// time for memory, and the same result whatever the budget.
#pragma once

#include <cstddef>
#include <functional>
#include <span>

#include "analyze/maps/capture.h"

namespace filigree {

inline constexpr std::size_t kMeanMapBytes = std::size_t{256} << 20;

struct AverageOptions {
  std::vector<HeadId> heads = {};
  MapKind kind = MapKind::kWeights;
  std::size_t budget_bytes = kMeanMapBytes;  // for the sums; at least one head is taken
  AppliedInterventions* interventions = nullptr;
};

// Receives the heads in order: its index in `heads` and its map [T, T], valid during the call.
using MeanMapConsumer = std::function<void(std::size_t slot, std::span<const float> map)>;

// The means of maps that are seen one after the other.
class MeanMaps {
 public:
  // Whether the sums of so many heads fit.
  static bool fit(std::size_t heads, std::int64_t length, std::size_t budget_bytes = kMeanMapBytes);

  // `length` is that of every prompt.
  MeanMaps(std::size_t heads, std::size_t prompts, std::int64_t length, MapKind kind);

  // A HeadMapConsumer; the views must hold what the kind needs (CaptureOptions::of).
  void add(std::span<const HeadMap> maps);

  // After all maps of a slot: its mean [T, T].
  std::span<const float> mean(std::size_t slot) const;

 private:
  std::size_t cells_;
  float share_;
  MapKind kind_;
  Tensor sums_;  // [heads, T * T]
};

// Throws Error unless there are prompts and all have one length, naming two that differ.
void average_maps(const Model& model, std::span<const Prompt> prompts,
                  const AverageOptions& options, const MeanMapConsumer& consumer);

// The common length. Throws Error as average_maps does.
std::int64_t common_length(std::span<const Prompt> prompts);

}  // namespace filigree
