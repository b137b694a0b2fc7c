#include <fmt/format.h>

#include <utility>

#include "filigree/training_study.h"

namespace filigree::study {
namespace {

constexpr NumberRange kShare = {.min = 0.0, .max = 1.0};
constexpr NumberRange kLearningRate = {.min = 0.0, .max = 1e30, .above_min = true};
constexpr CountRange kSteps = {.min = 1};
constexpr CountRange kBatch = {.min = 1, .max = 1 << 20};
constexpr CountRange kWindow = {.min = 1, .max = 1 << 20};

void add_optimiser_knobs(Knobs& knobs, TrainingRequest& request) {
  constexpr auto kRecorded = KnobRecord::kByItsPart;
  knobs.section("Training");
  knobs.count({.name = "steps",
               .what = "steps of the optimiser",
               .level = KnobLevel::kBasic,
               .record = kRecorded},
              request.steps, kSteps);
  knobs.count(
      {.name = "batch", .what = "windows a batch", .level = KnobLevel::kBasic, .record = kRecorded},
      request.batch, kBatch);
  knobs.count({.name = "accumulate", .what = "batches a step", .record = kRecorded},
              request.accumulate, kBatch);
  knobs.number({.name = "lr",
                .what = "highest learning rate",
                .level = KnobLevel::kBasic,
                .record = kRecorded},
               request.learning_rate, kLearningRate);
  knobs.count({.name = "warmup",
               .what = "steps in which the learning rate rises, followed by a cosine",
               .record = kRecorded,
               .otherwise = "a twentieth of all"},
              request.warmup, {.min = 0});
  knobs.number({.name = "final-lr",
                .what = "share of the learning rate that is left at the end",
                .record = kRecorded},
               request.final_share, kShare);
  knobs.number({.name = "weight-decay",
                .what = "decoupled weight decay of the matrices",
                .record = kRecorded},
               request.weight_decay, {.min = 0.0, .max = 1e6});
  knobs.number({.name = "beta2", .what = "decay of AdamW's second moment", .record = kRecorded},
               request.beta2, {.min = 0.0, .max = 0.999999});
  knobs.number({.name = "clip", .what = "largest norm of the gradient; 0 any", .record = kRecorded},
               request.clip, {.min = 0.0, .max = 1e30});
}

void add_run_knobs(Knobs& knobs, TrainingRequest& request) {
  constexpr auto kFree = KnobRecord::kNever;
  knobs.flag({.name = "recompute",
              .what = "keep one layer's activations and compute the others again for the backward "
                      "pass: less memory, about a third more time, the same result",
              .level = KnobLevel::kBasic,
              .record = kFree},
             request.recompute);
  knobs.flag({.name = "shard-optimizer",
              .what = "each of several processes keeps its part of AdamW's moments: less memory, "
                      "the same result",
              .record = kFree},
             request.shard_optimizer);
  knobs.section("Run");
  knobs.count(
      {.name = "log-every", .what = "steps between lines of RUN/log.jsonl", .record = kFree},
      request.log_every, kSteps);
  knobs.count({.name = "checkpoint-every",
               .what = "steps between checkpoints",
               .level = KnobLevel::kBasic,
               .record = kFree},
              request.checkpoint_every, kSteps);
  knobs.count({.name = "keep", .what = "checkpoints to keep beside the best", .record = kFree},
              request.keep, {.min = 1, .max = 1 << 20});
  knobs.count({.name = "held-out-tokens",
               .what = "held-out tokens that are evaluated on, at most",
               .record = kFree},
              request.held_out_tokens, kSteps);
  knobs.count({.name = "evaluate-every",
               .what = "steps between evaluations; 0 only at the end",
               .record = kFree},
              request.evaluate_every, {.min = 0});
}

}  // namespace

Knobs knobs_of(TrainingRequest& request) {
  Knobs knobs;
  add_optimiser_knobs(knobs, request);
  add_run_knobs(knobs, request);
  return knobs;
}

Knobs knobs_of(PretrainRequest& request) {
  Knobs knobs = knobs_of(request.training);
  constexpr auto kRecorded = KnobRecord::kByItsPart;
  knobs.section("Silent heads");
  knobs.number({.name = "drop-heads",
                .what = "share of heads that are silent in each window, so that several learn each "
                        "thing",
                .record = kRecorded},
               request.drop_heads, {.min = 0.0, .max = 0.99});
  knobs.number({.name = "drop-heads-end",
                .what = "share of the steps after which no head is silent",
                .record = kRecorded},
               request.drop_heads_end, kShare);
  knobs.number({.name = "drop-heads-fade",
                .what = "share of the steps, before that, over which the silent heads become none",
                .record = kRecorded},
               request.drop_heads_fade, kShare);
  return knobs;
}

Knobs knobs_of(SparsifyRequest& request) {
  constexpr auto kBasic = KnobLevel::kBasic;
  constexpr auto kRecorded = KnobRecord::kByItsPart;
  Knobs knobs;
  knobs.section("Aim");
  // The gates are set to the budget after training, and the margin that follows from it is
  // recorded.
  knobs.number({.name = "loss-budget",
                .what = "how far the held-out loss may rise",
                .unit = "nats",
                .level = kBasic,
                .record = KnobRecord::kNever},
               request.loss_budget, {.min = 0.0});
  knobs.choice({.name = "budget-from",
                .what = "model that the budget is counted from; with control the dense model is "
                        "trained on first, as long and on the same data, into RUN/control",
                .level = kBasic,
                .record = kRecorded},
               request.budget_from);
  knobs.flag({.name = "control",
              .what = "also train the dense model on, as long and on the same data, into "
                      "RUN/control",
              .level = kBasic,
              .record = KnobRecord::kNever},
             request.control);
  knobs.section("Gates");
  knobs.number({.name = "gate-bias",
                .what = "gate bias that a dense model starts from; a larger one opens more edges",
                .record = kRecorded},
               request.gate_bias, {.min = -1000.0, .max = 1000.0});
  knobs.set_otherwise("gate-bias", fmt::format("{}", SparsifyRequest::kGateBias));
  knobs.flag({.name = "fixed-bias",
              .what = "keep the bias as it starts instead of learning one per head",
              .record = kRecorded},
             request.fixed_bias);
  knobs.flag({.name = "keep-gates",
              .what = "leave the gates as they were trained instead of setting them to the budget",
              .record = KnobRecord::kNever},
             request.keep_gates);
  Knobs objective = knobs_of(request.sparsification);
  objective.set_record(kRecorded);
  objective.derive("margin", request.margin, "the loss budget");
  objective.derive("max-open", request.max_open,
                   fmt::format("{}", request.sparsification.max_open));
  objective.derive("dual-gain", request.dual_gain, "a tenth over the loss budget");
  objective.derive("dual-every", request.dual_every, "a thousandth of all steps, 10 at most");
  objective.remove("recovery-from");
  knobs.add(std::move(objective));
  knobs.section("Multiplier");
  knobs.number({.name = "recovery",
                .what = "share of the steps, at the end, in which the loss is won back; 0 none",
                .record = kRecorded},
               request.recovery, kShare);
  knobs.section("Low-rank adapters");
  knobs.count({.name = "lora-rank",
               .what = "train only adapters of this rank on q, k, v and o, and merge them at the "
                       "end; 0 trains all weights",
               .level = kBasic,
               .record = kRecorded},
              request.lora_rank, {.min = 0, .max = 1 << 20});
  knobs.number({.name = "lora-alpha",
                .what = "scale of the adapters: alpha / rank times their product",
                .record = kRecorded},
               request.lora_alpha, {.min = 0.0, .above_min = true});
  knobs.section("Training");
  knobs.count({.name = "context",
               .what = "tokens a window",
               .level = kBasic,
               .record = kRecorded,
               .otherwise = "the model's context"},
              request.length, kWindow);
  knobs.count({.name = "tokens",
               .what = "tokens to train on, instead of steps",
               .record = kRecorded,
               .otherwise = "as many as the steps take"},
              request.tokens, {.min = 1, .max = std::int64_t{1} << 50});
  knobs.flag({.name = "vectors-only",
              .what = "train biases and norms alone; matrices, of 8 bits too, stay as they are",
              .record = kRecorded},
             request.vectors_only);
  knobs.add(knobs_of(request.training));
  knobs.set_otherwise("batch", "the multiple of 16 that holds 8,192 tokens");
  knobs.set_otherwise("lr", "0.2 / width, at most 0.002; 0.0005 for adapters");
  return knobs;
}

}  // namespace filigree::study
