// Memory of attention grows with T, not with T squared, unless maps are asked for.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "filigree/autograd.h"
#include "filigree/ops.h"
#include "filigree/runtime.h"
#include "support/check_op.h"

namespace filigree {
namespace {

// Forward and backward pass over T tokens of two heads.
void run(std::int64_t T, bool gated, Tensor* pattern) {
  std::vector<Variable> in;
  for (std::uint64_t seed : {1u, 2u, 3u}) {
    in.emplace_back(random_tensor({1, T, 2, 16}, seed, -1, 1));
    in.back().set_requires_grad(true);
  }
  Tape tape;
  if (gated) {
    GatedAttentionOptions options;
    options.gate = {Tensor::full({1}, 0.5f), true, {}, Tensor()};
    options.pattern = pattern;
    const GatedAttention result = gated_attention(in[0], in[1], in[2], options);
    tape.backward(add(sum_all(result.z), sum_all(result.expected)));
  } else {
    tape.backward(sum_all(attention(in[0], in[1], in[2], {.pattern = pattern})));
  }
}

double peak_bytes(std::int64_t T, bool gated, bool with_maps) {
  const std::uint64_t before = pool_statistics().bytes_in_use;
  reset_pool_peak();
  Tensor pattern;
  run(T, gated, with_maps ? &pattern : nullptr);
  return static_cast<double>(pool_statistics().peak_bytes_in_use - before);
}

TEST(AttentionMemory, TensorsGrowWithTheLengthAndOnlyMapsWithItsSquare) {
  for (const bool gated : {false, true}) {
    EXPECT_NEAR(peak_bytes(4096, gated, false) / peak_bytes(1024, gated, false), 4.0, 0.2);
    EXPECT_GT(peak_bytes(4096, gated, true) / peak_bytes(1024, gated, true), 12.0);
  }
}

// What the kernels take beside tensors counts too: one map of this length would be 1 GiB.
TEST(AttentionMemory, ALongRunStaysFarBelowOneMap) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizer's own memory would be measured";
#endif
  const auto resident = [] {
    rusage usage = {};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;  // KiB, the most so far
  };
  const long before = resident();
  for (const bool gated : {false, true}) run(16384, gated, nullptr);
  EXPECT_LT(resident() - before, 300 * 1024);
}

}  // namespace
}  // namespace filigree
