// Gates are closed to the edges that are asked for, where that costs least.
#include <gtest/gtest.h>

#include "filigree/error.h"
#include "filigree/evaluation.h"

namespace filigree {
namespace {

class GateClosingTest : public ::testing::Test {
 protected:
  GateClosingTest() {
    const nlohmann::json json = {{"model_type", "gpt2"}, {"n_layer", 2},      {"n_head", 2},
                                 {"n_embd", 16},         {"n_positions", 12}, {"vocab_size", 20}};
    model_ = make_model(parse_model_config(json, "test"), 3);
    // Scores of random weights are tiny: wide queries and keys spread them over several steps.
    for (const NamedParameter& parameter : model_->parameters())
      if (parameter.name.find("c_attn.weight") != std::string::npos)
        for (std::int64_t i = 0; i < parameter.variable.value().elements(); ++i)
          parameter.variable.mutable_value().mutable_f32()[i] *= 20.0f;
    model_->set_gate({{0.5f}});
    std::uint64_t state = 7;
    for (int i = 0; i < 600; ++i) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      ids_.push_back(static_cast<TokenId>((state >> 33) % 20));
    }
  }

  EvaluationWindows windows() const { return text_windows(ids_, {}, model_->config()); }
  Evaluation measured() const { return evaluate(*model_, windows()); }
  GateClosing close(double most_edges) {
    return close_gates(*model_, most_edges, [this] { return windows(); });
  }

  std::unique_ptr<Model> model_;
  std::vector<TokenId> ids_;
};

TEST_F(GateClosingTest, ClosesNoMoreThanIsNeeded) {
  const Evaluation before = measured();
  const double most = 0.7 * before.connectivity().active_edges;
  const GateClosing closed = close(most);
  EXPECT_TRUE(closed.reached());
  EXPECT_EQ(closed.loss, before.loss());
  EXPECT_EQ(closed.edges, before.connectivity().active_edges);
  // The model is left as it was measured, by what is said to have been lowered.
  const Evaluation after = measured();
  EXPECT_EQ(after.connectivity().active_edges, closed.steps.back().edges);
  EXPECT_EQ(after.loss(), closed.steps.back().loss);
  EXPECT_LE(closed.steps.back().edges, most);
  ASSERT_EQ(model_->config().gate.bias.size(), 4u);
  for (std::size_t h = 0; h < 4; ++h)
    EXPECT_FLOAT_EQ(model_->config().gate.bias[h], 0.5f - closed.lowered[h]);
  // An eighth of a step less of the last head is too little.
  GateConfig gate = model_->config().gate;
  gate.bias[closed.steps.back().head] += 0.25f / 8 + 1e-6f;
  model_->set_gate(gate);
  EXPECT_GT(measured().connectivity().active_edges, most);
}

TEST_F(GateClosingTest, TakesTheHeadWhoseEdgesAreWorthLeast) {
  // The same step in each head by itself, and what it costs.
  const Evaluation before = measured();
  std::size_t cheapest = 0;
  double least = 1e9;
  for (std::size_t h = 0; h < 4; ++h) {
    GateConfig gate{{0.5f, 0.5f, 0.5f, 0.5f}};
    gate.bias[h] -= 0.25f;
    model_->set_gate(gate);
    const Evaluation after = measured();
    const double closed = before.connectivity().active_edges - after.connectivity().active_edges;
    ASSERT_GT(closed, 0.0) << h;
    const double price = (after.loss() - before.loss()) / closed;
    if (price < least) {
      least = price;
      cheapest = h;
    }
  }
  model_->set_gate({{0.5f}});
  const GateClosing closed = close(0.6 * before.connectivity().active_edges);
  ASSERT_FALSE(closed.steps.empty());
  EXPECT_EQ(closed.steps.front().head, cheapest);
}

TEST_F(GateClosingTest, LeavesWhatIsSparseEnoughAndClosesAllIfAsked) {
  const double open = measured().connectivity().active_edges;
  const GateClosing nothing = close(open);
  EXPECT_TRUE(nothing.reached());
  EXPECT_TRUE(nothing.steps.empty());
  EXPECT_EQ(measured().connectivity().active_edges, open);

  std::vector<double> seen;
  const GateClosing all = close_gates(
      *model_, 0.0, [this] { return windows(); }, [&](double edges) { seen.push_back(edges); });
  // The heads that hold the last twentieth are not touched.
  EXPECT_LE(all.last_edges(), 0.06 * open);
  EXPECT_EQ(all.reached(), all.last_edges() == 0.0);
  EXPECT_GT(seen.size(), all.steps.size());
  EXPECT_LT(seen.back(), seen.front());
}

TEST_F(GateClosingTest, ReachesGatesThatAreOpenByFar) {
  model_->set_gate({{14.0f}});
  ASSERT_EQ(measured().connectivity().active_edges, 1.0);
  const GateClosing closed = close(0.5);
  EXPECT_TRUE(closed.reached());
  const double open = measured().connectivity().active_edges;
  EXPECT_LE(open, 0.5);
  EXPECT_GT(open, 0.45);

  model_->set_gate({{100.0f}});
  EXPECT_FALSE(close(0.5).reached());
  EXPECT_EQ(measured().connectivity().active_edges, 1.0);
}

TEST_F(GateClosingTest, RefusesAModelWithoutGates) {
  model_->set_gate({});
  EXPECT_THROW(close(0.1), Error);
}

}  // namespace
}  // namespace filigree
