#include <fmt/format.h>

#include "base/atomic_file.h"
#include "base/checksum.h"
#include "base/file_status.h"
#include "base/stopwatch.h"
#include "filigree/error.h"
#include "filigree/names.h"
#include "filigree/runtime.h"
#include "filigree/train.h"
#include "filigree/training_study.h"
#include "filigree/version.h"
#include "model/peft_adapter.h"
#include "train/shard_source.h"

namespace filigree::study {
namespace {

namespace fs = std::filesystem;

TrainerOptions trainer_options(const TrainingRequest& request, Communicator& ranks) {
  TrainerOptions trainer;
  trainer.schedule = {static_cast<float>(request.learning_rate), request.warmup_steps(),
                      request.steps, static_cast<float>(request.final_share)};
  trainer.clip = request.clip;
  trainer.accumulate = request.accumulate;
  trainer.log_every = request.log_every;
  trainer.checkpoint_every = request.checkpoint_every;
  trainer.evaluate_every = request.evaluate_every;
  trainer.keep = request.keep;
  trainer.resume = request.resume;
  trainer.ranks = &ranks;
  return trainer;
}

// What the log's first line says of the data.
nlohmann::json header_of(const TrainingData& data) {
  const nlohmann::json held_out = data.held_out
                                      ? nlohmann::json(checksum_text(data.held_out->fingerprint()))
                                      : nlohmann::json();
  return {{"folder", data.folder.string()},
          {"tokens", data.train.tokens()},
          {"train", checksum_text(data.train.fingerprint())},
          {"held_out", held_out},
          {"tokenizer", checksum_text(data.index.tokenizer)}};
}

// "18200 tokens/s  loss 3.2140  gap +0.012  edges 2.31 %  lambda 12.3"; a narrow terminal cuts the
// end.
std::string progress_text(const Metrics& metrics, double tokens_per_second) {
  std::string text = fmt::format("{:.0f} tokens/s  ", tokens_per_second);
  for (const auto& [name, value] : metrics) {
    if (name == "loss") text += fmt::format("loss {:.4f}", value);
    if (name == "accuracy") text += "  accuracy " + percent(value);
    if (name == "gap") text += fmt::format("  gap {:+.3f}", value);
    if (name == "active_edges") text += "  edges " + percent(value);
    if (name == "lambda") text += fmt::format("  lambda {:.3g}", value);
  }
  return text;
}

WindowOptions held_out_windows(const TrainingRequest& request, std::int64_t length) {
  return {.length = length, .max_tokens = request.held_out_tokens};
}

Metrics held_out_metrics(const Model& model, const TrainingRequest& request,
                         const TrainingData& data, std::int64_t length, Communicator& ranks) {
  const Evaluation evaluation = evaluate(
      model, shard_windows(*data.held_out, held_out_windows(request, length), model.config()), {},
      &ranks);
  const Connectivity connectivity = evaluation.connectivity();
  return {{"held_out_loss", evaluation.loss()},
          {"held_out_active_edges", connectivity.active_edges},
          {"held_out_keys_per_query", connectivity.keys_per_query}};
}

Json gates_json(const GateAdjustment& gates) {
  const auto json = [](const GateAdjustment::Measured& measured) {
    return Json{
        {"scale", measured.scale}, {"loss", measured.loss}, {"active_edges", measured.edges}};
  };
  Json tried = Json::array();
  for (const GateAdjustment::Measured& one : gates.tried) tried.push_back(json(one));
  return {{"loss_asked", gates.most_loss},
          {"reached", gates.reached()},
          {"chosen", json(gates.chosen)},
          {"tried", std::move(tried)},
          {"head_shifts", gates.head_shifts}};
}

// Steps that an earlier process has done.
std::int64_t earlier_steps(RunFolder& folder, const TrainingJob& run,
                           const TrainingRequest& request, const Context& context) {
  const ResumePoint& point = folder.resume_point();
  if (point.checkpoint.empty()) {
    if (request.resume)
      context.say(
          fmt::format("{}: there is no checkpoint yet, starting from the beginning", run.label));
    return 0;
  }
  if (point.step < request.steps)
    context.say(fmt::format("{}: going on after step {}", run.label, point.step));
  return point.step;
}

}  // namespace

nlohmann::json run_header(const std::string& run, const Context& context) {
  return {{"run", run},
          {"filigree", version_string()},
          {"build", build_description()},
          {"seed", context.seed},
          {"threads", num_threads()},
          {"processes", context.communicator().size()},
          {"device", name_of(context.placement.device)},
          {"precision", name_of(context.placement.precision)}};
}

Json to_json(const TrainingResult& result) {
  Json last = Json::object();
  for (const auto& [name, value] : result.last_step) last[name] = value;
  return {{"out", result.out},
          {"end", name_of(result.end)},
          {"reason", result.reason.empty() ? Json() : Json(result.reason)},
          {"steps", result.steps},
          {"of", result.asked_steps},
          {"resumed_from", result.resumed_from},
          {"tokens", result.tokens},
          {"seconds", result.seconds},
          {"peak_memory_bytes", result.peak_memory},
          {"optimizer_memory_bytes", result.optimizer_memory},
          {"last_step", last},
          {"gates", result.gates ? gates_json(*result.gates) : Json()},
          {"verdict", result.verdict ? to_json(*result.verdict) : Json()},
          {"held_out", to_json(result.held_out)}};
}

void check_training(const TrainingRequest& request) {
  if (request.warmup > request.steps)
    throw RequestError(fmt::format("a warm-up of {} steps is longer than the run of {}",
                                   request.warmup, request.steps));
}

void check_run_folder(const fs::path& out, bool resume) {
  const bool is_model = is_there(out / "config.json");
  const bool is_run = !RunFolder::checkpoints_in(out).empty();
  require(resume || !is_run, "'{}' holds a run already; resume it, or choose another folder",
          printable(out.string()));
  require(is_run || !is_model, "'{}' holds a model, which is no run; choose another folder",
          printable(out.string()));
}

void check_held_out(const TrainingRequest& request, const TrainingData& data,
                    const Context& context) {
  if (data.held_out) return;
  require(
      request.evaluate_every == 0,
      "'{}' has no tokens in its split 'held-out' to evaluate on; name other shards that have some "
      "held out",
      printable(data.folder.string()));
  context.say(fmt::format("'{}' has no held-out tokens, so the result is not evaluated",
                          printable(data.folder.string())));
}

TrainingResult train_model(const TrainingJob& run, ModelTrainable& trained, Objective& objective,
                           const TrainingRequest& request, const TrainingData& data,
                           const Context& context) {
  context.throw_if_stopped();
  Communicator& ranks = context.communicator();
  require(request.batch % ranks.size() == 0,
          "a batch of {} windows cannot be shared by {} processes; give a multiple of {}",
          request.batch, ranks.size(), ranks.size());
  ShardSource source(data.train, {.batch = request.batch / ranks.size(),
                                  .length = run.length,
                                  .seed = context.seed,
                                  .rank = ranks.rank(),
                                  .world_size = ranks.size()});
  TrainingStream stream = {source, header_of(data), request.batch * run.length, {}};
  if (data.held_out)
    stream.evaluate = [&] {
      return held_out_metrics(trained.model(), request, data, run.length, ranks);
    };
  return train_model(run, trained, objective, request, stream, context);
}

TrainingResult train_model(const TrainingJob& run, ModelTrainable& trained, Objective& objective,
                           const TrainingRequest& request, const TrainingStream& stream,
                           const Context& context) {
  Communicator& ranks = context.communicator();
  RunFolder folder(run.out, RunFolder::LockedBy::kCaller);
  Model& model = trained.model();
  TrainerOptions trainer = trainer_options(request, ranks);
  trainer.settings = run.settings;
  trainer.header = run_header(run.label, context);
  trainer.header["model"] = model.config().source;
  trainer.header["parameters"] = model.parameter_count();
  trainer.header["data"] = stream.header;
  trained.set_requires_grad(true);
  model.set_recompute(request.recompute);
  AdamW optimizer(decay_groups(trained, static_cast<float>(request.weight_decay)),
                  {.beta2 = static_cast<float>(request.beta2)},
                  request.shard_optimizer ? &ranks : nullptr);

  const std::int64_t first = earlier_steps(folder, run, request, context);
  const std::int64_t step_tokens = request.accumulate * stream.batch_tokens;
  const DeviceKind device = context.placement.device;
  reset_pool_peak(device);
  const Stopwatch watch;
  TrainerResult ended;
  {
    const auto report = context.begin({run.label, "steps", request.steps, first});
    TrainerCallbacks callbacks;
    callbacks.progress = [&](std::int64_t step, const Metrics& metrics) {
      const auto tokens = static_cast<double>((step - first) * step_tokens);
      report->update(step, progress_text(metrics, tokens / watch.seconds()));
    };
    callbacks.evaluate = stream.evaluate;
    callbacks.stop_requested = [&] { return context.stopping(); };
    callbacks.warn = [&](const std::string& warning) {
      if (context.writes()) warn("{}: {}", run.label, warning);
    };
    ended = train(trained, objective, stream.source, optimizer, folder, trainer, callbacks);
    if (ended.steps > first) report->finish();
  }
  trained.set_requires_grad(false);
  TrainingResult result{.out = run.out.string(),
                        .end = ended.end,
                        .steps = ended.steps,
                        .asked_steps = request.steps,
                        .resumed_from = ended.resumed_from,
                        .tokens = (ended.steps - first) * step_tokens,
                        .seconds = watch.seconds(),
                        .peak_memory = pool_statistics(device).peak_bytes_in_use,
                        .optimizer_memory = optimizer.bytes(),
                        .last_step = ended.last,
                        .reason = ended.reason,
                        .held_out = {},
                        .gates = {},
                        .verdict = {}};
  if (result.interrupted()) {
    context.say(fmt::format("{}: stopped after step {} of {} and saved in '{}'", run.label,
                            result.steps, request.steps, printable(result.out)));
    return result;
  }
  std::optional<PeftAdapter> adapter;
  if (model.lora() && has_peft_names(model.config()))
    adapter = peft_adapter_of(model, run.adapted_model);
  model.merge_lora();
  if (run.before_saving) run.before_saving(result);
  if (context.writes()) {
    if (adapter) save_peft_adapter(*adapter, model.config(), run.out / kAdapterFolder);
    if (!run.tokenizer.empty()) copy_tokenizer(run.tokenizer, run.out);
    save_model(model, run.out);  // last: a folder with a configuration is a whole model
  }
  return result;
}

EvaluatedModel evaluate_held_out(const Model& model, const std::string& label,
                                 const fs::path& folder, std::int64_t length,
                                 const TrainingRequest& request, const TrainingData& data,
                                 const Context& context) {
  EvaluatedModel result =
      evaluate_split(model, *data.held_out, held_out_windows(request, length), context, label);
  result.model = folder.string();
  result.label = label;
  return result;
}

void write_result(const TrainingResult& result, const Context& context) {
  if (context.writes() && !result.interrupted())
    write_file_atomically(fs::path(result.out) / "result.json", to_json(result).dump(2) + "\n");
}

}  // namespace filigree::study
