// Runs of the clean prompts with parts replaced: the hot loop of circuit analysis.
//
// The clean and the corrupt run of a batch of prompts are computed once and kept. A patched run
// then starts at the first layer it changes, leaves out the positions before the first token at
// which clean and corrupt differ (where both runs agree, so that nothing changes), computes the
// last position's logits only, and shares a forward pass with other patched runs.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "analyze/circuit/patch.h"
#include "analyze/task/metric.h"
#include "dist/communicator.h"
#include "model/model.h"

namespace filigree {

// What takes the place of the clean value.
enum class Replacement {
  kCorrupt,  // the value of the corrupt prompt (resampling)
  kZero,
  kMean,            // mean over all corrupt prompts and positions; of a pattern as kMeanByPosition
  kMeanByPosition,  // mean over the corrupt prompts that are as long, position by position
};

template <>
inline constexpr auto kNames<Replacement> =
    std::to_array<Named<Replacement>>({{Replacement::kCorrupt, "corrupt"},
                                       {Replacement::kZero, "zero"},
                                       {Replacement::kMean, "mean"},
                                       {Replacement::kMeanByPosition, "mean-by-position"}});

class SweepSection;
struct PatchedRuns;

struct PatchOptions {
  Metric metric = Metric::kLogitDifference;
  Replacement replacement = Replacement::kCorrupt;
  // In one forward pass; memory grows with it. Not given: what suits the model's device
  // (pass_limits.h).
  std::optional<std::int64_t> tokens_at_once = {};
  // Called with the patched runs done, each for all prompts of a batch, and how many there are; may
  // throw to stop.
  std::function<void(std::int64_t done, std::int64_t total)> progress = {};
  // Sees the points of a curve one by one as they are measured, the whole of it roughly first. A
  // point comes with the first prompts and again with more of them, the last time as it stays.
  // Empty: many are measured at once, which takes a little less time.
  std::function<void(std::size_t kept, double effect)> point = {};
  // Sees what is measured of the patched runs, each of which then has passes of its own: which one,
  // and its metric, alone in `patched`, for the prompts so far.
  std::function<void(std::size_t run, const PatchedRuns& so_far)> seen = {};
  // Keeps what is done, so that an interrupted sweep goes on (sweep_state.h); null: nothing is
  // kept.
  SweepSection* state = nullptr;
  // Share the forward passes of a sweep, and all get its result; null: this process does them all.
  Communicator* ranks = nullptr;
};

struct PatchedRuns {
  std::vector<double> clean, corrupt;        // the metric of each prompt
  std::vector<std::vector<double>> patched;  // [set][prompt]
};

// Runs every set on every prompt. Throws Error when a set asks for what the model or a prompt does
// not have.
PatchedRuns run_patched(const Model& model, const std::vector<TaskPrompt>& prompts,
                        const std::vector<PatchSet>& sets, const PatchOptions& options = {});

}  // namespace filigree
