// filigree sparsify: sparse post-training of a dense model, and its dense control.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <memory>

#include "apps/cli/commands.h"
#include "apps/cli/program/choices.h"
#include "apps/cli/program/program.h"
#include "apps/cli/training/training_options.h"
#include "apps/cli/training/training_report.h"
#include "filigree/training_study.h"

namespace filigree::cli {
namespace {

using study::SparsifyRequest;

constexpr double kLarge = 1e12;

struct SparsifyOptions {
  SparsifyRequest request;
  bool dry_run = false;
};

void add_gate_options(CLI::App& app, SparsifyRequest& request) {
  constexpr const char* kGroup = "Gate and objective";
  SparsificationOptions& sparsification = request.sparsification;
  app.add_option("--teacher", request.teacher,
                 "dense model whose loss is kept and whose predictions are learned (default MODEL)")
      ->type_name("MODEL")
      ->group(kGroup);
  add_choice(app, "--objective", sparsification.objective,
             "what is minimised, the logarithm of the share of open edges or the share")
      ->group(kGroup);
  app.add_option_function<double>(
         "--gate-bias", [&](double value) { request.gate_bias = value; },
         "gate bias that a dense model starts from; larger: more open")
      ->check(number(-1000.0, 1000.0))
      ->type_name("X")
      ->default_str(fmt::format("{}", SparsifyRequest::kGateBias))
      ->group(kGroup);
  app.add_flag("--fixed-bias", request.fixed_bias,
               "the bias stays as it starts (otherwise every head learns its own)")
      ->group(kGroup);
  add_optional_number(app, kGroup, "--most-open", request.most_open,
                      "lower the bias of a head of whose edges more than this share is open; 1: "
                      "never",
                      number(0.01, 1.0), fmt::format("{}", sparsification.most_open));
  add_number(app, kGroup, "--head-power", sparsification.head_power,
             "power of each head's share of open edges in a window; below 1 edges of heads that "
             "have few cost more, so that fewer heads are used",
             number(0.1, 1.0));
  add_number(app, kGroup, "--loss-budget", request.loss_budget,
             "nats that the held-out loss may rise (see --against)", number(0.0, kLarge));
  add_choice(app, "--against", request.against,
             "model that the loss budget is counted from; control: the dense model is trained on "
             "first, as long and on the same data, into RUN/control")
      ->group(kGroup);
  add_optional_number(app, kGroup, "--margin", request.margin,
                      "nats that the loss of training, where gates are sampled, may rise",
                      number(-kLarge, kLarge), "the loss budget");
  app.add_option_function<double>(
         "--target", [&](double value) { sparsification.target = value; },
         "fixed cross entropy to keep, instead of the dense model's on the same batch")
      ->check(number_above(0.0, kLarge))
      ->type_name("X")
      ->group(kGroup);
  add_number(app, kGroup, "--distill", sparsification.distillation,
             "weight of the divergence from the dense model's predictions; the rest is the cross "
             "entropy",
             number(0.0, 1.0));
}

void add_multiplier_options(CLI::App& app, SparsifyRequest& request) {
  SparsificationOptions& options = request.sparsification;
  constexpr const char* kGroup = "Multiplier";
  MultiplierOptions& multiplier = options.multiplier;
  add_number(app, kGroup, "--lambda0", multiplier.initial, "weight of the task to start from",
             number_above(0.0, kLarge));
  add_number(app, kGroup, "--lambda-min", multiplier.least, "least weight",
             number_above(0.0, kLarge));
  add_number(app, kGroup, "--lambda-max", multiplier.most,
             "largest weight before the recovery: the less, the more edges close",
             number_above(0.0, kLarge));
  add_number(app, kGroup, "--recovery", request.recovery,
             "share of the steps, at the end, in which the loss is won back; 0: none",
             number(0.0, 1.0));
  add_number(app, kGroup, "--recovery-lambda", multiplier.recovery_most, "largest weight then",
             number_above(0.0, kLarge));
  add_number(app, kGroup, "--dual-rate", multiplier.rate,
             "how fast log lambda follows the gap between the loss and what is allowed",
             number_above(0.0, kLarge));
  add_optional_number(app, kGroup, "--dual-gain", request.dual_gain,
                      "factor of the gap before it is limited", number_above(0.0, kLarge),
                      "a tenth over the loss budget");
  add_number(app, kGroup, "--dual-limit", multiplier.limit, "limit of the scaled gap",
             number_above(0.0, kLarge));
  add_number(app, kGroup, "--dual-fall", multiplier.fall, "share of that limit downwards",
             number_above(0.0, 1.0));
  add_number(app, kGroup, "--dual-average", multiplier.averaging,
             "weight of the past in the average of the gap", number(0.0, 0.9999));
  app.add_option("--dual-every", request.dual_every, "steps between updates of lambda")
      ->check(whole_number(1, 1 << 30))
      ->type_name("N")
      ->default_str("a thousandth of all, 10 at most")
      ->group(kGroup);
  add_count(app, kGroup, "--patience", options.patience,
            "stop when lambda rested at its largest so many steps in vain", 1, 1 << 30);
  add_number(app, kGroup, "--tolerance", options.tolerance,
             "gap in nats that does not count as in vain", number(0.0, kLarge));
}

void add_lora_options(CLI::App& app, SparsifyRequest& request) {
  constexpr const char* kGroup = "Low-rank adapters";
  add_count(app, kGroup, "--lora-rank", request.lora_rank,
            "train only adapters of this rank on q, k, v and o, merged at the end; 0: all weights",
            0, 1 << 20);
  add_number(app, kGroup, "--lora-alpha", request.lora_alpha,
             "scale of the adapters: alpha / rank times their product", number_above(0.0, kLarge));
}

void run_sparsify(const SparsifyOptions& options, Session& session) {
  if (options.dry_run) {
    print_dry_run(study::plan_sparsify(options.request, session.context()), session);
    return;
  }
  catch_termination();
  print_result(study::run(options.request, {}, session.context()), session);
}

}  // namespace

void add_sparsify(Program& program) {
  const auto options = std::make_shared<SparsifyOptions>();
  CLI::App& app =
      program.add({"sparsify",
                   "Close the attention edges that a model's loss does not need.",
                   {"filigree sparsify dense shards --out sparse --loss-budget 0.01 --steps 6000",
                    "filigree sparsify dense shards --out sparse --steps 3000 --control",
                    "filigree sparsify dense shards --out sparse --steps 3000 --control --resume",
                    "filigree sparsify dense shards --out sparse --steps 3000 --against control",
                    "filigree sparsify dense shards --out sparse --objective linear --gate-bias 5",
                    "filigree sparsify dense shards --out sparse --lora-rank 16",
                    "filigree sparsify sparse shards --teacher dense --out next --lambda0 40",
                    "filigree sparsify dense shards --out sparse --target 3.93 --distill 0"},
                   Computes::kOnRanks},
                  [options](Session& session) { run_sparsify(*options, session); });
  SparsifyRequest& request = options->request;
  app.add_option(
         "MODEL", request.model,
         "folder or name of the dense model, or with --teacher of a sparse one to go on with")
      ->required();
  app.add_option("SHARDS", request.shards, "token shards, made with the model's tokenizer")
      ->required();
  add_gate_options(app, request);
  add_multiplier_options(app, request);
  add_lora_options(app, request);
  app.add_option("--context", request.length, "tokens a window (default the model's context)")
      ->check(whole_number(1, 1 << 20))
      ->type_name("N")
      ->group("Training");
  add_training_options(app, request.training, options->dry_run);
  app.get_option("--batch")->default_str("the multiple of 16 that holds 8,192 tokens");
  app.get_option("--lr")->default_str("0.2 / width, 0.002 at most; of adapters 0.0005");
  app.add_option("--tokens", request.tokens, "tokens to train on, instead of --steps")
      ->check(whole_number(1, std::int64_t{1} << 50))
      ->type_name("N")
      ->group("Training")
      ->excludes("--steps");
  app.add_flag("--keep-gates", request.keep_gates,
               "leave the gates as they were trained, and do not set them to the loss budget")
      ->group("Gate and objective");
  app.add_flag("--certain-gates", request.sparsification.certain_gates,
               "train with gates as they are used afterwards, not sampled: for a last run that "
               "shall hardly change what is open")
      ->group("Gate and objective");
  app.add_flag("--vectors-only", request.vectors_only,
               "train biases and norms alone; matrices stay as they are, those of 8 bits too")
      ->group("Training");
  app.add_flag("--control", request.control,
               "also fine-tune the dense model as long on the same data, into RUN/control")
      ->group("Run");
}

}  // namespace filigree::cli
