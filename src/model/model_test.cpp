#include "filigree/model.h"

#include <algorithm>

#include "filigree/error.h"
#include "filigree/ops.h"
#include "io/safetensors_writer.h"
#include "support/check_op.h"
#include "support/errors.h"
#include "support/golden.h"
#include "support/models.h"
#include "support/temporary_folder.h"

namespace filigree {
namespace {

nlohmann::json tiny_json() {
  return {{"model_type", "gpt2"},
          {"n_layer", 2},
          {"n_head", 3},
          {"n_embd", 24},
          {"n_positions", 32},
          {"vocab_size", 50},
          {"tie_word_embeddings", true}};
}

std::unique_ptr<Model> tiny_model(const nlohmann::json& changes = nlohmann::json::object()) {
  nlohmann::json json = tiny_json();
  json.update(changes);
  auto model = make_model(parse_model_config(json, "test"), 11);
  enlarge_weights(*model, 8.0f);
  return model;
}

TEST(Taps, AnUnknownNameIsAnErrorThatListsTheNearest) {
  const auto model = tiny_model();
  Taps taps;
  taps.observe("blocks.1.attn.hook_patern");
  const std::string message = error_of([&] { model->forward(ids(1, 4), {.taps = &taps}); });
  EXPECT_NE(message.find("'blocks.1.attn.hook_patern'"), std::string::npos) << message;
  EXPECT_NE(message.find("blocks.1.attn.hook_pattern"), std::string::npos) << message;
  Taps pattern;
  pattern.intervene("blocks.*.attn.hook_zz", [](const Variable& x) { return x; });
  EXPECT_THROW(model->forward(ids(1, 4), {.taps = &pattern}), Error);
  Taps layer;
  layer.observe("blocks.2.hook_resid_pre");  // the model has layers 0 and 1
  EXPECT_THROW(model->forward(ids(1, 4), {.taps = &layer}), Error);
}

TEST(Taps, AWatcherSeesWhatAnObserverKeepsAndNothingStays) {
  const auto model = tiny_model();
  Taps kept;
  kept.observe("blocks.*.attn.hook_pattern");
  const Tensor logits = model->forward(ids(2, 5), {.taps = &kept}).value();
  std::vector<std::string> seen;
  Taps taps;
  taps.watch("blocks.*.attn.hook_pattern", [&](std::string_view name, const Tensor& value) {
    seen.emplace_back(name);
    const std::span<const float> expected = kept.value(name).values();
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), value.values().begin()));
  });
  const Tensor watched = model->forward(ids(2, 5), {.taps = &taps}).value();
  EXPECT_EQ(seen, kept.passed());
  EXPECT_EQ(seen.size(), 2u);
  EXPECT_TRUE(taps.passed().empty());
  EXPECT_THROW(taps.value("blocks.0.attn.hook_pattern"), Error);
  EXPECT_TRUE(std::equal(logits.values().begin(), logits.values().end(), watched.values().begin()));

  // After an intervention the watcher sees what became of the value.
  float largest = -1.0f;
  Taps changed;
  changed.watch("blocks.1.attn.hook_z", [&](std::string_view, const Tensor& z) {
    largest = *std::max_element(z.values().begin(), z.values().end());
  });
  changed.intervene("blocks.1.attn.hook_z", [](const Variable& z) { return scale(z, 0.0f); });
  model->forward(ids(1, 4), {.taps = &changed});
  EXPECT_EQ(largest, 0.0f);

  Taps unknown;
  unknown.watch("blocks.9.attn.hook_z", [](std::string_view, const Tensor&) {});
  EXPECT_THROW(model->forward(ids(1, 4), {.taps = &unknown}), Error);
}

