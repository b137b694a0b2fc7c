// filigree pretrain: a GPT-2-style model from scratch, on token shards.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <memory>

#include "apps/cli/commands.h"
#include "apps/cli/models/model_shape.h"
#include "apps/cli/program/input.h"
#include "apps/cli/program/program.h"
#include "apps/cli/training/training_report.h"
#include "apps/cli/training/training_run.h"
#include "filigree/base/error.h"
#include "filigree/base/strings.h"
#include "filigree/json/json.h"
#include "filigree/model/family.h"
#include "filigree/train/language_modelling.h"

namespace filigree::cli {
namespace {

struct PretrainOptions {
  std::string shards;
  ModelShape shape = {.layers = 6, .heads = 6, .width = 192, .vocabulary = 0, .context = 256};
  std::string config;
  bool shape_given = false;
  TrainingOptions training;
};

// The model to make; its vocabulary is that of the shards.
ModelConfig model_config(const PretrainOptions& options, const ShardIndex& index) {
  nlohmann::json json;
  std::string source = "the model's shape";
  if (options.config.empty()) {
    ModelShape shape = options.shape;
    shape.vocabulary = static_cast<std::int64_t>(index.vocabulary);
    json = shape.config().source;
  } else {
    source = options.config;
    json = read_json(options.config);
    require(json.is_object(), "{}: not a JSON object", printable(source));
    require(!json.contains("gate"), "{}: has a gate; train the model dense, then use `sparsify`",
            printable(source));
    if (!json.contains("vocab_size")) json["vocab_size"] = index.vocabulary;
  }
  json["bos_token_id"] = json["eos_token_id"] = index.end_of_text;
  ModelConfig config = parse_model_config(json, source);
  require(config.vocabulary >= static_cast<std::int64_t>(index.vocabulary),
          "{}: vocab_size {} is less than the {} tokens of the shards; leave it out to take theirs",
          printable(source), config.vocabulary, index.vocabulary);
  return config;
}

void run_pretrain(const PretrainOptions& options, Session& session) {
  const TrainingOptions& training = options.training;
  check_training_options(training);
  if (!options.config.empty() && options.shape_given)
    throw UsageError(
        "--config gives the model's shape; leave out --layers, --heads, --width and "
        "--context");
  check_run_folder(training.out, training.resume);
  const TrainingData data = open_training_data(options.shards, training.held_out);
  check_held_out(training, data, session);
  const ModelConfig config = model_config(options, data.index);
  if (training.dry_run) {
    report_dry_run({config, parameter_count(config)}, std::nullopt, config.context, training, data,
                   session);
    return;
  }
  const std::unique_ptr<Model> model =
      make_model(config, session.options().seed, session.placement());
  LanguageModelling objective(*model);
  TrainingRun run;
  run.label = "pretrain";
  run.out = training.out;
  run.length = config.context;
  run.tokenizer = data.folder;
  ModelTrainable trained(*model, {.drawn_from = session.options().seed});
  const TrainingOutcome outcome = run_training(run, trained, objective, training, data, session);
  std::vector<EvaluatedModel> models;
  if (!outcome.interrupted() && data.held_out)
    models.push_back(evaluate_held_out(*model, short_names({training.out})[0], training.out,
                                       run.length, training, data, session));
  report_outcome(outcome, training, models, session);
}

}  // namespace

void add_pretrain(Program& program) {
  const auto options = std::make_shared<PretrainOptions>();
  const auto shape_options = std::make_shared<std::vector<const CLI::Option*>>();
  CLI::App& app =
      program.add({"pretrain",
                   "Train a GPT-2-style model from scratch on token shards.",
                   {"filigree pretrain shards --out model --steps 5000",
                    "filigree pretrain shards --out model --config config.json --dry-run",
                    "filigree pretrain shards --out model --steps 5000 --resume"},
                   Computes::kOnRanks},
                  [=](Session& session) {
                    for (const CLI::Option* option : *shape_options)
                      options->shape_given = options->shape_given || option->count() > 0;
                    run_pretrain(*options, session);
                  });
  app.add_option("SHARDS", options->shards, "token shards, as filigree prepare writes them")
      ->required();
  add_size_options(app, options->shape);
  add_shape_option(app, "--context", options->shape.context, "tokens a window", 1 << 20);
  for (const char* name : {"--layers", "--heads", "--width", "--context"})
    shape_options->push_back(app.get_option(name));
  app.add_option("--config", options->config,
                 "config.json of the model to make, instead of the numbers above")
      ->type_name("FILE")
      ->group("Model");
  add_training_options(app, options->training);
}

}  // namespace filigree::cli
