// One kind of patch at every layer and head, or every layer and position: what a heat map shows.
//
//   noising    runs on the clean prompt in which the part takes its corrupt (or zero, or mean)
//              value; the effect is the share of the metric's difference that is lost:
//              (M_clean - M) / (M_clean - M_corrupt)
//   denoising  runs on the corrupt prompt in which the part takes its clean value; the effect is
//              the share that is restored: (M - M_corrupt) / (M_clean - M_corrupt)
//
// In both, 0 is a part that does not matter and 1 one that decides alone; values outside occur.
#pragma once

#include <cstdint>
#include <vector>

#include "analyze/circuit/patched_runs.h"

namespace filigree {

enum class SweepAxis { kHead, kPosition };
enum class PatchDirection { kNoising, kDenoising };

template <>
inline constexpr auto kNames<SweepAxis> = std::to_array<Named<SweepAxis>>(
    {{SweepAxis::kHead, "layer-head"}, {SweepAxis::kPosition, "layer-position"}});
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
  std::int64_t columns = 0;  // heads (of keys for k and v), or positions
  // Positions count from the end (-columns to -1) when prompts have different lengths: what a
  // prompt has before them is not patched.
  bool from_end = false;
  std::vector<Estimate> effects;  // [layer][column]; errors of a ratio of means
  Estimate clean, corrupt;        // the metric

  const Estimate& at(std::int64_t layer, std::int64_t column) const {
    return effects[static_cast<std::size_t>(layer * columns + column)];
  }
};

// Throws Error when the site has no heads and the sweep is by head, for the embedding, when clean
// and corrupt have the same mean metric, and for denoising with a replacement other than kCorrupt
// (of which it is the mirror image) or the metric kKl (which is about the clean prediction).
PatchSweep sweep_patches(const Model& model, const std::vector<TaskPrompt>& given,
                         const SweepOptions& options);

// What stands at each of the sweep's positions in all clean prompts: a token, or -1 where they
// differ.
std::vector<TokenId> common_tokens(const std::vector<TaskPrompt>& prompts);

}  // namespace filigree
