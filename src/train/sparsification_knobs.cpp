#include "filigree/sparsification.h"

namespace filigree {
namespace {

constexpr NumberRange kPositive = {.min = 0.0, .above_min = true};
constexpr NumberRange kShare = {.min = 0.0, .max = 1.0};

}  // namespace

Knobs knobs_of(MultiplierOptions& options) {
  Knobs knobs;
  knobs.section("Multiplier");
  knobs.number({.name = "lambda0", .what = "weight of the task at the start"}, options.initial,
               kPositive);
  knobs.number({.name = "lambda-min", .what = "smallest weight of the task"}, options.min,
               kPositive);
  knobs.number({.name = "lambda-max",
                .what = "largest weight before the recovery; a smaller one closes more edges"},
               options.max, kPositive);
  knobs.count({.name = "recovery-from",
               .what = "step from which the recovery's largest weight holds; -1 never",
               .unit = "steps"},
              options.recovery_from, {.min = -1});
  knobs.number({.name = "recovery-lambda", .what = "largest weight in the recovery"},
               options.recovery_max, kPositive);
  knobs.number({.name = "dual-rate",
                .what = "how fast log lambda follows the gap between the loss and its limit"},
               options.rate, kPositive);
  knobs.number({.name = "dual-gain", .what = "factor of the gap before it is clipped"},
               options.gain, kPositive);
  knobs.number({.name = "dual-limit", .what = "largest scaled gap that counts"}, options.limit,
               kPositive);
  knobs.number({.name = "dual-average", .what = "weight of the past in the average gap"},
               options.averaging, {.min = 0.0, .max = 0.9999});
  knobs.count({.name = "dual-every", .what = "steps between updates of lambda", .unit = "steps"},
              options.every, {.min = 1, .max = 1 << 30});
  knobs.number({.name = "dual-fall", .what = "share of dual-limit by which lambda may fall"},
               options.fall, {.min = 0.0, .max = 1.0, .above_min = true});
  knobs.number({.name = "rescue-gap",
                .what = "gap above which the recovery's largest weight holds at any time",
                .unit = "nats",
                .key = "alarm"},
               options.rescue_gap, kPositive);
  knobs.number({.name = "rescue-speed",
                .what = "factor by which lambda rises faster above rescue-gap",
                .key = "hurry"},
               options.rescue_speed, kPositive);
  return knobs;
}

Knobs knobs_of(SparsificationOptions& options) {
  Knobs knobs;
  knobs.section("Objective");
  knobs.choice({.name = "objective",
                .what = "minimise the logarithm of the share of open edges, or the share"},
               options.objective);
  knobs.number({.name = "head-power",
                .what = "power of each head's share of open edges; below 1 edges of heads that "
                        "have few cost more, so that fewer heads are used"},
               options.head_power, {.min = 0.1, .max = 1.0});
  knobs.number({.name = "max-open",
                .what = "lower the gate bias of a head that keeps more than this share of its "
                        "edges open; 1 never",
                .key = "most_open"},
               options.max_open, {.min = 0.01, .max = 1.0});
  knobs.number({.name = "margin",
                .what = "how far the training loss, where gates are sampled, may rise",
                .unit = "nats"},
               options.margin, {.min = -1e12});
  knobs.number({.name = "target",
                .what = "keep this cross entropy instead of the teacher's on the same batch",
                .unit = "nats",
                .otherwise = "none"},
               options.target, kPositive);
  knobs.number({.name = "distill",
                .what = "weight of the divergence from the teacher's predictions in the task's "
                        "loss; the rest is the cross entropy",
                .level = KnobLevel::kBasic},
               options.distillation, kShare);
  knobs.flag({.name = "certain-gates",
              .what = "train with gates as they are used afterwards instead of sampled ones, for a "
                      "last run that hardly changes what is open",
              .record = KnobRecord::kUnlessDefault},
             options.certain_gates);
  knobs.add(knobs_of(options.multiplier));
  knobs.section("Giving up");
  knobs.count({.name = "patience",
               .what = "stop after lambda has rested at its largest this long without success",
               .unit = "steps"},
              options.patience, {.min = 1, .max = 1 << 30});
  knobs.number({.name = "tolerance", .what = "largest gap that counts as success", .unit = "nats"},
               options.tolerance, {.min = 0.0});
  knobs.number({.name = "min-edges",
                .what = "stop when a smaller share of the edges is expected open at a gap above "
                        "the tolerance",
                .key = "least_edges"},
               options.min_edges, kShare);
  return knobs;
}

}  // namespace filigree
