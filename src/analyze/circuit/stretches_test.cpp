#include <gtest/gtest.h>

#include "analyze/circuit/circuit_test_support.h"
#include "analyze/circuit/run_segments.h"
#include "filigree/circuit.h"

namespace filigree {
namespace {

PatchTarget head(std::int64_t layer, std::int64_t number) { return {Site::kZ, layer, number}; }

TEST(Stretches, RunsPartWhereTheirSetsDo) {
  const PatchSet a = {head(1, 0), head(3, 2)}, b = {head(1, 0), head(3, 1)}, c = {head(1, 0)};
  const PatchSet d = {head(1, 1), head(3, 2)};
  const std::vector<RunSegment> segments = run_segments_of({&a, &b, &c, &d, &a}, 1, 5);
  ASSERT_EQ(segments.size(), 2u);
  EXPECT_EQ(segments[0].first, 1);
  EXPECT_EQ(segments[0].end, 3);
  using Branches = std::vector<std::vector<std::size_t>>;
  EXPECT_EQ(segments[0].branches, (Branches{{0, 1, 2, 4}, {3}}));
  EXPECT_EQ(segments[0].parents, (std::vector<std::int64_t>{0, 0}));
  using Changes = std::vector<std::pair<std::int64_t, PatchTarget>>;
  EXPECT_EQ(segments[0].changes.at("blocks.1.attn.hook_z"),
            (Changes{{0, head(1, 0)}, {1, head(1, 1)}}));
  EXPECT_EQ(segments[1].first, 3);
  EXPECT_EQ(segments[1].end, 5);
  EXPECT_EQ(segments[1].branches, (Branches{{0, 4}, {1}, {2}, {3}}));
  EXPECT_EQ(segments[1].parents, (std::vector<std::int64_t>{0, 0, 0, 1}));
  EXPECT_EQ(segments[1].changes.at("blocks.3.attn.hook_z"),
            (Changes{{0, head(3, 2)}, {1, head(3, 1)}, {3, head(3, 2)}}));
  EXPECT_EQ(segments[1].changes.size(), 1u);
}

TEST(Stretches, EmbeddingsAreOfTheFirst) {
  const PatchSet a = {{Site::kEmbedding, 0, -1, 4}}, b = {head(0, 1)};
  const std::vector<RunSegment> segments = run_segments_of({&a, &b}, 0, 2);
  ASSERT_EQ(segments.size(), 1u);
  EXPECT_EQ(segments[0].branches.size(), 2u);
  EXPECT_EQ(segments[0].changes.count("hook_embed"), 1u);
}

// Sets that differ by one part each, as those of a curve do: together and each alone.
TEST(Stretches, RunsTogetherAreTheSameAsAlone) {
  for (const SmallKind kind :
       {SmallKind::kDense, SmallKind::kGated, SmallKind::kLlama, SmallKind::kParallel}) {
    SCOPED_TRACE(text_of(kind));
    const auto model = small_model(kind);
    const std::vector<TaskPrompt> prompts = small_prompts({9, 9, 7, 9});
    std::vector<PatchTarget> order = all_heads(model->config());
    for (const PatchTarget& mlp : all_mlps(model->config())) order.push_back(mlp);
    for (std::size_t i = 0; i < order.size(); ++i)  // a shuffle
      std::swap(order[i], order[(i * 7 + 3) % order.size()]);
    std::vector<PatchSet> sets;
    for (std::size_t kept = 0; kept <= order.size(); ++kept)
      sets.emplace_back(order.begin() + static_cast<std::ptrdiff_t>(kept), order.end());
    sets.push_back({{Site::kEmbedding}});
    sets.push_back({{Site::kEmbedding}, order[0]});
    const PatchedRuns together = run_patched(*model, prompts, sets);
    for (std::size_t s = 0; s < sets.size(); ++s) {
      const PatchedRuns alone = run_patched(*model, prompts, {sets[s]});
      for (std::size_t i = 0; i < prompts.size(); ++i)
        EXPECT_NEAR(together.patched[s][i], alone.patched[0][i], 1e-4) << s << " of prompt " << i;
    }
  }
}

}  // namespace
}  // namespace filigree
