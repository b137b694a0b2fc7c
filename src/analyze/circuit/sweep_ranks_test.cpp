// Sweeps that several ranks share end in the bits of one process.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>

#include "analyze/circuit/circuit_sweep.h"
#include "analyze/circuit/circuit_test_support.h"
#include "analyze/circuit/edge_scores.h"
#include "filigree/circuit.h"
#include "support/temporary_folder.h"
#include "support/thread_ranks.h"

namespace filigree {
namespace {

class RankedSweep : public testing::Test {
 protected:
  PatchOptions options(Communicator* ranks) const {
    PatchOptions patch;
    patch.tokens_at_once = 40;  // many passes
    patch.ranks = ranks;
    return patch;
  }

  std::unique_ptr<Model> model_ = small_model(true);
  std::vector<TaskPrompt> prompts_ = small_prompts({7, 5, 7, 5});
};

TEST_F(RankedSweep, EveryRankHasTheResultOfOneProcess) {
  const std::vector<PatchTarget> heads = all_heads(model_->config());
  const ComponentGraph graph(model_->config());
  const Importance importance = exact_importance(*model_, prompts_, heads, options(nullptr));
  const EdgeScores edges = exact_edge_scores(*model_, graph, prompts_, options(nullptr));
  const CellScores cells = exact_cell_scores(*model_, prompts_, options(nullptr));
  for (const int size : {2, 3})
    run_ranks(size, [&](Communicator& ranks) {
      EXPECT_EQ(exact_importance(*model_, prompts_, heads, options(&ranks)).drops,
                importance.drops);
      const EdgeScores own = exact_edge_scores(*model_, graph, prompts_, options(&ranks));
      ASSERT_EQ(own.drops.size(), edges.drops.size());
      for (std::size_t i = 0; i < own.drops.size(); ++i)
        EXPECT_EQ(own.drops[i].mean, edges.drops[i].mean) << i;
      const CellScores found = exact_cell_scores(*model_, prompts_, options(&ranks));
      for (std::size_t p = 0; p < prompts_.size(); ++p)
        EXPECT_EQ(found.prompts[p].drops, cells.prompts[p].drops) << p;
    });
}

// Counts the forward passes of its rank.
class Counted : public SweepBatch {
 public:
  Counted(std::size_t prompts, std::atomic<int>& passes) : prompts_(prompts), passes_(passes) {}
  std::vector<double> clean() const override { return std::vector<double>(prompts_, 1.0); }
  std::vector<double> corrupt() const override { return std::vector<double>(prompts_, -1.0); }
  std::int64_t tokens() const override { return 1; }
  std::int64_t bytes() const override { return 1; }
  std::vector<double> changed(const std::vector<std::size_t>& runs) override {
    ++passes_;
    std::vector<double> values;
    for (const std::size_t run : runs)
      for (std::size_t p = 0; p < prompts_; ++p)
        values.push_back(static_cast<double>(run) + 0.25 * static_cast<double>(p));
    return values;
  }

 private:
  std::size_t prompts_;
  std::atomic<int>& passes_;
};

TEST_F(RankedSweep, TheWorkIsSharedAndOneRankKeepsTheState) {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder.path() / "sweep.state";
  const std::vector<std::int64_t> starts(11, 0);
  const auto run = [&](Communicator& ranks, std::atomic<int>& passes, int stop_after) {
    SweepState state(file, ranks.first());
    PatchOptions patch = options(&ranks);
    patch.state = &state.section("test", 1);
    patch.progress = [&](std::int64_t done, std::int64_t) {
      if (done == stop_after) fail("stopped");
    };
    try {
      const PatchedRuns result = sweep(
          prompts_, starts, {100, 1}, patch,
          [&](const PromptRefs& refs) { return std::make_unique<Counted>(refs.size(), passes); });
      for (std::size_t i = 0; i < starts.size(); ++i)
        EXPECT_EQ(std::floor(result.patched[i][0]), static_cast<double>(i));
      state.save();
    } catch (const Error&) {
      state.save();
      if (stop_after < 0) throw;
    }
  };
  // Two batches (prompts of 7 and of 5 tokens) of 11 passes each.
  std::atomic<int> before[3] = {}, after[2] = {}, none = 0;
  run_ranks(3, [&](Communicator& ranks) { run(ranks, before[ranks.rank()], 6); });
  for (const std::atomic<int>& passes : before) EXPECT_EQ(passes, 2);
  ASSERT_TRUE(std::filesystem::exists(file));
  // Another number of ranks goes on.
  run_ranks(2, [&](Communicator& ranks) { run(ranks, after[ranks.rank()], -1); });
  EXPECT_EQ(after[0] + after[1], 22 - 6);
  EXPECT_NEAR(after[0], after[1], 2);
  run(*make_single_process(), none, -1);
  EXPECT_EQ(none, 0);  // all of it is in the file
}

}  // namespace
}  // namespace filigree
