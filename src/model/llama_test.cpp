// What of Llama's config.json and checkpoints is read, and what is refused.
#include <gtest/gtest.h>

#include <set>

#include "model/family.h"
#include "model/family_samples_test_support.h"

namespace filigree {
namespace {

ModelConfig with(const nlohmann::json& changes) {
  nlohmann::json json = sample_llama_json();
  json.update(changes);
  return parse_model_config(json, "config.json");
}

std::string refusal(const nlohmann::json& changes) {
  try {
    with(changes);
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

std::set<std::string> names(const ModelConfig& config) {
  std::set<std::string> found;
  for (const ParameterSpec& spec : family_of("llama", "test").parameters(config))
    found.insert(spec.name);
  return found;
}

TEST(Llama, ReadsItsConfiguration) {
  const ModelConfig config = with({{"rms_norm_eps", 1e-5}});
  EXPECT_EQ(config.heads, 4);
  EXPECT_EQ(config.key_heads, 2);
  EXPECT_EQ(config.head_width, 8);
  EXPECT_EQ(config.rotary_width, 8);
  EXPECT_EQ(config.norm, NormKind::kRms);
  EXPECT_EQ(config.norm_epsilon, 1e-5);
  EXPECT_EQ(config.positions, PositionKind::kRotary);
  EXPECT_EQ(config.mlp, MlpKind::kGated);
  EXPECT_EQ(config.activation, Activation::kSilu);
  EXPECT_EQ(config.residual, ResidualKind::kSequential);
  EXPECT_FALSE(config.tied_embeddings);
  // Without them: as many key heads as heads, which fill the width.
  const ModelConfig plain = with({{"num_key_value_heads", nullptr}, {"head_dim", nullptr}});
  EXPECT_EQ(plain.key_heads, 4);
  EXPECT_EQ(plain.head_width, 6);
}

TEST(Llama, ReadsTheBaseOfItsPositionsWhereverItStands) {
  EXPECT_EQ(with(nlohmann::json::object()).rotary_base, 10000.0);
  EXPECT_EQ(with({{"rope_theta", 500000.0}}).rotary_base, 500000.0);
  EXPECT_EQ(with({{"rope_theta", 5e5}, {"rope_scaling", nullptr}}).rotary_base, 500000.0);
  EXPECT_EQ(
      with({{"rope_parameters", {{"rope_theta", 2e4}, {"rope_type", "default"}}}}).rotary_base,
      20000.0);
  EXPECT_EQ(with({{"rope_parameters", {{"rope_theta", 2e4}}}, {"rope_theta", 3e4}}).rotary_base,
            20000.0);
  EXPECT_EQ(with({{"rope_scaling", {{"type", "default"}}}, {"rope_theta", 3e4}}).rotary_base,
            30000.0);
}

TEST(Llama, RefusesWhatItDoesNotCompute) {
  const auto expect = [](const nlohmann::json& changes, const std::string& part) {
    const std::string message = refusal(changes);
    EXPECT_NE(message.find(part), std::string::npos) << changes << ": " << message;
  };
  expect({{"rope_scaling", {{"type", "linear"}}}}, "factor");
  expect({{"rope_scaling", {{"rope_type", "axial"}, {"factor", 2.0}}}},
         "'axial', which is not supported; 'default', 'linear', 'llama3', 'yarn', 'dynamic' and "
         "'longrope'");
  expect({{"rope_parameters", {{"rope_type", "llama3"}, {"rope_theta", 5e5}, {"factor", 8.0}}}},
         "low_freq_factor");
  expect({{"rope_parameters", {{"rope_type", "default"}, {"attention_factor", 1.5}}}},
         "rope_parameters.attention_factor");
  expect({{"rope_parameters", {{"full_attention", {{"rope_theta", 1e4}}}}}}, "full_attention");
  expect({{"partial_rotary_factor", 0.5}}, "partial_rotary_factor 0.5");
  expect({{"quantization_config", {{"bits", 4}}}}, "quantization_config");
  expect({{"use_bidirectional_attention", true}}, "use_bidirectional_attention");
  expect({{"pruned_heads", {{"0", {1}}}}}, "pruned_heads");
  expect({{"rope_theta", 0.0}}, "rope_theta");
  expect({{"rope_theta", "large"}}, "rope_theta");
  expect({{"rope_parameters", {{"rope_theta", -1.0}}}}, "rope_theta");
  expect({{"rope_parameters", 7}}, "rope_parameters");
  expect({{"hidden_act", "mish"}}, "'mish'");
  expect({{"num_key_value_heads", 3}}, "multiple");
  expect({{"head_dim", 7}}, "even");
  expect({{"head_dim", nullptr}, {"hidden_size", 26}}, "multiple");
  expect({{"attention_bias", "yes"}}, "attention_bias");
  expect({{"mlp_bias", 1}}, "mlp_bias");
  expect({{"max_position_embeddings", 0}}, "max_position_embeddings");
  expect({{"intermediate_size", -1}}, "intermediate_size");
}

TEST(Llama, HasBiasesAndAnOutputMatrixOnlyWhereItsConfigurationSaysSo) {
  const std::set<std::string> plain = names(with(nlohmann::json::object()));
  EXPECT_EQ(plain.size(), 1u + 2u * 9u + 2u);
  EXPECT_EQ(plain.count("model.layers.1.self_attn.k_proj.weight"), 1u);
  EXPECT_EQ(plain.count("lm_head.weight"), 1u);
  EXPECT_EQ(names(with({{"tie_word_embeddings", true}})).count("lm_head.weight"), 0u);
  const std::set<std::string> attention = names(with({{"attention_bias", true}}));
  EXPECT_EQ(attention.size(), plain.size() + 2u * 4u);
  EXPECT_EQ(attention.count("model.layers.0.self_attn.o_proj.bias"), 1u);
  const std::set<std::string> mlp = names(with({{"mlp_bias", true}}));
  EXPECT_EQ(mlp.size(), plain.size() + 2u * 3u);
  EXPECT_EQ(mlp.count("model.layers.0.mlp.gate_proj.bias"), 1u);
}

TEST(Llama, KnowsOlderNames) {
  const Family& family = family_of("llama", "test");
  const ModelConfig config = with(nlohmann::json::object());
  const auto name = [&](const char* of) { return family.canonical_name(config, of); };
  EXPECT_EQ(name("model.layers.0.self_attn.rotary_emb.inv_freq"), "");
  EXPECT_EQ(name("layers.0.mlp.up_proj.weight"), "model.layers.0.mlp.up_proj.weight");
  EXPECT_EQ(name("norm.weight"), "model.norm.weight");
  EXPECT_EQ(name("lm_head.weight"), "lm_head.weight");
  EXPECT_EQ(family.canonical_name(with({{"tie_word_embeddings", true}}), "lm_head.weight"), "");
}

}  // namespace
}  // namespace filigree
