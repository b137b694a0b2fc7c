#include "study/bench/lora_step.h"

#include "filigree/autograd.h"
#include "filigree/runtime.h"
#include "filigree/sparsification.h"
#include "filigree/train.h"
#include "model/copy_model.h"
#include "model/rounded_weights.h"

namespace filigree::study {

BenchTiming time_lora_step(const BenchCase& one, const ModelConfig& config, int runs,
                           const Context& context) {
  const Placement& placement = context.placement;
  const DeviceKind device = placement.device;
  const std::uint64_t before = pool_statistics(device).bytes_in_use;
  const std::unique_ptr<Model> student = make_model(config, context.seed);
  if (placement.precision == DType::kBf16)
    place_rounded(*student, placement);
  else
    student->place(placement);
  const std::unique_ptr<Model> teacher = copy_model(*student, CopiedWeights::kShared);
  wait_for(device);
  reset_pool_peak(device);  // what drawing the weights took is not a step's

  constexpr float kGateBias = 2.0f;
  student->set_gate(
      {std::vector<float>(static_cast<std::size_t>(config.layers * config.heads), kGateBias)});
  student->add_lora({.rank = kLoraRank, .alpha = 2.0 * static_cast<double>(kLoraRank)},
                    context.seed);
  student->set_recompute(true);
  ModelTrainable trained(*student, {.gate_biases = true});
  trained.set_requires_grad(true);
  constexpr double kBudget = 0.01;
  constexpr std::int64_t kSteps = 1000;
  Sparsification objective(*student, teacher.get(),
                           SparsificationOptions::of_budget(kBudget, kSteps));
  AdamW optimizer(decay_groups(trained, 0.1f), AdamWOptions{});
  Batch batch;
  batch.ids = random_ids(config, one.batch, one.length, context.seed);
  batch.targets = random_ids(config, one.batch, one.length, context.seed + 1);

  std::int64_t step = 0;
  BenchTiming timing;
  timing.seconds = median_seconds(
      [&] {
        trained.clear_grads();
        Metrics metrics;
        {
          Tape tape;
          tape.backward(objective.loss(batch, step++, context.communicator(), metrics));
        }
        optimizer.step(1e-4f, 1.0);
        objective.after_step(metrics);
      },
      device, runs, context);
  timing.memory = pool_statistics(device).peak_bytes_in_use - before;
  return timing;
}

}  // namespace filigree::study
