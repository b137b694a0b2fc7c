// The loop of all sweeps: batches of prompts, and in each many runs that share forward passes.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "analyze/circuit/pass_limits.h"
#include "filigree/circuit.h"

namespace filigree {

// The runs of one batch of equally long prompts. The values are the metric, a prompt each.
class SweepBatch {
 public:
  virtual ~SweepBatch() = default;
  virtual std::vector<double> clean() const = 0;
  virtual std::vector<double> corrupt() const = 0;
  virtual std::int64_t tokens() const = 0;  // of one run
  virtual std::int64_t bytes() const = 0;   // that one run needs in a pass, roughly
  // Of runs that start at the same place, one after the other.
  virtual std::vector<double> changed(const std::vector<std::size_t>& runs) = 0;

 protected:
  // Of so many runs in which nothing changes.
  std::vector<double> clean_of(std::int64_t runs) const {
    const std::vector<double> one = clean();
    std::vector<double> all;
    for (std::int64_t i = 0; i < runs; ++i) all.insert(all.end(), one.begin(), one.end());
    return all;
  }
};

// `starts` says where each run starts (clean_run.h); `make` is called with each batch's prompts.
// Steps that options.state holds are not run again.
PatchedRuns sweep(const std::vector<TaskPrompt>& prompts, const std::vector<std::int64_t>& starts,
                  const SweepLimits& limits, const PatchOptions& options,
                  const std::function<std::unique_ptr<SweepBatch>(const PromptRefs&)>& make);

}  // namespace filigree
