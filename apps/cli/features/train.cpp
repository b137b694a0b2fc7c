// filigree features train: a transcoder of a model, on token shards.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <memory>

#include "apps/cli/features/feature_commands.h"
#include "apps/cli/program/choices.h"
#include "apps/cli/program/job.h"
#include "apps/cli/program/program.h"
#include "apps/cli/training/training_options.h"
#include "base/table.h"
#include "filigree/feature_study.h"
#include "filigree/names.h"

namespace filigree::cli {
namespace {

struct TrainOptions {
  std::string model;
  study::FeatureTrainingRequest request;
  bool dry_run = false;
};

std::string count_text(std::int64_t count) {
  return with_thousands(static_cast<std::uint64_t>(count));
}

std::string plan_text(const study::FeatureTrainingPlan& plan) {
  Table facts({{""}, {""}});
  facts.add({"transcoder",
             fmt::format("{}, {} layers of {} features, width {}{}", name_of(plan.shape.kind),
                         plan.shape.layers, count_text(plan.shape.features), plan.shape.width,
                         plan.shape.skip ? ", with skips" : "")});
  facts.add({"parameters", count_text(plan.shape.parameters())});
  facts.add({"training", fmt::format("{} steps, {} tokens of {}, {} shuffled together, learning "
                                     "rate {:.3g}",
                                     count_text(plan.steps), count_text(plan.tokens),
                                     with_thousands(plan.train_tokens), count_text(plan.pool),
                                     plan.learning_rate)});
  if (plan.steps_through_model > 0)
    facts.add({"through the model",
               fmt::format("the last {} steps", count_text(plan.steps_through_model))});
  const std::string through =
      plan.through_model > 0
          ? fmt::format(" (later {} of a run through the model)", human_bytes(plan.through_model))
          : "";
  facts.add({"memory", fmt::format("about {}: {} weights, gradients and moments, {} activations to "
                                   "draw from{}, {} model, {} batch",
                                   human_bytes(plan.total_bytes()), human_bytes(plan.state),
                                   human_bytes(plan.pool_bytes), through, human_bytes(plan.model),
                                   human_bytes(plan.batch))});
  return facts.text();
}

void print_dry_run(const study::FeatureTrainingPlan& plan, const Session& session) {
  if (session.json()) {
    Json json = study::to_json(plan);
    json["dry_run"] = true;
    session.print_json(json);
    return;
  }
  session.print(plan_text(plan) + printable(plan.out) + ": nothing was written\n");
}

// Without and with the model's forward passes.
std::string speed_text(const study::FeatureTrainingResult& result) {
  if (result.trained_tokens == 0 || result.step_seconds <= 0.0) return "";
  const auto batch = static_cast<double>(result.plan.tokens / result.plan.steps);
  return fmt::format(
      "a step took {:.2f} ms, {:.0f} tokens a second; all with the model's passes {:.0f} tokens a "
      "second; at most {} of memory, {} of them activations to draw from\n",
      1000.0 * result.step_seconds, batch / result.step_seconds,
      static_cast<double>(result.trained_tokens) / result.seconds, human_bytes(result.peak_memory),
      human_bytes(result.pool_memory));
}

void print_result(const study::FeatureTrainingResult& result, Session& session) {
  if (result.interrupted()) session.note("the same command with --resume goes on");
  if (session.json()) {
    session.print_json(study::to_json(result));
  } else if (!result.interrupted()) {
    const std::string quality =
        result.held_out ? study::quality_table({{"", *result.held_out}}) + "\n" : "";
    session.print(fmt::format("{}{}finished after {} steps; the transcoder is in {}\n", quality,
                              speed_text(result), count_text(result.steps),
                              printable(result.plan.out)));
  }
}

void run_train(const TrainOptions& options, Session& session) {
  const study::Context context = session.context();
  const std::vector<study::LoadedModel> models = study::load_models({options.model}, context);
  if (options.dry_run) {
    print_dry_run(study::plan(options.request, models, context), session);
    return;
  }
  catch_termination();
  print_result(study::run(options.request, models, context), session);
}

void add_transcoder_options(CLI::App& app, study::FeatureTrainingRequest& request) {
  constexpr const char* kGroup = "Transcoder";
  add_choice(app, "--kind", request.kind,
             "whether features write to their layer or to all from there on")
      ->group(kGroup);
  add_choice(app, "--activation", request.activation, "which features are active")->group(kGroup);
  app.add_option("--layer-features", request.features,
                 "features of a layer (default 16 times the model's width)")
      ->check(whole_number(1, 1 << 24))
      ->type_name("N")
      ->group(kGroup);
  add_number(app, kGroup, "--l0", request.objective.l0,
             "features of a layer that are active at a token, on average", number(1.0, 1e6));
  app.add_option("--start-from", request.from,
                 "transcoder to go on with, folder or name; its kind, sizes and taps are kept")
      ->type_name("DIR")
      ->group(kGroup);
  app.add_flag("--skip", request.skip, "a linear path beside the features; per-layer only")
      ->group(kGroup);
  app.add_option("--input-hook", request.hooks.input, "tap of a layer that features read")
      ->type_name("TAP")
      ->capture_default_str()
      ->group(kGroup);
  app.add_option("--output-hook", request.hooks.output, "tap of a layer that they write")
      ->type_name("TAP")
      ->capture_default_str()
      ->group(kGroup);
  add_choice(app, "--dtype", request.stored,
             "type of the matrices in the files; circuit-tracer does not read i8",
             {MatrixType::kF32, MatrixType::kBf16, MatrixType::kI8})
      ->group(kGroup);
}

void add_run_options(CLI::App& app, study::FeatureTrainingRequest& request, bool& dry_run) {
  constexpr const char* kTraining = "Training";
  constexpr const char* kRun = "Run";
  constexpr std::int64_t kMost = std::int64_t{1} << 40;
  app.add_option("--out", request.out, "folder of the run, which becomes the transcoder")
      ->required()
      ->type_name("DIR")
      ->group(kRun);
  add_count(app, kTraining, "--tokens", request.tokens, "tokens to train on", 1, kMost);
  add_count(app, kTraining, "--batch", request.batch, "tokens a step", 1, 1 << 24);
  app.add_option("--pool", request.pool,
                 "tokens whose activations are shuffled together (default a million, or as many as "
                 "memory has room for)")
      ->check(whole_number(1, std::int64_t{1} << 31))
      ->type_name("N")
      ->group(kTraining);
  app.add_option("--context", request.length, "tokens a window (default the model's context)")
      ->check(whole_number(2, 1 << 20))
      ->type_name("N")
      ->group(kTraining);
  app.add_option("--lr", request.learning_rate,
                 "highest learning rate (default 0.001 for up to 2,048 features, less for more); a "
                 "fifth of it through the model")
      ->check(number_above(0.0, 1e30))
      ->type_name("X")
      ->group(kTraining);
  add_number(app, kTraining, "--final-lr", request.final_share,
             "share of the learning rate that is left at the end", number(0.0, 1.0));
  add_number(app, kTraining, "--clip", request.clip, "largest norm of the gradient; 0: any",
             number(0.0, 1e30));
  add_number(app, kTraining, "--through-model", request.through_model,
             "share of the steps, the last ones, that also learn, through the model with all MLPs "
             "replaced, to predict what it predicts by itself; 0: none",
             number(0.0, 1.0));
  add_number(app, kTraining, "--kl-weight", request.objective.divergence,
             "weight of the divergence of those predictions, beside the reconstruction",
             number(0.0, 1e6));
  add_count(app, kTraining, "--dead-after", request.objective.dead_after,
            "tokens after which a feature that was never active is given a second try", 1, kMost);
  add_number(app, kTraining, "--auxiliary", request.objective.auxiliary,
             "weight of what such features explain of the rest; 0: no second try",
             number(0.0, 1e6));
  add_checkpoint_options(app, request.log_every, request.checkpoint_every, request.keep,
                         "checkpoints to keep");
  add_count(app, kRun, "--held-out-tokens", request.held_out_tokens,
            "held-out tokens that the result is measured on; 0: none", 0, kMost);
  app.add_flag("--resume", request.resume,
               "go on with the run in RUN from its newest checkpoint, if there is one")
      ->group(kRun);
  app.add_flag("--dry-run", dry_run, "say how large the run would be, and stop")->group(kRun);
}

}  // namespace

void add_features_train(Program& program) {
  const auto options = std::make_shared<TrainOptions>();
  CLI::App& app = program.add(
      {"features train",
       "Train a transcoder: sparse features in place of a model's MLPs.",
       {"filigree features train dense-12x12 shards --out features --tokens 2000000",
        "filigree features train gpt2 shards --out features --l0 16 --device cuda --dtype bf16",
        "filigree features train gpt2 shards --out features --resume",
        "filigree features train sparse-12x12 shards --start-from sparse-12x12-features --out "
        "better "
        "--tokens 2000000 --through-model 1",
        "filigree features train gpt2 shards --out features --kind per-layer --skip --dry-run"},
       Computes::kOnRanks},
      [options](Session& session) { run_train(*options, session); });
  app.add_option("MODEL", options->model, "model folder or name")->required();
  app.add_option("SHARDS", options->request.shards, "token shards, made with the model's tokenizer")
      ->required();
  add_transcoder_options(app, options->request);
  add_run_options(app, options->request, options->dry_run);
}

}  // namespace filigree::cli
