// Every family on the GPU against transformers: logits, hidden states, attention maps, loss and
// every gradient, in f32 and in bf16.
#include "filigree/model.h"
#include "filigree/ops.h"
#include "support/check_cuda.h"
#include "support/golden_gradients.h"

namespace filigree {
namespace {

// Labels as transformers shifts them: each position predicts the next token, the last nothing.
Tensor next_tokens(const Tensor& ids) {
  Tensor targets = Tensor::empty(ids.shape(), DType::kI32);
  const std::int64_t T = ids.size(1);
  for (std::int64_t i = 0; i < ids.elements(); ++i)
    targets.mutable_i32()[i] = i % T == T - 1 ? kIgnoredTarget : ids.i32()[i + 1];
  return targets;
}

class CudaModelGolden : public testing::TestWithParam<std::tuple<const char*, DType>> {
 protected:
  void SetUp() override {
    FILIGREE_NEEDS_GPU();
    const std::filesystem::path folder = golden_folder() / std::get<0>(GetParam());
    model_ = load_model(folder, {.placement = Placement{DeviceKind::kCuda, precision()}});
    golden_.emplace(SafetensorsFile::open(folder / "expected.safetensors"));
  }

  DType precision() const { return std::get<1>(GetParam()); }

  // What bf16's eight bits leave of results and of gradients; of a mixture rounding also moves
  // tokens to other experts.
  double rounded() const { return model_->config().experts > 0 ? 0.2 : 3e-2; }
  double rounded_gradient() const { return model_->config().experts > 0 ? 0.3 : 0.1; }

  void check(const Tensor& found, const std::string& name, double f32, double bf16) const {
    compare(found, golden_tensor(*golden_, name), name, f32, bf16);
  }

  void compare(const Tensor& found, const Tensor& wanted, const std::string& name, double f32,
               double bf16) const {
    ASSERT_EQ(found.shape(), wanted.shape()) << name;
    if (precision() == DType::kF32) {
      EXPECT_LT(relative_error(found.values(), to_doubles(wanted)), f32) << name;
    } else {
      EXPECT_LT(l2_error(found.values(), wanted.values()), bf16) << name;
    }
  }

  std::unique_ptr<Model> model_;
  std::optional<SafetensorsFile> golden_;
};

TEST_P(CudaModelGolden, LogitsHiddenStatesAndMaps) {
  Taps taps;
  taps.observe("blocks.*.hook_resid_pre");
  taps.observe("blocks.*.attn.hook_pattern");
  taps.observe("ln_final.hook_normalized");
  const Variable logits = model_->forward(golden_tensor(*golden_, "input_ids"), {.taps = &taps});
  check(logits.value(), "logits", 1e-4, rounded());
  const std::int64_t layers = model_->config().layers;
  for (std::int64_t l = 0; l < layers; ++l) {
    const std::string block = "blocks." + std::to_string(l);
    check(taps.value(block + ".hook_resid_pre"), "hidden_states." + std::to_string(l), 1e-4,
          rounded());
    check(taps.value(block + ".attn.hook_pattern"), "attentions." + std::to_string(l), 1e-4,
          rounded());
  }
  check(taps.value("ln_final.hook_normalized"), "hidden_states." + std::to_string(layers), 1e-4,
        rounded());
}

TEST_P(CudaModelGolden, LossAndEveryGradient) {
  model_->set_requires_grad(true);
  const Tensor ids = golden_tensor(*golden_, "input_ids");
  const double wanted = static_cast<double>(golden_tensor(*golden_, "loss").reshape({}).item());
  for (const bool on_device : {true, false}) {
    SCOPED_TRACE(on_device ? "loss on the GPU" : "loss on the CPU");
    model_->clear_grads();
    Tape tape;
    const Variable loss =
        cross_entropy(model_->forward(ids, {.logits_on_device = on_device}), next_tokens(ids));
    EXPECT_NEAR(static_cast<double>(loss.value().item()), wanted,
                precision() == DType::kF32 ? 1e-4 : 2e-2);
    tape.backward(loss);
    for (std::size_t p = 0; p < model_->parameters().size(); ++p) {
      const NamedParameter& parameter = model_->parameters()[p];
      EXPECT_EQ(parameter.variable.grad().dtype(), DType::kF32) << parameter.name;
      const GradientPair pair = gradient_pair(*model_, p, *golden_);
      if (is_rounding(pair.wanted)) {
        for (const float x : pair.found.values())
          EXPECT_LT(std::abs(x), precision() == DType::kF32 ? 1e-5f : 1e-2f) << parameter.name;
        continue;
      }
      compare(pair.found, pair.wanted, parameter.name, 1e-4, rounded_gradient());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Fixtures, CudaModelGolden,
    testing::Combine(
        testing::Values("gpt2-tiny", "llama-tiny", "llama3-rope-tiny", "pythia-tiny",
                        "gpt-neox-sequential-tiny", "olmo-tiny", "olmo2-tiny", "mistral-tiny",
                        "qwen2-tiny", "qwen3-tiny", "gemma2-tiny", "gpt-neo-tiny", "gemma-tiny",
                        "gemma3-tiny", "phi3-tiny", "phi3-longrope-tiny", "phi-tiny", "olmo3-tiny",
                        "smollm3-tiny", "llama-yarn-tiny", "qwen2-dynamic-tiny", "gptj-tiny",
                        "gptj-wide-tiny", "opt-tiny", "gpt-bigcode-tiny", "gpt-bigcode-heads-tiny",
                        "stablelm-tiny", "stablelm-parallel-tiny", "starcoder2-tiny", "cohere-tiny",
                        "cohere-plain-tiny", "olmoe-tiny", "olmoe-normed-tiny", "qwen3-moe-tiny"),
        testing::Values(DType::kF32, DType::kBf16)),
    [](const auto& fixture) {
      std::string name = std::get<0>(fixture.param);
      std::replace(name.begin(), name.end(), '-', '_');
      return name + "_" + std::string(name_of(std::get<1>(fixture.param)));
    });

}  // namespace
}  // namespace filigree
