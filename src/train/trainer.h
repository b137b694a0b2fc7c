// The training loop: batches, gradients, steps, log, checkpoints, resume. It knows neither what is
// trained (trainable.h) nor what a batch is (objective.h).
//
// Same settings, same build, same thread count: same bits, however often the run was interrupted
// and resumed, because everything that a step depends on is in the checkpoint.
//
// Several ranks train one thing on one global batch: each computes the gradients of its rows, their
// sums are the same bits on every rank, and so stay the weights, which is the result of one process
// to rounding. Rank 0 alone writes the log, and of the checkpoints what all ranks have alike.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/names.h"
#include "train/adamw.h"
#include "train/checkpoint.h"
#include "train/objective.h"
#include "train/schedule.h"
#include "train/trainable.h"

namespace filigree {

struct TrainerOptions {
  Schedule schedule;            // schedule.steps is the length of the run
  double clip = 1.0;            // of the global gradient norm; 0: none
  std::int64_t accumulate = 1;  // batches a step
  std::int64_t log_every = 10;
  std::int64_t checkpoint_every = 500;
  std::int64_t evaluate_every = 0;  // 0: never
  int keep = 2;                     // checkpoints, beside the best
  bool resume = false;              // continue from the newest checkpoint, if there is one
  // First line of the log, to which the settings and the checksum of the start are added.
  nlohmann::json header = nlohmann::json::object();
  Communicator* ranks = nullptr;  // null: this process alone
};

struct TrainerCallbacks {
  // Every step, on every rank, as the others.
  std::function<void(std::int64_t step, const Metrics& metrics)> progress;
  // Held-out numbers, the first of them the loss that "best" is about.
  std::function<Metrics()> evaluate;
  // Asked after every step; true on any rank saves and stops all of them.
  std::function<bool()> stop_requested;
  // What the objective warns of, which the log has too.
  std::function<void(const std::string& warning)> warn;
};

enum class RunEnd { kFinished, kInterrupted, kStoppedEarly };
template <>
inline constexpr auto kNames<RunEnd> =
    std::to_array<Named<RunEnd>>({{RunEnd::kFinished, "finished"},
                                  {RunEnd::kInterrupted, "interrupted"},
                                  {RunEnd::kStoppedEarly, "stopped-early"}});

struct TrainerResult {
  using End = RunEnd;
  End end = End::kFinished;
  std::int64_t steps = 0;         // done in all
  std::int64_t resumed_from = 0;  // 0: from the start
  std::string reason;             // of an early stop
  Metrics last;
};

// What decides the result of a run: what is trained and where it starts, the data, the objective,
// the optimiser and the loop's own numbers. What does not (how often to log, save and evaluate,
// ranks, threads, device) is not in it.
Settings run_settings(const Trainable& trained, const RunPart& objective, const RunPart& source,
                      const AdamW& optimizer, const TrainerOptions& options);

// The value to minimise on the next batch: ObjectiveOn::loss of SourceOf::next.
using NextLoss =
    std::function<Variable(std::int64_t micro_step, Communicator& ranks, Metrics& metrics)>;

// Throws Diverged when the loss is not finite, or a parameter where it is saved or resumed from
// (the last checkpoint stays, and the log says so), and Error when a checkpoint cannot be written,
// a resumed run's settings differ, or the ranks do not start from the same.
TrainerResult train(Trainable& trained, AnyObjective& objective, RunPart& source,
                    const NextLoss& next_loss, AdamW& optimizer, RunFolder& folder,
                    const TrainerOptions& options, const TrainerCallbacks& callbacks = {});

template <typename AnyBatch>
TrainerResult train(Trainable& trained, ObjectiveOn<AnyBatch>& objective,
                    SourceOf<AnyBatch>& source, AdamW& optimizer, RunFolder& folder,
                    const TrainerOptions& options, const TrainerCallbacks& callbacks = {}) {
  const auto next_loss = [&](std::int64_t micro_step, Communicator& ranks, Metrics& metrics) {
    return objective.loss(source.next(), micro_step, ranks, metrics);
  };
  return train(trained, objective, source, next_loss, optimizer, folder, options, callbacks);
}

}  // namespace filigree
