#include "study/bench/bench_cases.h"

#include <gtest/gtest.h>

#include "filigree/training_study.h"
#include "study/bench/lora_step.h"
#include "support/model_folder.h"

namespace filigree::study {
namespace {

// Counted one product at a time: every weight matrix of a linear layer meets every token, every
// query meets the keys up to its own position, twice.
double counted_operations(const Model& model, std::int64_t B, std::int64_t T) {
  const ModelConfig& config = model.config();
  double operations = 0.0;
  for (const NamedParameter& parameter : model.parameters()) {
    const bool looked_up =
        parameter.name.ends_with("wte.weight") || parameter.name.ends_with("wpe.weight");
    if (parameter.variable.shape().rank() == 2 && !looked_up)
      operations += 2.0 * static_cast<double>(B * T * parameter.variable.shape().elements());
  }
  operations += 2.0 * static_cast<double>(B * T * config.width * config.vocabulary);  // logits
  for (std::int64_t query = 0; query < T; ++query)
    for (std::int64_t key = 0; key <= query; ++key)
      operations += 2.0 * 2.0 * static_cast<double>(B * config.layers * config.width);
  return operations;
}

TEST(BenchCases, OperationsAreCountedExactly) {
  const auto model = make_model(tiny_config(100, 32), 1);
  for (const auto& [B, T] : {std::pair{1, 1}, std::pair{1, 32}, std::pair{3, 17}}) {
    EXPECT_EQ(forward_operations(model->config(), B, T), counted_operations(*model, B, T));
    EXPECT_EQ(train_operations(model->config(), B, T), 3.0 * counted_operations(*model, B, T));
  }
}

TEST(BenchCases, AGateOfTheMlpIsAThirdMatrix) {
  ModelConfig config = tiny_config(100, 32);
  const double plain = forward_operations(config, 2, 8);
  config.mlp = MlpKind::kGated;
  EXPECT_EQ(forward_operations(config, 2, 8) - plain,
            2.0 * 2.0 * 8.0 * static_cast<double>(config.layers * config.width * config.mlp_width));
}

TEST(BenchCases, TheStandardShapeIsGpt2) {
  const ModelConfig config = ModelShape{}.config();
  EXPECT_EQ(config.head_width, 64);
  EXPECT_EQ(config.mlp_width, 3072);
  // About 2 x 124M operations a token, and attention's part of it.
  EXPECT_NEAR(forward_operations(config, 1, 128) / (2.0 * 124e6 * 128), 1.0, 0.02);
}

TEST(BenchCases, TrainingHoldsGradientsAndLeavesNoneBehind) {
  const auto model = make_model(tiny_config(100, 256), 1);
  for (const BenchCase& one : bench_cases(DeviceKind::kCpu)) {
    if (one.kind != BenchKind::kTrain && one.kind != BenchKind::kTrainGated) continue;
    const BenchTiming timing = time_case(one, *model, "", 1, Context());
    EXPECT_GT(timing.seconds, 0.0);
    // At least the gradients and the logits were there at once.
    EXPECT_GT(timing.memory, 4u * static_cast<std::uint64_t>(model->parameter_count() +
                                                             one.batch * one.length * 100));
    for (const NamedParameter& parameter : model->parameters())
      EXPECT_FALSE(parameter.variable.grad().defined()) << parameter.name << " was left behind";
  }
}

TEST(BenchCases, TheWorkOfTheGpuRunsOnTheCpuToo) {
  const auto model = make_model(tiny_config(100, 64), 1);
  const std::vector<float> before(model->parameters()[0].variable.value().values().begin(),
                                  model->parameters()[0].variable.value().values().end());
  for (BenchCase one : bench_cases(DeviceKind::kCuda)) {
    one.batch = 2, one.length = 64;
    EXPECT_GT(operations_of(one, model->config()), 0.0) << one.name;
    if (one.kind == BenchKind::kStepLora) {
      const BenchTiming timing = time_lora_step(one, model->config(), 1, Context());
      EXPECT_GT(timing.seconds, 0.0);
      // The weights count, once: the teacher has the same.
      const auto weights = 4u * static_cast<std::uint64_t>(model->parameter_count());
      EXPECT_GT(timing.memory, weights);
      continue;
    }
    EXPECT_GT(time_case(one, *model, "", 1, Context()).seconds, 0.0) << one.name;
  }
  EXPECT_NE(before, std::vector<float>(model->parameters()[0].variable.value().values().begin(),
                                       model->parameters()[0].variable.value().values().end()))
      << "the optimiser has not stepped";
}

}  // namespace
}  // namespace filigree::study
