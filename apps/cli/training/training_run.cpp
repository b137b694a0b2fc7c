#include "apps/cli/training/training_run.h"

#include <fmt/format.h>

#include <iostream>

#include "apps/cli/program/stopwatch.h"
#include "filigree/base/error.h"
#include "filigree/base/strings.h"
#include "filigree/base/version.h"
#include "filigree/runtime/threads.h"
#include "filigree/text/shard_checksum.h"
#include "filigree/train/adamw.h"
#include "filigree/train/shard_source.h"

namespace filigree::cli {
namespace {

namespace fs = std::filesystem;

nlohmann::json header(const TrainingRun& run, const Model& model, const TrainingData& data,
                      const Session& session) {
  return {{"run", run.label},
          {"filigree", version_string()},
          {"build", build_description()},
          {"seed", session.options().seed},
          {"threads", num_threads()},
          {"processes", session.ranks().size()},
          {"device", name_of(session.options().device)},
          {"precision", name_of(session.options().precision)},
          {"model", model.config().source},
          {"parameters", model.parameter_count()},
          {"data",
           {{"folder", data.folder.string()},
            {"tokens", data.train.tokens()},
            {"train", checksum_text(data.train.fingerprint())},
            {"held_out", data.held_out ? nlohmann::json(checksum_text(data.held_out->fingerprint()))
                                       : nlohmann::json()},
            {"tokenizer", checksum_text(data.index.tokenizer)}}}};
}

// "18200 tokens/s  loss 3.2140  gap +0.012  edges 2.31 %  lambda 12.3"; a narrow terminal cuts the
// end.
std::string bar_text(const Metrics& metrics, double tokens_per_second) {
  std::string text = fmt::format("{:.0f} tokens/s  ", tokens_per_second);
  for (const auto& [name, value] : metrics) {
    if (name == "loss") text += fmt::format("loss {:.4f}", value);
    if (name == "gap") text += fmt::format("  gap {:+.3f}", value);
    if (name == "active_edges") text += "  edges " + percent(value);
    if (name == "lambda") text += fmt::format("  lambda {:.3g}", value);
  }
  return text;
}

WindowOptions held_out_windows(const TrainingOptions& options, std::int64_t length) {
  return {.length = length, .max_tokens = options.held_out_tokens};
}

Metrics held_out_metrics(const Model& model, const TrainingOptions& options,
                         const TrainingData& data, std::int64_t length, Communicator& ranks) {
  const Evaluation evaluation = evaluate(
      model, shard_windows(*data.held_out, held_out_windows(options, length), model.config()), {},
      &ranks);
  const Connectivity connectivity = evaluation.connectivity();
  return {{"held_out_loss", evaluation.loss()},
          {"held_out_active_edges", connectivity.active_edges},
          {"held_out_keys_per_query", connectivity.keys_per_query}};
}

}  // namespace

void check_run_folder(const fs::path& out, bool resume) {
  std::error_code ignored;
  const bool is_model = fs::exists(out / "config.json", ignored);
  bool is_run = false;
  for (const auto& item : fs::directory_iterator(out / "checkpoints", ignored))
    is_run = is_run || item.path().filename().string().starts_with("step-");
  require(resume || !is_run,
          "'{}' holds a run already; go on with --resume, or choose another --out",
          printable(out.string()));
  require(is_run || !is_model, "'{}' holds a model, which is no run; choose another --out",
          printable(out.string()));
}

void check_held_out(const TrainingOptions& options, const TrainingData& data,
                    const Session& session) {
  if (data.held_out) return;
  require(options.evaluate_every == 0,
          "--evaluate-every: '{}' has no tokens in its split 'val'; give --held-out SHARDS",
          printable(data.folder.string()));
  session.note(fmt::format("'{}' has no held-out tokens, so the result is not evaluated",
                           printable(data.folder.string())));
}

TrainingOutcome run_training(const TrainingRun& run, ModelTrainable& trained, Objective& objective,
                             const TrainingOptions& options, const TrainingData& data,
                             const Session& session) {
  catch_termination();
  throw_if_interrupted();
  Communicator& ranks = session.ranks();
  require(options.batch % ranks.size() == 0,
          "--batch {} cannot be shared by {} processes; give a multiple of {}", options.batch,
          ranks.size(), ranks.size());
  ShardSource source(data.train, {.batch = options.batch / ranks.size(),
                                  .length = run.length,
                                  .seed = session.options().seed,
                                  .rank = ranks.rank(),
                                  .world_size = ranks.size()});
  RunFolder folder(run.out);
  TrainerOptions trainer = options.trainer();
  trainer.ranks = &ranks;
  Model& model = trained.model();
  trainer.header = header(run, model, data, session);
  trained.set_requires_grad(true);
  model.set_recompute(options.recompute);
  AdamW optimizer(decay_groups(trained, static_cast<float>(options.weight_decay)),
                  {.beta2 = static_cast<float>(options.beta2)});

  ProgressOptions bar = session.progress(run.label, "steps", options.steps);
  if (const std::vector<fs::path> earlier = folder.checkpoints(); !earlier.empty()) {
    bar.already_done = read_training_state(earlier.back()).step;
    if (bar.already_done < options.steps)
      session.note(fmt::format("{}: going on after step {}", run.label, bar.already_done));
  } else if (options.resume) {
    session.note(
        fmt::format("{}: there is no checkpoint yet, starting from the beginning", run.label));
  }
  const std::int64_t first = bar.already_done;
  const std::int64_t step_tokens = options.batch * options.accumulate * run.length;
  const Stopwatch watch;
  TrainingOutcome outcome;
  {
    Progress progress(std::cerr, bar);
    TrainerCallbacks callbacks;
    callbacks.progress = [&](std::int64_t step, const Metrics& metrics) {
      const auto tokens = static_cast<double>((step - first) * step_tokens);
      progress.update(step, bar_text(metrics, tokens / watch.seconds()));
    };
    if (data.held_out)
      callbacks.evaluate = [&] {
        return held_out_metrics(model, options, data, run.length, ranks);
      };
    callbacks.stop_requested = interrupted;
    outcome.result = train(trained, objective, source, optimizer, folder, trainer, callbacks);
    if (outcome.result.steps > first) progress.finish();
  }
  outcome.seconds = watch.seconds();
  outcome.tokens = (outcome.result.steps - first) * step_tokens;
  trained.set_requires_grad(false);
  if (outcome.interrupted()) {
    session.note(fmt::format(
        "{}: stopped after step {} of {} and saved in '{}'; the same command with --resume goes on",
        run.label, outcome.result.steps, options.steps, printable(run.out.string())));
    return outcome;
  }
  model.merge_lora();
  if (session.writes()) {
    save_model(model, run.out);
    copy_tokenizer(run.tokenizer, run.out);
  }
  return outcome;
}

EvaluatedModel evaluate_held_out(const Model& model, const std::string& label,
                                 const fs::path& folder, std::int64_t length,
                                 const TrainingOptions& options, const TrainingData& data,
                                 const Session& session) {
  EvaluatedModel result = study::evaluate_split(
      model, *data.held_out, held_out_windows(options, length), session.context(), label);
  result.model = folder.string();
  result.label = label;
  return result;
}

}  // namespace filigree::cli
