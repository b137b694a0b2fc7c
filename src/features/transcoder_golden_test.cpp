// The transcoder of tests/golden/clt on the run of its model: activations, reconstruction, loss and
// the gradient of every parameter as float64 arithmetic in PyTorch gives them.
#include <gtest/gtest.h>

#include "filigree/autograd.h"
#include "filigree/features.h"
#include "filigree/ops.h"
#include "json/object.h"
#include "support/check_op.h"
#include "support/golden_transcoder.h"
#include "support/thread_ranks.h"

namespace filigree {
namespace {

constexpr std::int64_t kLayers = kCltLayers, kFeatures = kCltFeatures, kWidth = kCltWidth;

TEST(TranscoderGolden, ActivationsAndReconstruction) {
  const Transcoder transcoder = golden_transcoder();
  const GoldenRun run = golden_run();
  const SafetensorsFile golden = clt_file("activations.safetensors");
  const Activity activity = transcoder.encode(run.inputs, {});
  const Tensor act = golden_tensor(golden, "act");
  for (std::int64_t l = 0; l < kLayers; ++l)
    EXPECT_LT(relative_error(dense_code(activity.codes[static_cast<std::size_t>(l)]).values(),
                             to_doubles(layer_rows(act, l))),
              1e-5);
  const Tensor written = transcoder.decode(activity.codes, run.inputs).value();
  EXPECT_LT(relative_error(written.values(), to_doubles(golden_tensor(golden, "reconstruction"))),
            1e-5);
  const Variable error = sub(Variable(run.outputs), Variable(written));
  EXPECT_LT(relative_error(error.value().values(), to_doubles(golden_tensor(golden, "error"))),
            2e-5);
}

// The parameters with their gradients, the threshold's own instead of its logarithm's.
void expect_gradients(const Transcoder& transcoder, double tolerance) {
  const SafetensorsFile golden = clt_file("training.safetensors");
  const auto expect = [&](const std::string& name, const Tensor& gradient, bool split) {
    Tensor wanted = golden_tensor(golden, "grad." + name);
    if (split) wanted = features_in(wanted, transcoder.features());
    EXPECT_LT(relative_error(gradient.values(), to_doubles(wanted)), tolerance) << name;
  };
  for (std::int64_t l = 0; l < kLayers; ++l) {
    const TranscoderLayer& layer = transcoder.layers()[static_cast<std::size_t>(l)];
    const auto name = [&](const char* what) { return fmt::format("{}_{}", what, l); };
    expect(name("W_enc"), layer.encoder.grad(), true);
    expect(name("b_enc"), layer.encoder_bias.grad(), true);
    expect(name("W_dec"), layer.decoder.grad(), true);
    // dL/dt = theta dL/dtheta
    const Tensor threshold = transcoder.threshold(l).value();
    expect(name("threshold"), div(Variable(layer.log_threshold.grad()), threshold).value(), true);
  }
}

void require_grads(const Transcoder& transcoder) {
  for (const NamedParameter& p : transcoder.feature_parameters())
    p.variable.set_requires_grad(true);
  for (const NamedParameter& p : transcoder.shared_parameters()) p.variable.set_requires_grad(true);
}

TranscoderLoss golden_loss(const Transcoder& transcoder, Communicator* ranks = nullptr) {
  const JsonObject constants = JsonObject::open(golden_folder() / "clt" / "training.json");
  const GoldenRun run = golden_run();
  return transcoder_loss(transcoder, run.inputs, run.outputs,
                         {.bandwidth = static_cast<float>(constants.number("bandwidth"))},
                         {.sparsity = constants.number("sparsity_coefficient"),
                          .saturation = constants.number("c"),
                          .inactive = constants.number("dead_coefficient")},
                         ranks);
}

TEST(TranscoderGolden, LossAndItsGradients) {
  const Transcoder transcoder = golden_transcoder();
  require_grads(transcoder);
  const SafetensorsFile golden = clt_file("training.safetensors");
  const auto number = [&](const char* name) { return golden_tensor(golden, name).f32()[0]; };
  Tape tape;
  const TranscoderLoss loss = golden_loss(transcoder);
  EXPECT_NEAR(loss.loss.value().item(), number("loss"), 1e-5 * number("loss"));
  EXPECT_NEAR(loss.error, number("mse"), 1e-5 * number("mse"));
  EXPECT_NEAR(loss.sparsity, number("sparsity"), 1e-5 * number("sparsity"));
  EXPECT_NEAR(loss.inactive, number("dead"), 1e-5 * number("dead"));
  tape.backward(loss.loss);
  expect_gradients(transcoder, 2e-5);
  for (std::int64_t l = 0; l < kLayers; ++l)
    EXPECT_LT(relative_error(layer_rows(transcoder.decoder_bias().grad(), l).values(),
                             to_doubles(golden_tensor(golden, fmt::format("grad.b_dec_{}", l)))),
              2e-5);
}

// Three processes that hold eight features of each layer.
TEST(TranscoderGolden, SplitOverProcessesItIsTheSame) {
  const SafetensorsFile golden = clt_file("training.safetensors");
  run_ranks(3, [&](Communicator& ranks) {
    const Transcoder transcoder =
        golden_transcoder(features_of_rank(kFeatures, ranks.rank(), ranks.size()));
    require_grads(transcoder);
    Tape tape;
    const TranscoderLoss loss = golden_loss(transcoder, &ranks);
    EXPECT_NEAR(loss.sparsity, golden_tensor(golden, "sparsity").f32()[0], 1e-4);
    tape.backward(loss.loss);
    expect_gradients(transcoder, 2e-5);
    Tensor bias = transcoder.decoder_bias().grad().clone();
    ranks
        .start_sum({{bias.mutable_f32(), static_cast<std::size_t>(bias.elements())}},
                   DeviceKind::kCpu)
        ->wait();
    for (std::int64_t l = 0; l < kLayers; ++l)
      EXPECT_LT(relative_error(layer_rows(bias, l).values(),
                               to_doubles(golden_tensor(golden, fmt::format("grad.b_dec_{}", l)))),
                2e-5);
  });
}

}  // namespace
}  // namespace filigree
