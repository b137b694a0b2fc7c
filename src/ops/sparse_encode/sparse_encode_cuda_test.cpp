#include <fmt/format.h>

#include <cmath>

#include "filigree/autograd.h"
#include "filigree/ops.h"
#include "ops/sparse_decode/sparse_decode.h"
#include "support/check_cuda.h"

namespace filigree {
namespace {

// Encode, decode into two targets, and how much is active: all three have gradients.
Variable through_features(const std::vector<Variable>& in, const SparseEncodeOptions& options,
                          bool threshold) {
  const EncoderWeights encoder{in[1], in[2], threshold ? in[4] : Variable()};
  SparseEncodeOptions with = options;
  with.precision = in[0].value().dtype();
  const Encoded encoded = sparse_encode(in[0], encoder, with, true);
  const DecoderSource source{encoded.code, in[3], 0, 2};
  const std::int64_t width = in[3].size(1) / 2;
  const Variable y = sparse_decode({&source, 1}, 2, width, with.precision);
  const Variable active = sum_all(saturated_activity(encoded.code, in[4], 0.7f));
  return add(y, scale(add(active, sum_all(encoded.below)), 0.01f));
}

TEST(CudaSparseEncode, ValuesAndGradients) {
  FILIGREE_NEEDS_GPU();
  struct Case {
    const char* name;
    SparseEncodeOptions options;
    bool threshold;
  };
  const std::vector<Case> cases = {
      {"relu", {}, false},
      {"jumprelu", {.bandwidth = 0.3f}, true},
      {"top-k", {.selection = Selection::kTopK, .k = 6}, false},
      {"top-k of all", {.selection = Selection::kTopK, .k = 1000}, false},
      {"batch-top-k", {.selection = Selection::kBatchTopK, .k = 6}, false}};
  for (const Case& c : cases)
    for (const std::int64_t features : {1, 37, 700})
      check_cuda({.name = std::string(c.name) + " of " + std::to_string(features),
                  .inputs = {random_tensor({50, 24}, 1), random_tensor({features, 24}, 2),
                             random_tensor({features}, 3, -0.3f, 0.3f),
                             // More columns than the threads of a block have at once.
                             random_tensor({features, 2 * (features == 37 ? 150 : 20)}, 4),
                             random_tensor({features}, 5, 0.2f, 0.6f)},
                  .op =
                      [&](const std::vector<Variable>& in) {
                        return through_features(in, c.options, c.threshold);
                      },
                  .parameter = {false, true, true, true, true},
                  // Rounding moves values across bounds, which is no error of the kernels.
                  .with_bf16 = false});
}

TEST(CudaSparseEncode, Bf16ReadsTheRoundedWeights) {
  FILIGREE_NEEDS_GPU();
  check_cuda(
      {.name = "relu",
       .inputs = {random_tensor({50, 24}, 1), random_tensor({64, 24}, 2),
                  random_tensor({64}, 3, -0.3f, 0.3f), random_tensor({64, 40}, 4),
                  random_tensor({64}, 5, 0.2f, 0.6f)},
       .op = [&](const std::vector<Variable>& in) { return through_features(in, {}, false); },
       .parameter = {false, true, true, true, true},
       .bf16_tolerance = 5e-2});
}

// Three layers at once, each written to its own target and all later ones: what training does.
constexpr std::int64_t kLayers = 3;
Variable through_layers(const std::vector<Variable>& in, std::int64_t k, std::int64_t width,
                        bool in_bf16) {
  std::vector<EncoderWeights> encoders;
  for (std::size_t l = 0; l < kLayers; ++l) encoders.push_back({in[1 + l], in[4 + l], {}});
  const Tensor x = in_bf16 ? in[0].value().to(DType::kBf16) : in[0].value();
  const DType precision = x.dtype();
  const auto encoded = sparse_encode_layers(
      x, encoders, {.selection = Selection::kBatchTopK, .k = k, .precision = precision});
  std::vector<DecoderSource> sources;
  for (std::int64_t l = 0; l < kLayers; ++l)
    sources.push_back({encoded[static_cast<std::size_t>(l)].code,
                       in[static_cast<std::size_t>(7 + l)], l, kLayers - l});
  return sparse_decode(sources, kLayers, width, precision);
}

CudaCase layers_case(std::int64_t rows, std::int64_t features, std::int64_t width, std::int64_t k,
                     float spread) {
  CudaCase c;
  c.name = fmt::format("{} rows, {} features, width {}, k {}", rows, features, width, k);
  c.inputs.push_back(random_tensor({kLayers, rows, width}, 1));
  for (std::uint64_t l = 0; l < kLayers; ++l)
    c.inputs.push_back(random_tensor({features, width}, 2 + l, -spread, spread));
  for (std::uint64_t l = 0; l < kLayers; ++l)
    c.inputs.push_back(random_tensor({features}, 5 + l, 0.1f, 0.2f));
  for (std::int64_t l = 0; l < kLayers; ++l)
    c.inputs.push_back(
        random_tensor({features, (kLayers - l) * width}, static_cast<std::uint64_t>(8 + l)));
  c.op = [=](const std::vector<Variable>& in) { return through_layers(in, k, width, false); };
  c.constant = {true};
  c.parameter.assign(10, true);
  c.with_bf16 = false;
  return c;
}

TEST(CudaSparseEncode, AllLayersAtOnce) {
  FILIGREE_NEEDS_GPU();
  // Rows of one block and of many, whole vectors and not, more wanted than there are, and features
  // that are active at more rows than a block takes at once.
  check_cuda(layers_case(50, 64, 24, 4, 1.0f));
  check_cuda(layers_case(1, 3, 1, 2, 1.0f));
  check_cuda(layers_case(700, 37, 20, 9, 1.0f));
  check_cuda(layers_case(300, 5, 7, 2, 0.01f));
  check_cuda(layers_case(50, 64, 24, 64, 1.0f));
  check_cuda(layers_case(50, 64, 24, 100, 1.0f));
  check_cuda(layers_case(40, 2000, 200, 3, 0.2f));
}

// The same with thresholds that learn, and what keeps silent features alive.
TEST(CudaSparseEncode, AllLayersWithThresholds) {
  FILIGREE_NEEDS_GPU();
  constexpr std::int64_t kWidth = 24, kFeatures = 64;
  CudaCase c = layers_case(50, kFeatures, kWidth, 4, 1.0f);
  c.name = "thresholds of several layers";
  for (std::uint64_t l = 0; l < kLayers; ++l)
    c.inputs.push_back(random_tensor({kFeatures}, 20 + l, 0.1f, 0.9f));
  c.op = [](const std::vector<Variable>& in) {
    std::vector<EncoderWeights> encoders;
    for (std::size_t l = 0; l < kLayers; ++l)
      encoders.push_back({in[1 + l], in[4 + l], in[10 + l]});
    const auto encoded = sparse_encode_layers(in[0].value(), encoders, {.bandwidth = 0.3f}, true);
    std::vector<DecoderSource> sources;
    Variable below = sum_all(encoded[0].below);
    for (std::int64_t l = 0; l < kLayers; ++l) {
      const auto i = static_cast<std::size_t>(l);
      sources.push_back({encoded[i].code, in[7 + i], l, kLayers - l});
      if (l > 0) below = add(below, sum_all(encoded[i].below));
    }
    return add(sparse_decode(sources, kLayers, kWidth, DType::kF32), scale(below, 0.01f));
  };
  c.parameter.assign(13, true);
  check_cuda(c);
}

// Without weights all values of a feature are equal to its bias: none of the first that there is no
// room for passes.
TEST(CudaSparseEncode, EqualValuesPassTogetherWhereThereIsRoom) {
  FILIGREE_NEEDS_GPU();
  for (const std::int64_t k : {1, 2, 3, 5}) {
    CudaCase c = layers_case(70, 12, 8, k, 0.0f);
    for (std::size_t l = 4; l < 7; ++l)
      for (std::int64_t f = 0; f < 12; ++f)
        c.inputs[l].mutable_f32()[f] = f < 2 ? 0.5f : f < 7 ? 0.25f : 0.125f;
    check_cuda(c);
  }
}

TEST(CudaSparseEncode, LayersInBf16) {
  FILIGREE_NEEDS_GPU();
  // Inputs and weights whose products are exact, so that both devices choose the same.
  CudaCase c = layers_case(90, 40, 16, 3, 1.0f);
  for (std::size_t i = 0; i < 4; ++i)
    for (std::int64_t e = 0; e < c.inputs[i].elements(); ++e)
      c.inputs[i].mutable_f32()[e] = std::round(4.0f * c.inputs[i].f32()[e]) / 4.0f;
  c.op = [](const std::vector<Variable>& in) {
    return through_layers(in, 3, 16, in[0].value().on_gpu());
  };
  c.tolerance = 2e-2;  // of the decoders' rounding
  check_cuda(c);
}

TEST(CudaSparseCode, DensitiesAndCounts) {
  FILIGREE_NEEDS_GPU();
  const Tensor x = random_tensor({2, 300, 9}, 1);
  std::vector<EncoderWeights> here, there;
  for (std::uint64_t l = 0; l < 2; ++l) {
    const Tensor weight = random_tensor({50, 9}, 2 + l), bias = random_tensor({50}, 4 + l);
    here.push_back({weight, bias, {}});
    there.push_back({Variable(weight.to(DeviceKind::kCuda), true),
                     Variable(bias.to(DeviceKind::kCuda), true),
                     {}});
  }
  for (const bool batch : {false, true}) {
    const SparseEncodeOptions options{
        .selection = batch ? Selection::kBatchTopK : Selection::kThreshold, .k = batch ? 2 : 0};
    const auto counts = [&](const Tensor& inputs, const std::vector<EncoderWeights>& weights,
                            Tensor& density) {
      Tape tape;
      std::vector<SparseCode> codes;
      for (const Encoded& encoded : sparse_encode_layers(inputs, weights, options))
        codes.push_back(encoded.code);
      return update_density(codes, 0.75f, 0.02f, density).to(DeviceKind::kCpu);
    };
    Tensor wanted = Tensor::full({2, 50}, 0.01f), found = wanted.to(DeviceKind::kCuda);
    const Tensor a = counts(x, here, wanted), b = counts(x.to(DeviceKind::kCuda), there, found);
    for (int i = 0; i < 4; ++i) EXPECT_EQ(a.i32()[i], b.i32()[i]) << i;
    EXPECT_GT(a.i32()[0], 0);
    EXPECT_LT(relative_error(found.on_host().values(), to_doubles(wanted)), 1e-6);
  }
}

}  // namespace
}  // namespace filigree
