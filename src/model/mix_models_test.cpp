#include "model/mix_models.h"

#include <gtest/gtest.h>

#include "filigree/error.h"
#include "support/temporary_folder.h"

namespace filigree {
namespace {

nlohmann::json small_json() {
  return {{"model_type", "gpt2"}, {"n_layer", 2},     {"n_head", 2},
          {"n_embd", 8},          {"n_positions", 8}, {"vocab_size", 11}};
}

std::unique_ptr<Model> random_model(std::uint64_t seed, const GateConfig& gate = {},
                                    const nlohmann::json& config = small_json()) {
  std::unique_ptr<Model> model = make_model(parse_model_config(config, "test"), seed);
  model->set_gate(gate);
  return model;
}

std::vector<float> values_of(const Model& model) {
  std::vector<float> values;
  for (const NamedParameter& parameter : model.parameters()) {
    const std::span<const float> more = parameter.variable.value().values();
    values.insert(values.end(), more.begin(), more.end());
  }
  return values;
}

TEST(MixModels, EveryWeightAndBiasIsTheAverage) {
  const std::vector<float> biases = {-1.0f, 0.5f, 2.0f, -0.25f};
  const TemporaryFolder folder;
  save_model(*random_model(1, {biases}), folder.path());
  const auto other = random_model(2, {{3.0f}});
  const std::vector<float> others = values_of(*other);
  for (const double share : {0.0, 0.25, 1.0}) {
    const auto model = load_model(folder.path());  // in a mapped file, which stays as it is
    const std::vector<float> own = values_of(*model);
    mix_models(*model, *other, share);
    const std::vector<float> mixed = values_of(*model);
    ASSERT_EQ(mixed.size(), own.size());
    for (std::size_t i = 0; i < mixed.size(); ++i)
      ASSERT_FLOAT_EQ(mixed[i], static_cast<float>((1 - share) * own[i] + share * others[i])) << i;
    ASSERT_EQ(model->config().gate.bias.size(), biases.size());
    for (std::size_t i = 0; i < biases.size(); ++i)
      EXPECT_FLOAT_EQ(model->config().gate.bias[i],
                      static_cast<float>((1 - share) * biases[i] + share * 3.0));
  }
  EXPECT_EQ(values_of(*other), others);
}

TEST(MixModels, ComputesWithTheAverage) {
  const Tensor ids = Tensor::from_ids({1, 4}, std::vector<std::int32_t>{1, 7, 3, 5});
  const auto logits_of = [&](const Model& model) {
    const Tensor logits = model.forward(ids).value();
    return std::vector<float>(logits.values().begin(), logits.values().end());
  };
  const auto model = random_model(1), other = random_model(2);
  const std::vector<float> before = logits_of(*model);
  mix_models(*model, *other, 0.5);
  EXPECT_NE(logits_of(*model), before);
  mix_models(*model, *other, 1.0);
  EXPECT_EQ(logits_of(*model), logits_of(*other));
}

TEST(MixModels, RefusesWhatDoesNotFitAndLeavesTheModel) {
  const auto model = random_model(1);
  const std::vector<float> before = values_of(*model);
  nlohmann::json wider = small_json(), more_heads = small_json();
  wider["vocab_size"] = 12;
  more_heads["n_head"] = 4;
  EXPECT_THROW(mix_models(*model, *random_model(2, {}, wider), 0.5), Error);
  EXPECT_THROW(mix_models(*model, *random_model(2, {}, more_heads), 0.5), Error);
  EXPECT_THROW(mix_models(*model, *random_model(2, {{0.0f}}), 0.5), Error);
  const auto adapted = random_model(2);
  adapted->add_lora({.rank = 2}, 1);
  EXPECT_THROW(mix_models(*model, *adapted, 0.5), Error);
  EXPECT_EQ(values_of(*model), before);
}

}  // namespace
}  // namespace filigree
