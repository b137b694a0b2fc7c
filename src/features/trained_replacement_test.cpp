// A transcoder in the place of a small model's MLPs, dense and with gates: what the model then
// predicts, and the gradients of that, against the replacement that studies use and against
// differences.
#include "features/trained_replacement.h"

#include <gtest/gtest.h>

#include "features/replacement.h"
#include "filigree/feature_training.h"
#include "filigree/features.h"
#include "ops/output_loss/output_loss.h"
#include "support/models.h"
#include "support/random_transcoder.h"
#include "support/thread_ranks.h"

namespace filigree {
namespace {

struct Case {
  const char* name;
  TranscoderKind kind;
  bool skip, gated;
};

std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.name; }

class TrainedReplacementTest : public ::testing::TestWithParam<Case> {
 protected:
  TrainedReplacementTest() {
    enlarge_weights(*model_, 5.0f);
    // Gates that are well open or well closed have no gradient but that of the forward pass.
    if (GetParam().gated) model_->set_gate({{20.0f, -20.0f, 20.0f, 20.0f, -20.0f, 20.0f}});
  }

  Transcoder transcoder() const {
    return random_transcoder(model_->config(), GetParam().kind, 24, GetParam().skip, 0.3f);
  }

  static Tensor next_tokens() {
    Tensor targets = Tensor::empty({2, 6}, DType::kI32);
    for (std::int64_t i = 0; i < 12; ++i) targets.mutable_i32()[i] = static_cast<std::int32_t>(i);
    return targets;
  }

  Variable divergence(const Transcoder& trained, Communicator* ranks = nullptr) const {
    const Teacher plain{model_->final_hidden(ids_).value(), model_->output_layer()};
    const Variable hidden = replaced_hidden(*model_, ids_, trained, {}, scales_, {}, ranks);
    return output_loss(hidden, model_->output_layer(), next_tokens(),
                       {.teacher = &plain, .distillation = 1.0f})
        .loss;
  }

  static std::vector<NamedParameter> parameters(const Transcoder& trained) {
    std::vector<NamedParameter> all = trained.feature_parameters();
    for (const NamedParameter& shared : trained.shared_parameters()) all.push_back(shared);
    return all;
  }

  const std::unique_ptr<Model> model_ = make_model(parse_model_config({{"model_type", "gpt2"},
                                                                       {"n_layer", 3},
                                                                       {"n_head", 2},
                                                                       {"n_embd", 8},
                                                                       {"n_positions", 8},
                                                                       {"vocab_size", 50}},
                                                                      "test"),
                                                   1);
  const Tensor ids_ = ids(2, 6);
  const ActivationScales scales_ = {{0.5f, 1.5f, 0.8f}, {2.0f, 0.7f, 1.3f}};
};

TEST_P(TrainedReplacementTest, PredictsAsTheReplacementOfStudies) {
  Transcoder folded = transcoder();
  fold_scales(folded, scales_);
  const auto dictionary = dictionary_of(std::move(folded));
  FeatureReplacement replacement(*dictionary);
  Taps taps;
  replacement.add_to(taps);
  const Tensor wanted = model_->final_hidden(ids_, {.taps = &taps}).value();
  const Tensor found = replaced_hidden(*model_, ids_, transcoder(), {}, scales_, {}).value();
  EXPECT_LT(relative_error(found.values(), to_doubles(wanted)), 1e-5);
  const Tensor plain = model_->final_hidden(ids_).value();
  EXPECT_GT(relative_error(plain.values(), to_doubles(wanted)), 0.1);
}

// Along its own gradient each parameter changes the divergence as fast as the gradient is long.
TEST_P(TrainedReplacementTest, GradientsAreThoseOfTheDivergence) {
  const Transcoder trained = transcoder();
  for (const NamedParameter& p : parameters(trained)) p.variable.set_requires_grad(true);
  {
    Tape tape;
    tape.backward(divergence(trained));
  }
  for (const NamedParameter& p : parameters(trained)) {
    ASSERT_TRUE(p.variable.grad().defined()) << p.name;
    const Tensor gradient = p.variable.grad().clone(), value = p.variable.value().clone();
    double square = 0.0;
    for (const float g : gradient.values())
      square += static_cast<double>(g) * static_cast<double>(g);
    ASSERT_GT(square, 1e-10) << p.name;
    const double length = 2e-3 / std::sqrt(square);
    const auto at = [&](double step) {
      Tensor moved = value.clone();
      for (std::int64_t i = 0; i < moved.elements(); ++i)
        moved.mutable_f32()[i] += static_cast<float>(step) * gradient.f32()[i];
      p.variable.mutable_value() = moved;
      const NoGrad constant;
      return static_cast<double>(divergence(trained).value().item());
    };
    const double slope = (at(length) - at(-length)) / (2.0 * length);
    p.variable.mutable_value() = value;
    EXPECT_NEAR(slope / square, 1.0, 0.02) << p.name;
  }
}

TEST_P(TrainedReplacementTest, SplitOverProcessesItIsTheSame) {
  const Transcoder whole = transcoder();
  for (const NamedParameter& p : parameters(whole)) p.variable.set_requires_grad(true);
  double wanted = 0.0;
  {
    Tape tape;
    const Variable loss = divergence(whole);
    wanted = static_cast<double>(loss.value().item());
    tape.backward(loss);
  }
  run_ranks(2, [&](Communicator& ranks) {
    const FeatureRange own = features_of_rank(24, ranks.rank(), ranks.size());
    Transcoder part(whole.shape(), whole.activation(), own);
    begin_from(part, transcoder(), {{1.0f, 1.0f, 1.0f}, {1.0f, 1.0f, 1.0f}});
    for (const NamedParameter& p : parameters(part)) p.variable.set_requires_grad(true);
    Tape tape;
    const Variable loss = divergence(part, &ranks);
    EXPECT_NEAR(static_cast<double>(loss.value().item()), wanted, 1e-5);
    tape.backward(loss);
    for (std::size_t l = 0; l < 3; ++l) {
      const TranscoderLayer &of_part = part.layers()[l], &of_whole = whole.layers()[l];
      const auto rows = [&](const Variable& v) {
        return to_doubles(v.grad().rows(own.begin, own.end));
      };
      EXPECT_LT(relative_error(of_part.encoder.grad().values(), rows(of_whole.encoder)), 1e-4);
      EXPECT_LT(relative_error(of_part.decoder.grad().values(), rows(of_whole.decoder)), 1e-4);
    }
    Tensor bias = part.decoder_bias().grad().clone();
    ranks
        .start_sum({{bias.mutable_f32(), static_cast<std::size_t>(bias.elements())}},
                   DeviceKind::kCpu)
        ->wait();
    EXPECT_LT(relative_error(bias.values(), to_doubles(whole.decoder_bias().grad())), 1e-4);
  });
}

INSTANTIATE_TEST_SUITE_P(
    Cases, TrainedReplacementTest,
    ::testing::Values(Case{"CrossLayer", TranscoderKind::kCrossLayer, false, false},
                      Case{"CrossLayerGated", TranscoderKind::kCrossLayer, false, true},
                      Case{"PerLayerSkip", TranscoderKind::kPerLayer, true, false},
                      Case{"PerLayerGated", TranscoderKind::kPerLayer, false, true}),
    [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace filigree
