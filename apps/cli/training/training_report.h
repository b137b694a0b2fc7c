// What a training command says before and after the run.
#pragma once

#include "apps/cli/program/session.h"
#include "filigree/training_study.h"

namespace filigree::cli {

void print_dry_run(const study::DryRun& run, const Session& session);

// How the run ended and the held-out numbers, if any. Sets the exit code of a run that stopped
// early.
void print_result(const study::TrainingResult& result, Session& session);

}  // namespace filigree::cli
