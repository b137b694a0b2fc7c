// Sparse post-training of a model of every family, and its edges counted inside windows.
#include <gtest/gtest.h>

#include <cmath>

#include "filigree/autograd.h"
#include "filigree/evaluation.h"
#include "filigree/sparsification.h"
#include "filigree/train.h"
#include "model/family_samples_test_support.h"

namespace filigree {
namespace {

class FamilyTraining : public testing::TestWithParam<const char*> {
 protected:
  ModelConfig config(float bias) const {
    ModelConfig made = sample_config(std::string("family-") + GetParam());
    made.gate.bias.assign(static_cast<std::size_t>(made.layers * made.heads), bias);
    return made;
  }
};

Batch batch_of(std::int64_t B, std::int64_t T) {
  Batch batch{sample_ids(B, T), sample_ids(B, T)};
  for (std::int64_t i = 0; i < B * T; ++i)
    batch.targets.mutable_i32()[i] =
        static_cast<std::int32_t>((batch.ids.i32()[i] + 17) % kSampleVocabulary);
  return batch;
}

TEST_P(FamilyTraining, GatesCloseUnderPressure) {
  const auto student = sample_model(config(1.0f));
  ModelConfig plain = config(1.0f);
  plain.gate = {};
  const auto teacher = sample_model(plain);
  ModelTrainable trained(*student, ModelTraining{.gate_biases = true});
  trained.set_requires_grad(true);
  SparsificationOptions options;
  options.margin = 10.0;  // pressure alone
  options.multiplier.initial = 1.0;
  Sparsification objective(*student, teacher.get(), options);
  AdamW optimizer(decay_groups(trained, 0.0f), AdamWOptions{});
  const Batch batch = batch_of(3, 12);
  const auto expected = [&] {
    std::vector<GateReport> reports;
    ForwardOptions forward;
    forward.reports = &reports;
    student->forward(batch.ids, forward);
    double sum = 0.0;
    for (const GateReport& report : reports)
      for (const float share : report.expected.value().values()) sum += static_cast<double>(share);
    return sum;
  };
  const double before = expected();
  const auto alone = make_single_process();
  for (std::int64_t step = 0; step < 6; ++step) {
    student->clear_grads();
    Tape tape;
    Metrics metrics;
    const Variable loss = objective.loss(batch, step, *alone, metrics);
    ASSERT_TRUE(std::isfinite(loss.value().item()));
    tape.backward(loss);
    optimizer.step(2e-2f, 1.0);
  }
  EXPECT_LT(expected(), 0.98 * before);
}

// A layer whose gates are all open has a share of 1, whatever its window leaves.
TEST_P(FamilyTraining, SharesOfOpenEdgesAreOfThoseInsideTheWindow) {
  const auto model = sample_model(config(1e6f));
  std::vector<GateReport> reports;
  ForwardOptions forward;
  forward.reports = &reports;
  model->forward(sample_ids(2, 14), forward);
  ASSERT_EQ(reports.size(), 2u);
  for (std::int64_t l = 0; l < 2; ++l) {
    for (const float share : reports[static_cast<std::size_t>(l)].active.values())
      EXPECT_EQ(share, 1.0f);
    const std::int64_t window = model->config().window(l);
    double edges = 0.0;
    for (std::int64_t i = 0; i < 14; ++i)
      edges += static_cast<double>(window > 0 ? std::min(window, i + 1) : i + 1);
    EXPECT_EQ(model->config().edges_seen(l, 14), edges);
  }
}

INSTANTIATE_TEST_SUITE_P(Families, FamilyTraining,
                         testing::Values("gpt_neo", "gpt_neox", "llama", "mistral", "qwen2",
                                         "qwen3", "olmo", "olmo2", "gemma2", "gptj", "gpt_bigcode",
                                         "opt", "olmo3", "smollm3", "gemma", "gemma3_text", "phi",
                                         "phi3", "stablelm", "starcoder2", "cohere", "olmoe"));

}  // namespace
}  // namespace filigree
