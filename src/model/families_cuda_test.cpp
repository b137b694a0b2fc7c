// Every kind of model on the GPU against the CPU: taps, gradients, caches.
#include <algorithm>
#include <cmath>

#include "filigree/ops.h"
#include "model/family_samples_test_support.h"
#include "support/check_cuda.h"

namespace filigree {
namespace {

class CudaFamilies : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    FILIGREE_NEEDS_GPU();
    here_ = sample_model(GetParam());
    there_ = sample_model(GetParam());
    there_->place({DeviceKind::kCuda, DType::kF32});
  }

  static double error(const Tensor& found, const Tensor& wanted) {
    return relative_error(found.on_host().values(), to_doubles(wanted.on_host()));
  }

  std::unique_ptr<Model> here_, there_;
};

TEST_P(CudaFamilies, EveryTapHasTheValueOfTheCpuWhetherReadOrChanged) {
  const Tensor ids = sample_ids(2, 9);
  for (const std::string& name : here_->tap_names()) {
    Taps a, b, changed;
    a.observe(name), b.observe(name);
    changed.intervene(name, [](const Variable& x) { return x; });
    const Tensor logits = here_->forward(ids, {.taps = &a}).value();
    EXPECT_LT(error(there_->forward(ids, {.taps = &b}).value(), logits), 1e-4) << name;
    EXPECT_LT(error(b.value(name), a.value(name)), 1e-4) << name;
    EXPECT_LT(error(there_->forward(ids, {.taps = &changed}).value(), logits), 1e-4) << name;
  }
}

TEST_P(CudaFamilies, GradientsAreThoseOfTheCpu) {
  const Tensor ids = sample_ids(3, 12);
  const auto run = [&](Model& model, bool again) {
    model.set_requires_grad(true);
    model.set_recompute(again);
    model.clear_grads();
    Tape tape;
    const Variable loss = cross_entropy(model.forward(ids, {.logits_on_device = true}), ids);
    tape.backward(loss);
    std::vector<Tensor> found = {loss.value().on_host()};
    for (const NamedParameter& parameter :
         model.lora() ? model.lora_parameters() : model.parameters())
      found.push_back(parameter.variable.grad().on_host());
    return found;
  };
  const std::vector<Tensor> wanted = run(*here_, false);
  // Some are zero but for rounding: a bias of keys moves all scores of a query alike.
  const auto largest = [](const Tensor& x) {
    float most = 0.0f;
    for (const float value : x.values()) most = std::max(most, std::abs(value));
    return most;
  };
  float largest_of_all = 0.0f;
  for (std::size_t i = 1; i < wanted.size(); ++i)  // behind the loss
    largest_of_all = std::max(largest_of_all, largest(wanted[i]));
  for (const DType precision : {DType::kF32, DType::kBf16}) {
    SCOPED_TRACE(name_of(precision));
    there_->place({DeviceKind::kCuda, precision});
    const std::vector<Tensor> found = run(*there_, false), again = run(*there_, true);
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      EXPECT_TRUE(std::ranges::equal(found[i].values(), again[i].values())) << i;
      if (largest(wanted[i]) < 1e-5f * largest_of_all) continue;
      if (precision == DType::kF32) {
        EXPECT_LT(error(found[i], wanted[i]), 5e-4) << i;
      } else if (!here_->config().gate.on()) {  // rounding opens and closes gates
        // And it moves numbers over the bounds of clipped q, k and v, where gradients end.
        EXPECT_LT(l2_error(found[i].values(), wanted[i].values()),
                  here_->config().clip_qkv > 0.0f ? 0.2 : 8e-2)
            << i;
      }
    }
  }
}

TEST_P(CudaFamilies, GeneratesWithItsCache) {
  if (here_->config().bidirectional) GTEST_SKIP() << "bidirectional attention has no cache";
  const Tensor ids = sample_ids(1, 9);
  const Tensor whole = here_->forward(ids).value();
  for (const DType precision : {DType::kF32, DType::kBf16}) {
    if (precision == DType::kBf16 && here_->config().gate.on()) continue;
    there_->place({DeviceKind::kCuda, precision});
    const auto cache = there_->make_cache(1, 9);
    Tensor last;
    for (std::int64_t t = 0; t < 9; ++t)
      last = there_->forward(ids.reshape({9, 1}).rows(t, t + 1), {.cache = cache.get()}).value();
    const std::int64_t V = here_->config().outputs();
    EXPECT_LT(error(last.reshape({1, V}), whole.reshape({9, V}).rows(8, 9)),
              precision == DType::kF32 ? 1e-4 : 8e-2);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Models, CudaFamilies,
    testing::Values("llama", "llama+gated", "llama+adapted", "parallel", "parallel-gpt2",
                    "family-gpt_neo", "family-gpt_neox", "family-llama", "family-mistral",
                    "family-qwen2", "family-qwen3", "family-olmo", "family-olmo2", "family-gemma2",
                    "family-gptj", "family-gpt_bigcode", "family-opt", "family-olmo3",
                    "family-smollm3", "family-gemma", "family-gemma3_text", "family-phi",
                    "family-phi3", "family-stablelm", "family-starcoder2", "family-cohere",
                    "family-gemma3_text+gated", "family-cohere+gated", "family-smollm3+gated",
                    "family-mistral+gated", "family-gemma2+gated", "family-gpt_neo+gated",
                    "family-gpt_neox+gated", "family-qwen3+gated", "family-gpt_neox+adapted",
                    "hooked-attn_only", "hooked-no_norm+gated", "hooked-bidirectional",
                    "hooked-bidirectional+gated", "hooked-shortformer", "hooked-solu",
                    "hooked-rotary", "hooked-solu_folded"),
    [](const auto& sample) { return sample_test_name(sample.param); });

}  // namespace
}  // namespace filigree
