// Adapters on whole models.
#include <cmath>
#include <filesystem>

#include "filigree/ops.h"
#include "model/lora_test_support.h"
#include "support/check_op.h"
#include "support/temporary_folder.h"

namespace filigree {
namespace {

const Variable& parameter(const std::vector<NamedParameter>& parameters, const std::string& name) {
  for (const NamedParameter& p : parameters)
    if (p.name == name) return p.variable;
  throw std::runtime_error("no " + name);
}

class LoraModel : public testing::TestWithParam<nlohmann::json> {};
INSTANTIATE_TEST_SUITE_P(DenseAndGated, LoraModel,
                         testing::Values(nlohmann::json::object(), kGated));

TEST_P(LoraModel, AddingAdaptersDoesNotChangeASingleLogit) {
  const auto model = tiny_model(GetParam());
  const Doubles before = logits_of(*model);
  model->add_lora(kLora, 5);
  EXPECT_EQ(logits_of(*model), before);
}

TEST_P(LoraModel, MergedItComputesTheSameAlsoSavedAndLoaded) {
  const TemporaryFolder folder;
  save_model(*tiny_model(GetParam()), folder.path() / "base");
  const auto model = load_model(folder.path() / "base");
  const auto adapted = adapted_model(GetParam());
  model->add_lora(kLora, 5);
  for (std::size_t i = 0; i < model->lora_parameters().size(); ++i)
    model->lora_parameters()[i].variable.mutable_value() =
        adapted->lora_parameters()[i].variable.value();
  const Doubles before = logits_of(*model);
  EXPECT_GT(relative_error(load_model(folder.path() / "base")->forward(ids(2, 9)).value().values(),
                           before),
            1e-2);
  model->merge_lora();  // into weights that lie in the mapped file
  EXPECT_FALSE(model->lora().has_value());
  EXPECT_TRUE(model->lora_parameters().empty());
  EXPECT_LT(relative_error(model->forward(ids(2, 9)).value().values(), before), 2e-5);
  save_model(*model, folder.path() / "merged");
  EXPECT_EQ(logits_of(*load_model(folder.path() / "merged")), logits_of(*model));
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "merged" / "adapters.safetensors"));
  // The file is as it was.
  EXPECT_EQ(logits_of(*load_model(folder.path() / "base")), logits_of(*tiny_model(GetParam())));
  // Only the adapted matrices have changed.
  const auto original = tiny_model(GetParam());
  for (const NamedParameter& p : model->parameters()) {
    const bool same = to_doubles(p.variable.value()) ==
                      to_doubles(parameter(original->parameters(), p.name).value());
    const bool adapted_matrix =
        p.name.ends_with(".attn.c_attn.weight") || p.name.ends_with(".attn.c_proj.weight");
    EXPECT_EQ(same, !adapted_matrix) << p.name;
  }
}

TEST_P(LoraModel, LookingAtATapDoesNotChangeTheLogits) {
  const auto model = adapted_model(GetParam());
  const Doubles plain = logits_of(*model);
  for (const std::string& name : model->tap_names()) {
    Taps observed, differentiated, replaced;
    observed.observe(name);
    differentiated.observe_gradient(name);
    replaced.intervene(name, [](const Variable& x) { return x; });
    for (Taps* taps : {&observed, &differentiated, &replaced})
      EXPECT_LT(relative_error(model->forward(ids(2, 9), {.taps = taps}).value().values(), plain),
                1e-5)
          << name;
  }
}

TEST_P(LoraModel, TheCacheGivesTheLogitsOfAFullRun) {
  const auto model = adapted_model(GetParam());
  const Tensor tokens = ids(1, 9);
  const Tensor full = model->forward(tokens).value();
  const auto cache = model->make_cache(1, 9);
  for (std::int64_t t = 0; t < 9; ++t) {
    const Tensor logits =
        model->forward(Tensor::from_ids({1, 1}, {tokens.i32() + t, 1}), {.cache = cache.get()})
            .value();
    for (std::int64_t v = 0; v < 50; ++v)
      ASSERT_NEAR(logits.f32()[v], full.f32()[t * 50 + v], 2e-4) << t;
  }
}

