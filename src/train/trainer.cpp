#include "train/trainer.h"

#include <cmath>

#include "autograd/tape.h"
#include "base/error.h"
#include "train/run_log.h"

namespace filigree {
namespace {

nlohmann::json log_line(std::int64_t step, const Metrics& metrics) {
  nlohmann::json line = {{"step", step}};
  for (const auto& [name, value] : metrics) line[name] = value;
  return line;
}

// Forward and backward of one step's batches; leaves the summed gradients, returns the metrics'
// mean.
Metrics run_batches(Model& model, Objective& objective, BatchSource& source, std::int64_t step,
                    std::int64_t accumulate) {
  model.clear_grads();
  Metrics mean;
  for (std::int64_t i = 0; i < accumulate; ++i) {
    const Batch batch = source.next();
    Tape tape;
    Metrics metrics;
    const Variable loss = objective.loss(batch, step * accumulate + i, metrics);
    if (!std::isfinite(loss.value().item()))
      fail(
          "training: the loss is not finite at step {}; start again with a lower learning rate or "
          "a "
          "longer warm-up (the last checkpoint is as it was)",
          step + 1);
    tape.backward(loss);
    if (i == 0) mean = metrics;
    for (std::size_t m = 0; i > 0 && m < mean.size(); ++m)
      mean[m].second += (metrics[m].second - mean[m].second) / static_cast<double>(i + 1);
  }
  return mean;
}

}  // namespace

TrainerResult train(Model& model, Objective& objective, BatchSource& source, AdamW& optimizer,
                    RunFolder& folder, const TrainerOptions& options,
                    const TrainerCallbacks& callbacks) {
  require(options.accumulate >= 1 && options.log_every >= 1 && options.checkpoint_every >= 1,
          "training: accumulation {}, log interval {} and checkpoint interval {} must be positive",
          options.accumulate, options.log_every, options.checkpoint_every);
  TrainingState state;
  state.settings = options.settings;
  TrainerResult result;
  const std::vector<std::filesystem::path> earlier = folder.checkpoints();
  require(options.resume || earlier.empty(),
          "training: '{}' holds a run already; resume it or choose another folder",
          folder.path().string());
  if (options.resume && !earlier.empty()) {
    TrainingState stored = read_training_state(earlier.back());
    require_same_settings(stored.settings, options.settings);
    restore_training(earlier.back(), model, optimizer);
    source.restore(stored.source);
    objective.restore(stored.objective);
    state = std::move(stored);
    result.resumed_from = state.step;
  }
  RunLog log = result.resumed_from > 0
                   ? RunLog::resume(folder.log_path(), state.step, options.header)
                   : RunLog::start(folder.log_path(), options.header);
  const auto save = [&] {
    model.store_gate();
    state.source = source.state();
    state.objective = objective.state();
    folder.save(model, optimizer, state, options.keep);
  };

  while (state.step < options.schedule.steps) {
    const float learning_rate = options.schedule.at(state.step);
    Metrics metrics = run_batches(model, objective, source, state.step, options.accumulate);
    const double norm =
        optimizer.step(learning_rate, options.clip, 1.0f / static_cast<float>(options.accumulate));
    if (!std::isfinite(norm))
      fail(
          "training: the gradient is not finite at step {}; start again with a lower learning rate "
          "or a longer warm-up (the last checkpoint is as it was)",
          state.step + 1);
    objective.after_step(metrics);
    metrics.emplace_back("learning_rate", static_cast<double>(learning_rate));
    metrics.emplace_back("gradient_norm", norm);
    ++state.step;
    result.last = metrics;
    if (callbacks.progress) callbacks.progress(state.step, metrics);
    const bool last = state.step == options.schedule.steps;
    if (state.step % options.log_every == 0 || last) log.write(log_line(state.step, metrics));
    if (callbacks.evaluate && options.evaluate_every > 0 &&
        (state.step % options.evaluate_every == 0 || last)) {
      const Metrics held_out = callbacks.evaluate();
      nlohmann::json line = log_line(state.step, held_out);
      line["event"] = "evaluation";
      log.write(line);
      if (!state.best || held_out.at(0).second < *state.best) {
        state.best = held_out.at(0).second;
        state.best_step = state.step;
        save();  // so that the best is kept
      }
    }
    if (const auto reason = objective.stop_reason()) {
      result.end = TrainerResult::End::kStoppedEarly;
      result.reason = *reason;
      log.write({{"event", "stopped"}, {"step", state.step}, {"reason", *reason}});
      save();
      break;
    }
    if (callbacks.stop_requested && callbacks.stop_requested()) {
      result.end = TrainerResult::End::kInterrupted;
      save();
      break;
    }
    if (state.step % options.checkpoint_every == 0 || last) save();
  }
  result.steps = state.step;
  model.clear_grads();
  model.store_gate();
  return result;
}

}  // namespace filigree
