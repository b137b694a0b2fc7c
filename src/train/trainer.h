// The training loop: batches, gradients, steps, log, checkpoints, resume.
//
// Same settings, same build, same thread count: same bits, however often the run was interrupted
// and resumed, because everything that a step depends on is in the checkpoint.
//
// Several ranks train one model on one global batch: each computes the gradients of its rows, their
// sums are the same bits on every rank, and so stay the weights, which is the result of one process
// to rounding. Rank 0 alone writes the log and the checkpoints.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "filigree/train/adamw.h"
#include "filigree/train/checkpoint.h"
#include "filigree/train/objective.h"
#include "filigree/train/schedule.h"

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
  nlohmann::json settings;          // everything that decides the result; compared on resume
  nlohmann::json header = nlohmann::json::object();  // first line of the log
  Communicator* ranks = nullptr;                     // null: this process alone
};

struct TrainerCallbacks {
  // Every step, on every rank, as the others.
  std::function<void(std::int64_t step, const Metrics& metrics)> progress;
  // Held-out numbers, the first of them the loss that "best" is about.
  std::function<Metrics()> evaluate;
  // Asked after every step; true on any rank saves and stops all of them.
  std::function<bool()> stop_requested;
};

struct TrainerResult {
  enum class End { kFinished, kInterrupted, kStoppedEarly };
  End end = End::kFinished;
  std::int64_t steps = 0;         // done in all
  std::int64_t resumed_from = 0;  // 0: from the start
  std::string reason;             // of an early stop
  Metrics last;
};

// Throws Error when the loss is not finite (the last checkpoint stays), a checkpoint cannot be
// written, a resumed run's settings differ, or the ranks do not start from the same weights.
TrainerResult train(Model& model, Objective& objective, BatchSource& source, AdamW& optimizer,
                    RunFolder& folder, const TrainerOptions& options,
                    const TrainerCallbacks& callbacks = {});

}  // namespace filigree
