// Models with bf16 weights alone compute what those with both kinds compute, in less memory.
#include <algorithm>

#include "filigree/error.h"
#include "filigree/ops.h"
#include "filigree/runtime.h"
#include "model/copy_model.h"
#include "model/family_samples_test_support.h"
#include "model/rounded_weights.h"
#include "support/check_cuda.h"
#include "support/temporary_folder.h"

namespace filigree {
namespace {

constexpr Placement kThere = {DeviceKind::kCuda, DType::kBf16};

bool equal(const Tensor& a, const Tensor& b) {
  return check_op_detail::same_bits(a.on_host(), b.on_host());
}

std::vector<Tensor> adapter_gradients(Model& model, const Tensor& ids) {
  model.set_requires_grad(true);
  model.set_recompute(true);
  model.clear_grads();
  Tape tape;
  const Variable loss = cross_entropy(model.forward(ids, {.logits_on_device = true}), ids);
  tape.backward(loss);
  std::vector<Tensor> found = {loss.value()};
  for (const NamedParameter& parameter : model.lora_parameters())
    found.push_back(parameter.variable.grad());
  return found;
}

class CudaRoundedWeights : public testing::TestWithParam<std::string> {};

TEST_P(CudaRoundedWeights, ComputeTheSameBits) {
  FILIGREE_NEEDS_GPU();
  const Tensor ids = sample_ids(2, 9);
  const auto both = sample_model(GetParam()), rounded = sample_model(GetParam());
  both->place(kThere);
  place_rounded(*rounded, kThere);
  for (const NamedParameter& parameter : rounded->parameters())
    EXPECT_EQ(parameter.variable.value().dtype(),
              parameter.variable.shape().rank() < 2 ? DType::kF32 : DType::kBf16)
        << parameter.name;
  EXPECT_TRUE(equal(both->forward(ids).value(), rounded->forward(ids).value()));
  EXPECT_THROW(rounded->set_requires_grad(true), Error);

  const auto teacher = copy_model(*rounded, CopiedWeights::kShared);
  const Tensor taught = teacher->forward(ids).value();
  for (Model* model : {both.get(), rounded.get()}) {
    model->add_lora({.rank = 3, .alpha = 6.0}, 5);
    for (std::size_t i = 1; i < model->lora_parameters().size(); i += 2) {
      const Variable& up = model->lora_parameters()[i].variable;
      up.mutable_value() = random_tensor(up.shape(), i, -0.3f, 0.3f).to(DeviceKind::kCuda);
    }
  }
  const std::vector<Tensor> wanted = adapter_gradients(*both, ids);
  const std::vector<Tensor> found = adapter_gradients(*rounded, ids);
  ASSERT_EQ(found.size(), wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) EXPECT_TRUE(equal(found[i], wanted[i])) << i;

  // Merged in f32; the teacher, which had the same memory, stays as it was.
  const Tensor adapted = rounded->forward(ids).value();
  rounded->merge_lora();
  EXPECT_LT(l2_error(rounded->forward(ids).value().on_host().values(), adapted.on_host().values()),
            3e-2);
  EXPECT_FALSE(equal(adapted, taught));
  EXPECT_TRUE(equal(teacher->forward(ids).value(), taught));
  if (GetParam().starts_with("parallel")) return;  // which no folder says
  const TemporaryFolder folder;
  save_model(*rounded, folder.path());
  const auto read = load_model(folder.path(), {.placement = kThere});
  EXPECT_TRUE(equal(read->forward(ids).value(), rounded->forward(ids).value()));
}

INSTANTIATE_TEST_SUITE_P(Models, CudaRoundedWeights,
                         testing::Values("llama", "parallel-gpt2", "family-gpt_neox", "family-olmo",
                                         "family-gemma2"),
                         [](const auto& sample) { return sample_test_name(sample.param); });

TEST(CudaRoundedWeights, TakeHalfTheMemoryAndTheTeacherNone) {
  FILIGREE_NEEDS_GPU();
  nlohmann::json json = sample_llama_json();
  json["vocab_size"] = 20000, json["hidden_size"] = 256;
  const auto model = make_model(parse_model_config(json, "test"), 1);
  const std::uint64_t before = pool_statistics(DeviceKind::kCuda).bytes_in_use;
  place_rounded(*model, kThere);
  const auto taken = [&] { return pool_statistics(DeviceKind::kCuda).bytes_in_use - before; };
  const auto bytes = 2u * static_cast<std::uint64_t>(model->parameter_count());
  EXPECT_GE(taken(), bytes);
  EXPECT_LT(taken(), bytes + bytes / 4);
  const auto teacher = copy_model(*model, CopiedWeights::kShared);
  teacher->forward(sample_ids(1, 4));
  EXPECT_LT(taken(), bytes + bytes / 4);
}

TEST(CudaRoundedWeights, AreOfBf16Only) {
  FILIGREE_NEEDS_GPU();
  const auto model = sample_model("llama");
  EXPECT_THROW(place_rounded(*model, {DeviceKind::kCuda, DType::kF32}), Error);
}

}  // namespace
}  // namespace filigree
