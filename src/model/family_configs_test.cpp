// What the families read of config.json in its older and newer spellings, and what they refuse.
#include <gmock/gmock.h>

#include <cmath>
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

// Bases and scaling by kind of layer, in the sections of transformers 5 and in older files.
TEST(FamilyConfigs, PositionsByKindOfLayerAreReadInBothSpellings) {
  const ModelConfig older = with("gemma3_text", nlohmann::json::object());
  EXPECT_EQ(older.windows, Windows({4, 0}));
  EXPECT_EQ(older.rotary_angles(0), (RotaryAngles{100.0, {}}));
  EXPECT_EQ(older.rotary_angles(1),
            (RotaryAngles{5000.0, {.kind = RotaryScaling::Kind::kLinear, .factor = 2.0}}));
  nlohmann::json json = sample_family_json("gemma3_text");
  for (const char* key : {"rope_theta", "rope_scaling", "rope_local_base_freq"}) json.erase(key);
  EXPECT_EQ(parse_model_config(json, "test").rotary_angles(0).base, 10000.0);
  EXPECT_EQ(parse_model_config(json, "test").rotary_angles(1).base, 1e6);
  json["rope_parameters"] = {
      {"full_attention", {{"rope_type", "linear"}, {"rope_theta", 5000.0}, {"factor", 2.0}}},
      {"sliding_attention", {{"rope_type", "default"}, {"rope_theta", 100.0}}}};
  const ModelConfig newer = parse_model_config(json, "test");
  EXPECT_EQ(newer.rotary_angles(0), older.rotary_angles(0));
  EXPECT_EQ(newer.rotary_angles(1), older.rotary_angles(1));
  json["rope_parameters"]["sliding_attention"]["partial_rotary_factor"] = 0.5;
  EXPECT_THAT(error_of([&] { parse_model_config(json, "test"); }),
              testing::HasSubstr("different shares of a head, 1 and 0.5"));
  // OLMo 3's layers with a window have the base of the others, and no scaling.
  const ModelConfig olmo = with("olmo3", nlohmann::json::object());
  EXPECT_EQ(olmo.rotary_angles(0), (RotaryAngles{300.0, {}}));
  EXPECT_EQ(olmo.rotary_angles(1).scaling.kind, RotaryScaling::Kind::kYarn);
  // Other families have one kind of angles.
  EXPECT_THAT(refusal("llama", {{"rope_scaling", nullptr},
                                {"rope_parameters", {{"full_attention", {{"rope_theta", 1e4}}}}}}),
              testing::HasSubstr("rope_parameters.full_attention"));
}

TEST(FamilyConfigs, ScalingIsReadWithTransformersDefaults) {
  const auto scaling = [](const nlohmann::json& section, nlohmann::json more = {}) {
    more["rope_scaling"] = section;
    return with("llama", more).rotary_scaling;
  };
  nlohmann::json yarn = {{"type", "yarn"}, {"factor", 4.0}};
  EXPECT_NEAR(scaling(yarn).amplitude, 0.1 * std::log(4.0) + 1.0, 1e-12);
  EXPECT_EQ(scaling(yarn).original_context, 32.0);
  EXPECT_EQ(scaling(yarn).high_frequency, 32.0);
  EXPECT_EQ(scaling(yarn).low_frequency, 1.0);
  EXPECT_EQ(scaling(yarn, {{"original_max_position_embeddings", 8}}).original_context, 8.0);
  yarn.update({{"attention_factor", 1.5}, {"beta_fast", 0}, {"truncate", false}});
  EXPECT_EQ(scaling(yarn).amplitude, 1.5);
  EXPECT_EQ(scaling(yarn).high_frequency, 32.0);
  EXPECT_FALSE(scaling(yarn).whole_pairs);
  const nlohmann::json no_factor = {{"type", "yarn"}, {"original_max_position_embeddings", 8}};
  EXPECT_EQ(scaling(no_factor).factor, 4.0);
  const ModelConfig dynamic =
      with("llama", {{"rope_scaling", {{"type", "dynamic"}, {"factor", 2.5}}}});
  EXPECT_EQ(dynamic.rotary_scaling.original_context, 32.0);
  EXPECT_EQ(dynamic.context, 80);
  EXPECT_NEAR(scaling(kSampleLongRope).amplitude,
              std::sqrt(1.0 + std::log(32.0 / 6.0) / std::log(6.0)), 1e-12);
  nlohmann::json longrope = kSampleLongRope;
  longrope["long_factor"] = {1.0, 2.0};
  EXPECT_THAT(refusal("llama", {{"rope_scaling", longrope}}),
              testing::HasSubstr("2 factors for the 4 pairs"));
  longrope["long_factor"] = {1.0, 2.0, 0.0, 1.0};
  EXPECT_THAT(refusal("llama", {{"rope_scaling", longrope}}),
              testing::HasSubstr("long_factor holds 0.0"));
  EXPECT_THAT(refusal("llama", {{"rope_theta", 1.0}, {"rope_scaling", {{"type", "yarn"}}}}),
              testing::HasSubstr("rope_theta above 1"));
  // Phi 3 has longrope alone, which older files call otherwise, from a context of its own.
  longrope = {{"type", "su"}, {"short_factor", {1.0, 1.1, 1.3}}, {"long_factor", {1.5, 2.0, 4.0}}};
  const ModelConfig phi = with("phi3", {{"rope_scaling", longrope}});
  EXPECT_EQ(phi.rotary_scaling.kind, RotaryScaling::Kind::kLongRope);
  EXPECT_EQ(phi.rotary_scaling.original_context, 4096.0);
  EXPECT_THAT(refusal("phi3", {{"rope_scaling", {{"type", "linear"}, {"factor", 2.0}}}}),
              testing::HasSubstr("'linear', which this family does not have"));
}

