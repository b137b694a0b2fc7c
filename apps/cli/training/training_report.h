// What a training command says before and after the run.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "apps/cli/training/training_run.h"

namespace filigree::cli {

struct ModelSize {
  ModelConfig config;
  std::int64_t parameters = 0;
};

// Size and need of a run, for --dry-run. `teacher`: a second, frozen model that runs along.
void report_dry_run(const ModelSize& model, const std::optional<ModelSize>& teacher,
                    std::int64_t length, const TrainingOptions& options, const TrainingData& data,
                    const Session& session);

// The result on stdout and in `run`/result.json: how the run ended and the held-out numbers, if
// any. Sets the exit code of a run that stopped early.
void report_outcome(const TrainingOutcome& outcome, const TrainingOptions& options,
                    const std::vector<EvaluatedModel>& models, Session& session);

}  // namespace filigree::cli
