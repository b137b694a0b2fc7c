// What the families read of config.json in its older and newer spellings, and what they refuse.
#include <gmock/gmock.h>

#include <set>

#include "model/family.h"
#include "model/family_samples_test_support.h"
#include "support/errors.h"

namespace filigree {
namespace {

using Windows = std::vector<std::int64_t>;

ModelConfig with(const std::string& family, const nlohmann::json& changes) {
  nlohmann::json json = sample_family_json(family);
  json.update(changes);
  return parse_model_config(json, "config.json");
}

std::string refusal(const std::string& family, const nlohmann::json& changes) {
  return error_of([&] { with(family, changes); });
}

TEST(FamilyConfigs, GptNeoxReadsOldAndNewSpellingsOfItsPositions) {
  const ModelConfig older = with("gpt_neox", {{"rotary_pct", 0.5}, {"rotary_emb_base", 500}});
  EXPECT_EQ(older.rotary_width, 4);
  EXPECT_EQ(older.rotary_base, 500.0);
  const nlohmann::json section = {
      {"rope_type", "default"}, {"rope_theta", 700.0}, {"partial_rotary_factor", 1.0}};
  const ModelConfig newer = with("gpt_neox", {{"rope_parameters", section}});
  EXPECT_EQ(newer.rotary_width, 8);
  EXPECT_EQ(newer.rotary_base, 700.0);
  EXPECT_EQ(with("gpt_neox", {{"rotary_pct", nullptr}}).rotary_width, 2);
  EXPECT_EQ(newer.residual, ResidualKind::kParallel);
  EXPECT_EQ(with("gpt_neox", {{"use_parallel_residual", false}}).residual,
            ResidualKind::kSequential);
  EXPECT_THAT(refusal("gpt_neox", {{"rotary_pct", 0.0}}), testing::HasSubstr("0 of 8"));
  EXPECT_THAT(refusal("gpt_neox", {{"num_attention_heads", 5}}), testing::HasSubstr("multiple"));
}

TEST(FamilyConfigs, GptNeoReadsItsLayers) {
  EXPECT_EQ(with("gpt_neo", nlohmann::json::object()).windows, Windows({4, 0}));
  EXPECT_EQ(with("gpt_neo", {{"attention_layers", {"global", "local"}}}).windows, Windows({0, 4}));
  EXPECT_EQ(with("gpt_neo", {{"attention_layers", {"global", "global"}}}).windows, Windows());
  EXPECT_EQ(with("gpt_neo", {{"window_size", nullptr}}).windows, Windows({256, 0}));
  EXPECT_EQ(with("gpt_neo", nlohmann::json::object()).attention_scale, 1.0);
  EXPECT_THAT(refusal("gpt_neo", {{"attention_layers", {"global", "sparse"}}}),
              testing::HasSubstr("'sparse'"));
  EXPECT_THAT(refusal("gpt_neo", {{"attention_layers", {"global"}}}),
              testing::HasSubstr("name 1 layers"));
  EXPECT_THAT(refusal("gpt_neo", {{"attention_types", {{{"global"}, 1000000000}}}}),
              testing::HasSubstr("more than num_layers 2"));
  EXPECT_THAT(refusal("gpt_neo", {{"attention_types",
                                   nlohmann::json::array({nlohmann::json::array({"global", 2})})}}),
              testing::HasSubstr("[[kinds, times], ...]"));
}

TEST(FamilyConfigs, WindowsAreThoseOfLayerTypesOrOfTheFamilysRule) {
  EXPECT_EQ(with("mistral", nlohmann::json::object()).windows, Windows({3, 3}));
  EXPECT_EQ(with("mistral", {{"sliding_window", nullptr}}).windows, Windows());
  nlohmann::json absent = sample_family_json("mistral");
  absent.erase("sliding_window");
  EXPECT_EQ(parse_model_config(absent, "test").windows, Windows({4096, 4096}));
  EXPECT_EQ(with("qwen2", nlohmann::json::object()).windows, Windows({0, 4}));
  EXPECT_EQ(with("qwen2", {{"use_sliding_window", false}}).windows, Windows());
  EXPECT_EQ(with("qwen2", {{"sliding_window", nullptr}}).windows, Windows());
  EXPECT_EQ(with("qwen3", {{"sliding_window", 4}}).windows, Windows());
  EXPECT_EQ(with("gemma2", nlohmann::json::object()).windows, Windows({4, 0}));
  const nlohmann::json types = {{"layer_types", {"full_attention", "sliding_attention"}}};
  for (const char* family : {"mistral", "qwen2", "gemma2"})
    EXPECT_EQ(with(family, types).windows[0], 0) << family;
  EXPECT_EQ(with("gemma2", types).windows, Windows({0, 4}));
  EXPECT_THAT(refusal("gemma2", {{"layer_types", {"full_attention", "chunked_attention"}}}),
              testing::HasSubstr("'chunked_attention'"));
  EXPECT_THAT(refusal("gemma2", {{"layer_types", {"full_attention"}}}),
              testing::HasSubstr("1 entries for 2 layers"));
  EXPECT_THAT(refusal("qwen2", {{"layer_types", {"full_attention", "sliding_attention"}},
                                {"use_sliding_window", false}}),
              testing::HasSubstr("sliding_window"));
}

TEST(FamilyConfigs, GemmaReadsItsCapsAndScales) {
  const ModelConfig config = with("gemma2", nlohmann::json::object());
  EXPECT_EQ(config.score_soft_cap, 2.0f);
  EXPECT_EQ(config.logit_soft_cap, 3.0f);
  EXPECT_NEAR(config.attention_scale, 1.0 / std::sqrt(5.0), 1e-12);
  EXPECT_NEAR(config.embedding_scale, std::sqrt(24.0), 1e-12);
  EXPECT_TRUE(config.norm_around_one);
  EXPECT_TRUE(config.tied_embeddings);
  const ModelConfig plain =
      with("gemma2", {{"attn_logit_softcapping", nullptr}, {"final_logit_softcapping", nullptr}});
  EXPECT_EQ(plain.score_soft_cap, 0.0f);
  EXPECT_EQ(plain.logit_soft_cap, 0.0f);
  nlohmann::json absent = sample_family_json("gemma2");
  for (const char* key : {"attn_logit_softcapping", "final_logit_softcapping", "head_dim"})
    absent.erase(key);
  EXPECT_EQ(parse_model_config(absent, "test").score_soft_cap, 50.0f);
  EXPECT_EQ(parse_model_config(absent, "test").logit_soft_cap, 30.0f);
  EXPECT_EQ(parse_model_config(absent, "test").head_width, 256);
  // The class reads hidden_activation, whatever the older hidden_act says.
  EXPECT_EQ(with("gemma2", {{"hidden_act", "relu"}}).activation, Activation::kGeluNew);
  EXPECT_THAT(refusal("gemma2", {{"attn_logit_softcapping", -1.0}}),
              testing::HasSubstr("attn_logit_softcapping"));
}

TEST(FamilyConfigs, EveryFamilyRefusesWhatNoneComputes) {
  for (const char* family :
       {"gpt_neo",     "gpt_neox", "gptj", "gpt_bigcode", "opt",        "llama",  "mistral",
        "qwen2",       "qwen3",    "olmo", "olmo2",       "olmo3",      "gemma",  "gemma2",
        "gemma3_text", "smollm3",  "phi",  "phi3",        "starcoder2", "cohere", "stablelm"}) {
    EXPECT_THAT(refusal(family, {{"quantization_config", {{"bits", 8}}}}),
                testing::HasSubstr("quantization_config"))
        << family;
    EXPECT_THAT(refusal(family, {{"vocab_size", 0}}), testing::HasSubstr("vocab_size")) << family;
    if (with(family, nlohmann::json::object()).positions != PositionKind::kRotary ||
        std::string(family) == "gptj")
      continue;
    EXPECT_THAT(refusal(family, {{"rope_scaling", {{"type", "axial"}, {"factor", 4.0}}}}),
                testing::HasSubstr("'axial'"))
        << family;
  }
  EXPECT_THAT(refusal("olmo", {{"clip_qkv", -2.0}}), testing::HasSubstr("clip_qkv"));
  EXPECT_THAT(error_of([] {
                parse_model_config({{"model_type", "mamba"}}, "config.json");
              }),
              testing::AllOf(testing::HasSubstr("'mamba'"), testing::HasSubstr("'gemma2'")));
}

TEST(FamilyConfigs, NamesOfFilesAreTheParameters) {
  const auto name = [](const char* family, const char* of) {
    return family_of(family, "test").canonical_name(with(family, nlohmann::json::object()), of);
  };
  EXPECT_EQ(name("gpt_neox", "gpt_neox.layers.0.attention.bias"), "");
  EXPECT_EQ(name("gpt_neox", "gpt_neox.layers.0.attention.rotary_emb.inv_freq"), "");
  EXPECT_EQ(name("gpt_neox", "layers.0.attention.dense.bias"),
            "gpt_neox.layers.0.attention.dense.bias");
  EXPECT_EQ(name("gpt_neox", "lm_head.weight"), "embed_out.weight");
  EXPECT_EQ(name("gpt_neo", "transformer.h.0.attn.attention.masked_bias"), "");
  EXPECT_EQ(name("gpt_neo", "h.0.ln_1.bias"), "transformer.h.0.ln_1.bias");
  EXPECT_EQ(name("gemma2", "lm_head.weight"), "");
  EXPECT_EQ(name("olmo2", "lm_head.weight"), "lm_head.weight");
  std::set<std::string> olmo;
  for (const ParameterSpec& spec :
       family_of("olmo", "test").parameters(with("olmo", {{"clip_qkv", 1.0}})))
    olmo.insert(spec.name);
  EXPECT_EQ(olmo.count("model.norm.weight"), 0u);
  EXPECT_EQ(olmo.size(), 1u + 2u * 7u + 1u);
}

// A fused matrix of q, k and v of each head, as its file has it and as it is computed with.
TEST(FamilyConfigs, OrdersOfQueriesKeysAndValues) {
  const ParameterSpec spec = {"w", {12, 2}, Initial::kNormal, 0.02f, 2};
  Tensor file = Tensor::empty({12, 2});
  for (std::int64_t i = 0; i < 24; ++i) file.mutable_f32()[i] = static_cast<float>(i);
  const Tensor ours = in_our_order(spec, file);
  // Rows of head 0: q 0 1, k 2 3, v 4 5; of head 1: q 6 7, ...
  const std::vector<float> firsts = {0, 2, 12, 14, 4, 6, 16, 18, 8, 10, 20, 22};
  for (std::size_t r = 0; r < 12; ++r) EXPECT_EQ(ours.f32()[r * 2], firsts[r]) << r;
  EXPECT_TRUE(std::ranges::equal(in_file_order(spec, ours).values(), file.values()));
}

}  // namespace
}  // namespace filigree