TEST(Taps, InterventionsReplaceAndMustKeepTheShape) {
  const auto model = tiny_model();
  // Without attention and MLP the residual stream is the embedding.
  Taps taps;
  taps.intervene("blocks.*.hook_attn_out", [](const Variable& x) { return scale(x, 0.0f); });
  taps.intervene("blocks.*.hook_mlp_out", [](const Variable& x) { return scale(x, 0.0f); });
  taps.observe("blocks.0.hook_resid_pre");
  taps.observe("blocks.1.hook_resid_post");
  model->forward(ids(1, 5), {.taps = &taps});
  const Tensor& first = taps.value("blocks.0.hook_resid_pre");
  const Tensor& last = taps.value("blocks.1.hook_resid_post");
  EXPECT_TRUE(std::equal(first.values().begin(), first.values().end(), last.values().begin()));

  Taps wrong;
  wrong.intervene("blocks.0.attn.hook_z", [](const Variable& x) { return slice(x, 1, 0, 1); });
  const std::string message = error_of([&] { model->forward(ids(1, 5), {.taps = &wrong}); });
  EXPECT_NE(message.find("blocks.0.attn.hook_z"), std::string::npos) << message;
}

TEST(Taps, HeadResultsAndBiasAddUpToTheAttentionOutput) {
  const auto model = tiny_model();
  Taps taps;
  taps.observe("blocks.0.attn.hook_result");
  taps.observe("blocks.0.hook_attn_out");
  model->forward(ids(2, 5), {.taps = &taps});
  const Tensor total = sum(taps.value("blocks.0.attn.hook_result"), 2).value();
  Tensor with_bias;
  for (const NamedParameter& parameter : model->parameters())
    if (parameter.name == "transformer.h.0.attn.c_proj.bias")
      with_bias = add(total, parameter.variable).value();
  EXPECT_LT(relative_error(with_bias.values(), to_doubles(taps.value("blocks.0.hook_attn_out"))),
            1e-5);
}

TEST(StartOfARun, MustFitTheModelAndTheIds) {
  const auto model = tiny_model();
  ForwardStart start;
  start.residual = Tensor::zeros({2, 9, 24});
  start.layer = 3;
  EXPECT_NE(error_of([&] { model->forward(ids(2, 9), {.start = &start}); }).find("no layer 3"),
            std::string::npos);
  start.layer = 1;
  EXPECT_NE(error_of([&] { model->forward(ids(2, 8), {.start = &start}); }).find("not [2, 8, 24]"),
            std::string::npos);
  Taps taps;
  taps.observe("blocks.0.hook_resid_pre");
  model->forward(ids(2, 9), {.taps = &taps, .start = &start});
  EXPECT_THROW(taps.value("blocks.0.hook_resid_pre"), Error);  // the run did not pass it
}

const nlohmann::json kGated = {{"gate", {{"bias", -0.2}}}};

TEST(Gate, TapsShowTheGatedPatternAndTheMask) {
  const auto model = tiny_model(kGated);
  Taps taps;
  taps.observe("blocks.*.attn.hook_gate");
  taps.observe("blocks.*.attn.hook_pattern");
  std::vector<GateReport> reports;
  model->forward(ids(2, 9), {.taps = &taps, .reports = &reports});
  ASSERT_EQ(reports.size(), 2u);
  const Tensor& mask = taps.value("blocks.1.attn.hook_gate");
  const Tensor& pattern = taps.value("blocks.1.attn.hook_pattern");
  double open = 0.0, closed_causal = 0.0;
  for (std::int64_t i = 0; i < mask.elements(); ++i) {
    ASSERT_TRUE(mask.f32()[i] == 0.0f || mask.f32()[i] == 1.0f);
    EXPECT_EQ(pattern.f32()[i] > 0.0f, mask.f32()[i] == 1.0f);
    open += static_cast<double>(mask.f32()[i]);
    closed_causal += i % 9 <= i / 9 % 9 && mask.f32()[i] == 0.0f;
  }
  EXPECT_GT(open, 0.0);
  EXPECT_GT(closed_causal, 0.0);
  double reported = 0.0;
  for (float active : reports[1].active.values()) reported += static_cast<double>(active) * 45.0;
  EXPECT_NEAR(reported, open, 1e-3);
  // An ungated model has no such tap.
  EXPECT_THROW(tiny_model()->forward(ids(1, 4), {.taps = &taps}), Error);
}

