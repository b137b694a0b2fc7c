// filigree sparsify: sparse post-training of a dense model, and its dense control.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <memory>

#include "apps/cli/commands.h"
#include "apps/cli/program/input.h"
#include "apps/cli/program/program.h"
#include "apps/cli/training/sparsify_options.h"
#include "apps/cli/training/training_report.h"
#include "apps/cli/training/training_run.h"
#include "filigree/base/error.h"
#include "filigree/base/strings.h"
#include "filigree/train/language_modelling.h"
#include "filigree/train/sparsification.h"

namespace filigree::cli {
namespace {

// The models and the data, as both runs see them.
struct Start {
  std::filesystem::path folder;
  ModelConfig config;  // of the model in `folder`
  std::filesystem::path teacher;
  std::filesystem::path dense;  // what the result is compared with, and the control starts from
  TrainingData data;
  std::int64_t length = 0;
};

void check_teacher(const SparsifyOptions& options, const Start& start) {
  const std::string teacher = printable(options.teacher);
  require(!options.teacher.empty() || !start.config.gate.on(),
          "model '{}' is sparse already; name the dense model whose loss it shall keep with "
          "--teacher",
          printable(options.model));
  require(options.teacher.empty() || options.needs_teacher() || start.config.gate.on(),
          "--teacher '{}' has nothing to teach with --target and --distill 0; leave it out",
          teacher);
  if (options.teacher.empty()) return;
  const ModelConfig config = read_model_config(start.teacher);
  require(!config.gate.on(), "--teacher '{}' is sparse; a dense model is needed", teacher);
  require(config.vocabulary == start.config.vocabulary,
          "--teacher '{}' has a vocabulary of {} tokens and the model one of {}", teacher,
          config.vocabulary, start.config.vocabulary);
  require(!has_tokenizer(start.teacher) || tokenizer_fingerprint(Tokenizer::from_folder(
                                               start.teacher)) == start.data.index.tokenizer,
          "--teacher '{}' has another tokenizer than the model and the shards", teacher);
  require(start.length <= config.context,
          "windows of {} tokens do not fit the teacher's context of {}; give a smaller --context",
          start.length, config.context);
}

Start open_start(const SparsifyOptions& options) {
  const std::filesystem::path folder = model_folder(options.model);
  Start start{.folder = folder,
              .config = read_model_config(folder),
              .teacher = options.teacher.empty() ? folder : model_folder(options.teacher),
              .dense = {},
              .data = open_training_data(options.shards, options.training.held_out)};
  start.dense = start.config.gate.on() ? start.teacher : start.folder;
  require(!start.config.gate.on() || !options.gate_bias,
          "--gate-bias {} is where a dense model starts; '{}' is sparse and has its biases",
          options.gate_bias.value_or(0.0), printable(options.model));
  check_shards_fit(start.data.index, options.shards, start.folder, start.config);
  start.length = options.context > 0 ? options.context : start.config.context;
  require(start.length <= start.config.context,
          "--context {} is more than the model's context of {}", start.length,
          start.config.context);
  check_teacher(options, start);
  return start;
}

TrainingRun run_of(const Start& start, const char* label, const std::filesystem::path& out) {
  TrainingRun run;
  run.label = label;
  run.out = out;
  run.length = start.length;
  run.tokenizer = has_tokenizer(start.folder) ? start.folder : start.data.folder;
  return run;
}

// With --lora-rank, puts adapters on the model, which are then all that is trained.
void adapt(Model& model, const SparsifyOptions& options, const Session& session) {
  if (options.lora_rank > 0)
    model.add_lora({.rank = options.lora_rank, .alpha = options.lora_alpha},
                   session.options().seed);
}

GateConfig first_gate(const SparsifyOptions& options, const ModelConfig& config) {
  GateConfig gate = config.gate;
  if (!gate.on())
    gate.bias = {static_cast<float>(options.gate_bias.value_or(SparsifyOptions::kGateBias))};
  if (options.per_head_bias && gate.bias.size() == 1)
    gate.bias.resize(static_cast<std::size_t>(config.layers * config.heads), gate.bias[0]);
  return gate;
}

TrainingOutcome train_sparse(const SparsifyOptions& options, const Start& start, Model& student,
                             const Session& session) {
  const TrainingRun run = run_of(start, "sparsify", options.training.out);
  student.set_gate(first_gate(options, start.config));
  adapt(student, options, session);
  ModelTrainable trained(student, {.gate_biases = options.per_head_bias});
  std::unique_ptr<Model> teacher;
  if (options.needs_teacher())
    teacher = load_model(start.teacher, {.placement = session.placement()});
  SparsificationOptions sparsification = options.sparsification;
  sparsification.seed = session.options().seed;
  Sparsification objective(student, teacher.get(), sparsification);
  return run_training(run, trained, objective, options.training, start.data, session);
}

TrainingOutcome train_control(const SparsifyOptions& options, const Start& start, Model& control,
                              const Session& session) {
  const TrainingRun run = run_of(start, "control", options.control_folder());
  adapt(control, options, session);
  ModelTrainable trained(control);
  LanguageModelling objective(control);
  return run_training(run, trained, objective, options.training, start.data, session);
}

void run_sparsify(const SparsifyOptions& options, Session& session) {
  const TrainingOptions& training = options.training;
  check_training_options(training);
  require(options.sparsification.most_open == 1.0 || options.per_head_bias,
          "--most-open {} needs --per-head-bias", options.sparsification.most_open);
  check_run_folder(training.out, training.resume);
  if (options.control) check_run_folder(options.control_folder(), training.resume);
  const Start start = open_start(options);
  check_held_out(training, start.data, session);
  if (start.config.gate.bias.size() > 1 && !options.per_head_bias)
    session.note("the model's gate biases stay as they are; --per-head-bias trains them on");
  if (training.dry_run) {
    const auto size_of = [](const std::filesystem::path& folder) {
      return ModelSize{read_model_config(folder), load_model(folder)->parameter_count()};
    };
    std::optional<ModelSize> teacher;
    if (options.needs_teacher()) teacher = size_of(start.teacher);
    report_dry_run(size_of(start.folder), teacher, start.length, training, start.data, session);
    return;
  }
  const std::unique_ptr<Model> student =
      load_model(start.folder, {.placement = session.placement()});
  TrainingOutcome outcome = train_sparse(options, start, *student, session);
  const bool finished = outcome.result.end == TrainerResult::End::kFinished;
  std::unique_ptr<Model> control;
  if (options.control && finished) {
    control = load_model(start.dense, {.placement = session.placement()});
    const TrainingOutcome dense = train_control(options, start, *control, session);
    if (dense.interrupted()) outcome.result.end = dense.result.end;
  } else if (options.control && !outcome.interrupted()) {
    session.note("no control was trained, because the sparse run stopped early");
  }
  std::vector<EvaluatedModel> models;
  if (!outcome.interrupted() && start.data.held_out) {
    const auto add = [&](const Model& model, const char* label, const auto& folder) {
      models.push_back(
          evaluate_held_out(model, label, folder, start.length, training, start.data, session));
    };
    add(*load_model(start.dense, {.placement = session.placement()}), "dense", start.dense);
    if (start.teacher != start.dense)
      add(*load_model(start.teacher, {.placement = session.placement()}), "teacher", start.teacher);
    add(*student, "sparse", training.out);
    if (control) add(*control, "control", options.control_folder());
  }
  report_outcome(outcome, training, models, session);
}

}  // namespace

void add_sparsify(Program& program) {
  const auto options = std::make_shared<SparsifyOptions>();
  CLI::App& app =
      program.add({"sparsify",
                   "Close the attention edges that a model's loss does not need.",
                   {"filigree sparsify dense shards --out sparse --steps 3000 --control",
                    "filigree sparsify dense shards --out sparse --steps 3000 --control --resume",
                    "filigree sparsify dense shards --out sparse --objective linear --gate-bias 5",
                    "filigree sparsify dense shards --out sparse --lora-rank 16",
                    "filigree sparsify sparse shards --teacher dense --out next --per-head-bias",
                    "filigree sparsify dense shards --out sparse --target 3.93 --distill 0"},
                   Computes::kOnRanks},
                  [options](Session& session) { run_sparsify(*options, session); });
  add_sparsify_options(app, *options);
}

}  // namespace filigree::cli
