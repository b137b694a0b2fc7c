// State dicts as torch.save wrote them: the same tensors and models as their safetensors twins.
#include <gmock/gmock.h>

#include "io/torch_file.h"
#include "json/json.h"
#include "model/family_samples_test_support.h"
#include "model/lens_state_dict.h"
#include "model/transformer_lens.h"
#include "support/check_op.h"
#include "support/errors.h"
#include "support/golden.h"
#include "support/temporary_folder.h"

namespace filigree {
namespace {

namespace fs = std::filesystem;

TEST(StateDicts, ZipAndLegacyHoldTheTensorsOfTheirTwin) {
  const fs::path folder = golden_folder() / "torch-save";
  const SafetensorsFile twin = SafetensorsFile::open(folder / "state_dict.safetensors");
  for (const char* name : {"state_dict.pth", "state_dict_legacy.pth"}) {
    const TorchFile file = TorchFile::open(folder / name);
    std::size_t compared = 0;
    for (const TensorView& view : file.tensors()) {
      const TensorView* wanted = twin.find(view.name);
      if (wanted == nullptr) continue;  // tied, which safetensors keeps once
      ASSERT_EQ(view.shape, wanted->shape) << view.name;
      ASSERT_EQ(view.kind, wanted->kind) << view.name;
      EXPECT_TRUE(std::ranges::equal(view.data, wanted->data)) << view.name;
      ++compared;
    }
    EXPECT_EQ(compared, twin.tensors().size()) << name;
  }
}

class TransformerLensFile : public testing::Test {
 protected:
  const fs::path folder_ = golden_folder() / "transformer-lens-pth";
  const fs::path file_ = folder_ / "final.pth";
};

TEST_F(TransformerLensFile, WithItsConfigurationIsItsHuggingFaceTwin) {
  LoadOptions options;
  options.config = read_model_config(folder_ / "hugging-face");
  const auto model = load_model(file_, options), twin = load_model(folder_ / "hugging-face");
  ASSERT_EQ(model->parameters().size(), twin->parameters().size());
  for (std::size_t p = 0; p < model->parameters().size(); ++p) {
    const NamedParameter &a = model->parameters()[p], &b = twin->parameters()[p];
    EXPECT_EQ(a.name, b.name);
    EXPECT_TRUE(std::ranges::equal(a.variable.value().values(), b.variable.value().values()))
        << a.name;
  }
  const SafetensorsFile golden = SafetensorsFile::open(folder_ / "expected.safetensors");
  const Tensor logits = model->forward(golden_tensor(golden, "input_ids")).value();
  const Tensor wanted = golden_tensor(golden, "logits");
  ASSERT_EQ(logits.shape(), wanted.shape());
  EXPECT_LT(relative_error(logits.values(), to_doubles(wanted)), 1e-5);
}

TEST_F(TransformerLensFile, WithoutOneIsAGpt2OfItsShape) {
  const auto model = load_model(file_);
  EXPECT_EQ(model->config().family, "gpt2");
  EXPECT_EQ(model->config().vocabulary, 64);  // padded, as it lies there
  EXPECT_EQ(model->config().heads, 2);
  EXPECT_EQ(model->config().context, 16);
  const TemporaryFolder saved;
  save_model(*model, saved.path());
  const Tensor ids = Tensor::from_ids({1, 4}, std::vector<std::int32_t>{1, 2, 3, 4});
  EXPECT_TRUE(std::ranges::equal(load_model(saved.path())->forward(ids).value().values(),
                                 model->forward(ids).value().values()));
}

TEST_F(TransformerLensFile, RefusesAConfigurationOfAnotherShape) {
  nlohmann::json json = read_json(folder_ / "hugging-face/config.json");
  LoadOptions options;
  json["n_head"] = 4;
  options.config = parse_model_config(json, "test");
  EXPECT_THAT(error_of([&] { load_model(file_, options); }),
              testing::HasSubstr("blocks.0.attn.W_Q' is [2, 16, 8], not [4, 16, 4]"));
  json["n_head"] = 2, json["vocab_size"] = 65;
  options.config = parse_model_config(json, "test");
  EXPECT_THAT(error_of([&] { load_model(file_, options); }), testing::HasSubstr("unembed.W_U"));
}

// Tensors under TransformerLens's names from a model of any family, and back.
struct LensNames {
  std::vector<std::vector<float>> kept;
  std::vector<TensorView> tensors;

