#include <algorithm>
#include <functional>
#include <map>

#include "filigree/autograd.h"
#include "filigree/ops.h"
#include "filigree/runtime.h"
#include "model/lora_test_support.h"
#include "ops/output_loss/output_loss.h"

namespace filigree {
namespace {

// Loss, and the gradient of everything that has one; with gates, expected edges are part of it.
std::vector<Tensor> gradients(Model& model, bool again, std::uint64_t* peak = nullptr,
                              const std::function<void(const Variable&)>& watch = {}) {
  const Tensor tokens = ids(3, 12);
  model.set_requires_grad(true);
  for (const Variable& bias : model.gate_biases()) bias.set_requires_grad(true);
  model.set_recompute(again);
  model.clear_grads();
  reset_pool_peak();
  const std::uint64_t before = pool_statistics().bytes_in_use;
  std::vector<Tensor> found;
  {
    Tape tape;
    if (watch) tape.watch_leaves(watch);
    std::vector<GateReport> reports;
    ForwardOptions options;
    options.gates = GateMode::kSampled;
    options.noise.seed = 3;
    options.reports = &reports;
    Variable loss =
        output_loss(model.final_hidden(tokens, options), model.output_layer(), tokens).loss;
    for (const GateReport& report : reports) {
      loss = add(loss, mean_all(report.expected));
      found.push_back(report.active);
    }
    found.push_back(loss.value());
    tape.backward(loss);
  }
  if (peak != nullptr) *peak = pool_statistics().peak_bytes_in_use - before;
  const auto add_grad = [&](const Variable& variable) {
    if (variable.requires_grad()) found.push_back(variable.grad());
  };
  for (const NamedParameter& parameter : model.parameters()) add_grad(parameter.variable);
  for (const NamedParameter& parameter : model.lora_parameters()) add_grad(parameter.variable);
  for (const Variable& bias : model.gate_biases()) add_grad(bias);
  return found;
}

void expect_same(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    ASSERT_TRUE(a[i].defined() && b[i].defined()) << i;
    EXPECT_TRUE(std::ranges::equal(a[i].values(), b[i].values())) << i;
  }
}

TEST(Recompute, GivesTheSameBits) {
  for (const nlohmann::json& changes : {nlohmann::json::object(), kGated})
    for (const bool adapted : {false, true}) {
      const auto model = adapted ? adapted_model(changes) : tiny_model(changes);
      const std::vector<Tensor> kept = gradients(*model, false);
      expect_same(kept, gradients(*model, true));
    }
}

TEST(Recompute, TakesTheMemoryOfOneLayer) {
  const auto model = tiny_model({{"n_layer", 24}});
  std::uint64_t kept = 0, again = 0;
  gradients(*model, false, &kept);
  gradients(*model, true, &again);
  EXPECT_LT(again, kept / 2);
}

TEST(Recompute, EveryLeafIsShownOnceItsGradientIsFinal) {
  const auto model = tiny_model(kGated);
  const std::vector<Tensor> expected = gradients(*model, false);
  std::map<const void*, Tensor> shown;  // gradients as they were then
  const std::vector<Tensor> found = gradients(*model, true, nullptr, [&](const Variable& leaf) {
    ASSERT_TRUE(leaf.grad().defined());
    EXPECT_TRUE(shown.emplace(leaf.id(), leaf.grad().clone()).second) << "shown twice";
  });
  expect_same(expected, found);
  std::vector<Variable> leaves = model->gate_biases();
  for (const NamedParameter& parameter : model->parameters()) leaves.push_back(parameter.variable);
  EXPECT_EQ(shown.size(), leaves.size());
  for (const Variable& leaf : leaves) {
    const auto then = shown.find(leaf.id());
    ASSERT_NE(then, shown.end());
    expect_same({then->second}, {leaf.grad()});
  }
}

TEST(Recompute, RunsWithTapsKeepEverything) {
  const auto model = tiny_model();
  model->set_requires_grad(true);
  model->set_recompute(true);
  Taps taps;
  taps.observe_gradient("blocks.0.mlp.hook_post");
  Tape tape;
  tape.backward(sum_all(square(model->forward(ids(1, 5), {.taps = &taps}))));
  EXPECT_TRUE(taps.gradient("blocks.0.mlp.hook_post").defined());
}

}  // namespace
}  // namespace filigree
