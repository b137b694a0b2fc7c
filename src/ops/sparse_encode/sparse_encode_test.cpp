#include <gmock/gmock.h>

#include <algorithm>

#include "filigree/error.h"
#include "filigree/ops.h"
#include "ops/sparse_decode/sparse_decode.h"
#include "support/check_op.h"
#include "support/errors.h"

namespace filigree {
namespace {

using ::testing::HasSubstr;

Doubles pre_activation(const std::vector<Doubles>& in, std::size_t rows, std::size_t features,
                       std::size_t width) {
  Doubles h(rows * features);
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t f = 0; f < features; ++f) {
      h[r * features + f] = in[2][f];
      for (std::size_t c = 0; c < width; ++c)
        h[r * features + f] += in[0][r * width + c] * in[1][f * width + c];
    }
  return h;
}

// What passes, with zeros.
Doubles activations(const Doubles& h, std::size_t rows, const SparseEncodeOptions& options,
                    const Doubles& threshold) {
  const std::size_t features = h.size() / rows;
  Doubles a(h.size(), 0.0);
  Doubles bounds(rows, 0.0);
  const auto kth = [&](Doubles values, std::size_t k) {
    std::sort(values.begin(), values.end(), std::greater<>());
    return std::max(0.0, k <= values.size() ? values[k - 1] : 0.0);
  };
  const auto k = static_cast<std::size_t>(options.k);
  for (std::size_t r = 0; r < rows; ++r) {
    if (options.selection == Selection::kTopK)
      bounds[r] = kth(Doubles(h.begin() + static_cast<std::ptrdiff_t>(r * features),
                              h.begin() + static_cast<std::ptrdiff_t>((r + 1) * features)),
                      k);
    if (options.selection == Selection::kBatchTopK) bounds[r] = kth(h, k * rows);
  }
  for (std::size_t i = 0; i < h.size(); ++i) {
    const bool passes = options.selection == Selection::kThreshold
                            ? h[i] > (threshold.empty() ? 0.0 : threshold[i % features])
                            : h[i] > 0.0 && h[i] >= bounds[i / features];
    if (passes) a[i] = h[i];
  }
  return a;
}

struct Case {
  std::string name;
  std::int64_t rows, features, width;
  SparseEncodeOptions options;
  bool threshold;
};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const std::int64_t features : {1, 31, 70})
    for (const bool threshold : {false, true})
      all.push_back(
          {fmt::format("threshold {} of {}", threshold, features), 6, features, 9, {}, threshold});
  for (const Selection selection : {Selection::kTopK, Selection::kBatchTopK})
    for (const std::int64_t k : {1, 5, 100})
      all.push_back({fmt::format("{} {}", name_of(selection), k),
                     7,
                     67,
                     12,
                     {.selection = selection, .k = k},
                     false});
  return all;
}

TEST(SparseEncode, ValuesAndGradients) {
  for (const Case& c : cases()) {
    const auto rows = static_cast<std::size_t>(c.rows);
    const auto features = static_cast<std::size_t>(c.features);
    const auto width = static_cast<std::size_t>(c.width);
    const Tensor threshold = random_tensor({c.features}, 5, 0.1f, 0.6f);
    const Doubles thetas = c.threshold ? to_doubles(threshold) : Doubles();
    // What is active, through a decoder, which makes it a result of a fixed shape.
    check_op(
        {.name = c.name,
         .inputs = {random_tensor({c.rows, c.width}, 1), random_tensor({c.features, c.width}, 2),
                    random_tensor({c.features}, 3, -0.3f, 0.3f), random_tensor({c.features, 3}, 4)},
         .op =
             [&](const std::vector<Variable>& in) {
               const EncoderWeights encoder{in[1], in[2],
                                            c.threshold ? Variable(threshold) : Variable()};
               const DecoderSource source{sparse_encode(in[0], encoder, c.options).code, in[3], 0,
                                          1};
               return sparse_decode({&source, 1}, 1, 3);
             },
         .reference =
             [&](const std::vector<Doubles>& in) {
               const Doubles a =
                   activations(pre_activation(in, rows, features, width), rows, c.options, thetas);
               Doubles y(rows * 3, 0.0);
               for (std::size_t i = 0; i < a.size(); ++i)
                 for (std::size_t d = 0; d < 3; ++d)
                   y[i / features * 3 + d] += a[i] * in[3][i % features * 3 + d];
               return y;
             }});
  }
}

