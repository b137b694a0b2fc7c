#include "apps/cli/training/training_options.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace filigree::cli {
namespace {

constexpr const char* kRun = "Run";

}  // namespace

void add_run_options(CLI::App& app, std::string& out, bool& resume, bool& dry_run,
                     const std::string& what) {
  app.add_option("--out", out, fmt::format("folder of the run, which becomes the {}", what))
      ->required()
      ->type_name("DIR")
      ->group(kRun);
  app.add_flag("--resume", resume,
               "go on with the run in RUN from its newest checkpoint, if there is one")
      ->group(kRun);
  app.add_flag("--dry-run", dry_run, "say how large the run would be, and stop")->group(kRun);
}

void add_training_options(CLI::App& app, study::TrainingRequest& request, bool& dry_run) {
  add_run_options(app, request.out, request.resume, dry_run, "trained model");
  app.add_option("--held-out", request.held_out,
                 "shards whose split 'held-out' is evaluated on (default the same SHARDS)")
      ->type_name("SHARDS")
      ->group(kRun);
}

}  // namespace filigree::cli
