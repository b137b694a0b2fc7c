#include <utility>

#include "filigree/feature_study.h"

namespace filigree::study {
namespace {

constexpr auto kBasic = KnobLevel::kBasic;
constexpr auto kRecorded = KnobRecord::kByItsPart;
constexpr auto kFree = KnobRecord::kNever;
constexpr NumberRange kShare = {.min = 0.0, .max = 1.0};
constexpr NumberRange kWeight = {.min = 0.0, .max = 1e6};

void add_transcoder_knobs(Knobs& knobs, FeatureTrainingRequest& request) {
  knobs.section("Transcoder");
  knobs.choice({.name = "kind",
                .what = "whether features write to their layer or to all from there on",
                .record = kRecorded},
               request.kind);
  knobs.choice({.name = "activation",
                .what = "which features are active",
                .level = kBasic,
                .record = kRecorded},
               request.activation);
  knobs.count({.name = "layer-features",
               .what = "features of a layer",
               .level = kBasic,
               .record = kRecorded,
               .otherwise = "16 times the model's width"},
              request.features, {.min = 1, .max = 1 << 24});
  knobs.number({.name = "l0",
                .what = "features of a layer that are active at a token, on average",
                .level = kBasic,
                .record = kRecorded},
               request.objective.l0, {.min = 1.0, .max = 1e6});
  knobs.flag({.name = "skip",
              .what = "add a linear path beside the features; per-layer only",
              .record = kRecorded},
             request.skip);
  knobs.text(
      {.name = "input-hook", .what = "tap of a layer that features read", .record = kRecorded},
      request.hooks.input);
  knobs.text(
      {.name = "output-hook", .what = "tap of a layer that features write", .record = kRecorded},
      request.hooks.output);
}

void add_optimiser_knobs(Knobs& knobs, FeatureTrainingRequest& request) {
  knobs.section("Training");
  knobs.count(
      {.name = "tokens", .what = "tokens to train on", .level = kBasic, .record = kRecorded},
      request.tokens, {.min = 1});
  knobs.count({.name = "batch", .what = "tokens a step", .level = kBasic, .record = kRecorded},
              request.batch, {.min = 1, .max = 1 << 24});
  knobs.count({.name = "pool",
               .what = "tokens whose activations are shuffled together",
               .record = kRecorded,
               .otherwise = "a million, or as many as memory has room for"},
              request.pool, {.min = 1, .max = std::int64_t{1} << 31});
  knobs.count({.name = "context",
               .what = "tokens a window",
               .level = kBasic,
               .record = kRecorded,
               .otherwise = "the model's context"},
              request.length, {.min = 2, .max = 1 << 20});
  knobs.number({.name = "lr",
                .what = "highest learning rate; a fifth of it through the model",
                .level = kBasic,
                .record = kRecorded,
                .otherwise = "0.001 for up to 2,048 features, less for more"},
               request.learning_rate, {.min = 0.0, .max = 1e30, .above_min = true});
  knobs.number({.name = "final-lr",
                .what = "share of the learning rate that is left at the end",
                .record = kRecorded},
               request.final_share, kShare);
  knobs.number({.name = "clip", .what = "largest norm of the gradient; 0 any", .record = kRecorded},
               request.clip, {.min = 0.0, .max = 1e30});
  knobs.number({.name = "through-model",
                .what = "share of the steps, the last ones, that also learn, through the model "
                        "with all MLPs replaced, to predict what it predicts; 0 none",
                .record = kRecorded},
               request.through_model, kShare);
  knobs.number({.name = "kl-weight",
                .what = "weight of the divergence of those predictions, beside the reconstruction",
                .record = kRecorded},
               request.objective.divergence, kWeight);
  knobs.count({.name = "dead-after",
               .what = "tokens after which a feature that was never active gets a second try",
               .record = kRecorded},
              request.objective.dead_after, {.min = 1});
  knobs.number({.name = "auxiliary",
                .what = "weight of what such features explain of the rest; 0 no second try",
                .record = kRecorded},
               request.objective.auxiliary, kWeight);
}

}  // namespace

Knobs knobs_of(FeatureTrainingRequest& request) {
  Knobs knobs;
  add_transcoder_knobs(knobs, request);
  add_optimiser_knobs(knobs, request);
  knobs.section("Run");
  knobs.count(
      {.name = "log-every", .what = "steps between lines of RUN/log.jsonl", .record = kFree},
      request.log_every, {.min = 1});
  knobs.count({.name = "checkpoint-every",
               .what = "steps between checkpoints",
               .level = kBasic,
               .record = kFree},
              request.checkpoint_every, {.min = 1});
  knobs.count({.name = "keep", .what = "checkpoints to keep", .record = kFree}, request.keep,
              {.min = 1, .max = 1 << 20});
  knobs.count({.name = "held-out-tokens",
               .what = "held-out tokens that the result is measured on; 0 none",
               .record = kFree},
              request.held_out_tokens, {.min = 0});
  return knobs;
}

}  // namespace filigree::study
