#include "analyze/circuit/pass_limits.h"

#include <gtest/gtest.h>

#include "filigree/error.h"

namespace filigree {
namespace {

constexpr std::int64_t kGigabyte = std::int64_t{1} << 30;

ModelConfig small_gpt2() {
  ModelConfig config;
  config.layers = 12, config.heads = config.key_heads = 12;
  config.width = 768, config.head_width = 64, config.mlp_width = 3072;
  config.vocabulary = 50257, config.context = 1024;
  return config;
}

TEST(PassLimits, AGpuTakesManyMoreTokensThanACpu) {
  const SweepLimits cpu = patch_limits({}, 0, small_gpt2()),
                    gpu = patch_limits({}, 80 * kGigabyte, small_gpt2());
  EXPECT_GE(gpu.pass_tokens, 16 * cpu.pass_tokens);
  EXPECT_EQ(cpu.pass_bytes, INT64_MAX);
  EXPECT_EQ(cpu.pass_rows, INT64_MAX);
  EXPECT_LE(gpu.pass_rows * 12, 65535);
  EXPECT_LT(gpu.pass_bytes, 80 * kGigabyte / 2);
  const SweepLimits edges = edge_limits({}, 80 * kGigabyte, small_gpt2());
  EXPECT_GE(edges.pass_tokens, 16 * edge_limits({}, 0, small_gpt2()).pass_tokens);
  EXPECT_GT(gradient_tokens({}, 80 * kGigabyte, small_gpt2(), true),
            gradient_tokens({}, 0, small_gpt2(), true));
}

TEST(PassLimits, LittleMemoryMeansSmallBatches) {
  const SweepLimits small = edge_limits({}, kGigabyte, small_gpt2());
  // Three values of 157 nodes of 768 numbers each token, in a quarter of the memory.
  EXPECT_LE(small.batch_tokens * 3 * 157 * 768 * 4, kGigabyte / 4);
  EXPECT_GE(small.batch_tokens, 1);
  EXPECT_GE(edge_limits({}, 1, small_gpt2()).batch_tokens, 1);
  EXPECT_LT(gradient_tokens({}, kGigabyte, small_gpt2(), true),
            gradient_tokens({}, kGigabyte, small_gpt2(), false));
}

TEST(PassLimits, RunsShareAPassAsLongAsRowsTokensAndMemoryLast) {
  const SweepLimits limits = {1, 1000, 60, 5000};
  EXPECT_EQ(runs_at_once(limits, 1, 100, 1), 10);
  EXPECT_EQ(runs_at_once(limits, 20, 100, 1), 3);
  EXPECT_EQ(runs_at_once(limits, 1, 100, 1000), 5);
  EXPECT_EQ(runs_at_once(limits, 1, 3000, 1), 1);
  EXPECT_EQ(runs_at_once(limits, 100, 1, 1), 1);
  EXPECT_EQ(runs_at_once(limits, 1, 1, 9000), 1);
}

TEST(PassLimits, ExpertsPatchedOneByOneTakeTheirRoom) {
  ModelConfig olmoe = small_gpt2();
  olmoe.layers = 16, olmoe.width = 2048, olmoe.mlp_width = 1024;
  olmoe.mlp = MlpKind::kExperts, olmoe.experts = 64, olmoe.experts_per_token = 8;
  const std::int64_t token = 16 * 64 * 2048 * 4;
  const SweepLimits whole = patch_limits({}, 0, olmoe), apart = patch_limits({}, 0, olmoe, true);
  EXPECT_EQ(whole.pass_bytes, INT64_MAX);
  EXPECT_LT(apart.batch_tokens, whole.batch_tokens);
  EXPECT_LE(apart.batch_tokens * token, kGigabyte);
  EXPECT_LE(apart.pass_bytes, kGigabyte);
  EXPECT_LE(patch_limits({}, 80 * kGigabyte, olmoe, true).batch_tokens * token, 20 * kGigabyte);
  for (const std::int64_t memory : {std::int64_t{0}, 80 * kGigabyte}) {
    EXPECT_GE(patch_limits({}, memory, olmoe, true).batch_tokens, 1);
    EXPECT_LT(gradient_tokens({}, memory, olmoe, false, true),
              gradient_tokens({}, memory, olmoe, false));
    EXPECT_GE(gradient_tokens({}, memory, olmoe, false, true), 1);
  }
}

TEST(PassLimits, TokensThatAreAskedForAreTaken) {
  PatchOptions options;
  options.tokens_at_once = 640;
  for (const std::int64_t memory : {std::int64_t{0}, 80 * kGigabyte}) {
    EXPECT_EQ(patch_limits(options, memory, small_gpt2()).pass_tokens, 640);
    EXPECT_EQ(edge_limits(options, memory, small_gpt2()).pass_tokens, 640);
  }
  options.tokens_at_once = 0;
  EXPECT_THROW(patch_limits(options, 0, small_gpt2()), Error);
  EXPECT_THROW(edge_limits(options, kGigabyte, small_gpt2()), Error);
  EXPECT_THROW(gradient_tokens(options, 0, small_gpt2(), false), Error);
}

}  // namespace
}  // namespace filigree
