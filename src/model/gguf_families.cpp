#include "model/gguf_families.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "filigree/error.h"
#include "filigree/layers.h"
#include "filigree/names.h"

namespace filigree {
namespace {

using Json = nlohmann::json;
using Kind = GgufKey::Kind;

constexpr std::int64_t kMostInteger = std::numeric_limits<std::int32_t>::max();

const TensorView* tensor_in(const GgufFile& file, std::string_view name) {
  for (const TensorView& tensor : file.tensors())
    if (tensor.name == name) return &tensor;
  return nullptr;
}

// -------------------------------------------------------------------------------------------------
// What no table says.

// Llama 3.1's scaling is not in the metadata: a tensor has the factor of each angle. They are those
// of these numbers of turns and an original context.
void read_llama3_factors(const GgufFile& file, const std::string& prefix, Json& config) {
  const TensorView* stored = tensor_in(file, "rope_freqs.weight");
  if (stored == nullptr) return;
  const GgufMetadata& metadata = file.metadata();
  std::vector<float> factors(static_cast<std::size_t>(stored->element_count()));
  read_f32(*stored, factors);
  require(!factors.empty() && std::ranges::all_of(factors, [](float f) { return f > 0.0f; }),
          "{}: 'rope_freqs.weight' has factors that are not above zero", metadata.source());
  RotaryScaling scaling{.kind = RotaryScaling::Kind::kLlama3,
                        .factor = std::ranges::max(factors),
                        .original_context = metadata.number_or(
                            prefix + "rope.scaling.original_context_length", 8192.0)};
  if (scaling.factor == 1.0) return;
  const double base = metadata.number_or(prefix + "rope.freq_base", 10000.0);
  const auto width = static_cast<std::int64_t>(2 * factors.size());
  const std::vector<double> plain = rotary_steps(width, base);
  const std::vector<double> scaled = rotary_steps(width, base, scaling);
  for (std::size_t i = 0; i < factors.size(); ++i)
    require(std::abs(plain[i] / scaled[i] / factors[i] - 1.0) < 1e-3,
            "{}: 'rope_freqs.weight' is not the scaling of Llama 3 by {} from {} positions on, and "
            "no other is supported",
            metadata.source(), scaling.factor, scaling.original_context);
  config["rope_scaling"] = {
      {"rope_type", "llama3"},
      {"factor", scaling.factor},
      {"low_freq_factor", scaling.low_frequency},
      {"high_freq_factor", scaling.high_frequency},
      {"original_max_position_embeddings", static_cast<std::int64_t>(scaling.original_context)}};
}

// Bounds and amplitudes of yarn are those that its authors give; files with others are refused, for
// programs do not agree on what the keys mean.
void require_usual_yarn(const GgufMetadata& metadata, const std::string& prefix) {
  struct Usual {
    const char* key;
    double value;
  };
  // Files of OLMo 3 have the amplitude itself where others have what it is multiplied with.
  const double amplitude =
      1.0 + 0.1 * std::log(metadata.number_or(prefix + "rope.scaling.factor", 1.0));
  const double written = metadata.number_or(prefix + "rope.scaling.attn_factor", 1.0);
  require(written == 1.0 || std::abs(written - amplitude) < 1e-3,
          "{}: '{}rope.scaling.attn_factor' is {}, which is not supported; 1 and {:.4f} are",
          metadata.source(), prefix, written, amplitude);
  for (const Usual& usual : {Usual{"yarn_attn_factor", 1.0}, Usual{"yarn_ext_factor", 1.0},
                             Usual{"yarn_beta_fast", 32.0}, Usual{"yarn_beta_slow", 1.0},
                             Usual{"yarn_log_multiplier", 0.0}}) {
    const std::string name = prefix + "rope.scaling." + usual.key;
    const double value = metadata.number_or(name, usual.value);
    require(value == usual.value, "{}: '{}' is {}, which is not supported; {} is",
            metadata.source(), name, value, usual.value);
  }
}

// Rotary positions of whole heads, scaled or not.
void read_rotary_scaling(const GgufFile& file, const std::string& prefix, Json& config) {
  const GgufMetadata& metadata = file.metadata();
  const std::string kind = metadata.text_or(prefix + "rope.scaling.type", "none");
  const double older = metadata.number_or(prefix + "rope.scale_linear", 1.0);
  if (kind == "none" && older != 1.0) {
    config["rope_scaling"] = {{"rope_type", "linear"}, {"factor", older}};
  } else if (kind != "none") {
    config["rope_scaling"] = {{"rope_type", kind},
                              {"factor", metadata.number_or(prefix + "rope.scaling.factor", 1.0)}};
    const std::string original = prefix + "rope.scaling.original_context_length";
    if (kind != "linear" && metadata.has(original))
      config["rope_scaling"]["original_max_position_embeddings"] =
          metadata.integer(original, 1, kMostInteger);
    require_usual_yarn(metadata, prefix);
  }
}

std::int64_t head_width(const Json& config) {
  if (config.contains("head_dim")) return config["head_dim"].get<std::int64_t>();
  return config["hidden_size"].get<std::int64_t>() /
         config["num_attention_heads"].get<std::int64_t>();
}

void read_rotary(const GgufFile& file, const std::string& prefix, Json& config) {
  read_rotary_scaling(file, prefix, config);
  read_llama3_factors(file, prefix, config);
  const std::string key = prefix + "rope.dimension_count";
  const std::int64_t width = head_width(config);
  const std::int64_t turned = file.metadata().integer_or(key, width, 0, kMostInteger);
  require(turned == width,
          "{}: '{}' is {}, but a head has {} elements; this architecture turns heads whole",
          file.metadata().source(), key, turned, width);
}

void write_rotary(const ModelConfig& config, const std::string& prefix, GgufEntries& entries) {
  const RotaryScaling& scaling = config.rotary_scaling;
  entries.integer(prefix + "rope.dimension_count", config.rotary_width);
  if (scaling.kind == RotaryScaling::Kind::kLinear) {
    entries.text(prefix + "rope.scaling.type", "linear");
    entries.number(prefix + "rope.scaling.factor", scaling.factor);
  }
  if (scaling.kind == RotaryScaling::Kind::kYarn) {
    entries.text(prefix + "rope.scaling.type", "yarn");
    entries.number(prefix + "rope.scaling.factor", scaling.factor);
  }
  if (scaling.kind == RotaryScaling::Kind::kLongRope)
    entries.number(prefix + "rope.scaling.attn_factor", scaling.amplitude);
  // The factors of llama3 and longrope are tensors.
  if (scaling.original_context > 0.0)
    entries.integer(prefix + "rope.scaling.original_context_length",
                    static_cast<std::int64_t>(scaling.original_context));
}

void read_biases(const GgufFile& file, Json& config) {
  if (tensor_in(file, "blk.0.attn_q.bias") != nullptr) config["attention_bias"] = true;
  if (tensor_in(file, "blk.0.ffn_up.bias") != nullptr) config["mlp_bias"] = true;
}

void read_llama(const GgufFile& file, const std::string& prefix, Json& config) {
  config["hidden_act"] = "silu";
  read_rotary(file, prefix, config);
  read_biases(file, config);
}

void read_plain_rotary(const GgufFile& file, const std::string& prefix, Json& config) {
  config["hidden_act"] = "silu";
  read_rotary(file, prefix, config);
}

void read_gemma(const GgufFile& file, const std::string& prefix, Json& config) {
  config["hidden_act"] = config["hidden_activation"] = "gelu_pytorch_tanh";
  read_rotary(file, prefix, config);
}

// Scores are divided by the root of this. Files say it or, of the models that there are, it follows
// from their depth: the largest divides by the width over the heads, the others by a head's width.
void read_query_scale(const GgufFile& file, const std::string& prefix, std::int64_t largest_depth,
                      Json& config) {
  const double scale = file.metadata().number_or(prefix + "attention.scale", 0.0);
  if (scale > 0.0)
    config["query_pre_attn_scalar"] = 1.0 / (scale * scale);
  else if (config["num_hidden_layers"] == largest_depth)
    config["query_pre_attn_scalar"] = config["hidden_size"].get<std::int64_t>() /
                                      config["num_attention_heads"].get<std::int64_t>();
  else
    config["query_pre_attn_scalar"] = head_width(config);
}

void read_gemma2(const GgufFile& file, const std::string& prefix, Json& config) {
  constexpr std::int64_t kLayersOf27B = 46;
  read_gemma(file, prefix, config);
  read_query_scale(file, prefix, kLayersOf27B, config);
}

void write_gemma2(const ModelConfig& config, const std::string& prefix, GgufEntries& entries) {
  write_rotary(config, prefix, entries);
  entries.number(prefix + "attention.scale", config.attention_scale);
}

void read_gemma3(const GgufFile& file, const std::string& prefix, Json& config) {
  constexpr std::int64_t kLayersOf27B = 62;
  constexpr std::int64_t kEvery = 6;  // of so many layers the last sees everything
  read_gemma(file, prefix, config);
  read_query_scale(file, prefix, kLayersOf27B, config);
  const std::string pattern = prefix + "attention.sliding_window_pattern";
  const bool by_layer = file.metadata().has(pattern) && file.metadata().is_array(pattern);
  const std::int64_t every =
      by_layer ? kEvery : file.metadata().integer_or(pattern, kEvery, 1, 10000);
  Json types = Json::array();
  const std::int64_t layers = config["num_hidden_layers"].get<std::int64_t>();
  require(layers <= static_cast<std::int64_t>(file.tensors().size()),
          "{}: {} layers, but {} tensors", file.metadata().source(), layers, file.tensors().size());
  for (std::int64_t l = 0; l < layers; ++l)
    types.push_back((l + 1) % every == 0 ? "full_attention" : "sliding_attention");
  config["layer_types"] = types;
  config["rope_local_base_freq"] =
      file.metadata().number_or(prefix + "rope.freq_base_swa", 10000.0);
}

void write_gemma3(const ModelConfig& config, const std::string& prefix, GgufEntries& entries) {
  write_gemma2(config, prefix, entries);
  if (config.window_rotary)
    entries.number(prefix + "rope.freq_base_swa", config.window_rotary->base);
  // The first layer without a window tells how many there are to one; others refuse to be written.
  const auto full = std::ranges::find(config.windows, 0);
  entries.integer(
      prefix + "attention.sliding_window_pattern",
      full == config.windows.end() ? config.layers + 1 : full - config.windows.begin() + 1);
}

void read_gpt2(const GgufFile&, const std::string&, Json& config) {
  config["activation_function"] = "gelu_new";
}

void read_gptneox(const GgufFile& file, const std::string& prefix, Json& config) {
  const GgufMetadata& metadata = file.metadata();
  const std::int64_t width = head_width(config);
  const std::int64_t turned =
      metadata.integer_or(prefix + "rope.dimension_count", width, 1, kMostInteger);
  config["rotary_pct"] = static_cast<double>(turned) / static_cast<double>(width);
  config["hidden_act"] = "gelu";
  if (tensor_in(file, "blk.0.attn_qkv.bias") == nullptr) config["attention_bias"] = false;
}

void write_nothing(const ModelConfig&, const std::string&, GgufEntries&) {}

void read_phi3(const GgufFile& file, const std::string& prefix, Json& config) {
  const GgufMetadata& metadata = file.metadata();
  const std::int64_t width = head_width(config);
  const std::int64_t turned =
      metadata.integer_or(prefix + "rope.dimension_count", width, 1, kMostInteger);
  config["hidden_act"] = "silu";
  if (turned != width)
    config["partial_rotary_factor"] = static_cast<double>(turned) / static_cast<double>(width);
  const TensorView* far = tensor_in(file, "rope_factors_long.weight");
  const TensorView* near = tensor_in(file, "rope_factors_short.weight");
  config["original_max_position_embeddings"] =
      metadata.integer_or(prefix + "rope.scaling.original_context_length",
                          config["max_position_embeddings"].get<std::int64_t>(), 1, kMostInteger);
  if (far == nullptr || near == nullptr) return;
  const auto factors = [](const TensorView& view) {
    std::vector<float> values(static_cast<std::size_t>(view.element_count()));
    read_f32(view, values);
    return values;
  };
  config["rope_scaling"] = {
      {"rope_type", "longrope"}, {"long_factor", factors(*far)}, {"short_factor", factors(*near)}};
}

// -------------------------------------------------------------------------------------------------
// The tables.

using Keys = std::vector<GgufKey>;
using Tensors = std::vector<GgufTensor>;

template <typename List>
List with(List list, const List& more) {
  list.insert(list.end(), more.begin(), more.end());
  return list;
}

const Keys kLlamaKeys = {{"context_length", "max_position_embeddings"},
                         {"embedding_length", "hidden_size"},
                         {"block_count", "num_hidden_layers"},
                         {"feed_forward_length", "intermediate_size"},
                         {"attention.head_count", "num_attention_heads"},
                         {"attention.head_count_kv", "num_key_value_heads", Kind::kInteger, false},
                         {"attention.key_length", "head_dim", Kind::kInteger, false},
                         {"attention.layer_norm_rms_epsilon", "rms_norm_eps", Kind::kNumber},
                         {"rope.freq_base", "rope_theta", Kind::kNumber, false}};
const Keys kWindow = {{"attention.sliding_window", "sliding_window", Kind::kInteger, false}};
const Keys kSoftCaps = {
    {"attn_logit_softcapping", "attn_logit_softcapping", Kind::kNumber, false},
    {"final_logit_softcapping", "final_logit_softcapping", Kind::kNumber, false}};

const Tensors kCommon = {{"token_embd", "model.embed_tokens"},
                         {"output", "lm_head"},
                         {"blk.{}.attn_v", "model.layers.{}.self_attn.v_proj"},
                         {"blk.{}.attn_output", "model.layers.{}.self_attn.o_proj"},
                         {"blk.{}.ffn_gate", "model.layers.{}.mlp.gate_proj"},
                         {"blk.{}.ffn_up", "model.layers.{}.mlp.up_proj"},
                         {"blk.{}.ffn_down", "model.layers.{}.mlp.down_proj"}};
const Tensors kQueriesKeys = {{"blk.{}.attn_q", "model.layers.{}.self_attn.q_proj"},
                              {"blk.{}.attn_k", "model.layers.{}.self_attn.k_proj"}};
const Tensors kPairedQueriesKeys = {
    {"blk.{}.attn_q", "model.layers.{}.self_attn.q_proj", StoredForm::kPairedQueries},
    {"blk.{}.attn_k", "model.layers.{}.self_attn.k_proj", StoredForm::kPairedKeys}};
const Tensors kQueryKeyNorms = {{"blk.{}.attn_q_norm", "model.layers.{}.self_attn.q_norm"},
                                {"blk.{}.attn_k_norm", "model.layers.{}.self_attn.k_norm"}};
const Tensors kNormsBefore = {{"output_norm", "model.norm"},
                              {"blk.{}.attn_norm", "model.layers.{}.input_layernorm"},
                              {"blk.{}.ffn_norm", "model.layers.{}.post_attention_layernorm"}};
const Tensors kNormsBehind = {
    {"output_norm", "model.norm"},
    {"blk.{}.post_attention_norm", "model.layers.{}.post_attention_layernorm"},
    {"blk.{}.post_ffw_norm", "model.layers.{}.post_feedforward_layernorm"}};
const Tensors kNormsOnBothSides =
    with(kNormsBehind, {{"blk.{}.attn_norm", "model.layers.{}.input_layernorm"},
                        {"blk.{}.ffn_norm", "model.layers.{}.pre_feedforward_layernorm"}});

// Gemma's norms: their files have the gain, Hugging Face's the gain less 1.
Tensors less_one(Tensors norms) {
  for (GgufTensor& norm : norms) norm.form = StoredForm::kPlusOne;
  return norms;
}

const std::vector<GgufFamily>& families() {
  static const std::vector<GgufFamily> kFamilies = {
      {"llama", "llama", "LlamaForCausalLM", kLlamaKeys,
       with(with(kCommon, kPairedQueriesKeys), kNormsBefore), read_llama, write_rotary},
      {"llama", "mistral", "MistralForCausalLM", with(kLlamaKeys, kWindow),
       with(with(kCommon, kPairedQueriesKeys), kNormsBefore), read_plain_rotary, write_rotary},
      {"qwen2", "qwen2", "Qwen2ForCausalLM", kLlamaKeys,
       with(with(kCommon, kQueriesKeys), kNormsBefore), read_plain_rotary, write_rotary},
      {"qwen3", "qwen3", "Qwen3ForCausalLM", kLlamaKeys,
       with(with(with(kCommon, kQueriesKeys), kNormsBefore), kQueryKeyNorms), read_llama,
       write_rotary},
      {"gemma", "gemma", "GemmaForCausalLM", kLlamaKeys,
       with(with(kCommon, kQueriesKeys), less_one(kNormsBefore)), read_gemma, write_rotary},
      {"gemma2", "gemma2", "Gemma2ForCausalLM", with(with(kLlamaKeys, kWindow), kSoftCaps),
       with(with(kCommon, kQueriesKeys), less_one(kNormsOnBothSides)), read_gemma2, write_gemma2},
      {"gemma3", "gemma3_text", "Gemma3ForCausalLM", with(with(kLlamaKeys, kWindow), kSoftCaps),
       with(with(kCommon, kQueriesKeys), less_one(with(kNormsOnBothSides, kQueryKeyNorms))),
       read_gemma3, write_gemma3},
      {"gpt2",
       "gpt2",
       "GPT2LMHeadModel",
       {{"context_length", "n_positions"},
        {"embedding_length", "n_embd"},
        {"block_count", "n_layer"},
        {"feed_forward_length", "n_inner"},
        {"attention.head_count", "n_head"},
        {"attention.layer_norm_epsilon", "layer_norm_epsilon", Kind::kNumber}},
       {{"token_embd", "transformer.wte"},
        {"position_embd", "transformer.wpe"},
        {"output_norm", "transformer.ln_f"},
        {"output", "lm_head"},
        {"blk.{}.attn_norm", "transformer.h.{}.ln_1"},
        {"blk.{}.ffn_norm", "transformer.h.{}.ln_2"},
        {"blk.{}.attn_qkv", "transformer.h.{}.attn.c_attn", StoredForm::kTransposed},
        {"blk.{}.attn_output", "transformer.h.{}.attn.c_proj", StoredForm::kTransposed},
        {"blk.{}.ffn_up", "transformer.h.{}.mlp.c_fc", StoredForm::kTransposed},
        {"blk.{}.ffn_down", "transformer.h.{}.mlp.c_proj", StoredForm::kTransposed}},
       read_gpt2,
       write_nothing},
      {"gptneox",
       "gpt_neox",
       "GPTNeoXForCausalLM",
       {{"context_length", "max_position_embeddings"},
        {"embedding_length", "hidden_size"},
        {"block_count", "num_hidden_layers"},
        {"feed_forward_length", "intermediate_size"},
        {"attention.head_count", "num_attention_heads"},
        {"attention.layer_norm_epsilon", "layer_norm_eps", Kind::kNumber},
        {"rope.freq_base", "rotary_emb_base", Kind::kNumber, false},
        {"use_parallel_residual", "use_parallel_residual", Kind::kTruth, false}},
       {{"token_embd", "gpt_neox.embed_in"},
        {"output_norm", "gpt_neox.final_layer_norm"},
        {"output", "embed_out"},
        {"blk.{}.attn_norm", "gpt_neox.layers.{}.input_layernorm"},
        {"blk.{}.ffn_norm", "gpt_neox.layers.{}.post_attention_layernorm"},
        {"blk.{}.attn_qkv", "gpt_neox.layers.{}.attention.query_key_value",
         StoredForm::kGroupedHeads},
        {"blk.{}.attn_output", "gpt_neox.layers.{}.attention.dense"},
        {"blk.{}.ffn_up", "gpt_neox.layers.{}.mlp.dense_h_to_4h"},
        {"blk.{}.ffn_down", "gpt_neox.layers.{}.mlp.dense_4h_to_h"}},
       read_gptneox,
       write_rotary},
      {"phi3", "phi3", "Phi3ForCausalLM", with(kLlamaKeys, kWindow),
       with(kNormsBefore, {{"token_embd", "model.embed_tokens"},
                           {"output", "lm_head"},
                           {"blk.{}.attn_qkv", "model.layers.{}.self_attn.qkv_proj"},
                           {"blk.{}.attn_output", "model.layers.{}.self_attn.o_proj"},
                           {"blk.{}.ffn_up", "model.layers.{}.mlp.gate_up_proj"},
                           {"blk.{}.ffn_down", "model.layers.{}.mlp.down_proj"}}),
       read_phi3, write_rotary},
      {"olmo2", "olmo2", "Olmo2ForCausalLM", kLlamaKeys,
       with(with(with(kCommon, kQueriesKeys), kNormsBehind), kQueryKeyNorms), read_llama,
       write_rotary},
      {"olmo2", "olmo3", "Olmo3ForCausalLM", with(kLlamaKeys, kWindow),
       with(with(with(kCommon, kQueriesKeys), kNormsBehind), kQueryKeyNorms), read_llama,
       write_rotary}};
  return kFamilies;
}

// Keys that stand for parts of a model that no family here has.
void refuse_what_no_family_has(const GgufMetadata& metadata, const std::string& prefix) {
  for (const char* key :
       {"expert_count", "attention.max_alibi_bias", "attention.clamp_kqv", "logit_scale",
        "residual_scale", "embedding_scale", "attention.q_lora_rank", "attention.kv_lora_rank"}) {
    const std::string name = prefix + key;
    require(metadata.number_or(name, 0.0) == 0.0, "{}: '{}' is {}, which is not supported",
            metadata.source(), name, metadata.number_or(name, 0.0));
  }
  require(metadata.boolean_or(prefix + "attention.causal", true),
          "{}: attention is not causal; only decoders are supported", metadata.source());
  const std::int64_t files = metadata.integer_or("split.count", 1, 0, kMostInteger);
  require(files <= 1, "{}: one of {} files; join them into one first, as llama-gguf-split does",
          metadata.source(), files);
}

// The section "gate" of config.json: one bias, or one a layer and head.
void read_gates(const GgufMetadata& metadata, Json& config) {
  if (!metadata.has(kGgufGateKey)) return;
  const std::vector<double> biases = metadata.numbers(kGgufGateKey);
  const auto layers = config.value("num_hidden_layers", config.value("n_layer", std::int64_t{0}));
  const auto heads = config.value("num_attention_heads", config.value("n_head", std::int64_t{0}));
  if (biases.size() == 1) {
    config["gate"] = {{"bias", biases[0]}};
    return;
  }
  require(layers > 0 && static_cast<double>(biases.size()) ==
                            static_cast<double>(layers) * static_cast<double>(heads),
          "{}: '{}' has {} numbers for {} layers of {} heads", metadata.source(), kGgufGateKey,
          biases.size(), layers, heads);
  Json rows = Json::array();
  for (auto row = biases.begin(); row != biases.end(); row += heads)
    rows.push_back(std::vector<double>(row, row + heads));
  config["gate"] = {{"bias", rows}};
}

// Some programs write the tied matrix twice.
bool has_own_output(const GgufFile& file) {
  const TensorView* output = tensor_in(file, "output.weight");
  const TensorView* embedding = tensor_in(file, "token_embd.weight");
  if (output == nullptr || embedding == nullptr) return output != nullptr;
  return output->kind != embedding->kind || output->shape != embedding->shape ||
         std::memcmp(output->data.data(), embedding->data.data(), output->data.size()) != 0;
}

// "blk.12.attn_q" -> "blk.{}.attn_q" and "12"; a name without a number is itself.
std::string without_layer(std::string_view name, std::string& layer) {
  std::string plain;
  for (std::size_t begin = 0; begin <= name.size();) {
    const std::size_t end = std::min(name.find('.', begin), name.size());
    const std::string_view part = name.substr(begin, end - begin);
    const bool number = !part.empty() && part.find_first_not_of("0123456789") == part.npos;
    if (begin > 0) plain += '.';
    plain += number && layer.empty() ? "{}" : part;
    if (number && layer.empty()) layer = part;
    begin = end + 1;
  }
  return plain;
}

// What config.json calls a number of the configuration.
double value_of(const ModelConfig& config, std::string_view hf) {
  struct Named {
    std::string_view hf;
    double value;
  };
  const auto whole = [](std::int64_t value) { return static_cast<double>(value); };
  const double window = config.windows.empty() ? 0.0 : whole(std::ranges::max(config.windows));
  for (const Named& named :
       {Named{"max_position_embeddings", whole(config.context)},
        {"n_positions", whole(config.context)},
        {"hidden_size", whole(config.width)},
        {"n_embd", whole(config.width)},
        {"num_hidden_layers", whole(config.layers)},
        {"n_layer", whole(config.layers)},
        {"intermediate_size", whole(config.mlp_width)},
        {"n_inner", whole(config.mlp_width)},
        {"num_attention_heads", whole(config.heads)},
        {"n_head", whole(config.heads)},
        {"num_key_value_heads", whole(config.key_heads)},
        {"head_dim", whole(config.head_width)},
        {"rms_norm_eps", config.norm_epsilon},
        {"layer_norm_eps", config.norm_epsilon},
        {"layer_norm_epsilon", config.norm_epsilon},
        {"rope_theta", config.rotary_base},
        {"rotary_emb_base", config.rotary_base},
        {"sliding_window", window},
        {"attn_logit_softcapping", config.score_soft_cap},
        {"final_logit_softcapping", config.logit_soft_cap},
        {"use_parallel_residual", config.residual == ResidualKind::kParallel ? 1.0 : 0.0}})
    if (named.hf == hf) return named.value;
  fail("gguf: no number of the configuration is called '{}'", hf);
}

GgufParameter renamed(const GgufFamily& family, std::string_view name,
                      const char* GgufTensor::*from, const char* GgufTensor::*to) {
  const std::size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return {};
  std::string layer;
  const std::string plain = without_layer(name.substr(0, dot), layer);
  for (const GgufTensor& tensor : family.tensors) {
    if (plain != tensor.*from) continue;
    std::string found = tensor.*to;
    if (const std::size_t place = found.find("{}"); place != std::string::npos)
      found.replace(place, 2, layer);
    return {found.append(name.substr(dot)), tensor.form};
  }
  return {};
}

}  // namespace

const GgufFamily& gguf_family(const GgufFile& file) {
  const GgufMetadata& metadata = file.metadata();
  const std::string architecture = metadata.text("general.architecture");
  const bool slides = metadata.has(architecture + ".attention.sliding_window");
  const GgufFamily* found = nullptr;
  std::vector<std::string> known;
  for (const GgufFamily& family : families()) {
    if (known.empty() || known.back() != family.architecture)
      known.emplace_back(family.architecture);
    if (family.architecture != architecture) continue;
    // Of two families the second is the one with windows.
    if (found == nullptr || slides) found = &family;
  }
  if (found != nullptr) return *found;
  fail("{}: architecture '{}' is not one this program reads; it reads {}", metadata.source(),
       printable(architecture), join(known, ", "));
}

const GgufFamily& gguf_family_of(std::string_view model_type, const std::string& source) {
  std::vector<std::string> known;
  for (const GgufFamily& family : families()) {
    if (family.model_type == model_type) return family;
    known.emplace_back(family.model_type);
  }
  fail("'{}': a {} cannot be a GGUF file; these can: {}", printable(source), printable(model_type),
       join(known, ", "));
}

Json gguf_config(const GgufFile& file) {
  const GgufFamily& family = gguf_family(file);
  const GgufMetadata& metadata = file.metadata();
  const std::string prefix = std::string(family.architecture) + ".";
  refuse_what_no_family_has(metadata, prefix);
  Json config = {{"architectures", {family.model_class}}, {"model_type", family.model_type}};
  for (const GgufKey& key : family.keys) {
    const std::string name = prefix + key.gguf;
    if (!key.required && !metadata.has(name)) continue;
    switch (key.kind) {
      case Kind::kInteger: config[key.hf] = metadata.integer(name, 0, kMostInteger); break;
      case Kind::kNumber: config[key.hf] = metadata.number(name); break;
      case Kind::kTruth: config[key.hf] = metadata.boolean_or(name, true); break;
    }
  }
  // Before widths of heads are derived from them.
  for (const char* key : {"num_attention_heads", "n_head"})
    require(!config.contains(key) || config[key].get<std::int64_t>() > 0,
            "{}: a model without attention heads is not supported", metadata.source());
  const TensorView* embedding = tensor_in(file, "token_embd.weight");
  require(embedding != nullptr && embedding->shape.size() == 2,
          "{}: tensor 'token_embd.weight' is missing or no matrix", metadata.source());
  config["vocab_size"] = embedding->shape[0];
  config["tie_word_embeddings"] = !has_own_output(file);
  for (const auto& [key, name] : {std::pair("bos_token_id", "tokenizer.ggml.bos_token_id"),
                                  std::pair("eos_token_id", "tokenizer.ggml.eos_token_id"),
                                  std::pair("pad_token_id", "tokenizer.ggml.padding_token_id")})
    if (metadata.has(name)) config[key] = metadata.integer(name, 0, kMostInteger);
  family.read(file, prefix, config);
  read_gates(metadata, config);
  return config;
}

void write_gguf_config(const ModelConfig& config, const std::string& source, GgufEntries& entries) {
  const GgufFamily& family = gguf_family_of(config.family, source);
  const std::string prefix = std::string(family.architecture) + ".";
  entries.text("general.architecture", family.architecture);
  entries.text("general.type", "model");
  for (const GgufKey& key : family.keys) {
    const double value = value_of(config, key.hf);
    if (value == 0.0 && !key.required && key.kind != Kind::kTruth) continue;
    const std::string name = prefix + key.gguf;
    switch (key.kind) {
      case Kind::kInteger: entries.integer(name, static_cast<std::int64_t>(value)); break;
      case Kind::kNumber: entries.number(name, value); break;
      case Kind::kTruth: entries.boolean(name, value != 0.0); break;
    }
    if (key.hf == std::string_view("head_dim"))
      entries.integer(prefix + "attention.value_length", static_cast<std::int64_t>(value));
  }
  entries.integer(prefix + "vocab_size", config.vocabulary);
  family.write(config, prefix, entries);
  if (config.gate.on()) entries.numbers(kGgufGateKey, config.gate.bias);
}

GgufParameter parameter_of(const GgufFamily& family, std::string_view tensor) {
  for (const char* known :
       {"rope_freqs.weight", "rope_factors_long.weight", "rope_factors_short.weight"})
    if (tensor == known) return {};
  GgufParameter found = renamed(family, tensor, &GgufTensor::gguf, &GgufTensor::hf);
  return found.name.empty() ? GgufParameter{std::string(tensor)} : found;
}

GgufParameter tensor_of(const GgufFamily& family, std::string_view parameter) {
  GgufParameter found = renamed(family, parameter, &GgufTensor::hf, &GgufTensor::gguf);
  require(!found.name.empty(), "parameter '{}' has no place in a GGUF file of architecture {}",
          printable(parameter), family.architecture);
  return found;
}

}  // namespace filigree
