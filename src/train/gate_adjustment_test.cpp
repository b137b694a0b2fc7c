// Gates are set to the loss that is asked for.
#include <gtest/gtest.h>

#include "filigree/error.h"
#include "filigree/evaluation.h"
#include "filigree/random.h"

namespace filigree {
namespace {

class GateAdjustmentTest : public ::testing::Test {
 protected:
  GateAdjustmentTest() {
    make(1);
    std::uint64_t state = 7;
    for (int i = 0; i < 600; ++i) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      ids_.push_back(static_cast<TokenId>((state >> 33) % 20));
    }
  }

  void make(std::uint64_t seed) {
    const nlohmann::json json = {{"model_type", "gpt2"},
                                 {"n_layer", 2},
                                 {"n_head", 2},
                                 {"n_embd", 16},
                                 {"n_positions", 12},
                                 {"vocab_size", 20},
                                 {"gate", {{"bias", -0.02}}}};
    model_ = make_model(parse_model_config(json, "test"), seed);
  }

  EvaluationWindows windows() const { return text_windows(ids_, {}, model_->config()); }
  GateAdjustment adjust(double most_loss) {
    return adjust_gates(*model_, most_loss, [this] { return windows(); });
  }

  std::unique_ptr<Model> model_;
  std::vector<TokenId> ids_;
};

TEST_F(GateAdjustmentTest, ShiftsMakeCertainGatesAsOpenAsSampledOnes) {
  const std::vector<double> wanted = evaluate(*model_, windows()).expected_edges;
  const GateAdjustment found = adjust(1e9);
  ASSERT_EQ(found.head_shifts.size(), 4u);
  GateConfig gate{{-0.02f, -0.02f, -0.02f, -0.02f}};
  for (std::size_t h = 0; h < 4; ++h) gate.bias[h] += found.head_shifts[h];
  model_->set_gate(gate);
  const Evaluation now = evaluate(*model_, windows());
  // Between two measured shifts the number of open edges is taken as a line.
  for (std::size_t h = 0; h < 4; ++h)
    EXPECT_GE(now.open_edges[h], 0.95 * std::min(wanted[h], now.edges[0])) << h;
}

TEST_F(GateAdjustmentTest, ClosesWhatTheLossDoesNotNeedAndOpensWhatItDoes) {
  const Evaluation before = evaluate(*model_, windows());
  const GateAdjustment spare = adjust(before.loss() + 100.0);
  EXPECT_TRUE(spare.reached());
  EXPECT_LE(spare.chosen.scale, 0.0);
  EXPECT_LE(spare.chosen.edges, spare.tried.front().edges);

  model_->set_gate({{-0.02f}});
  const GateAdjustment out_of_reach = adjust(0.0);
  EXPECT_FALSE(out_of_reach.reached());
  for (const GateAdjustment::Measured& tried : out_of_reach.tried)
    EXPECT_GE(tried.loss, out_of_reach.chosen.loss);
  // The model is left as it was measured.
  const Evaluation after = evaluate(*model_, windows());
  EXPECT_EQ(after.loss(), out_of_reach.chosen.loss);
  EXPECT_EQ(after.connectivity().active_edges, out_of_reach.chosen.edges);
}

TEST_F(GateAdjustmentTest, TakesTheSmallestScaleThatIsGoodEnough) {
  // Models drawn at random are hurt or helped by more open edges; the first of those that are
  // helped.
  GateAdjustment all = adjust(0.0);
  std::uint64_t seed = 1;
  while (all.chosen.scale < 0.5 && seed < 40) {
    make(++seed);
    all = adjust(0.0);
  }
  ASSERT_GE(all.chosen.scale, 0.5);
  const double first = all.tried.front().loss, best = all.chosen.loss;
  make(seed);
  const GateAdjustment half = adjust(0.5 * (first + best));
  EXPECT_TRUE(half.reached());
  EXPECT_LE(half.chosen.scale, all.chosen.scale);
  for (const GateAdjustment::Measured& tried : half.tried)
    if (tried.scale < half.chosen.scale) {
      EXPECT_GT(tried.loss, half.most_loss);
    }
}

TEST_F(GateAdjustmentTest, RefusesAModelWithoutGates) {
  model_->set_gate({});
  EXPECT_THROW(adjust(1.0), Error);
}

}  // namespace
}  // namespace filigree
