#include <algorithm>
#include <cmath>

#include "base/checksum.h"
#include "base/file_status.h"
#include "base/mapped_file.h"
#include "filigree/autograd.h"
#include "filigree/error.h"
#include "filigree/names.h"
#include "filigree/train.h"
#include "json/json.h"
#include "train/gradient_sum.h"
#include "train/run_log.h"

namespace filigree {
namespace {

nlohmann::json log_line(std::int64_t step, const Metrics& metrics) {
  nlohmann::json line = {{"step", step}};
  for (const auto& [name, value] : metrics) line[name] = value;
  return line;
}

bool all_finite(const Metrics& metrics) {
  return std::all_of(metrics.begin(), metrics.end(),
                     [](const auto& named) { return std::isfinite(named.second); });
}

std::string not_finite(const char* what, std::int64_t step) {
  return fmt::format(
      "training: the {} is not finite at step {}; start again with a lower learning rate or a "
      "longer warm-up (the last checkpoint is as it was)",
      what, step);
}

// The name of the first parameter that no loss may ever show: of features that are never active,
// say. The same on every rank but for the name, which others know by another rank. Minus infinity
// is the logarithm of a threshold of zero.
std::optional<std::string> not_finite_parameter(const Trainable& trained, Communicator& ranks) {
  std::optional<std::string> name;
  for (const auto& parameters : {trained.parameters(), trained.own_parameters()})
    for (const NamedParameter& parameter : parameters) {
      if (name) break;
      const Tensor value = parameter.variable.value().on_host().to(DType::kF32);
      const std::span<const float> numbers = value.values();
      if (std::any_of(numbers.begin(), numbers.end(),
                      [](float x) { return std::isnan(x) || x == HUGE_VALF; }))
        name = "'" + parameter.name + "'";
    }
  if (!ranks.any(name.has_value())) return std::nullopt;
  return name.value_or("a parameter of another rank");
}

// Forward and backward of one step's batches; leaves the gradients summed over them and over the
// ranks, returns the metrics' mean.
Metrics run_batches(Trainable& trained, const NextLoss& next_loss, std::int64_t step,
                    std::int64_t accumulate, Communicator& ranks) {
  trained.clear_grads();
  Metrics mean;
  GradientSum gradients(ranks);
  gradients.leave_out(trained.own_parameters());
  for (std::int64_t i = 0; i < accumulate; ++i) {
    Tape tape;
    // Gradients are final in the last batch's backward pass.
    if (i + 1 == accumulate) gradients.watch(tape);
    Metrics metrics;
    const Variable loss = next_loss(step * accumulate + i, ranks, metrics);
    // The metrics show to every rank what is wrong on one.
    if (!std::isfinite(loss.value().item()) || !all_finite(metrics))
      throw Diverged(not_finite("loss", step + 1));
    tape.backward(loss);
    if (i == 0) mean = metrics;
    for (std::size_t m = 0; i > 0 && m < mean.size(); ++m)
      mean[m].second += (metrics[m].second - mean[m].second) / static_cast<double>(i + 1);
  }
  gradients.finish();
  return mean;
}

// Ranks that read other files, or were given other options, would train a model that is nobody's.
void require_same_start(Communicator& ranks, const std::string& start, const Settings& settings) {
  if (ranks.size() == 1) return;
  const std::string here = fmt::format("{} {}", start, settings.to_json().dump());
  const std::string first = ranks.broadcast(here);
  require(here == first,
          "training: rank {} starts from other weights, data or settings than rank 0 ({} and {}); "
          "give all ranks the same files and options",
          ranks.rank(), printable(here), printable(first));
}

// Where rank 0 finds that the run can go on, told to all ranks.
ResumePoint common_resume_point(RunFolder& folder, Communicator& ranks) {
  // A message in the place of the point, so that all ranks fail alike.
  nlohmann::json told;
  if (ranks.first()) {
    try {
      const ResumePoint& here = folder.resume_point();
      told = {{"name", here.checkpoint.filename().string()},
              {"step", here.step},
              {"damaged", here.damaged}};
    } catch (const Error& error) {
      told = {{"problem", error.what()}};
    }
  }
  const auto replace = nlohmann::json::error_handler_t::replace;
  told = parse_json(ranks.broadcast(told.dump(-1, ' ', false, replace)), "rank 0");
  require(!told.contains("problem"), "training: {}", told.value("problem", ""));
  ResumePoint point;
  const std::string name = told["name"];
  if (name.empty()) return point;
  point.checkpoint = folder.path() / "checkpoints" / name;
  point.step = told["step"];
  point.damaged = told["damaged"].get<std::vector<std::string>>();
  require(is_there(point.checkpoint),
          "training: rank {} cannot see the checkpoint '{}'; the run folder must lie where every "
          "rank can read it",
          ranks.rank(), printable(point.checkpoint.string(), 400));
  return point;
}

// What a part of the run left in the state; the file may hold anything.
void restore_part(RunPart& part, const nlohmann::json& stored, const ResumePoint& point) {
  try {
    part.restore(stored);
  } catch (const nlohmann::json::exception&) {
    fail("'{}' holds no state of this run's data or objective",
         printable((point.checkpoint / "state.json").string(), 400));
  }
}

}  // namespace

Settings run_settings(const Trainable& trained, const RunPart& objective, const RunPart& source,
                      const AdamW& optimizer, const TrainerOptions& options) {
  const Schedule& schedule = options.schedule;
  Settings settings({{"steps", schedule.steps},
                     {"accumulate", options.accumulate},
                     {"learning_rate", decimal(schedule.peak)},
                     {"warmup", schedule.warmup},
                     {"final_share", decimal(schedule.final_fraction)},
                     {"clip", options.clip}});
  if (schedule.stage > 0) {
    settings.add(Setting{"stage", schedule.stage});
    settings.add(Setting{"stage_learning_rate", decimal(schedule.stage_peak)});
  }
  settings.add(options.settings);
  // The first that differs is named, so the optimiser's checksum of its groups comes last.
  settings.add(source.settings());
  settings.add(objective.settings());
  settings.add(trained.settings());
  settings.add(optimizer.settings());
  return settings;
}

TrainerResult train(Trainable& trained, AnyObjective& objective, RunPart& source,
                    const NextLoss& next_loss, AdamW& optimizer, RunFolder& folder,
                    const TrainerOptions& options, const TrainerCallbacks& callbacks) {
  require(options.accumulate >= 1 && options.log_every >= 1 && options.checkpoint_every >= 1,
          "training: accumulation {}, log interval {} and checkpoint interval {} must be positive",
          options.accumulate, options.log_every, options.checkpoint_every);
  const std::unique_ptr<Communicator> alone = make_single_process();
  Communicator& ranks = options.ranks != nullptr ? *options.ranks : *alone;
  TrainingState state;
  state.settings = run_settings(trained, objective, source, optimizer, options);
  const std::string start = checksum_text(trained.checksum());
  require_same_start(ranks, start, state.settings);
  TrainerResult result;
  folder.lock(ranks);
  const ResumePoint earlier = common_resume_point(folder, ranks);
  require(options.resume || earlier.checkpoint.empty(),
          "training: '{}' holds a run already; resume it or choose another folder",
          printable(folder.path().string(), 400));
  if (!earlier.checkpoint.empty()) {
    TrainingState stored = read_training_state(earlier.checkpoint);
    require_same_settings(stored.settings, state.settings);
    restore_training(earlier.checkpoint, trained, optimizer, ranks);
    if (const auto name = not_finite_parameter(trained, ranks))
      throw Diverged(fmt::format(
          "training: {} of the checkpoint '{}' holds numbers that are not finite; remove "
          "the checkpoint to go on from an earlier one, or start again with a lower "
          "learning rate",
          *name, printable(earlier.checkpoint.string(), 400)));
    restore_part(source, stored.source, earlier);
    restore_part(objective, stored.objective, earlier);
    state = std::move(stored);
    result.resumed_from = state.step;
    folder.prune(state, options.keep, ranks);
  }
  std::optional<RunLog> log;  // of rank 0
  if (ranks.first()) {
    nlohmann::json header = options.header;
    header["settings"] = state.settings.to_json();
    header["start_weights"] = start;
    log = result.resumed_from > 0 ? RunLog::resume(folder.log_path(), state.step, header)
                                  : RunLog::start(folder.log_path(), header);
  }
  const auto write = [&](const nlohmann::json& line) {
    if (log) log->write(line);
  };
  const auto tell = [&](const std::string& warning) {
    write({{"event", "warning"}, {"step", state.step}, {"warning", warning}});
    if (callbacks.warn) callbacks.warn(warning);
  };
  for (const std::string& damaged : earlier.damaged)
    tell(fmt::format("{}; going on from step {} instead", damaged, state.step));
  std::int64_t saved = result.resumed_from;
  const auto save = [&] {
    if (saved == state.step) return;  // by an evaluation, say
    require_unchanged_files();        // or nobody knows what was trained on
    if (const auto name = not_finite_parameter(trained, ranks)) {
      const Diverged diverged(not_finite(("parameter " + *name).c_str(), state.step));
      write({{"event", "stopped"}, {"step", state.step}, {"reason", diverged.what()}});
      throw diverged;
    }
    if (log) log->flush();  // no step is saved whose line could be lost
    trained.before_save();
    state.source = source.state();
    state.objective = objective.state();
    folder.save(trained, optimizer, state, options.keep, ranks);
    saved = state.step;
  };

  // One step of the weights; the log has the reason when it cannot be made.
  const auto step_weights = [&](float learning_rate) {
    try {
      Metrics metrics = run_batches(trained, next_loss, state.step, options.accumulate, ranks);
      const double norm = optimizer.step(learning_rate, options.clip,
                                         1.0f / static_cast<float>(options.accumulate), &ranks);
      if (!std::isfinite(norm)) throw Diverged(not_finite("gradient", state.step + 1));
      return std::pair(metrics, norm);
    } catch (const Diverged& diverged) {
      write({{"event", "stopped"}, {"step", state.step}, {"reason", diverged.what()}});
      throw;
    }
  };

  while (state.step < options.schedule.steps) {
    const float learning_rate = options.schedule.at(state.step);
    auto [metrics, norm] = step_weights(learning_rate);
    objective.after_step(metrics);
    metrics.emplace_back("learning_rate", static_cast<double>(learning_rate));
    metrics.emplace_back("gradient_norm", norm);
    ++state.step;
    result.last = metrics;
    if (callbacks.progress) callbacks.progress(state.step, metrics);
    const bool last = state.step == options.schedule.steps;
    if (state.step % options.log_every == 0 || last) write(log_line(state.step, metrics));
    if (callbacks.evaluate && options.evaluate_every > 0 &&
        (state.step % options.evaluate_every == 0 || last)) {
      const Metrics held_out = callbacks.evaluate();
      nlohmann::json line = log_line(state.step, held_out);
      line["event"] = "evaluation";
      write(line);
      if (!state.best || held_out.at(0).second < *state.best) {
        state.best = held_out.at(0).second;
        state.best_step = state.step;
        save();  // so that the best is kept
      }
    }
    if (const auto warning = objective.take_warning()) tell(*warning);
    if (const auto reason = objective.stop_reason()) {
      result.end = TrainerResult::End::kStoppedEarly;
      result.reason = *reason;
      write({{"event", "stopped"}, {"step", state.step}, {"reason", *reason}});
      save();
      break;
    }
    if (ranks.any(callbacks.stop_requested && callbacks.stop_requested())) {
      result.end = TrainerResult::End::kInterrupted;
      save();
      break;
    }
    if (state.step % options.checkpoint_every == 0 || last) save();
  }
  require_unchanged_files();
  result.steps = state.step;
  trained.clear_grads();
  trained.before_save();
  return result;
}

}  // namespace filigree