TEST(LoraTaps, ShowTheAdaptedValues) {
  const auto model = adapted_model();
  Taps taps;
  for (const char* name : {"ln1.hook_normalized", "attn.hook_q", "attn.hook_k", "attn.hook_v",
                           "attn.hook_z", "attn.hook_result", "hook_attn_out"})
    taps.observe(std::string("blocks.1.") + name);
  model->forward(ids(2, 5), {.taps = &taps});
  const auto tap = [&](const char* name) {
    return taps.value(std::string("blocks.1.") + name).reshape({10, 24});
  };
  const auto adapter = [&](const std::string& name) {
    return to_doubles(parameter(model->lora_parameters(), "h.1.attn.lora_" + name).value());
  };
  const auto base = [&](const char* name) {
    return to_doubles(
        parameter(model->parameters(), std::string("transformer.h.1.attn.") + name).value());
  };
  // x (W + 2 A B) + b in doubles, W being the columns from `begin` of `all`.
  const auto projected = [&](const Tensor& in, const Doubles& weight, const Doubles& bias,
                             std::size_t all, std::size_t begin, const std::string& letter) {
    const Doubles x = to_doubles(in), down = adapter(letter + ".down"),
                  up = adapter(letter + ".up");
    Doubles y;
    for (std::size_t r = 0; r < 10; ++r)
      for (std::size_t o = 0; o < 24; ++o) {
        double total = bias[begin + o];
        for (std::size_t i = 0; i < 24; ++i) {
          double w = weight[i * all + begin + o];
          for (std::size_t k = 0; k < 3; ++k) w += 2.0 * down[i * 3 + k] * up[k * 24 + o];
          total += x[r * 24 + i] * w;
        }
        y.push_back(total);
      }
    return y;
  };
  const Tensor x = tap("ln1.hook_normalized");
  const Doubles fused = base("c_attn.weight"), bias = base("c_attn.bias");
  const char* const letters[] = {"q", "k", "v"};
  for (std::size_t i = 0; i < 3; ++i) {
    const std::string name = std::string("attn.hook_") + letters[i];
    EXPECT_LT(relative_error(tap(name.c_str()).values(),
                             projected(x, fused, bias, 72, i * 24, letters[i])),
              3e-6)
        << name;
  }
  const Doubles out =
      projected(tap("attn.hook_z"), base("c_proj.weight"), base("c_proj.bias"), 24, 0, "o");
  EXPECT_LT(relative_error(tap("hook_attn_out").values(), out), 3e-6);
  const Variable heads = sum(taps.value("blocks.1.attn.hook_result"), 2);
  const Tensor total =
      add(heads, parameter(model->parameters(), "transformer.h.1.attn.c_proj.bias")).value();
  EXPECT_LT(relative_error(total.values(), out), 3e-6);
}

TEST(LoraGradients, AreSlopesOfTheLoss) {
  const auto model = adapted_model();
  const Tensor tokens = ids(2, 8);
  {
    Tape tape;
    tape.backward(cross_entropy(model->forward(tokens), tokens));
  }
  for (const NamedParameter& p : model->lora_parameters()) {
    ASSERT_TRUE(p.variable.grad().defined()) << p.name;
    const Tensor gradient = p.variable.grad(), at = p.variable.value().clone();
    // Along the gradient's signs, so that nothing cancels, halved here and there.
    const Tensor size = random_tensor(at.shape(), 3, 0.5f, 1.0f);
    const auto loss_at = [&](double step) {
      Tensor moved = at.clone();
      for (std::int64_t i = 0; i < at.elements(); ++i)
        moved.mutable_f32()[i] +=
            static_cast<float>(step) * std::copysign(size.f32()[i], gradient.f32()[i]);
      p.variable.mutable_value() = moved;
      return static_cast<double>(cross_entropy(model->forward(tokens), tokens).value().item());
    };
    double expected = 0.0;
    for (std::int64_t i = 0; i < at.elements(); ++i)
      expected += static_cast<double>(std::abs(gradient.f32()[i]) * size.f32()[i]);
    ASSERT_GT(expected, 0.0) << p.name;
    const double step = 3e-3 / std::max(1.0, expected);
    EXPECT_NEAR((loss_at(step) - loss_at(-step)) / (2 * step), expected, 1e-2 * expected + 1e-4)
        << p.name;
    p.variable.mutable_value() = at;
  }
}

