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

}  // namespace

void add_features_train(Program& program) {
  const auto options = std::make_shared<TrainOptions>();
  CLI::App& app =
      program.add({"features train",
                   "Train a transcoder: sparse features in place of a model's MLPs.",
                   {"filigree features train dense-12x12 shards --out features --tokens 2000000",
                    "filigree features train gpt2 shards --out features --l0 16 --dtype bf16",
                    "filigree features train gpt2 shards --out features --resume",
                    "filigree features train gpt2 shards --from features --out better",
                    "filigree features train gpt2 shards --out f --set kind=per-layer --dry-run"},
                   Computes::kOnRanks,
                   true},
                  [options](Session& session) { run_train(*options, session); });
  app.add_option("MODEL", options->model, "model folder or name")->required();
  app.add_option("SHARDS", options->request.shards, "token shards, made with the model's tokenizer")
      ->required();
  study::FeatureTrainingRequest& request = options->request;
  app.add_option("--from", request.from,
                 "transcoder to go on with, folder or name; its kind, sizes and taps are kept")
      ->type_name("MODEL")
      ->group("Transcoder");
  add_choice(app, "--dtype", request.stored,
             "type of the matrices in the files; circuit-tracer does not read i8",
             {MatrixType::kF32, MatrixType::kBf16, MatrixType::kI8})
      ->group("Transcoder");
  add_run_options(app, request.out, request.resume, options->dry_run, "transcoder");
  program.add_knobs(app, knobs_of(request));
}

}  // namespace filigree::cli