  void add(const std::string& name, std::vector<std::int64_t> shape, std::vector<float> values) {
    kept.push_back(std::move(values));
    TensorView view;
    view.name = name;
    view.shape = std::move(shape);
    tensors.push_back(view);
  }
  void finish() {
    for (std::size_t i = 0; i < kept.size(); ++i)
      tensors[i].data = std::as_bytes(std::span(kept[i]));
  }
};

std::vector<float> values_of(const Variable& variable) {
  return {variable.value().values().begin(), variable.value().values().end()};
}

// W [in, out] of a layer, whatever way it is stored.
float element(const LinearWeight& w, std::int64_t in, std::int64_t out) {
  const std::int64_t columns = w.weight.size(1);
  return w.weight.value()
      .f32()[w.out_in ? (w.begin + out) * columns + in : in * columns + w.begin + out];
}

LensNames lens_names(const Model& model, bool fold) {
  LensNames names;
  const ModelConfig& config = model.config();
  const ModelWeights w = model.weights();
  const std::int64_t d = config.width, D = config.head_width;
  const auto matrix = [&](const LinearWeight& of, const std::vector<float>& gain) {
    std::vector<float> values;
    for (std::int64_t i = 0; i < of.inputs(); ++i)
      for (std::int64_t o = 0; o < of.outputs(); ++o)
        values.push_back(element(of, i, o) *
                         (gain.empty() ? 1.0f : gain[static_cast<std::size_t>(i)]));
    return values;
  };
  // The bias of a layer and what the norm's bias before it adds.
  const auto bias = [&](const LinearWeight& of, const NormWeights& norm) {
    std::vector<float> values;
    for (std::int64_t o = 0; o < of.outputs(); ++o) {
      double sum =
          of.bias.defined() ? static_cast<double>(of.bias.value().f32()[of.begin + o]) : 0.0;
      for (std::int64_t i = 0; fold && norm.bias.defined() && i < d; ++i)
        sum += static_cast<double>(norm.bias.value().f32()[i]) *
               static_cast<double>(element(of, i, o));
      values.push_back(static_cast<float>(sum));
    }
    return values;
  };
  const auto gain_of = [&](const NormWeights& norm) {
    return fold ? values_of(norm.gain()) : std::vector<float>();
  };
  const auto norm = [&](const std::string& name, const NormWeights& of) {
    if (fold) return;
    names.add(name + ".w", {d}, values_of(of.gain()));
    if (of.bias.defined()) names.add(name + ".b", {d}, values_of(of.bias));
  };
  std::vector<float> embedding = values_of(w.token_embedding);
  for (float& x : embedding) x *= static_cast<float>(config.embedding_scale);
  names.add("embed.W_E", {config.vocabulary, d}, embedding);
  if (w.position_embedding.defined())
    names.add("pos_embed.W_pos", {config.context, d}, values_of(w.position_embedding));
  for (std::int64_t l = 0; l < config.layers; ++l) {
    const std::string block = fmt::format("blocks.{}.", l);
    const LayerWeights& layer = w.layers[static_cast<std::size_t>(l)];
    norm(block + "ln1", layer.norm);
    const auto heads = [&](const char* letter, const LinearWeight& of, std::int64_t count,
                           const char* underscore) {
      const std::vector<float> flat = matrix(of, gain_of(layer.norm));
      std::vector<float> by_head;
      for (std::int64_t h = 0; h < count; ++h)
        for (std::int64_t i = 0; i < d; ++i)
          for (std::int64_t e = 0; e < D; ++e)
            by_head.push_back(flat[static_cast<std::size_t>(i * count * D + h * D + e)]);
      names.add(block + "attn." + underscore + "W_" + letter, {count, d, D}, by_head);
      names.add(block + "attn." + underscore + "b_" + letter, {count, D}, bias(of, layer.norm));
    };
    const char* underscore = config.key_heads != config.heads ? "_" : "";
    heads("Q", layer.attention->q, config.heads, "");
    heads("K", layer.attention->k, config.key_heads, underscore);
    heads("V", layer.attention->v, config.key_heads, underscore);
    names.add(block + "attn.W_O", {config.heads, D, d}, matrix(layer.attention->o, {}));
    names.add(block + "attn.b_O", {d}, bias(layer.attention->o, kNoNorm));
    names.add(block + "attn.mask", {1}, {0.0f});
    norm(block + "ln2", layer.mlp_norm);
    const std::vector<float> gain = gain_of(layer.mlp_norm);
    if (config.mlp == MlpKind::kGated)
      names.add(block + "mlp.W_gate", {d, config.mlp_width}, matrix(layer.mlp->gate, gain));
    if (layer.mlp->gate.bias.defined())
      names.add(block + "mlp.b_gate", {config.mlp_width}, bias(layer.mlp->gate, layer.mlp_norm));
    names.add(block + "mlp.W_in", {d, config.mlp_width}, matrix(layer.mlp->in, gain));
    names.add(block + "mlp.b_in", {config.mlp_width}, bias(layer.mlp->in, layer.mlp_norm));
    names.add(block + "mlp.W_out", {config.mlp_width, d}, matrix(layer.mlp->out, {}));
    names.add(block + "mlp.b_out", {d}, bias(layer.mlp->out, kNoNorm));
  }
  norm("ln_final", w.final_norm);
  names.add("unembed.W_U", {d, config.vocabulary}, matrix(w.output, gain_of(w.final_norm)));
  names.add("unembed.b_U", {config.vocabulary}, bias(w.output, w.final_norm));
  names.finish();
  return names;
}

class LensRoundTrip : public testing::TestWithParam<const char*> {};

TEST_P(LensRoundTrip, ComputesTheSame) {
  const std::string name = GetParam();
  const bool fold = name.ends_with("+folded");
  const auto model = sample_model(sample_config(name.substr(0, name.find('+'))));
  const LensNames names = lens_names(*model, fold);
  ASSERT_TRUE(has_transformer_lens_names(names.tensors));
  const auto again = model_from_transformer_lens(names.tensors, model->config(), "test");
  const Tensor ids = sample_ids(2, 9);
  const Tensor wanted = model->forward(ids).value(), found = again->forward(ids).value();
  EXPECT_LT(relative_error(found.values(), to_doubles(wanted)), fold ? 1e-4 : 1e-6);
  EXPECT_EQ(again->config().tied_embeddings, model->config().tied_embeddings && !fold);
}

INSTANTIATE_TEST_SUITE_P(Models, LensRoundTrip,
                         testing::Values("gpt2", "gpt2+folded", "family-gpt_neo", "family-gpt_neox",
                                         "family-gpt_neox+folded", "family-llama", "family-mistral",
                                         "family-gemma", "family-phi3", "family-gpt_bigcode",
                                         "family-gpt_bigcode+folded", "family-smollm3",
                                         "family-starcoder2"),
                         [](const auto& sample) { return sample_test_name(sample.param); });

TEST(LensNamesOfOthers, WhatSuchAModelDoesNotHaveIsAnError) {
  const auto model = sample_model(sample_config("family-llama"));
  LensNames names = lens_names(*model, false);
  names.add("blocks.0.attn.W_X", {1}, {1.0f});
  names.finish();
  EXPECT_THAT(
      error_of([&] { model_from_transformer_lens(names.tensors, model->config(), "test"); }),
      testing::HasSubstr("does not have: blocks.0.attn.W_X"));
  LensNames biased = lens_names(*model, false);
  for (std::size_t i = 0; i < biased.tensors.size(); ++i)
    if (biased.tensors[i].name == "blocks.1.attn.b_Q") biased.kept[i][3] = 0.5f;
  EXPECT_THAT(
      error_of([&] { model_from_transformer_lens(biased.tensors, model->config(), "test"); }),
      testing::HasSubstr("blocks.1.attn.b_Q' is not zero"));
}

}  // namespace
}  // namespace filigree
