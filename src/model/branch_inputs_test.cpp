// The inputs of heads and MLPs as taps, beyond what model_test.cpp shows of every tap.
#include <gtest/gtest.h>

#include <map>

#include "filigree/error.h"
#include "filigree/model.h"
#include "filigree/ops.h"
#include "support/check_op.h"
#include "support/models.h"

namespace filigree {
namespace {

const char* const kBranches[] = {"hook_q_input", "hook_k_input", "hook_v_input"};

std::string in_layer(int layer, std::string_view name) {
  return fmt::format("blocks.{}.{}", layer, name);
}

class BranchInputs : public testing::TestWithParam<const char*> {
 protected:
  BranchInputs() {
    nlohmann::json json = {{"model_type", "gpt2"}, {"n_layer", 2},      {"n_head", 3},
                           {"n_embd", 24},         {"n_positions", 16}, {"vocab_size", 50}};
    const std::string kind = GetParam();
    if (kind == "gated") json["gate"] = {{"bias", -0.2}};
    model_ = make_model(parse_model_config(json, "test"), 11);
    enlarge_weights(*model_, 8.0f);
    if (kind == "adapted") {
      model_->add_lora({.rank = 3, .alpha = 6}, 5);
      for (const NamedParameter& parameter : model_->lora_parameters())
        parameter.variable.mutable_value() = random_tensor(parameter.variable.shape(), 9, -0.3f);
      model_->set_requires_grad(false);
    }
    ids_ = Tensor::empty({2, 7}, DType::kI32);
    for (std::int64_t i = 0; i < ids_.elements(); ++i)
      ids_.mutable_i32()[i] = static_cast<std::int32_t>((i * 17 + 5) % 50);
  }

  // The gradients of the loss at the taps, all of one run.
  std::map<std::string, Tensor> gradients(const std::vector<std::string>& names) const {
    Taps taps;
    for (const std::string& name : names) taps.observe_gradient(name);
    Tape tape;
    tape.backward(cross_entropy(model_->forward(ids_, {.taps = &taps}), ids_));
    std::map<std::string, Tensor> found;
    for (const std::string& name : names) found[name] = taps.gradient(name);
    return found;
  }

