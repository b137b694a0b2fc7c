// filigree pretrain: a GPT-2-style model on token shards, from scratch or from a trained one.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "apps/cli/commands.h"
#include "apps/cli/models/shape_options.h"
#include "apps/cli/program/program.h"
#include "apps/cli/program/values.h"
#include "apps/cli/training/training_options.h"
#include "apps/cli/training/training_report.h"
#include "filigree/training_study.h"

namespace filigree::cli {
namespace {

struct PretrainOptions {
  study::PretrainRequest request;
  study::ModelShape shape = std::get<study::ModelShape>(request.model);
  std::vector<const CLI::Option*> shape_options;
  std::string config;
  std::string from;
  bool dry_run = false;
};

void run_pretrain(const PretrainOptions& options, Session& session) {
  study::PretrainRequest request = options.request;
  request.model = options.shape;
  if (!options.config.empty() && !options.from.empty())
    throw UsageError("--from gives the model; leave out --config");
  if (!options.config.empty() || !options.from.empty()) {
    const auto given = [](const CLI::Option* option) { return option->count() > 0; };
    if (std::any_of(options.shape_options.begin(), options.shape_options.end(), given))
      throw UsageError(fmt::format(
          "{} gives the model's shape; leave out --layers, --layer-heads, --width and --context",
          options.from.empty() ? "--config" : "--from"));
    if (options.from.empty())
      request.model = std::filesystem::path(options.config);
    else
      request.model = study::TrainedModel{options.from};
  }
  if (options.dry_run) {
    print_dry_run(study::plan_pretrain(request, session.context()), session);
    return;
  }
  catch_termination();
  print_result(study::run(request, {}, session.context()), session);
}

}  // namespace

void add_pretrain(Program& program) {
  const auto options = std::make_shared<PretrainOptions>();
  CLI::App& app =
      program.add({"pretrain",
                   "Train a GPT-2-style model on token shards, from scratch or from a trained one.",
                   {"filigree pretrain shards --out model --steps 5000",
                    "filigree pretrain shards --out model --config config.json --dry-run",
                    "filigree pretrain shards --from model --out next --steps 5000 --lr 5e-4",
                    "filigree pretrain shards --out model --steps 5000 --resume"},
                   Computes::kOnRanks},
                  [options](Session& session) { run_pretrain(*options, session); });
  app.add_option("SHARDS", options->request.shards, "token shards, as filigree prepare writes them")
      ->required();
  add_size_options(app, options->shape);
  add_shape_option(app, "--context", options->shape.context, "tokens a window", 1 << 20);
  for (const char* name : {"--layers", "--layer-heads", "--width", "--context"})
    options->shape_options.push_back(app.get_option(name));
  app.add_option("--config", options->config,
                 "config.json of the model to make, instead of the numbers above")
      ->type_name("FILE")
      ->group("Model");
  app.add_option("--from", options->from,
                 "folder or name of a dense model to train further, instead of a new one")
      ->type_name("MODEL")
      ->group("Model");
  add_training_options(app, options->request.training, options->dry_run);
  program.add_knobs(app, knobs_of(options->request));
}

}  // namespace filigree::cli
