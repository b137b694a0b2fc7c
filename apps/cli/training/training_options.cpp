#include "apps/cli/training/training_options.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "apps/cli/program/program.h"

namespace filigree::cli {
namespace {

constexpr const char* kTraining = "Training";
constexpr const char* kRun = "Run";
constexpr std::int64_t kMost = std::int64_t{1} << 40;

}  // namespace

CLI::Option* add_count(CLI::App& app, const char* group, const char* name, std::int64_t& value,
                       const char* what, std::int64_t least, std::int64_t most) {
  return app.add_option(name, value, what)
      ->check(whole_number(least, most))
      ->type_name("N")
      ->capture_default_str()
      ->group(group);
}

CLI::Option* add_number(CLI::App& app, const char* group, const char* name, double& value,
                        const char* what, const CLI::Validator& check) {
  return app.add_option(name, value, what)
      ->check(check)
      ->type_name("X")
      ->default_str(fmt::format("{}", value))
      ->group(group);
}

CLI::Option* add_optional_number(CLI::App& app, const char* group, const char* name,
                                 std::optional<double>& value, const char* what,
                                 const CLI::Validator& check, const std::string& otherwise) {
  return app
      .add_option_function<double>(
          name, [&value](double given) { value = given; }, what)
      ->check(check)
      ->type_name("X")
      ->default_str(otherwise)
      ->group(group);
}

void add_checkpoint_options(CLI::App& app, std::int64_t& log_every, std::int64_t& checkpoint_every,
                            int& keep, const char* kept) {
  add_count(app, kRun, "--log-every", log_every, "steps between lines of RUN/log.jsonl", 1, kMost);
  add_count(app, kRun, "--checkpoint-every", checkpoint_every, "steps between checkpoints", 1,
            kMost);
  app.add_option("--keep", keep, kept)
      ->check(whole_number(1, 1 << 20))
      ->type_name("N")
      ->capture_default_str()
      ->group(kRun);
}

void add_training_options(CLI::App& app, study::TrainingRequest& request, bool& dry_run) {
  app.add_option("--out", request.out, "folder of the run, which becomes the trained model")
      ->required()
      ->type_name("DIR")
      ->group(kRun);
  add_count(app, kTraining, "--steps", request.steps, "steps of the optimiser", 1, kMost);
  add_count(app, kTraining, "--batch", request.batch, "windows a batch", 1, 1 << 20);
  add_count(app, kTraining, "--accumulate", request.accumulate, "batches a step", 1, 1 << 20);
  add_number(app, kTraining, "--lr", request.learning_rate, "highest learning rate",
             number_above(0.0, 1e30));
  app.add_option("--warmup", request.warmup,
                 "steps to reach it, followed by a cosine (default a twentieth of all)")
      ->check(whole_number(0, kMost))
      ->type_name("N")
      ->group(kTraining);
  add_number(app, kTraining, "--final-lr", request.final_share,
             "share of the learning rate that is left at the end", number(0.0, 1.0));
  add_number(app, kTraining, "--weight-decay", request.weight_decay,
             "decoupled weight decay of the matrices", number(0.0, 1e6));
  add_number(app, kTraining, "--beta2", request.beta2, "decay of AdamW's second moment",
             number(0.0, 0.999999));
  add_number(app, kTraining, "--clip", request.clip, "largest norm of the gradient; 0: any",
             number(0.0, 1e30));

  add_checkpoint_options(app, request.log_every, request.checkpoint_every, request.keep,
                         "checkpoints to keep, beside the best");
  app.add_option("--held-out", request.held_out,
                 "shards whose split 'held-out' is evaluated on (default the same SHARDS)")
      ->type_name("SHARDS")
      ->group(kRun);
  add_count(app, kRun, "--held-out-tokens", request.held_out_tokens,
            "tokens of it that are used at most", 1, kMost);
  add_count(app, kRun, "--evaluate-every", request.evaluate_every,
            "steps between evaluations; 0: only at the end", 0, kMost);
  app.add_flag("--recompute", request.recompute,
               "keep one layer's activations instead of all, computing them again for the backward "
               "pass: less memory, about a third more time, the same result")
      ->group(kTraining);
  app.add_flag("--shard-optimizer", request.shard_optimizer,
               "of several processes each keeps its part of AdamW's moments instead of all: less "
               "memory, the same result")
      ->group(kTraining);
  app.add_flag("--resume", request.resume,
               "go on with the run in RUN from its newest checkpoint, if there is one")
      ->group(kRun);
  app.add_flag("--dry-run", dry_run, "say how large the run would be, and stop")->group(kRun);
}

}  // namespace filigree::cli
