// The options that choose a task and say how its prompts are made.
#pragma once

#include <CLI/App.hpp>

#include "filigree/circuit_study.h"

namespace filigree::cli {

// How prompts are made and, where there is a choice, measured; the name of the task is the caller's
// to ask for.
void add_task_options(CLI::App& app, study::TaskSelection& selection, bool with_metric = true);

}  // namespace filigree::cli
