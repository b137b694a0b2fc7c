#include "model/copy_model.h"

#include <gtest/gtest.h>

#include "filigree/error.h"
#include "support/temporary_folder.h"

namespace filigree {
namespace {

ModelConfig small_config() {
  return parse_model_config({{"model_type", "gpt2"},
                             {"n_layer", 2},
                             {"n_head", 2},
                             {"n_embd", 8},
                             {"n_positions", 8},
                             {"vocab_size", 11},
                             {"gate", {{"bias", 0.01}}}},
                            "test");
}

const Tensor kIds = Tensor::from_ids({1, 4}, std::vector<std::int32_t>{1, 7, 3, 5});

std::vector<float> logits_of(const Model& model) {
  const Tensor logits = model.forward(kIds).value();
  return {logits.values().begin(), logits.values().end()};
}

TEST(CopyModel, ComputesTheSameAndChangesAlone) {
  const TemporaryFolder folder;
  const auto made = make_model(small_config(), 3);
  save_model(*made, folder.path());
  const auto read = load_model(folder.path());  // in a mapped file
  const std::int64_t loads = models_loaded();
  for (const Model* original : {made.get(), read.get()}) {
    const auto copy = copy_model(*original);
    const std::vector<float> before = logits_of(*original);
    EXPECT_EQ(logits_of(*copy), before);
    EXPECT_EQ(copy->config().gate.bias, original->config().gate.bias);
    for (const NamedParameter& parameter : copy->parameters()) {
      Tensor& value = parameter.variable.mutable_value();
      if (!value.writable()) value = value.clone();  // as optimisers do
      for (std::int64_t i = 0; i < value.elements(); ++i) value.mutable_f32()[i] *= 1.5f;
    }
    copy->set_gate({});
    EXPECT_NE(logits_of(*copy), before);
    EXPECT_EQ(logits_of(*original), before);
  }
  EXPECT_EQ(models_loaded(), loads);
}

TEST(CopyModel, SharesMemoryUnderAdapters) {
  const auto model = make_model(small_config(), 3);
  const auto teacher = copy_model(*model, CopiedWeights::kShared);
  for (std::size_t p = 0; p < model->parameters().size(); ++p)
    EXPECT_EQ(model->parameters()[p].variable.value().f32(),
              teacher->parameters()[p].variable.value().f32());
  const std::vector<float> before = logits_of(*teacher);
  model->add_lora({.rank = 2}, 1);
  for (const NamedParameter& parameter : model->lora_parameters())
    for (std::int64_t i = 0; i < parameter.variable.shape().elements(); ++i)
      parameter.variable.mutable_value().mutable_f32()[i] = 0.5f;
  EXPECT_NE(logits_of(*model), before);
  model->merge_lora();
  EXPECT_NE(logits_of(*model), before);
  EXPECT_EQ(logits_of(*teacher), before);
}

TEST(CopyModel, RefusesAdapters) {
  const auto model = make_model(small_config(), 3);
  model->add_lora({.rank = 2}, 1);
  EXPECT_THROW(copy_model(*model), Error);
}

}  // namespace
}  // namespace filigree
