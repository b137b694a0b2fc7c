// Sparse post-training under adapters on the GPU: weights in bf16 alone, shared with the teacher,
// train the same adapters as weights of both kinds with a teacher of its own.
#include "filigree/sparsification.h"
#include "filigree/train.h"
#include "model/copy_model.h"
#include "model/family_samples_test_support.h"
#include "model/rounded_weights.h"
#include "support/check_cuda.h"

namespace filigree {
namespace {

constexpr Placement kThere = {DeviceKind::kCuda, DType::kBf16};

// The loss of every step, and the adapters and gate biases at the end.
std::vector<Tensor> train_adapters(bool rounded, const std::string& sample) {
  const auto student = sample_model(sample);
  if (rounded)
    place_rounded(*student, kThere);
  else
    student->place(kThere);
  const auto teacher = copy_model(*student, rounded ? CopiedWeights::kShared : CopiedWeights::kOwn);
  const ModelConfig& config = student->config();
  student->set_gate(
      {std::vector<float>(static_cast<std::size_t>(config.layers * config.heads), 1.0f)});
  student->add_lora({.rank = 3, .alpha = 6.0}, 5);
  student->set_recompute(true);
  ModelTrainable trained(*student, {.gate_biases = true});
  trained.set_requires_grad(true);
  Sparsification objective(*student, teacher.get(), SparsificationOptions::of_budget(0.01, 100));
  AdamW optimizer(decay_groups(trained, 0.1f), AdamWOptions{});
  const auto alone = make_single_process();
  const Batch batch = {sample_ids(2, 12), sample_ids(2, 12)};
  std::vector<Tensor> found;
  for (std::int64_t step = 0; step < 3; ++step) {
    trained.clear_grads();
    Metrics metrics;
    Tape tape;
    const Variable loss = objective.loss(batch, step, *alone, metrics);
    tape.backward(loss);
    optimizer.step(1e-2f, 1.0);
    objective.after_step(metrics);
    found.push_back(loss.value().on_host());
  }
  for (const NamedParameter& parameter : trained.parameters())
    found.push_back(parameter.variable.value().on_host());
  return found;
}

TEST(CudaSparsification, RoundedAndSharedWeightsTrainTheSameAdapters) {
  FILIGREE_NEEDS_GPU();
  for (const char* sample : {"llama", "family-gpt_neox", "family-mistral"}) {
    const std::vector<Tensor> wanted = train_adapters(false, sample);
    const std::vector<Tensor> found = train_adapters(true, sample);
    ASSERT_EQ(found.size(), wanted.size());
    for (std::size_t i = 0; i < wanted.size(); ++i)
      EXPECT_TRUE(check_op_detail::same_bits(found[i], wanted[i])) << sample << " " << i;
  }
}

}  // namespace
}  // namespace filigree