  std::unique_ptr<Model> model_;
  Tensor ids_;
};

TEST_P(BranchInputs, AreTheResidualStreamOfEachHead) {
  Taps taps;
  taps.observe("blocks.1.*");
  model_->forward(ids_, {.taps = &taps});
  const Tensor& stream = taps.value("blocks.1.hook_resid_pre");
  for (const char* branch : kBranches) {
    const Tensor& input = taps.value(in_layer(1, branch));
    ASSERT_EQ(input.shape(), Shape({2, 7, 3, 24}));
    for (std::int64_t i = 0; i < input.elements(); ++i)
      ASSERT_EQ(input.f32()[i], stream.f32()[i / (3 * 24) * 24 + i % 24]);
  }
  EXPECT_EQ(taps.value("blocks.1.hook_mlp_in").shape(), Shape({2, 7, 24}));
}

TEST_P(BranchInputs, DividedAmongAllOfThemChangeNoLogit) {
  const Tensor plain = model_->forward(ids_).value();
  Taps taps;
  for (const char* branch : {"hook_q_input", "hook_k_input", "hook_v_input", "hook_mlp_in"})
    taps.intervene(fmt::format("blocks.*.{}", branch), [](const Variable& x) { return x; });
  const Tensor split = model_->forward(ids_, {.taps = &taps}).value();
  EXPECT_LT(relative_error(split.values(), to_doubles(plain)), 1e-5);
}

// What reaches the stream before a branch is what the branch sends back and what passes it by.
TEST_P(BranchInputs, GradientsAndTheResidualPathAddUp) {
  for (const int layer : {0, 1}) {
    std::vector<std::string> names;
    for (const char* name : {"hook_resid_pre", "hook_q_input", "hook_k_input", "hook_v_input",
                             "hook_resid_mid", "hook_mlp_in", "hook_resid_post"})
      names.push_back(in_layer(layer, name));
    const std::map<std::string, Tensor> gradient = gradients(names);
    Variable attention = gradient.at(in_layer(layer, "hook_resid_mid"));
    for (const char* branch : kBranches)
      attention = add(attention, sum(gradient.at(in_layer(layer, branch)), 2));
    EXPECT_LT(relative_error(attention.value().values(),
                             to_doubles(gradient.at(in_layer(layer, "hook_resid_pre")))),
              1e-5);
    const Tensor mlp = add(gradient.at(in_layer(layer, "hook_resid_post")),
                           gradient.at(in_layer(layer, "hook_mlp_in")))
                           .value();
    EXPECT_LT(
        relative_error(mlp.values(), to_doubles(gradient.at(in_layer(layer, "hook_resid_mid")))),
        1e-5);
  }
}

TEST_P(BranchInputs, OfOneHeadReachThatHeadAlone) {
  Taps plain;
  plain.observe("blocks.1.attn.*");
  model_->forward(ids_, {.taps = &plain});
  for (const char* letter : {"q", "k", "v"}) {
    Taps taps;
    taps.observe("blocks.1.attn.*");
    taps.intervene(fmt::format("blocks.1.hook_{}_input", letter), [](const Variable& x) {
      Tensor changed = x.value().clone();
      for (std::int64_t i = 0; i < changed.elements(); ++i)
        if (i / 24 % 3 == 1) changed.mutable_f32()[i] = static_cast<float>(i % 7) - 3.0f;
      return Variable(changed);
    });
    model_->forward(ids_, {.taps = &taps});
    for (const char* other : {"q", "k", "v"}) {
      const std::string name = fmt::format("blocks.1.attn.hook_{}", other);
      const Tensor& before = plain.value(name);
      const Tensor& after = taps.value(name);
      double same = 0, changed = 0;  // largest differences of the other heads and of head 1
      for (std::int64_t i = 0; i < before.elements(); ++i) {
        double& largest = i / 8 % 3 == 1 ? changed : same;
        largest = std::max(largest, std::abs(static_cast<double>(before.f32()[i]) -
                                             static_cast<double>(after.f32()[i])));
      }
      EXPECT_LT(same, 1e-5) << letter << " to " << other;
      if (std::string_view(letter) == other) {
        EXPECT_GT(changed, 0.1);
      } else {
        EXPECT_LT(changed, 1e-5) << letter << " to " << other;
      }
    }
  }
}

TEST_P(BranchInputs, AWatcherSeesTheGradientThatAnObserverKeeps) {
  std::vector<std::string> names;
  for (const char* name : {"hook_q_input", "hook_v_input", "hook_mlp_in", "attn.hook_pattern"})
    names.push_back(in_layer(1, name));
  const std::map<std::string, Tensor> kept = gradients(names);
  std::map<std::string, Tensor> seen;
  Taps taps;
  for (const std::string& name : names)
    taps.watch_gradient(name, [&](std::string_view tap, const Tensor& gradient) {
      seen[std::string(tap)] = gradient.clone();
    });
  {
    Tape tape;
    tape.backward(cross_entropy(model_->forward(ids_, {.taps = &taps}), ids_));
  }
  for (const std::string& name : names) {
    ASSERT_EQ(seen.count(name), 1u) << name;
    EXPECT_LT(relative_error(seen.at(name).values(), to_doubles(kept.at(name))), 1e-6) << name;
  }
}

TEST_P(BranchInputs, RefuseAChangeOfTheNormThatTheyWouldMiss) {
  Taps taps;
  taps.observe_gradient("blocks.0.hook_q_input");
  taps.observe("blocks.0.ln1.hook_normalized");
  EXPECT_NO_THROW(model_->forward(ids_, {.taps = &taps}));
  taps.observe_gradient("blocks.0.ln1.hook_normalized");
  EXPECT_THROW(model_->forward(ids_, {.taps = &taps}), Error);
  Taps unknown;
  unknown.watch_gradient("blocks.0.hook_z_input", [](std::string_view, const Tensor&) {});
  EXPECT_THROW(model_->forward(ids_, {.taps = &unknown}), Error);
}

INSTANTIATE_TEST_SUITE_P(Models, BranchInputs, testing::Values("dense", "gated", "adapted"),
                         [](const auto& parameter) { return std::string(parameter.param); });

}  // namespace
}  // namespace filigree
