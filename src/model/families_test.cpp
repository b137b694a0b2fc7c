// What every family and every kind of block must do: the decoder against a plain double-precision
// forward pass, and its many ways of running against each other.
#include <gmock/gmock.h>

#include <algorithm>
#include <set>

#include "filigree/ops.h"
#include "model/family_samples_test_support.h"
#include "model/reference_forward_test_support.h"
#include "ops/output_loss/output_loss.h"
#include "support/check_op.h"
#include "support/errors.h"
#include "support/temporary_folder.h"

namespace filigree {
namespace {

const auto test_name = [](const auto& sample) { return sample_test_name(sample.param); };

double error(const Tensor& found, const Tensor& wanted) {
  return relative_error(found.values(), to_doubles(wanted));
}

bool same_bits(const Tensor& a, const Tensor& b) {
  return std::ranges::equal(a.values(), b.values());
}

// The places of the decoder that a configuration can reach, one at a time.
ModelConfig reference_config(const std::string& name) {
  const auto gpt2 = [](const char* key, const nlohmann::json& value) {
    nlohmann::json json = sample_gpt2_json();
    json[key] = value;
    return parse_model_config(json, "test");
  };
  if (name == "gpt2-unscaled") return gpt2("scale_attn_weights", false);
  if (name == "gpt2-by-layer") return gpt2("scale_attn_by_inverse_layer_idx", true);
  if (name == "gpt2-untied") return gpt2("tie_word_embeddings", false);
  if (name.starts_with("gpt2-")) return gpt2("activation_function", name.substr(5));
  if (name == "llama-linear") {
    nlohmann::json json = sample_llama_json();
    json["rope_scaling"] = {{"type", "linear"}, {"factor", 4.0}};
    return parse_model_config(json, "test");
  }
  if (name == "llama-yarn" || name == "llama-yarn-parts" || name == "llama-dynamic" ||
      name == "llama-longrope") {
    nlohmann::json json = sample_llama_json();
    json["rope_theta"] = 50.0;
    json["rope_scaling"] = kSampleYarn;
    if (name == "llama-yarn-parts")
      json["rope_scaling"].update({{"truncate", false}, {"mscale", 0.7}, {"mscale_all_dim", 0.3}});
    if (name == "llama-dynamic") {
      json["rope_scaling"] = {{"rope_type", "dynamic"}, {"factor", 2.0}};
      json["max_position_embeddings"] = 6;
    }
    if (name == "llama-longrope") json["rope_scaling"] = kSampleLongRope;
    return parse_model_config(json, "test");
  }
  if (name == "stablelm-sequential" || name == "cohere-plain" || name == "bigcode-heads") {
    nlohmann::json json = sample_family_json(name == "bigcode-heads"  ? "gpt_bigcode"
                                             : name == "cohere-plain" ? "cohere"
                                                                      : "stablelm");
    json.update({{"use_parallel_residual", false},
                 {"use_qk_norm", false},
                 {"qk_layernorm", false},
                 {"multi_query", false}});
    return parse_model_config(json, "test");
  }
  if (name == "llama-tied") {
    nlohmann::json json = sample_llama_json();
    json["tie_word_embeddings"] = true;
    json["rope_theta"] = 100.0;
    json["rms_norm_eps"] = 1e-2;
    return parse_model_config(json, "test");
  }
  return sample_config(name);
}

class AgainstReference : public testing::TestWithParam<std::string> {};

TEST_P(AgainstReference, LogitsAndEveryGradient) {
  const auto model = sample_model(reference_config(GetParam()));
  model->set_requires_grad(true);
  ReferenceForward reference(*model);
  const Tensor ids = sample_ids(1, 9);
  const std::vector<std::int32_t> tokens(ids.i32(), ids.i32() + 9);
  std::vector<std::int32_t> targets;
  for (const std::int32_t token : tokens) targets.push_back((token * 3 + 1) % 50);
  Tape tape;
  const Variable logits = model->forward(ids);
  EXPECT_LT(relative_error(logits.value().values(), reference.logits(tokens)), 1e-5);
  const Variable loss = cross_entropy(logits, Tensor::from_ids({1, 9}, targets));
  EXPECT_NEAR(static_cast<double>(loss.value().item()), reference.loss(tokens, targets), 1e-5);
  tape.backward(loss);
  Random random(5);
  for (const NamedParameter& parameter : model->parameters()) {
    const Tensor& grad = parameter.variable.grad();
    ASSERT_TRUE(grad.defined()) << parameter.name;
    ReferenceForward::Doubles& values = reference.values(parameter.variable);
    double largest = 0.0;
    for (const float value : grad.values())
      largest = std::max(largest, std::abs(static_cast<double>(value)));
    ASSERT_GT(largest, 0.0) << parameter.name;
    for (int probe = 0; probe < 6; ++probe) {
      const std::size_t place = random.below(values.size());
      const double before = values[place], step = 1e-5;
      values[place] = before + step;
      const double above = reference.loss(tokens, targets);
      values[place] = before - step;
      const double slope = (above - reference.loss(tokens, targets)) / (2 * step);
      values[place] = before;
      // A bias of keys moves all scores of a query alike, so that its slope is rounding.
      const double rounding = parameter.name.ends_with(".b_K") ? 1e-7 : 1e-8;
      EXPECT_NEAR(static_cast<double>(grad.f32()[place]), slope, 3e-5 * largest + rounding)
          << parameter.name << " at " << place;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Models, AgainstReference,
    testing::Values("gpt2", "gpt2-gelu", "gpt2-relu", "gpt2-silu", "gpt2-gelu_pytorch_tanh",
                    "gpt2-unscaled", "gpt2-by-layer", "gpt2-untied", "llama", "llama-tied",
                    "llama-linear", "parallel", "parallel-gpt2", "family-gpt_neo",
                    "family-gpt_neox", "family-llama", "family-mistral", "family-qwen2",
                    "family-qwen3", "family-olmo", "family-olmo2", "family-gemma2", "family-gptj",
                    "family-gpt_bigcode", "family-opt", "family-olmo3", "family-smollm3",
                    "family-gemma", "family-gemma3_text", "family-phi", "family-phi3",
                    "family-stablelm", "family-starcoder2", "family-cohere", "family-olmoe",
                    "family-qwen3_moe", "llama-yarn", "llama-yarn-parts", "llama-dynamic",
                    "llama-longrope", "stablelm-sequential", "cohere-plain", "bigcode-heads",
                    "hooked-attn_only", "hooked-no_norm", "hooked-bidirectional",
                    "hooked-shortformer", "hooked-solu", "hooked-rotary", "hooked-solu_folded"),
    test_name);

class EveryFamily : public testing::TestWithParam<std::string> {
 protected:
  std::unique_ptr<Model> model_ = sample_model(GetParam());
  bool parallel() const { return model_->config().residual == ResidualKind::kParallel; }
  bool has_mlp() const { return model_->config().mlp != MlpKind::kNone; }
  bool has_middle() const { return has_mlp() && !parallel(); }
};

TEST_P(EveryFamily, PassesTheTapsItListsInTheirOrder) {
  Taps taps;
  for (const std::string& name : model_->tap_names()) taps.observe(name);
  model_->forward(sample_ids(2, 5), {.taps = &taps});
  const std::set<std::string> listed(model_->tap_names().begin(), model_->tap_names().end());
  EXPECT_EQ(std::set<std::string>(taps.passed().begin(), taps.passed().end()), listed);
  EXPECT_EQ(taps.passed().size(), listed.size());
  const ModelConfig& config = model_->config();
  const bool rotary = config.positions == PositionKind::kRotary;
  const bool turned_or_none = rotary || config.positions == PositionKind::kNone;
  EXPECT_EQ(listed.count("hook_pos_embed"), turned_or_none ? 0u : 1u);
  EXPECT_EQ(listed.count("blocks.0.attn.hook_rot_q"), rotary ? 1u : 0u);
  EXPECT_EQ(listed.count("blocks.1.attn.hook_rot_q"), config.turns(1) ? 1u : 0u);
  EXPECT_EQ(listed.count("blocks.1.attn.hook_rot_k"), config.turns(1) ? 1u : 0u);
  EXPECT_EQ(listed.count("blocks.1.mlp.hook_pre_linear"), config.mlp == MlpKind::kGated ? 1u : 0u);
  EXPECT_EQ(listed.count("blocks.1.hook_resid_mid"), has_middle() ? 1u : 0u);
  EXPECT_EQ(listed.count("blocks.1.hook_mlp_out"), has_mlp() ? 1u : 0u);
  EXPECT_EQ(listed.count("blocks.1.mlp.hook_mid"), config.mlp_norm ? 1u : 0u);
  const bool normed = config.norm != NormKind::kNone;
  EXPECT_EQ(listed.count("blocks.1.ln1.hook_scale") + listed.count("blocks.1.ln1_post.hook_scale"),
            normed ? (config.branch_norms == BranchNorms::kBoth ? 2u : 1u) : 0u);
  const Shape queries{2, 5, config.heads, config.head_width};
  const Shape keys{2, 5, config.key_heads, config.head_width};
  const auto shape = [&](const char* name) { return taps.value(name).shape(); };
  EXPECT_EQ(shape("blocks.0.attn.hook_q"), queries);
  EXPECT_EQ(shape("blocks.0.attn.hook_k"), keys);
  EXPECT_EQ(shape("blocks.0.attn.hook_z"), queries);
  EXPECT_EQ(shape("blocks.0.hook_q_input"), Shape({2, 5, config.heads, config.width}));
  EXPECT_EQ(shape("blocks.0.hook_v_input"), Shape({2, 5, config.key_heads, config.width}));
  EXPECT_EQ(shape("blocks.0.attn.hook_attn_scores"), Shape({2, config.heads, 5, 5}));
  EXPECT_EQ(shape("blocks.0.attn.hook_result"), Shape({2, 5, config.heads, config.width}));
  if (has_mlp()) {
    if (config.mlp == MlpKind::kExperts) {
      EXPECT_EQ(shape("blocks.0.mlp.hook_expert_gates"), Shape({2, 5, config.experts}));
      EXPECT_EQ(shape("blocks.0.mlp.hook_expert_out"), Shape({2, 5, config.experts, config.width}));
    } else {
      EXPECT_EQ(shape("blocks.0.mlp.hook_post"), Shape({2, 5, config.mlp_width}));
    }
  }
  if (normed) {
    EXPECT_EQ(shape("ln_final.hook_scale"), Shape({2, 5, 1}));
  }
  EXPECT_THROW(taps.value("blocks.9.attn.hook_q"), Error);
  if (rotary) {
    EXPECT_EQ(shape("blocks.0.attn.hook_rot_q"), queries);
    EXPECT_EQ(shape("blocks.0.attn.hook_rot_k"), keys);
    // Position 0 is not turned, the others are.
    const bool keys_normed = config.query_key_norm != QueryKeyNorm::kNone;
    const Tensor &k = taps.value(keys_normed ? "blocks.0.attn.k_norm.hook_normalized"
                                             : "blocks.0.attn.hook_k"),
                 &turned = taps.value("blocks.0.attn.hook_rot_k");
    const std::int64_t row = config.key_heads * config.head_width;
    // TransformerLens shows normalised keys before their weight; some scaling makes keys larger.
    if (!(config.lens_taps && keys_normed) && config.rotary_scaling.amplitude == 1.0) {
      EXPECT_TRUE(std::equal(k.f32(), k.f32() + row, turned.f32()));
    }
    EXPECT_FALSE(std::equal(k.f32() + row, k.f32() + 2 * row, turned.f32() + row));
  }
}

TEST_P(EveryFamily, LookingAtATapDoesNotChangeTheLogits) {
  const Tensor plain = model_->forward(sample_ids(2, 7)).value();
  for (const std::string& name : model_->tap_names()) {
    Taps observed, differentiated, replaced;
    observed.observe(name);
    differentiated.observe_gradient(name);
    replaced.intervene(name, [](const Variable& x) { return x; });
    for (Taps* taps : {&observed, &differentiated, &replaced})
      EXPECT_LT(error(model_->forward(sample_ids(2, 7), {.taps = taps}).value(), plain), 1e-5)
          << name;
  }
}

// Gates are steps, which have no slope.
class DenseFamily : public EveryFamily {};

// The gradient at every tap is the slope of the loss when the tap is moved by an intervention.
TEST_P(DenseFamily, GradientsAtEveryTapAreSlopesOfTheLoss) {
  const Tensor tokens = sample_ids(1, 6);
  for (const std::string& name : model_->tap_names()) {
    Taps taps;
    taps.observe_gradient(name);
    Tape tape;
    tape.backward(cross_entropy(model_->forward(tokens, {.taps = &taps}), tokens));
    const Tensor gradient = taps.gradient(name);
    // Move along a random direction; scores above the diagonal are infinite and stay so.
    const Tensor direction = random_tensor(gradient.shape(), 3);
    const auto loss_at = [&](float step) {
      const NoGrad no_grad;
      Taps moved;
      moved.intervene(name, [&](const Variable& x) { return add(x, scale(direction, step)); });
      return static_cast<double>(
          cross_entropy(model_->forward(tokens, {.taps = &moved}), tokens).value().item());
    };
    double expected = 0.0, size = 0.0;
    for (std::int64_t i = 0; i < gradient.elements(); ++i) {
      const double part =
          static_cast<double>(gradient.f32()[i]) * static_cast<double>(direction.f32()[i]);
      expected += part;
      size += std::abs(part);
    }
    ASSERT_GT(size, 0.0) << name;
    const double step = 3e-3 / std::max(1.0, size);
    const double slope =
        (loss_at(static_cast<float>(step)) - loss_at(static_cast<float>(-step))) / (2 * step);
    EXPECT_NEAR(slope, expected, 2e-2 * std::max(std::abs(expected), 0.1 * size) + 1e-4) << name;
  }
}

// Positions [begin, end) of ids or logits [B, T, ...].
Tensor positions_of(const Tensor& x, std::int64_t begin, std::int64_t end) {
  if (x.dtype() == DType::kF32) return slice(x, 1, begin, end).value();
  Tensor part = Tensor::empty({x.size(0), end - begin}, DType::kI32);
  for (std::int64_t i = 0; i < part.elements(); ++i)
    part.mutable_i32()[i] = x.i32()[i / (end - begin) * x.size(1) + begin + i % (end - begin)];
  return part;
}

TEST_P(EveryFamily, ACacheGivesTheLogitsOfAFullRun) {
  if (model_->config().bidirectional) {
    EXPECT_THAT(error_of([&] { model_->make_cache(2, 12); }),
                testing::HasSubstr("needs causal attention"));
    return;
  }
  const Tensor tokens = sample_ids(2, 12);
  Taps taps;
  for (const std::string& name : model_->tap_names())
    if (name.ends_with("attn.hook_k") || name.ends_with("attn.hook_rot_k")) taps.observe(name);
  const Tensor full = model_->forward(tokens, {.taps = &taps}).value();
  for (const std::int64_t first : {1, 5, 11}) {
    const auto cache = model_->make_cache(2, 12);
    for (std::int64_t begin = 0; begin < 12;) {
      const std::int64_t end = begin == 0 ? first : begin + 1;
      const Tensor part = positions_of(tokens, begin, end);
      const Tensor logits = model_->forward(part, {.cache = cache.get()}).value();
      EXPECT_LT(error(logits, positions_of(full, begin, end)), 2e-5);
      begin = end;
    }
    // What it holds is what the scores read.
    const bool turned = model_->config().turns(1);
    const Tensor& keys = taps.value(turned ? "blocks.1.attn.hook_rot_k" : "blocks.1.attn.hook_k");
    EXPECT_LT(error(cache->keys(1), keys), 1e-5);
  }
  const auto cache = model_->make_cache(2, 12);
  model_->forward(positions_of(tokens, 0, 5), {.cache = cache.get()});
  const Tensor last =
      model_
          ->forward(positions_of(tokens, 5, 12), {.cache = cache.get(), .last_position_only = true})
          .value();
  EXPECT_LT(error(last, positions_of(full, 11, 12)), 2e-5);
}

// Where angles go by the length of a run, a cache serves runs that turn as those it is of.
TEST(LengthScaling, ACacheOfOtherAnglesIsRefused) {
  for (const char* name : {"llama-dynamic", "llama-longrope"}) {
    const auto model = sample_model(reference_config(name));
    const Tensor tokens = sample_ids(1, 10);
    const Tensor full = model->forward(tokens).value();
    const auto cache = model->make_cache(1, 10);
    model->forward(positions_of(tokens, 0, 4), {.cache = cache.get()});
    const Tensor within =
        model->forward(positions_of(tokens, 4, 6), {.cache = cache.get()}).value();
    EXPECT_LT(error(within, positions_of(model->forward(positions_of(tokens, 0, 6)).value(), 4, 6)),
              2e-5);
    EXPECT_THAT(
        error_of([&] { model->forward(positions_of(tokens, 6, 7), {.cache = cache.get()}); }),
        testing::HasSubstr("in a run of 7 tokens than in the cached run of 6"));
    // What a run of the same length computed may be gone on from, and with longrope what one
    // computed that is longer than the original context, too.
    cache->clear();
    model->forward(tokens, {.cache = cache.get()});
    cache->truncate(8);
    EXPECT_LT(error(model->forward(positions_of(tokens, 8, 10), {.cache = cache.get()}).value(),
                    positions_of(full, 8, 10)),
              2e-5)
        << name;
    cache->truncate(8);
    const bool longrope = name == std::string("llama-longrope");
    EXPECT_EQ(error_of([&] {
                model->forward(positions_of(tokens, 8, 9), {.cache = cache.get()});
              }) == "no error",
              longrope);
  }
}

TEST_P(EveryFamily, ARunMayEndInTheMiddleAndAnotherGoOn) {
  const Tensor tokens = sample_ids(2, 9);
  Taps taps;
  taps.observe("blocks.1.hook_resid_pre");
  const Tensor full = model_->forward(tokens, {.taps = &taps}).value();
  const Tensor middle = model_->residual_before(1, tokens).value();
  EXPECT_LT(error(middle, taps.value("blocks.1.hook_resid_pre")), 1e-5);
  const std::int64_t layers = model_->config().layers;
  ForwardStart start;
  start.layer = 1, start.residual = middle;
  EXPECT_LT(error(model_->forward(tokens, {.start = &start}).value(), full), 2e-5);
  EXPECT_THAT(error_of([&] { model_->residual_before(layers + 1, tokens); }),
              testing::HasSubstr("cannot end before layer"));
  EXPECT_THAT(error_of([&] { model_->residual_before(0, tokens, {.start = &start}); }),
              testing::HasSubstr("a run from layer 1"));
  if (model_->config().bidirectional) return;  // without a cache
  // In two steps, behind cached positions of the layers that each step passes.
  const Tensor before = positions_of(tokens, 0, 4), after = positions_of(tokens, 4, 9);
  const auto cache = model_->make_cache(2, 9, 0, 1), rest = model_->make_cache(2, 9, 1, layers);
  ForwardStart early, late;
  early.layer = late.layer = 1;
  early.residual = model_->residual_before(1, before, {.cache = cache.get()});
  model_->residual_before(layers, before, {.start = &early, .cache = rest.get()});
  late.residual = model_->residual_before(1, after, {.cache = cache.get()});
  const Tensor logits = model_->forward(after, {.start = &late, .cache = rest.get()}).value();
  EXPECT_LT(error(logits, positions_of(full, 4, 9)), 2e-5);
}

TEST_P(EveryFamily, TheLastPositionAloneHasTheSameLogitsAndGradients) {
  const Tensor ids = sample_ids(2, 9);
  const auto run = [&](bool last_only, bool tapped) {
    Taps taps;
    taps.observe_gradient("blocks.0.hook_resid_pre");
    if (tapped) taps.observe("blocks.1.attn.hook_q");  // then the last layer computes all positions
    Tape tape;
    Variable logits = model_->forward(ids, {.taps = &taps, .last_position_only = last_only});
    if (!last_only) logits = slice(logits, 1, 8, 9);
    tape.backward(sum_all(square(logits)));
    return std::pair(logits.value(), taps.gradient("blocks.0.hook_resid_pre"));
  };
  const auto [logits, gradient] = run(false, false);
  for (const bool tapped : {false, true}) {
    const auto [last, last_gradient] = run(true, tapped);
    ASSERT_EQ(last.shape(), Shape({2, 1, model_->config().outputs()}));
    EXPECT_LT(error(last, logits), 1e-5);
    EXPECT_LT(error(last_gradient, gradient), 1e-4);
  }
}

TEST_P(EveryFamily, StartsWhereAnEarlierRunWas) {
  const Tensor ids = sample_ids(2, 9);
  Taps taps;
  taps.observe("blocks.*.hook_resid_pre");
  taps.observe("blocks.*.hook_resid_post");
  if (has_middle()) taps.observe("blocks.*.hook_resid_mid");
  const Tensor all = model_->forward(ids, {.taps = &taps}).value();
  const Tensor last = model_->forward(ids, {.last_position_only = true}).value();
  const auto check = [&](std::int64_t layer, bool after, const std::string& tap) {
    const ForwardStart start = {layer, after, taps.value(tap)};
    EXPECT_TRUE(same_bits(model_->forward(ids, {.start = &start}).value(), all)) << tap;
    const ForwardOptions options = {.start = &start, .last_position_only = true};
    EXPECT_LT(error(model_->forward(ids, options).value(), last), 1e-6) << tap;
  };
  for (std::int64_t layer = 0; layer < 2; ++layer) {
    check(layer, false, fmt::format("blocks.{}.hook_resid_pre", layer));
    if (has_middle()) check(layer, true, fmt::format("blocks.{}.hook_resid_mid", layer));
  }
  check(2, false, "blocks.1.hook_resid_post");
  for (const ForwardStart& wrong :
       {ForwardStart{2, true, taps.value("blocks.1.hook_resid_post")},
        ForwardStart{3, false, taps.value("blocks.1.hook_resid_post")},
        ForwardStart{-1, false, taps.value("blocks.1.hook_resid_post")}})
    EXPECT_THROW(model_->forward(ids, {.start = &wrong}), Error);
  const ForwardStart between = {1, true, taps.value("blocks.1.hook_resid_pre")};
  if (!has_middle()) {
    EXPECT_THROW(model_->forward(ids, {.start = &between}), Error);
  }
}

TEST_P(EveryFamily, RecomputationGivesTheSameBits) {
  model_->set_requires_grad(true);
  for (const Variable& bias : model_->gate_biases()) bias.set_requires_grad(true);
  const Tensor ids = sample_ids(3, 12);
  const auto gradients = [&](bool again) {
    model_->set_recompute(again);
    model_->clear_grads();
    Tape tape;
    std::vector<GateReport> reports;
    ForwardOptions options;
    options.gates = GateMode::kSampled;
    options.noise.seed = 3;
    options.reports = &reports;
    Variable loss = output_loss(model_->final_hidden(ids, options), model_->output_layer(), ids,
                                {.soft_cap = model_->config().logit_soft_cap})
                        .loss;
    for (const GateReport& report : reports) loss = add(loss, mean_all(report.expected));
    tape.backward(loss);
    std::vector<Tensor> found = {loss.value()};
    const auto take = [&](const Variable& variable) {
      if (variable.requires_grad()) found.push_back(variable.grad());
    };
    for (const NamedParameter& parameter : model_->parameters()) take(parameter.variable);
    for (const NamedParameter& parameter : model_->lora_parameters()) take(parameter.variable);
    for (const Variable& bias : model_->gate_biases()) take(bias);
    return found;
  };
  const std::vector<Tensor> kept = gradients(false), again = gradients(true);
  ASSERT_EQ(kept.size(), again.size());
  for (std::size_t i = 0; i < kept.size(); ++i) {
    ASSERT_TRUE(kept[i].defined() && again[i].defined()) << i;
    EXPECT_TRUE(same_bits(kept[i], again[i])) << i;
  }
}

// Those that a config.json can name.
class SavedFamily : public EveryFamily {};

TEST_P(SavedFamily, LoadedAgainItIsTheSame) {
  const TemporaryFolder folder;
  save_model(*model_, folder.path(), {.keep_adapters = true});
  const auto loaded = load_model(folder.path());
  const Tensor ids = sample_ids(2, 8);
  EXPECT_TRUE(same_bits(loaded->forward(ids).value(), model_->forward(ids).value()));
  std::int64_t of_adapters = 0;
  for (const NamedParameter& parameter : loaded->lora_parameters())
    of_adapters += parameter.variable.shape().elements();
  EXPECT_EQ(parameter_count(loaded->config()) + of_adapters, loaded->parameter_count());
}

TEST_P(EveryFamily, AdaptersChangeNothingAtFirstAndCanBeMerged) {
  const Tensor ids = sample_ids(2, 8);
  if (!model_->lora()) {
    const Tensor before = model_->forward(ids).value();
    model_->add_lora({.rank = 2, .alpha = 4.0}, 3);
    EXPECT_LT(error(model_->forward(ids).value(), before), 1e-6);
    return;
  }
  const Tensor adapted = model_->forward(ids).value();
  const std::string plain = GetParam().substr(0, GetParam().find('+'));
  EXPECT_GT(error(sample_model(plain)->forward(ids).value(), adapted), 1e-2);
  model_->merge_lora();
  EXPECT_LT(error(model_->forward(ids).value(), adapted), 1e-5);
}

TEST_P(EveryFamily, AnInputOfOneHeadReachesThatHeadAlone) {
  const ModelConfig& config = model_->config();
  Taps plain;
  plain.observe("blocks.1.attn.*");
  const Tensor ids = sample_ids(2, 7);
  model_->forward(ids, {.taps = &plain});
  for (const char* letter : {"q", "k", "v"}) {
    const std::int64_t heads = *letter == 'q' ? config.heads : config.key_heads;
    Taps taps;
    taps.observe("blocks.1.attn.*");
    taps.intervene(fmt::format("blocks.1.hook_{}_input", letter), [&](const Variable& x) {
      Tensor changed = x.value().clone();
      for (std::int64_t i = 0; i < changed.elements(); ++i)
        if (i / config.width % heads == 1)
          changed.mutable_f32()[i] = static_cast<float>(i % 7) - 3.0f;
      return Variable(changed);
    });
    model_->forward(ids, {.taps = &taps});
    const std::string own = fmt::format("blocks.1.attn.hook_{}", letter);
    // What each head of a tap changes by, at most.
    const auto changes = [&](const std::string& name, std::int64_t count) {
      std::vector<double> largest(static_cast<std::size_t>(count), 0.0);
      const Tensor &before = plain.value(name), &after = taps.value(name);
      for (std::int64_t i = 0; i < before.elements(); ++i) {
        double& most = largest[static_cast<std::size_t>(i / config.head_width % count)];
        most = std::max(most, static_cast<double>(std::abs(before.f32()[i] - after.f32()[i])));
      }
      return largest;
    };
    const std::vector<double> of_own = changes(own, heads);
    // A norm over the queries or keys of all heads mixes them.
    const bool mixed = config.query_key_norm == QueryKeyNorm::kAllHeads && *letter != 'v';
    for (std::size_t h = 0; h < of_own.size(); ++h)
      EXPECT_EQ(of_own[h] > 1e-2, h == 1) << own << " of head " << h;
    // Heads that share keys and values change together.
    const std::vector<double> of_z = changes("blocks.1.attn.hook_z", config.heads);
    for (std::size_t h = 0; h < of_z.size() && !mixed; ++h)
      EXPECT_EQ(of_z[h] > 1e-4, static_cast<std::int64_t>(h) / (config.heads / heads) == 1)
          << letter << " to the result of head " << h;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Models, EveryFamily,
    testing::Values("gpt2", "gpt2+gated", "llama", "llama+gated", "llama+adapted",
                    "llama+gated+adapted", "parallel", "parallel+gated", "parallel-gpt2",
                    "family-gpt_neo", "family-gpt_neox", "family-llama", "family-mistral",
                    "family-qwen2", "family-qwen3", "family-olmo", "family-olmo2", "family-gemma2",
                    "family-gptj", "family-gpt_bigcode", "family-opt", "family-olmo3",
                    "family-smollm3", "family-gemma", "family-gemma3_text", "family-phi",
                    "family-phi3", "family-stablelm", "family-starcoder2", "family-cohere",
                    "family-olmoe", "family-qwen3_moe", "family-gemma3_text+gated",
                    "family-cohere+gated", "family-smollm3+gated", "family-opt+adapted",
                    "family-gpt_bigcode+gated", "family-phi3+adapted", "family-mistral+gated",
                    "family-gemma2+gated", "family-gpt_neo+gated", "family-gpt_neox+gated",
                    "family-qwen3+gated", "family-gpt_neox+adapted", "family-olmo2+adapted",
                    "hooked-attn_only", "hooked-no_norm", "hooked-bidirectional",
                    "hooked-shortformer", "hooked-solu", "hooked-rotary", "hooked-solu_folded",
                    "hooked-attn_only+gated", "hooked-no_norm+gated", "hooked-bidirectional+gated",
                    "hooked-shortformer+gated", "hooked-bidirectional+adapted",
                    "hooked-shortformer+adapted", "hooked-rotary+adapted"),
    test_name);
// Clipped values (OLMo) and rectified ones (OPT) have kinks, and choices of experts (Qwen 3) are
// steps, where slopes are not what steps find.
INSTANTIATE_TEST_SUITE_P(
    Models, DenseFamily,
    testing::Values("gpt2", "llama", "llama+adapted", "parallel", "parallel-gpt2", "family-gpt_neo",
                    "family-gpt_neox", "family-llama", "family-mistral", "family-qwen2",
                    "family-qwen3", "family-olmo2", "family-gemma2", "family-gptj",
                    "family-gpt_bigcode", "family-olmo3", "family-smollm3", "family-gemma",
                    "family-gemma3_text", "family-phi", "family-phi3", "family-stablelm",
                    "family-starcoder2", "family-cohere", "family-olmoe", "hooked-attn_only",
                    "hooked-no_norm", "hooked-bidirectional", "hooked-shortformer", "hooked-solu",
                    "hooked-rotary", "hooked-solu_folded"),
    test_name);
INSTANTIATE_TEST_SUITE_P(
    Models, SavedFamily,
    testing::Values("gpt2", "llama", "llama+gated", "llama+adapted", "family-gpt_neo",
                    "family-gpt_neox", "family-llama", "family-mistral", "family-qwen2",
                    "family-qwen3", "family-olmo", "family-olmo2", "family-gemma2", "family-gptj",
                    "family-gpt_bigcode", "family-opt", "family-olmo3", "family-smollm3",
                    "family-gemma", "family-gemma3_text", "family-phi", "family-phi3",
                    "family-stablelm", "family-starcoder2", "family-cohere", "family-olmoe",
                    "family-qwen3_moe", "family-cohere+adapted", "family-gpt_neox+adapted",
                    "family-gemma2+gated", "hooked-attn_only", "hooked-no_norm",
                    "hooked-bidirectional+gated", "hooked-shortformer", "hooked-solu+adapted",
                    "hooked-rotary", "hooked-solu_folded"),
    test_name);

}  // namespace
}  // namespace filigree