TEST(FamilyConfigs, LayersThatNoPositionsTurn) {
  const ModelConfig config = with("smollm3", nlohmann::json::object());
  EXPECT_TRUE(config.turns(0));
  EXPECT_FALSE(config.turns(1));
  EXPECT_EQ(config.windows, Windows({0, 4}));
  nlohmann::json json = sample_family_json("smollm3");
  json.erase("no_rope_layers");
  json["no_rope_layer_interval"] = 2;
  EXPECT_EQ(parse_model_config(json, "test").turned, std::vector<bool>({true, false}));
  EXPECT_THAT(refusal("smollm3", {{"no_rope_layers", {1}}}),
              testing::HasSubstr("1 entries for 2 layers"));
  EXPECT_THAT(refusal("smollm3", {{"no_rope_layers", {1, 2}}}), testing::HasSubstr("holds 2"));
}

TEST(FamilyConfigs, WhatLaterFamiliesDoNotComputeIsRefusedByName) {
  EXPECT_THAT(refusal("opt", {{"word_embed_proj_dim", 12}}),
              testing::HasSubstr("word_embed_proj_dim 12"));
  EXPECT_THAT(refusal("opt", {{"do_layer_norm_before", false}}),
              testing::HasSubstr("do_layer_norm_before"));
  EXPECT_THAT(refusal("opt", {{"_remove_final_layer_norm", true}}),
              testing::HasSubstr("_remove_final_layer_norm"));
  EXPECT_THAT(refusal("gptj", {{"rotary_dim", 5}}), testing::HasSubstr("rotary_dim 5"));
  EXPECT_THAT(refusal("gptj", {{"rotary_dim", 10}}), testing::HasSubstr("a head's 8 elements"));
  EXPECT_THAT(refusal("qwen3_moe", {{"decoder_sparse_step", 2}}),
              testing::HasSubstr("decoder_sparse_step 2"));
  EXPECT_THAT(refusal("qwen3_moe", {{"mlp_only_layers", {0}}}),
              testing::HasSubstr("mlp_only_layers"));
  EXPECT_THAT(refusal("olmoe", {{"clip_qkv", 8.0}}), testing::HasSubstr("clip_qkv 8"));
  EXPECT_THAT(refusal("olmoe", {{"num_experts_per_tok", 5}}),
              testing::HasSubstr("num_experts_per_tok 5 is more than num_experts 4"));
  EXPECT_THAT(refusal("olmoe", {{"num_experts", 65000}}), testing::HasSubstr("65536 in all"));
  EXPECT_THAT(refusal("gemma", {{"use_bidirectional_attention", true}}),
              testing::HasSubstr("use_bidirectional_attention"));
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

// Heads of five rows, the first four of which are turned: pairs beside each other in the file.
TEST(FamilyConfigs, OrdersOfPairs) {
  const ParameterSpec spec = {.name = "w", .shape = {10, 1}, .paired_heads = 2, .paired_width = 4};
  Tensor file = Tensor::empty({10, 1});
  for (std::int64_t i = 0; i < 10; ++i) file.mutable_f32()[i] = static_cast<float>(i);
  const Tensor ours = in_our_order(spec, file);
  EXPECT_THAT(std::vector<float>(ours.f32(), ours.f32() + 10),
              testing::ElementsAre(0, 2, 1, 3, 4, 5, 7, 6, 8, 9));
  EXPECT_TRUE(std::ranges::equal(in_file_order(spec, ours).values(), file.values()));
}

}  // namespace
}  // namespace filigree
