// Analyses of a model on the GPU give what they give on the CPU.
#include "analyze/circuit/importance.h"
#include "analyze/circuit/patched_runs.h"
#include "analyze/circuit/test_support.h"
#include "support/check_cuda.h"

namespace filigree {
namespace {

TEST(CudaPatching, PatchedRunsAreThoseOfTheCpu) {
  FILIGREE_NEEDS_GPU();
  for (const bool gated : {false, true}) {
    const auto here = small_model(gated), there = small_model(gated);
    there->place({DeviceKind::kCuda, DType::kF32});
    const std::vector<TaskPrompt> prompts = small_prompts({9, 6, 9, 12});
    std::vector<PatchSet> sets = {{}, {{Site::kResidual, 1}}, {{Site::kEmbedding}}};
    for (const PatchTarget& head : all_heads(here->config())) sets.push_back({head});
    const PatchedRuns wanted = run_patched(*here, prompts, sets);
    const PatchedRuns found = run_patched(*there, prompts, sets);
    for (std::size_t i = 0; i < prompts.size(); ++i) {
      EXPECT_NEAR(found.clean[i], wanted.clean[i], 1e-3) << i;
      EXPECT_NEAR(found.corrupt[i], wanted.corrupt[i], 1e-3) << i;
      for (std::size_t s = 0; s < sets.size(); ++s)
        EXPECT_NEAR(found.patched[s][i], wanted.patched[s][i], 1e-3) << "set " << s << ", " << i;
    }
  }
}

TEST(CudaPatching, AttributionsAreThoseOfTheCpu) {
  FILIGREE_NEEDS_GPU();
  const auto here = small_model(true), there = small_model(true);
  there->place({DeviceKind::kCuda, DType::kF32});
  const std::vector<TaskPrompt> prompts = small_prompts({9, 6});
  const std::vector<PatchTarget> heads = all_heads(here->config());
  for (const int steps : {0, 2}) {
    const Importance wanted = attributed_importance(*here, prompts, heads, steps);
    const Importance found = attributed_importance(*there, prompts, heads, steps);
    for (std::size_t h = 0; h < heads.size(); ++h)
      for (std::size_t i = 0; i < prompts.size(); ++i)
        EXPECT_NEAR(found.drops[h][i], wanted.drops[h][i], 2e-3) << "head " << h << ", " << i;
  }
}

}  // namespace
}  // namespace filigree