TEST(Gate, IgnoredOrWideOpenItIsTheDenseModel) {
  const Tensor dense = tiny_model()->forward(ids(1, 9)).value();
  const auto gated = tiny_model(kGated);
  const Tensor ignored = gated->forward(ids(1, 9), {.gates = GateMode::kIgnored}).value();
  const Tensor open = tiny_model({{"gate", {{"bias", 1000}}}})->forward(ids(1, 9)).value();
  EXPECT_TRUE(std::equal(dense.values().begin(), dense.values().end(), ignored.values().begin()));
  EXPECT_LT(relative_error(open.values(), to_doubles(dense)), 1e-5);
  EXPECT_GT(relative_error(gated->forward(ids(1, 9)).value().values(), to_doubles(dense)), 1e-3);
}

TEST(Gate, SamplesFollowTheNoise) {
  const auto model = tiny_model(kGated);
  const auto logits = [&](std::uint64_t step) {
    return model->forward(ids(1, 9), {.gates = GateMode::kSampled, .noise = {1, step, 0, 0}})
        .value();
  };
  const Tensor first = logits(1), again = logits(1), other = logits(2);
  EXPECT_TRUE(std::equal(first.values().begin(), first.values().end(), again.values().begin()));
  EXPECT_FALSE(std::equal(first.values().begin(), first.values().end(), other.values().begin()));
}

TEST(Gate, LivesInTheConfigAndSurvivesSaving) {
  const TemporaryFolder folder;
  for (const nlohmann::json& bias :
       {nlohmann::json(-0.25), nlohmann::json({{0.1, 0.2, -0.3}, {1e-7, 5.5, -2.0}})}) {
    const auto model = tiny_model({{"gate", {{"bias", bias}}}});
    save_model(*model, folder.path());
    const auto loaded = load_model(folder.path());
    EXPECT_EQ(loaded->config().gate.bias, model->config().gate.bias);
    const Tensor a = model->forward(ids(1, 8)).value(), b = loaded->forward(ids(1, 8)).value();
    EXPECT_TRUE(std::equal(a.values().begin(), a.values().end(), b.values().begin()));
  }
  const auto refused = [](const nlohmann::json& gate) {
    return error_of([&] { tiny_model({{"gate", gate}}); });
  };
  EXPECT_NE(refused({{"bias", "two"}}).find("bias"), std::string::npos);
  EXPECT_NE(refused({{"bias", {1, 2}}}).find("2 rows of 3"), std::string::npos);
  EXPECT_NE(refused({{"bias", {{1, 2, 3}, {1, nullptr, 3}}}}).find("finite"), std::string::npos);
  EXPECT_NE(refused(nlohmann::json::object()).find("bias"), std::string::npos);
  EXPECT_NE(refused(3).find("gate"), std::string::npos);
}

TEST(Gate, TrainedBiasesAreStored) {
  const auto model = tiny_model({{"gate", {{"bias", {{1, 2, 3}, {4, 5, 6}}}}}});
  model->gate_biases()[1].mutable_value().mutable_f32()[2] = 7.5f;
  model->store_gate();
  EXPECT_EQ(model->config().gate.bias, (std::vector<float>{1, 2, 3, 4, 5, 7.5f}));
  EXPECT_THROW(model->set_gate({{1, 2}}), Error);
}

TEST(Model, RefusesBadTokens) {
  const auto model = tiny_model();
  Tensor bad = ids(1, 4);
  bad.mutable_i32()[2] = 50;
  EXPECT_EQ(error_of([&] { model->forward(bad); }),
            "forward: token id 50 at position 2 is outside the vocabulary of 50");
  EXPECT_EQ(error_of([&] { model->forward(ids(1, 33)); }),
            "forward: 33 positions are more than the model's context of 32");
  EXPECT_THROW(model->forward(Tensor::zeros({1, 0}, DType::kI32)), Error);
  EXPECT_THROW(model->forward(Tensor::zeros({4}, DType::kI32)), Error);
  EXPECT_THROW(model->forward(Tensor::zeros({1, 4})), Error);
}

