#include "analyze/circuit/circuit_sweep.h"

#include <algorithm>
#include <span>
#include <utility>

#include "analyze/circuit/clean_run.h"
#include "filigree/circuit.h"
#include "filigree/error.h"

namespace filigree {
namespace {

using Portion = std::vector<std::size_t>;

// The values of steps, each from the state if it is there. Several ranks do one each, and all get
// all of them.
std::vector<std::vector<double>> values_of(SweepBatch& batch, std::span<const Portion> portions,
                                           std::size_t prompts, const PatchOptions& options) {
  std::vector<std::vector<double>> values;
  std::vector<double> computed;  // one after the other; zeros where another rank computes
  std::vector<std::pair<std::size_t, std::size_t>> missing;  // place and number of a step
  for (std::size_t i = 0; i < portions.size(); ++i) {
    const std::size_t expected = portions[i].size() * prompts;
    values.emplace_back(expected);
    const std::size_t step = options.state != nullptr ? options.state->next_step() : 0;
    const std::vector<double>* kept =
        options.state != nullptr ? options.state->find(step) : nullptr;
    if (kept == nullptr) {
      missing.emplace_back(i, step);
      const bool own = options.ranks == nullptr || static_cast<int>(i) == options.ranks->rank();
      const std::vector<double> found =
          own ? batch.changed(portions[i]) : std::vector<double>(expected);
      computed.insert(computed.end(), found.begin(), found.end());
      continue;
    }
    require(kept->size() == expected,
            "sweep: the state holds {} values for step {}, which has {}; remove the file to start "
            "anew",
            kept->size(), step, expected);
    values[i] = *kept;
  }
  if (options.ranks != nullptr && !missing.empty()) options.ranks->sum(computed);
  auto next = computed.cbegin();
  for (const auto& [i, step] : missing) {
    const auto end = next + static_cast<std::ptrdiff_t>(values[i].size());
    values[i].assign(next, end);
    next = end;
    if (options.state != nullptr) options.state->add(step, values[i]);
  }
  return values;
}

// What is known of one run, of the prompts so far.
PatchedRuns known_of(const PatchedRuns& runs, std::size_t run,
                     const std::vector<std::size_t>& prompts) {
  PatchedRuns known;
  known.patched.resize(1);
  for (const std::size_t i : prompts) {
    known.clean.push_back(runs.clean[i]);
    known.corrupt.push_back(runs.corrupt[i]);
    known.patched[0].push_back(runs.patched[run][i]);
  }
  return known;
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
  const auto together =
      static_cast<std::size_t>(options.ranks != nullptr ? options.ranks->size() : 1);
  std::int64_t done = 0;
  std::vector<std::size_t> known;  // prompts
  for (const std::vector<std::size_t>& places : batches) {
    PromptRefs refs;
    for (const std::size_t i : places) refs.push_back(&prompts[i]);
    const std::unique_ptr<SweepBatch> batch = make(refs);
    const std::vector<double> clean = batch->clean(), corrupt = batch->corrupt();
    for (std::size_t i = 0; i < places.size(); ++i) {
      result.clean[places[i]] = clean[i];
      result.corrupt[places[i]] = corrupt[i];
    }
    known.insert(known.end(), places.begin(), places.end());
    std::int64_t most = options.seen
                            ? 1
                            : runs_at_once(limits, static_cast<std::int64_t>(places.size()),
                                           batch->tokens(), batch->bytes());
    // The same steps on every rank, whatever memory each has.
    if (options.ranks != nullptr)
      options.ranks->broadcast(std::as_writable_bytes(std::span(&most, 1)));
    const std::vector<Portion> all = portions(starts, most);
    for (std::size_t first = 0; first < all.size(); first += together) {
      const auto group = std::span(all).subspan(first, std::min(together, all.size() - first));
      const std::vector<std::vector<double>> values =
          values_of(*batch, group, places.size(), options);
      for (std::size_t p = 0; p < group.size(); ++p) {
        for (std::size_t i = 0; i < group[p].size(); ++i)
          for (std::size_t j = 0; j < places.size(); ++j)
            result.patched[group[p][i]][places[j]] = values[p][i * places.size() + j];
        if (options.seen)
          for (const std::size_t run : group[p]) options.seen(run, known_of(result, run, known));
        done += static_cast<std::int64_t>(group[p].size());
        if (options.progress) options.progress(done, total);
      }
    }
  }
  return result;
}

}  // namespace filigree
