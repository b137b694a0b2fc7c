// Runs on the GPU, and runs that change devices between checkpoints.
#include <fmt/format.h>

#include "filigree/runtime.h"
#include "filigree/sparsification.h"
#include "filigree/train.h"
#include "support/check_cuda.h"
#include "support/temporary_folder.h"
#include "train/train_test_support.h"

namespace filigree {
namespace {

constexpr Placement kCpu{}, kGpu{DeviceKind::kCuda, DType::kF32},
    kGpuBf16{DeviceKind::kCuda, DType::kBf16};

struct SmallRun : SmallTraining {
  std::vector<double> losses;

  SmallRun(bool gated, std::int64_t steps, const Placement& placement)
      : SmallTraining(gated, steps, placement) {
    options.checkpoint_every = 10;
  }

  void train(const std::filesystem::path& path, std::int64_t stop_at = -1) {
    RunFolder folder(path);
    TrainerCallbacks callbacks;
    callbacks.progress = [&](std::int64_t, const Metrics& metrics) {
      losses.push_back(metric(metrics, "loss"));
    };
    callbacks.stop_requested = [&, stop_at] {
      return static_cast<std::int64_t>(losses.size()) == stop_at;
    };
    filigree::train(*trained, *objective, source, *optimizer, folder, options, callbacks);
  }

  std::vector<float> weights() const {
    std::vector<float> all;
    const auto add = [&](const Variable& variable) {
      const Tensor value = variable.value().on_host();
      all.insert(all.end(), value.values().begin(), value.values().end());
    };
    for (const NamedParameter& parameter : model->parameters()) add(parameter.variable);
    for (const Variable& bias : model->gate_biases()) add(bias);
    return all;
  }
};

TEST(CudaTrainer, FollowsTheCpu) {
  FILIGREE_NEEDS_GPU();
  for (const bool gated : {false, true}) {
    const TemporaryFolder folder;
    SmallRun here(gated, 20, kCpu), there(gated, 20, kGpu), bf16(gated, 20, kGpuBf16);
    here.train(folder.path() / "cpu");
    there.train(folder.path() / "gpu");
    bf16.train(folder.path() / "bf16");
    ASSERT_EQ(here.losses.size(), 20u);
    for (std::size_t i = 0; i < 20; ++i) {
      // Rounding may turn a gate whose score is at its threshold, and the runs part a little.
      EXPECT_NEAR(there.losses[i], here.losses[i], gated ? 2e-2 : 1e-3)
          << "step " << i << " gated " << gated;
      EXPECT_NEAR(bf16.losses[i], here.losses[i], gated ? 1.5e-1 : 5e-2)
          << "bf16 step " << i << " gated " << gated;
    }
  }
}

TEST(CudaTrainer, TheSameRunHasTheSameBits) {
  FILIGREE_NEEDS_GPU();
  for (const Placement& placement : {kGpu, kGpuBf16}) {
    const TemporaryFolder folder;
    SmallRun first(true, 15, placement), second(true, 15, placement), third(true, 15, placement);
    first.train(folder.path() / "first");
    second.train(folder.path() / "second");
    EXPECT_EQ(first.weights(), second.weights());
    // Interrupted and resumed, in a new process as it were.
    third.train(folder.path() / "third", 7);
    SmallRun fourth(true, 15, placement);
    fourth.options.resume = true;
    fourth.train(folder.path() / "third");
    EXPECT_EQ(first.weights(), fourth.weights());
  }
}

TEST(CudaTrainer, ARunMayChangeDevices) {
  FILIGREE_NEEDS_GPU();
  const TemporaryFolder folder;
  SmallRun whole(true, 16, kCpu);
  whole.train(folder.path() / "whole");
  SmallRun begin(true, 16, kGpu);
  begin.train(folder.path() / "moved", 8);
  SmallRun end(true, 16, kCpu);
  end.options.resume = true;
  end.train(folder.path() / "moved");
  ASSERT_EQ(end.losses.size(), 8u);
  for (std::size_t i = 0; i < 8; ++i) EXPECT_NEAR(end.losses[i], whole.losses[8 + i], 2e-2) << i;
  SmallRun back(true, 16, kCpu);
  back.train(folder.path() / "back", 8);
  SmallRun on_gpu(true, 16, kGpu);
  on_gpu.options.resume = true;
  on_gpu.train(folder.path() / "back");
  for (std::size_t i = 0; i < 8; ++i) EXPECT_NEAR(on_gpu.losses[i], whole.losses[8 + i], 2e-2) << i;
}

TEST(CudaTrainer, AStepTakesNoNewMemory) {
  FILIGREE_NEEDS_GPU();
  const TemporaryFolder folder;
  SmallRun run(true, 12, kGpu);
  std::vector<std::uint64_t> allocations;
  RunFolder runs(folder.path());
  TrainerCallbacks callbacks;
  callbacks.progress = [&](std::int64_t, const Metrics&) {
    allocations.push_back(pool_statistics(DeviceKind::kCuda).system_allocations);
  };
  filigree::train(*run.trained, *run.objective, run.source, *run.optimizer, runs, run.options,
                  callbacks);
  ASSERT_EQ(allocations.size(), 12u);
  EXPECT_EQ(allocations[3], allocations.back());
}

}  // namespace
}  // namespace filigree
