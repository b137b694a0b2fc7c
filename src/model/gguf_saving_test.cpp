#include "model/gguf_saving.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "filigree/autograd.h"
#include "io/gguf.h"
#include "support/errors.h"
#include "support/files.h"
#include "support/temporary_folder.h"

namespace filigree {
namespace {

namespace fs = std::filesystem;

class GgufSaving : public testing::TestWithParam<const char*> {};

TEST_P(GgufSaving, AModelIsTheSameAfterItWasAGgufFile) {
  const TemporaryFolder folder;
  const auto model = load_model(golden_folder() / GetParam());
  const fs::path path = folder.path() / "model.gguf";
  save_gguf(*model, path, MatrixType::kF32, {});
  const auto again = load_model(path);
  ASSERT_EQ(again->parameters().size(), model->parameters().size());
  for (std::size_t p = 0; p < model->parameters().size(); ++p) {
    const NamedParameter &was = model->parameters()[p], &is = again->parameters()[p];
    EXPECT_EQ(is.name, was.name);
    const std::span<const float> a = is.variable.value().values(),
                                 b = was.variable.value().values();
    // A gain that is stored with 1 added loses the last of its bits.
    const float slack = model->config().norm_around_one ? 1e-6f : 0.0f;
    EXPECT_TRUE(std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](float x, float y) {
      return std::abs(x - y) <= slack;
    })) << was.name;
  }
}

INSTANTIATE_TEST_SUITE_P(, GgufSaving,
                         testing::Values("gpt2-tiny", "llama-tiny", "llama3-rope-tiny",
                                         "mistral-tiny", "qwen2-tiny", "qwen3-tiny", "gemma2-tiny",
                                         "pythia-tiny", "gpt-neox-sequential-tiny", "olmo2-tiny",
                                         "gemma-tiny", "gemma3-tiny", "phi3-tiny",
                                         "phi3-longrope-tiny"),
                         [](const auto& each) {
                           std::string name = each.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

TEST(GgufSavingTypes, MatricesAreNarrowAndVectorsAreNot) {
  const TemporaryFolder folder;
  const auto model = load_model(golden_folder() / "llama-tiny");
  for (const auto& [type, kind] : {std::pair(MatrixType::kF16, TensorKind::kF16),
                                   std::pair(MatrixType::kBf16, TensorKind::kBf16)}) {
    const fs::path path = folder.path() / (std::string(name_of(kind)) + ".gguf");
    save_gguf(*model, path, type, {});
    const GgufFile file = GgufFile::open(path);
    for (const TensorView& tensor : file.tensors())
      EXPECT_EQ(tensor.kind, tensor.shape.size() > 1 ? kind : TensorKind::kF32) << tensor.name;
  }
  EXPECT_NE(error_of([&] {
              save_gguf(*model, folder.path() / "x.gguf", MatrixType::kI8, {});
            }).find("f32, bf16 or f16"),
            std::string::npos);
}

TEST(GgufSavingTypes, GatesAreKept) {
  const TemporaryFolder folder;
  const auto model = load_model(golden_folder() / "llama-tiny");
  const auto heads = static_cast<std::size_t>(model->config().layers * model->config().heads);
  GateConfig gate;
  for (std::size_t i = 0; i < heads; ++i) gate.bias.push_back(0.5f * static_cast<float>(i) - 1.0f);
  model->set_gate(gate);
  save_gguf(*model, folder.path() / "gated.gguf", MatrixType::kF32, {});
  EXPECT_EQ(load_model(folder.path() / "gated.gguf")->config().gate.bias, gate.bias);
}

// What other readers would take for another model is not written.
TEST(GgufSavingTypes, WhatAFileCannotSayIsRefusedByName) {
  const TemporaryFolder folder;
  const auto saved = [&](const char* fixture, const char* key, const nlohmann::json& value) {
    nlohmann::json json = read_model_config(golden_folder() / fixture).source;
    json[key] = value;
    const auto model = make_model(parse_model_config(json, "test"), 1);
    const std::string message =
        error_of([&] { save_gguf(*model, folder.path() / "x.gguf", MatrixType::kF32, {}); });
    EXPECT_FALSE(fs::exists(folder.path() / "x.gguf"));
    return message;
  };
  EXPECT_NE(saved("gpt2-tiny", "activation_function", "relu").find("the activation"),
            std::string::npos);
  EXPECT_NE(saved("gpt2-tiny", "scale_attn_by_inverse_layer_idx", true).find("the scale of scores"),
            std::string::npos);
  EXPECT_NE(saved("llama-tiny", "hidden_act", "gelu").find("the activation"), std::string::npos);
  EXPECT_NE(saved("olmo3-tiny", "tie_word_embeddings", false).find("the scaling of positions"),
            std::string::npos);
  EXPECT_NE(saved("llama-yarn-tiny", "tie_word_embeddings", false).find("the scaling of positions"),
            std::string::npos);
  const auto other = load_model(golden_folder() / "gpt-neo-tiny");
  EXPECT_NE(error_of([&] {
              save_gguf(*other, folder.path() / "x.gguf", MatrixType::kF32, {});
            }).find("gpt_neo cannot be a GGUF file"),
            std::string::npos);
}

TEST(GgufLoading, WhatNoFamilyComputesIsRefusedByItsKey) {
  const TemporaryFolder folder;
  const fs::path path = folder.path() / "x.gguf";
  const std::vector<float> embedding(4);
  const auto refusal = [&](const char* key, auto add) {
    GgufEntries entries;
    entries.text("general.architecture", "llama");
    add(entries, key);
    const std::vector<TensorToWrite> tensors = {tensor_to_write(
        "token_embd.weight", TensorKind::kF32, {2, 2}, std::as_bytes(std::span(embedding)))};
    write_gguf(path, entries, tensors);
    return error_of([&] { read_model_config(path); });
  };
  const auto number = [](GgufEntries& entries, const char* key) { entries.integer(key, 8); };
  EXPECT_NE(refusal("llama.expert_count", number).find("'llama.expert_count' is 8"),
            std::string::npos);
  EXPECT_NE(refusal("split.count", number).find("one of 8 files"), std::string::npos);
  EXPECT_NE(refusal("x", number).find("the metadata has no 'llama.context_length'"),
            std::string::npos);
  EXPECT_NE(refusal("llama.attention.causal",
                    [](GgufEntries& entries, const char* key) { entries.boolean(key, false); })
                .find("not causal"),
            std::string::npos);
}

}  // namespace
}  // namespace filigree