// Everything below and beside the adapters is skipped, not computed and dropped.
TEST(LoraGradients, ReachTheAdaptersAndGatesAlone) {
  const auto model = adapted_model(kGated);
  const Tensor tokens = ids(2, 8);
  const auto recorded = [&] {
    Tape tape;
    const Variable loss = cross_entropy(model->forward(tokens), tokens);
    const std::size_t size = tape.size();
    tape.backward(loss);
    return size;
  };
  const std::size_t frozen = recorded();
  for (const NamedParameter& p : model->parameters()) {
    EXPECT_FALSE(p.variable.requires_grad()) << p.name;
    EXPECT_FALSE(p.variable.grad().defined()) << p.name;
  }
  for (const NamedParameter& p : model->lora_parameters())
    EXPECT_TRUE(p.variable.grad().defined()) << p.name;
  EXPECT_FALSE(model->gate_biases()[0].grad().defined());
  // Nothing below the first adapters is recorded; a trained embedding would be, with the sum and
  // the norm that follow it.
  parameter(model->parameters(), "transformer.wte.weight").set_requires_grad(true);
  EXPECT_EQ(recorded(), frozen + 3);
  parameter(model->parameters(), "transformer.wte.weight").set_requires_grad(false);
  model->clear_grads();
  for (const NamedParameter& p : model->lora_parameters())
    EXPECT_FALSE(p.variable.grad().defined()) << p.name;

  // With frozen adapters and open gate biases the biases alone are trained.
  model->set_requires_grad(false);
  for (const Variable& bias : model->gate_biases()) bias.set_requires_grad(true);
  std::vector<GateReport> reports;
  Tape tape;
  model->forward(tokens, {.gates = GateMode::kSampled, .reports = &reports});
  tape.backward(sum_all(reports[1].expected));
  EXPECT_TRUE(model->gate_biases()[1].grad().defined());
  for (const NamedParameter& p : model->lora_parameters())
    EXPECT_FALSE(p.variable.grad().defined()) << p.name;
}

TEST(Adapters, FreezesTheParametersUntilTheyAreMerged) {
  const auto model = tiny_model();
  const std::int64_t base = model->parameter_count();
  model->set_requires_grad(true);
  {
    Tape tape;
    tape.backward(cross_entropy(model->forward(ids(1, 4)), ids(1, 4)));
  }
  model->add_lora(kLora, 5);
  EXPECT_EQ(model->lora(), kLora);
  // Four pairs of 24 x 3 a layer.
  EXPECT_EQ(model->lora_parameters().size(), 16u);
  EXPECT_EQ(model->parameter_count(), base + 2 * 4 * 2 * 24 * 3);
  EXPECT_EQ(model->lora_parameters()[0].name, "h.0.attn.lora_q.down");
  EXPECT_EQ(model->lora_parameters()[15].name, "h.1.attn.lora_o.up");
  for (const bool on : {true, false, true}) {
    model->set_requires_grad(on);
    for (const NamedParameter& p : model->parameters()) {
      EXPECT_FALSE(p.variable.requires_grad()) << p.name;
      EXPECT_FALSE(p.variable.grad().defined()) << p.name;
    }
    for (const NamedParameter& p : model->lora_parameters())
      EXPECT_EQ(p.variable.requires_grad(), on) << p.name;
  }
  model->merge_lora();
  EXPECT_EQ(model->parameter_count(), base);
  EXPECT_FALSE(model->parameters()[0].variable.requires_grad());
  model->set_requires_grad(true);
  EXPECT_TRUE(model->parameters()[0].variable.requires_grad());
  model->merge_lora();  // nothing to do
  model->add_lora({.rank = 1}, 5);
  EXPECT_EQ(model->lora()->rank, 1);
}

TEST(Adapters, EveryAdapterIsDrawnOnItsOwn) {
  const auto one = tiny_model(), same = tiny_model(), other = tiny_model();
  one->add_lora(kLora, 5);
  const int before = num_threads();
  set_num_threads(3);
  same->add_lora(kLora, 5);
  set_num_threads(before);
  other->add_lora(kLora, 6);
  for (std::size_t i = 0; i < 16; i += 2) {
    const auto down = [&](const Model& model, std::size_t at) {
      return to_doubles(model.lora_parameters()[at].variable.value());
    };
    EXPECT_EQ(down(*one, i), down(*same, i));
    EXPECT_NE(down(*one, i), down(*other, i));
    if (i > 0) {
      EXPECT_NE(down(*one, i), down(*one, i - 2));
    }
  }
}

TEST(Adapters, RefusesWhatMakesNoSenseAndStaysAsItWas) {
  const auto model = tiny_model();
  model->set_requires_grad(true);
  EXPECT_ERROR_WITH(model->add_lora({.rank = 0}, 1), "rank 0");
  EXPECT_ERROR_WITH(model->add_lora({.rank = 25}, 1), "rank 25 is above 24");
  EXPECT_ERROR_WITH(model->add_lora({.rank = 2, .alpha = -1.0}, 1), "alpha -1");
  EXPECT_FALSE(model->lora().has_value());
  EXPECT_TRUE(model->lora_parameters().empty());
  EXPECT_TRUE(model->parameters()[0].variable.requires_grad());
  model->add_lora({.rank = 24}, 1);
  EXPECT_ERROR_WITH(model->add_lora({.rank = 2}, 1), "adapters of rank 24 already");
  EXPECT_EQ(model->lora()->rank, 24);
}

}  // namespace
}  // namespace filigree