TEST(SparseEncode, HowFarBelowTheThreshold) {
  const Tensor threshold = random_tensor({40}, 5, 0.1f, 0.6f);
  check_op({.name = "below",
            .inputs = {random_tensor({300, 9}, 1), random_tensor({40, 9}, 2),
                       random_tensor({40}, 3, -0.3f, 0.3f), threshold},
            .op =
                [](const std::vector<Variable>& in) {
                  return sparse_encode(in[0], {in[1], in[2], in[3]}, {}, true).below;
                },
            .reference =
                [](const std::vector<Doubles>& in) {
                  const Doubles h = pre_activation(in, 300, 40, 9);
                  Doubles sums(40, 0.0);
                  for (std::size_t i = 0; i < h.size(); ++i)
                    sums[i % 40] += std::max(0.0, in[3][i % 40] - h[i]);
                  return sums;
                }});
}

// By hand: h = 0.5, 0.9, 1.2 around thresholds of 1 with a bandwidth of 0.6.
TEST(SparseEncode, TheStepIsASlopeForTheThreshold) {
  const Variable x(Tensor::from({1, 1}, std::vector<float>{1.0f}));
  const Variable weight(Tensor::from({3, 1}, std::vector<float>{0.5f, 0.9f, 1.2f}), true);
  const Variable bias(Tensor::zeros({3}), true);
  const Variable threshold(Tensor::full({3}, 1.0f), true);
  const Variable decoder(Tensor::from({3, 1}, std::vector<float>{2, 3, 5}));
  Tape tape;
  const DecoderSource source{sparse_encode(x, {weight, bias, threshold}, {.bandwidth = 0.6f}).code,
                             decoder, 0, 1};
  EXPECT_EQ(source.code.entries(), 2);  // the one in reach of the step is kept as a zero
  const Variable y = sparse_decode({&source, 1}, 1, 1);
  EXPECT_FLOAT_EQ(y.value().item(), 6.0f);
  tape.backward(y, Tensor::full({1, 1, 1}, 1.0f));
  const auto list = [](const Tensor& t) {
    return std::vector<float>(t.values().begin(), t.values().end());
  };
  EXPECT_EQ(list(weight.grad()), (std::vector<float>{0, 0, 5}));
  EXPECT_EQ(list(bias.grad()), (std::vector<float>{0, 0, 5}));
  EXPECT_THAT(list(threshold.grad()), ::testing::ElementsAre(0.0f, ::testing::FloatEq(-3.0f / 0.6f),
                                                             ::testing::FloatEq(-5.0f / 0.6f)));
}

TEST(SparseEncode, WithoutATapeOnlyWhatPassesIsKept) {
  const Tensor x = random_tensor({20, 9}, 1), weight = random_tensor({40, 9}, 2);
  const EncoderWeights encoder{weight, random_tensor({40}, 3), Tensor::full({40}, 0.5f)};
  const SparseCode code = sparse_encode(x, encoder, {.bandwidth = 0.4f}).code;
  ASSERT_GT(code.entries(), 0);
  for (const float value : code.value.value().values()) EXPECT_GT(value, 0.5f);
  EXPECT_FALSE(code.by_feature.defined());
}

// Two processes with half of the features each find what one with all of them finds.
TEST(SparseEncode, FeaturesThatProcessesSplitPassTogether) {
  const Tensor x = random_tensor({30, 9}, 1), weight = random_tensor({40, 9}, 2),
               bias = random_tensor({40}, 3);
  for (const Selection selection : {Selection::kTopK, Selection::kBatchTopK}) {
    SparseEncodeOptions options{.selection = selection, .k = 4};
    const Tensor whole = dense_code(sparse_encode(x, {weight, bias, {}}, options).code);
    // Each call to sum() is made twice, first to collect and then to hand out.
    std::vector<std::vector<double>> sums;
    std::size_t call = 0;
    bool collecting = true;
    for (const int pass : {0, 1, 2, 3}) {  // two to learn the sums of both, for each digit
      collecting = pass < 3;
      Tensor parts[2];
      std::vector<std::vector<double>> next;
      for (const int process : {0, 1}) {
        call = 0;
        options.process = process;
        options.processes = 2;
        options.sum = [&](std::span<double> values) {
          if (call >= next.size()) next.emplace_back(values.size(), 0.0);
          for (std::size_t i = 0; i < values.size(); ++i) next[call][i] += values[i];
          if (call < sums.size()) std::copy(sums[call].begin(), sums[call].end(), values.begin());
          ++call;
        };
        const std::int64_t begin = process * 20;
        parts[process] = dense_code(
            sparse_encode(x, {weight.rows(begin, begin + 20), bias.rows(begin, begin + 20), {}},
                          options)
                .code);
      }
      sums = next;
      if (collecting) continue;
      for (std::int64_t r = 0; r < 30; ++r)
        for (std::int64_t f = 0; f < 40; ++f)
          EXPECT_EQ(parts[f / 20].f32()[r * 20 + f % 20], whole.f32()[r * 40 + f]);
    }
  }
}

