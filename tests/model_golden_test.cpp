// Every family against transformers: logits, hidden states, attention maps, loss and every
// gradient.
#include "filigree/model.h"
#include "filigree/ops.h"
#include "io/checkpoint.h"
#include "json/json.h"
#include "support/check_op.h"
#include "support/golden_gradients.h"
#include "support/temporary_folder.h"

namespace filigree {
namespace {

class ModelGolden : public testing::TestWithParam<const char*> {
 protected:
  std::filesystem::path folder() const { return golden_folder() / GetParam(); }
  SafetensorsFile expected() const {
    return SafetensorsFile::open(folder() / "expected.safetensors");
  }
};

// Labels as transformers shifts them: each position predicts the next token, the last nothing.
Tensor next_tokens(const Tensor& ids) {
  Tensor targets = Tensor::empty(ids.shape(), DType::kI32);
  const std::int64_t T = ids.size(1);
  for (std::int64_t i = 0; i < ids.elements(); ++i)
    targets.mutable_i32()[i] = i % T == T - 1 ? kIgnoredTarget : ids.i32()[i + 1];
  return targets;
}

TEST_P(ModelGolden, LogitsHiddenStatesAndMaps) {
  const auto model = load_model(folder());
  const SafetensorsFile golden = expected();
  const EveryLevel levels;
  for (SimdLevel level : EveryLevel::available()) {
    set_simd_level(level);
    SCOPED_TRACE(name_of(level));
    Taps taps;
    taps.observe("blocks.*.hook_resid_pre");
    taps.observe("blocks.*.attn.hook_pattern");
    taps.observe("ln_final.hook_normalized");
    const Variable logits = model->forward(golden_tensor(golden, "input_ids"), {.taps = &taps});
    const auto check = [&](const Tensor& found, const std::string& name) {
      const Tensor wanted = golden_tensor(golden, name);
      ASSERT_EQ(found.shape(), wanted.shape()) << name;
      EXPECT_LT(relative_error(found.values(), to_doubles(wanted)), 1e-5) << name;
    };
    check(logits.value(), "logits");
    const std::int64_t layers = model->config().layers;
    for (std::int64_t l = 0; l < layers; ++l) {
      const std::string block = "blocks." + std::to_string(l);
      check(taps.value(block + ".hook_resid_pre"), "hidden_states." + std::to_string(l));
      check(taps.value(block + ".attn.hook_pattern"), "attentions." + std::to_string(l));
    }
    check(taps.value("ln_final.hook_normalized"), "hidden_states." + std::to_string(layers));
  }
}

TEST_P(ModelGolden, LossAndEveryGradient) {
  const auto model = load_model(folder());
  const SafetensorsFile golden = expected();
  model->set_requires_grad(true);
  const Tensor ids = golden_tensor(golden, "input_ids");
  const EveryLevel levels;
  for (SimdLevel level : EveryLevel::available()) {
    set_simd_level(level);
    SCOPED_TRACE(name_of(level));
    model->clear_grads();
    Tape tape;
    const Variable loss = cross_entropy(model->forward(ids), next_tokens(ids));
    EXPECT_NEAR(loss.value().item(), golden_tensor(golden, "loss").reshape({}).item(), 1e-5);
    tape.backward(loss);
    std::size_t compared = 0;
    for (std::size_t p = 0; p < model->parameters().size(); ++p) {
      const std::string& name = model->parameters()[p].name;
      const GradientPair pair = gradient_pair(*model, p, golden);
      ASSERT_EQ(pair.found.shape(), pair.wanted.shape()) << name;
      ++compared;
      if (is_rounding(pair.wanted)) {
        for (const float x : pair.found.values()) EXPECT_LT(std::abs(x), 1e-6f) << name;
        continue;
      }
      EXPECT_LT(relative_error(pair.found.values(), to_doubles(pair.wanted)), 5e-5) << name;
    }
    for (const TensorView& view : golden.tensors()) compared -= view.name.starts_with("grad.");
    EXPECT_EQ(compared, 0u) << "gradients stored and compared differ in number";
  }
}

// A folder that is saved again is the one that transformers wrote: the same configuration, names,
// shapes and values.
TEST_P(ModelGolden, SavedAgainItIsTheSameFolder) {
  const TemporaryFolder saved;
  save_model(*load_model(folder()), saved.path());
  nlohmann::json before = read_json(folder() / "config.json");
  nlohmann::json after = read_json(saved.path() / "config.json");
  before["dtype"] = "float32";
  EXPECT_EQ(before, after);
  const Checkpoint wanted = Checkpoint::open(folder());
  const SafetensorsFile found = SafetensorsFile::open(saved.path() / "model.safetensors");
  EXPECT_EQ(found.tensors().size(), wanted.tensors().size());
  for (const TensorView& view : wanted.tensors()) {
    const TensorView& again = found.at(view.name);
    ASSERT_EQ(again.shape, view.shape) << view.name;
    std::vector<float> a(static_cast<std::size_t>(Shape(view.shape).elements())), b(a.size());
    read_f32(view, a);
    read_f32(again, b);
    EXPECT_EQ(a, b) << view.name;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Fixtures, ModelGolden,
    testing::Values("gpt2-tiny", "gpt2-tiny-sharded", "gpt2-tiny-bf16", "gpt2-tiny-f16",
                    "llama-tiny", "llama3-rope-tiny", "pythia-tiny", "gpt-neox-sequential-tiny",
                    "olmo-tiny", "olmo2-tiny", "mistral-tiny", "qwen2-tiny", "qwen3-tiny",
                    "gemma2-tiny", "gpt-neo-tiny", "gemma-tiny", "gemma3-tiny", "phi3-tiny",
                    "phi3-longrope-tiny", "phi-tiny", "olmo3-tiny", "smollm3-tiny",
                    "llama-yarn-tiny", "qwen2-dynamic-tiny", "gptj-tiny", "gptj-wide-tiny",
                    "opt-tiny", "gpt-bigcode-tiny", "gpt-bigcode-heads-tiny", "stablelm-tiny",
                    "stablelm-parallel-tiny", "starcoder2-tiny", "cohere-tiny", "cohere-plain-tiny",
                    "olmoe-tiny", "olmoe-normed-tiny", "qwen3-moe-tiny"),
    [](const auto& fixture) {
      std::string name = fixture.param;
      std::replace(name.begin(), name.end(), '-', '_');
      return name;
    });

}  // namespace
}  // namespace filigree
