// Training through a model on the GPU: the divergence and its gradients as on the CPU.
#include "features/trained_replacement.h"
#include "filigree/feature_training.h"
#include "filigree/features.h"
#include "ops/output_loss/output_loss.h"
#include "support/check_cuda.h"
#include "support/models.h"
#include "support/random_transcoder.h"

namespace filigree {
namespace {

struct Through {
  float divergence;
  std::vector<Tensor> gradients;  // of features, on the CPU
};

Through through(const Placement& placement, TranscoderKind kind) {
  const auto model = make_model(parse_model_config({{"model_type", "gpt2"},
                                                    {"n_layer", 3},
                                                    {"n_head", 2},
                                                    {"n_embd", 32},
                                                    {"n_positions", 16},
                                                    {"vocab_size", 50}},
                                                   "test"),
                                1);
  enlarge_weights(*model, 3.0f);
  model->set_gate({{20.0f, -20.0f, 20.0f, 20.0f, -20.0f, 20.0f}});
  model->place(placement);
  const ActivationScales scales = {{0.5f, 1.5f, 0.8f}, {2.0f, 0.7f, 1.3f}};
  Transcoder transcoder({kind, 3, 32, 24, kind == TranscoderKind::kPerLayer},
                        FeatureActivation::kRelu, {0, 24}, placement);
  begin_from(transcoder, random_transcoder(transcoder.shape(), FeatureActivation::kRelu, 0.2f),
             {{1.0f, 1.0f, 1.0f}, {1.0f, 1.0f, 1.0f}});
  for (const NamedParameter& p : transcoder.feature_parameters())
    p.variable.set_requires_grad(true);
  Tensor targets = Tensor::empty({2, 16}, DType::kI32);
  for (std::int64_t i = 0; i < 32; ++i) targets.mutable_i32()[i] = static_cast<std::int32_t>(i);
  const Tensor text = ids(2, 16);
  const Teacher plain{model->final_hidden(text).value(), model->output_layer()};
  Tape tape;
  const Variable loss =
      output_loss(replaced_hidden(*model, text, transcoder, {}, scales, {}), model->output_layer(),
                  targets, {.teacher = &plain, .distillation = 1.0f})
          .loss;
  tape.backward(loss);
  Through result{loss.value().item(), {}};
  for (const NamedParameter& p : transcoder.feature_parameters())
    result.gradients.push_back(p.variable.grad().on_host());
  return result;
}

TEST(CudaTrainedReplacement, FollowsTheCpu) {
  FILIGREE_NEEDS_GPU();
  for (const TranscoderKind kind : {TranscoderKind::kCrossLayer, TranscoderKind::kPerLayer}) {
    const Through here = through({}, kind);
    for (const DType precision : {DType::kF32, DType::kBf16}) {
      const bool exact = precision == DType::kF32;
      const Through there = through({DeviceKind::kCuda, precision}, kind);
      EXPECT_NEAR(there.divergence, here.divergence, (exact ? 1e-4f : 0.1f) * here.divergence);
      for (std::size_t i = 0; i < here.gradients.size(); ++i)
        EXPECT_LT(relative_error(there.gradients[i].values(), to_doubles(here.gradients[i])),
                  exact ? 1e-3 : 0.3)
            << name_of(kind) << " " << i;
    }
  }
}

}  // namespace
}  // namespace filigree