TEST(Model, TheSeedFixesTheWeightsWhateverTheThreadCount) {
  const ModelConfig config = parse_model_config(tiny_json(), "test");
  const int before = num_threads();
  set_num_threads(1);
  const auto one = make_model(config, 5);
  set_num_threads(3);
  const auto three = make_model(config, 5), other = make_model(config, 6);
  set_num_threads(before);
  bool differs = false;
  for (std::size_t i = 0; i < one->parameters().size(); ++i) {
    const auto values = [&](const Model& m) { return m.parameters()[i].variable.value().values(); };
    EXPECT_TRUE(std::equal(values(*one).begin(), values(*one).end(), values(*three).begin()));
    differs =
        differs || !std::equal(values(*one).begin(), values(*one).end(), values(*other).begin());
  }
  EXPECT_TRUE(differs);
}

TEST(Model, TheConfigurationTellsTheNumberOfParameters) {
  for (const bool tied : {true, false}) {
    const auto model = tiny_model({{"tie_word_embeddings", tied}, {"n_inner", 40}});
    EXPECT_EQ(parameter_count(model->config()), model->parameter_count());
  }
  for (const char* name : {"gpt2-tiny", "gpt2-tiny-sharded", "gpt2-tiny-bf16"}) {
    const std::filesystem::path folder = golden_folder() / name;
    EXPECT_EQ(parameter_count(read_model_config(folder)), load_model(folder)->parameter_count());
  }
  const nlohmann::json huge = {{"n_layer", 10000}, {"n_embd", 1 << 24}, {"n_head", 1}};
  nlohmann::json json = tiny_json();
  json.update(huge);
  EXPECT_THROW(parameter_count(parse_model_config(json, "test")), Error);
}

TEST(Model, SavedAndLoadedItIsTheSame) {
  for (const bool tied : {true, false}) {
    const TemporaryFolder folder;
    const auto model =
        tiny_model({{"tie_word_embeddings", tied}, {"task_specific_params", nullptr}});
    const Tensor logits = model->forward(ids(1, 8)).value();
    save_model(*model, folder.path() / "saved");
    const auto loaded = load_model(folder.path() / "saved");
    EXPECT_EQ(loaded->config().tied_embeddings, tied);
    EXPECT_TRUE(loaded->config().source.contains("task_specific_params"));
    const Tensor again = loaded->forward(ids(1, 8)).value();
    EXPECT_TRUE(std::equal(logits.values().begin(), logits.values().end(), again.values().begin()));
    // Nothing that can stay in the file was copied.
    for (const NamedParameter& parameter : loaded->parameters())
      EXPECT_FALSE(parameter.variable.value().writable()) << parameter.name;
    save_model(*model, folder.path() / "bf16", {.dtype = MatrixType::kBf16});
    const Tensor rounded = load_model(folder.path() / "bf16")->forward(ids(1, 8)).value();
    EXPECT_LT(relative_error(rounded.values(), to_doubles(logits)), 0.1);
  }
}

TEST(Model, SavingOverItselfKeepsTheMappedWeightsValid) {
  const TemporaryFolder folder;
  save_model(*tiny_model(), folder.path());
  const auto loaded = load_model(folder.path());
  const Tensor before = loaded->forward(ids(1, 8)).value();
  save_model(*loaded, folder.path());
  const Tensor after = loaded->forward(ids(1, 8)).value();
  const Tensor again = load_model(folder.path())->forward(ids(1, 8)).value();
  EXPECT_TRUE(std::equal(before.values().begin(), before.values().end(), after.values().begin()));
  EXPECT_TRUE(std::equal(before.values().begin(), before.values().end(), again.values().begin()));
}

}  // namespace
}  // namespace filigree
