// The options that the commands that train on shards have, beside their settings.
#pragma once

#include <CLI/App.hpp>

#include <string>

#include "filigree/training_study.h"

namespace filigree::cli {

// --out, --resume and --dry-run; `what` the run becomes: "model".
void add_run_options(CLI::App& app, std::string& out, bool& resume, bool& dry_run,
                     const std::string& what);

// These and --held-out.
void add_training_options(CLI::App& app, study::TrainingRequest& request, bool& dry_run);

}  // namespace filigree::cli
