#include <gtest/gtest.h>

#include "filigree/autograd.h"
#include "filigree/model.h"
#include "filigree/model_study.h"
#include "filigree/ops.h"
#include "filigree/runtime.h"
#include "filigree/training_study.h"

namespace filigree::study {
namespace {

constexpr std::int64_t kBatch = 2, kLength = 96;

class MemoryEstimateTest : public ::testing::Test {
 protected:
  // Most bytes of tensors at any time during `body`, above those before it.
  template <typename Body>
  static double peak_of(const Body& body) {
    const std::uint64_t before = pool_statistics().bytes_in_use;
    reset_pool_peak();
    body();
    return static_cast<double>(pool_statistics().peak_bytes_in_use - before);
  }

  const ModelShape shape_{.layers = 4, .heads = 4, .width = 128, .vocabulary = 2000};
  const std::unique_ptr<Model> model_ = make_model(shape_.config(), 1);
  const Tensor ids_ = Tensor::zeros({kBatch, kLength}, DType::kI32);
  const MemoryEstimate estimate_ = estimate_memory(model_->config(), kBatch, kLength);
};

TEST_F(MemoryEstimateTest, ForwardIsWhatTheModelTakes) {
  const double peak = peak_of([&] { model_->forward(ids_); });
  EXPECT_NEAR(static_cast<double>(estimate_.forward) / peak, 1.0, 0.3);
}

TEST_F(MemoryEstimateTest, TrainingIsWhatTheModelTakes) {
  model_->set_requires_grad(true);
  const double peak = peak_of([&] {
    Tape tape;
    tape.backward(cross_entropy(model_->forward(ids_), ids_));
  });
  // The gradients of the parameters are part of the state, not of the activations.
  const double expected = static_cast<double>(estimate_.training_activations);
  const double gradients = static_cast<double>(estimate_.weights);
  EXPECT_GT(expected * 1.3 + gradients, peak);
  EXPECT_LT(expected * 0.7, peak);
}

TEST_F(MemoryEstimateTest, MapsAndCacheAreExact) {
  Taps taps;
  taps.observe("blocks.*.attn.hook_pattern");
  model_->forward(ids_, {.taps = &taps});
  std::uint64_t maps = 0;
  for (const std::string& name : taps.passed()) maps += taps.value(name).bytes();
  EXPECT_EQ(estimate_.attention_maps, maps);

  const auto cache = model_->make_cache(kBatch, kLength);
  std::uint64_t cached = 0;
  for (std::int64_t l = 0; l < shape_.layers; ++l)
    cached += cache->keys(l).bytes() + cache->values(l).bytes();
  EXPECT_EQ(estimate_.cache, cached);
}

TEST_F(MemoryEstimateTest, WeightsAreFourBytesAParameter) {
  EXPECT_EQ(estimate_.weights, 4u * static_cast<std::uint64_t>(model_->parameter_count()));
}

}  // namespace
}  // namespace filigree::study
