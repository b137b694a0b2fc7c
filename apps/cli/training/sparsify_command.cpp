// filigree sparsify: sparse post-training of a dense model, and its dense control.
#include <CLI/CLI.hpp>

#include <memory>

#include "apps/cli/commands.h"
#include "apps/cli/program/program.h"
#include "apps/cli/training/training_options.h"
#include "apps/cli/training/training_report.h"
#include "filigree/training_study.h"

namespace filigree::cli {
namespace {

struct SparsifyOptions {
  study::SparsifyRequest request;
  bool dry_run = false;
};

void run_sparsify(const SparsifyOptions& options, Session& session) {
  if (options.dry_run) {
    print_dry_run(study::plan_sparsify(options.request, session.context()), session);
    return;
  }
  catch_termination();
  print_result(study::run(options.request, {}, session.context()), session);
}

}  // namespace

void add_sparsify(Program& program) {
  const auto options = std::make_shared<SparsifyOptions>();
  CLI::App& app = program.add(
      {"sparsify",
       "Close the attention edges that a model's loss does not need.",
       {"filigree sparsify dense shards --out sparse --loss-budget 0.01 --steps 6000",
        "filigree sparsify dense shards --out sparse --steps 3000 --control",
        "filigree sparsify dense shards --out sparse --steps 3000 --control --resume",
        "filigree sparsify dense shards --out sparse --steps 3000 --budget-from control",
        "filigree sparsify dense shards --out sparse --set head-power=0.7",
        "filigree sparsify dense shards --out sparse --lora-rank 16",
        "filigree sparsify sparse shards --teacher dense --out next --set lambda0=40",
        "filigree sparsify dense shards --out sparse --recipe recipe.json --steps 6000"},
       Computes::kOnRanks},
      [options](Session& session) { run_sparsify(*options, session); });
  study::SparsifyRequest& request = options->request;
  app.add_option(
         "MODEL", request.model,
         "folder or name of the dense model, or with --teacher of a sparse one to go on with")
      ->required();
  app.add_option("SHARDS", request.shards, "token shards, made with the model's tokenizer")
      ->required();
  app.add_option("--teacher", request.teacher,
                 "dense model whose loss is kept and whose predictions are learned (default MODEL)")
      ->type_name("MODEL")
      ->group("Aim");
  add_training_options(app, request.training, options->dry_run);
  program.add_knobs(app, knobs_of(request));
}

}  // namespace filigree::cli