TEST(SparseEncode, SeveralLayersAreEachAsAlone) {
  const Tensor x = random_tensor({2, 20, 9}, 1);
  std::vector<EncoderWeights> encoders;
  for (std::uint64_t l = 0; l < 2; ++l)
    encoders.push_back({random_tensor({40, 9}, 2 + l), random_tensor({40}, 4 + l), {}});
  const SparseEncodeOptions options{.selection = Selection::kBatchTopK, .k = 3};
  const auto both = sparse_encode_layers(x, encoders, options);
  for (std::int64_t l = 0; l < 2; ++l) {
    const auto i = static_cast<std::size_t>(l);
    const Encoded alone = sparse_encode(x.rows(l, l + 1).reshape({20, 9}), encoders[i], options);
    EXPECT_TRUE(check_op_detail::same_bits(dense_code(both[i].code), dense_code(alone.code)));
    EXPECT_EQ(both[i].bound, alone.bound);
  }
  EXPECT_THAT(error_of([&] {
                sparse_encode_layers(x, {encoders.data(), 1}, options);
              }),
              HasSubstr("for 1 layers"));
}

TEST(SparseEncode, SeveralLayersWithThresholdsAreEachAsAlone) {
  const Tensor x = random_tensor({3, 20, 9}, 1);
  std::vector<EncoderWeights> encoders;
  for (std::uint64_t l = 0; l < 3; ++l)
    encoders.push_back({random_tensor({40, 9}, 2 + l), random_tensor({40}, 5 + l),
                        random_tensor({40}, 8 + l, 0.1f, 0.9f)});
  const SparseEncodeOptions options{.bandwidth = 0.2f};
  const auto all = sparse_encode_layers(x, encoders, options, true);
  for (std::int64_t l = 0; l < 3; ++l) {
    const auto i = static_cast<std::size_t>(l);
    const Encoded alone =
        sparse_encode(x.rows(l, l + 1).reshape({20, 9}), encoders[i], options, true);
    EXPECT_TRUE(check_op_detail::same_bits(dense_code(all[i].code), dense_code(alone.code)));
    EXPECT_TRUE(check_op_detail::same_bits(all[i].below.value(), alone.below.value()));
    EXPECT_GT(all[i].code.entries(), 0);
  }
}

TEST(SparseEncode, EqualValuesPassTogetherOrNotAtAll) {
  const Tensor x = random_tensor({10, 4}, 1);
  Tensor bias = Tensor::full({6}, 0.25f);
  bias.mutable_f32()[3] = 0.5f;
  const EncoderWeights encoder{Tensor::zeros({6, 4}), bias, {}};
  const auto entries = [&](std::int64_t k) {
    return sparse_encode(x, encoder, {.selection = Selection::kBatchTopK, .k = k}).code.entries();
  };
  EXPECT_EQ(entries(1), 10);
  EXPECT_EQ(entries(2), 10);  // all would be 60 of 20
  EXPECT_EQ(entries(5), 60);
}

TEST(SparseEncode, RefusesWhatMakesNoSense) {
  const Tensor x = random_tensor({3, 4}, 1), weight = random_tensor({5, 4}, 2),
               bias = random_tensor({5}, 3);
  const auto refusal = [&](const EncoderWeights& encoder, const SparseEncodeOptions& options) {
    return error_of([&] { sparse_encode(x, encoder, options); });
  };
  EXPECT_THAT(refusal({random_tensor({5, 3}, 1), bias, {}}, {}), HasSubstr("do not fit"));
  EXPECT_THAT(refusal({weight, random_tensor({4}, 1), {}}, {}), HasSubstr("the bias [4]"));
  EXPECT_THAT(refusal({weight, bias, {}}, {.bandwidth = 1.0f}), HasSubstr("needs thresholds"));
  EXPECT_THAT(refusal({weight, bias, {}}, {.selection = Selection::kTopK}), HasSubstr("0 of the"));
  EXPECT_THAT(refusal({weight, bias, bias}, {.selection = Selection::kTopK, .k = 1}),
              HasSubstr("has no thresholds"));
}

}  // namespace
}  // namespace filigree
