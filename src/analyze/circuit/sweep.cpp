#include "analyze/circuit/sweep.h"

#include <algorithm>

#include "analyze/circuit/clean_run.h"
#include "analyze/circuit/sweep_state.h"
#include "base/error.h"

namespace filigree {
namespace {

// The values of a step, from the state if it is there.
std::vector<double> values_of(SweepBatch& batch, const std::vector<std::size_t>& portion,
                              std::size_t expected, SweepSection* state) {
  if (state == nullptr) return batch.changed(portion);
  const std::size_t step = state->next_step();
  if (const std::vector<double>* kept = state->find(step)) {
    require(kept->size() == expected,
            "sweep: the state holds {} values for step {}, which has {}; remove the file to start "
            "anew",
            kept->size(), step, expected);
    return *kept;
  }
  std::vector<double> values = batch.changed(portion);
  state->add(step, values);
  return values;
}

}  // namespace

PatchedRuns sweep(const std::vector<TaskPrompt>& prompts, const std::vector<std::int64_t>& starts,
                  const SweepLimits& limits, const PatchOptions& options,
                  const std::function<std::unique_ptr<SweepBatch>(const PromptRefs&)>& make) {
  const std::vector<std::vector<std::size_t>> batches = batches_of(prompts, limits.batch_tokens);
  PatchedRuns result;
  result.clean.resize(prompts.size());
  result.corrupt.resize(prompts.size());
  result.patched.assign(starts.size(), std::vector<double>(prompts.size()));
  const auto total = static_cast<std::int64_t>(batches.size() * starts.size());
  std::int64_t done = 0;
  for (const std::vector<std::size_t>& places : batches) {
    PromptRefs refs;
    for (const std::size_t i : places) refs.push_back(&prompts[i]);
    const std::unique_ptr<SweepBatch> batch = make(refs);
    const std::vector<double> clean = batch->clean(), corrupt = batch->corrupt();
    for (std::size_t i = 0; i < places.size(); ++i) {
      result.clean[places[i]] = clean[i];
      result.corrupt[places[i]] = corrupt[i];
    }
    const std::int64_t most = std::max<std::int64_t>(limits.pass_tokens / batch->tokens(), 1);
    for (const std::vector<std::size_t>& portion : portions(starts, most)) {
      const std::vector<double> values =
          values_of(*batch, portion, portion.size() * places.size(), options.state);
      for (std::size_t i = 0; i < portion.size(); ++i)
        for (std::size_t j = 0; j < places.size(); ++j)
          result.patched[portion[i]][places[j]] = values[i * places.size() + j];
      done += static_cast<std::int64_t>(portion.size());
      if (options.progress) options.progress(done, total);
    }
  }
  return result;
}

}  // namespace filigree
