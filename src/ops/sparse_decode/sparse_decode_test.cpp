#include "ops/sparse_decode/sparse_decode.h"

#include <gmock/gmock.h>

#include "filigree/error.h"
#include "support/check_op.h"
#include "support/errors.h"

namespace filigree {
namespace {

using ::testing::HasSubstr;

// Rows of odd lengths: none, one, some.
constexpr std::int64_t kRows = 5, kFeatures = 7;
const std::vector<std::int32_t> kBegin = {0, 2, 2, 3, 7, 8};
const std::vector<std::int32_t> kFeature = {1, 4, 6, 0, 1, 4, 5, 4};

// Two sources into three targets: the first writes all, the second the last two.
Doubles reference(const std::vector<Doubles>& in, std::size_t width) {
  Doubles y(3 * kRows * width, 0.0);
  const auto add = [&](const Doubles& value, const Doubles& decoder, std::size_t first,
                       std::size_t reach) {
    for (std::size_t r = 0; r < kRows; ++r)
      for (auto p = static_cast<std::size_t>(kBegin[r]);
           p < static_cast<std::size_t>(kBegin[r + 1]); ++p)
        for (std::size_t m = 0; m < reach; ++m)
          for (std::size_t c = 0; c < width; ++c)
            y[((first + m) * kRows + r) * width + c] +=
                value[p] * decoder[(static_cast<std::size_t>(kFeature[p]) * reach + m) * width + c];
  };
  add(in[0], in[1], 0, 3);
  add(in[2], in[3], 1, 2);
  return y;
}

TEST(SparseDecode, ValuesAndGradients) {
  for (const std::int64_t width : {1, 5, 33, 64})
    check_op({.name = fmt::format("width {}", width),
              .inputs = {random_tensor({8}, 1), random_tensor({kFeatures, 3 * width}, 2),
                         random_tensor({8}, 3), random_tensor({kFeatures, 2 * width}, 4)},
              .op =
                  [=](const std::vector<Variable>& in) {
                    const std::vector<DecoderSource> sources = {
                        {make_code(kFeatures, kBegin, kFeature, in[0]), in[1], 0, 3},
                        {make_code(kFeatures, kBegin, kFeature, in[2]), in[3], 1, 2}};
                    return sparse_decode(sources, 3, width);
                  },
              .reference =
                  [=](const std::vector<Doubles>& in) {
                    return reference(in, static_cast<std::size_t>(width));
                  }});
}

TEST(SparseDecode, RefusesWhatDoesNotFit) {
  const SparseCode code = make_code(kFeatures, kBegin, kFeature, random_tensor({8}, 1));
  const Variable decoder = random_tensor({kFeatures, 8}, 2);
  const auto refusal = [&](std::int64_t first, std::int64_t reach, std::int64_t width) {
    const DecoderSource source{code, decoder, first, reach};
    return error_of([&] { sparse_decode({&source, 1}, 3, width); });
  };
  EXPECT_EQ(refusal(1, 2, 4), "no error");
  EXPECT_THAT(refusal(2, 2, 4), HasSubstr("targets 2 to 3 of 3"));
  EXPECT_THAT(refusal(0, 2, 5), HasSubstr("is not [7, 10]"));
}

TEST(SparseCode, IsCheckedAndReadByFeature) {
  const SparseCode code = make_code(kFeatures, kBegin, kFeature, random_tensor({8}, 1));
  const CodeByFeature by = entries_by_feature(code);
  const auto list = [](const Tensor& t) {
    return std::vector<std::int32_t>(t.i32(), t.i32() + t.elements());
  };
  EXPECT_EQ(list(by.begin), (std::vector<std::int32_t>{0, 1, 3, 3, 3, 6, 7, 8}));
  EXPECT_EQ(list(by.entry), (std::vector<std::int32_t>{3, 0, 4, 1, 5, 7, 6, 2}));
  EXPECT_EQ(list(by.row), (std::vector<std::int32_t>{3, 0, 3, 0, 3, 4, 3, 2}));
  const Variable values = random_tensor({8}, 1);
  EXPECT_THROW(make_code(6, kBegin, kFeature, values), Error);
  EXPECT_THROW(make_code(7, {0, 8, 2}, kFeature, values), Error);
  EXPECT_THROW(make_code(7, {0, 8}, kFeature, values), Error);  // not ascending
}

TEST(SparseCode, DensitiesFollowWhatIsActive) {
  Tensor value = random_tensor({8}, 1, 0.5f, 1.0f);
  value.mutable_f32()[1] = 0.0f;  // of feature 4: kept, and not active
  const std::vector<SparseCode> codes = {make_code(kFeatures, kBegin, kFeature, value)};
  Tensor density = Tensor::full({1, kFeatures}, 0.1f);
  const Tensor counts = update_density(codes, 0.5f, 0.06f, density);
  EXPECT_EQ(counts.i32()[0], 7);
  EXPECT_EQ(counts.i32()[1], 2);  // features 2 and 3
  EXPECT_FLOAT_EQ(density.f32()[4], 0.05f + 0.5f * 2.0f / 5.0f);
  EXPECT_FLOAT_EQ(density.f32()[2], 0.05f);
  EXPECT_THROW(update_density(codes, 0.5f, 0.06f, value), Error);
}

TEST(SaturatedActivity, ValuesAndGradients) {
  check_op(
      {.name = "tanh of activity",
       .inputs = {random_tensor({8}, 1, 0.0f, 2.0f), random_tensor({kFeatures}, 2, 0.1f, 1.0f)},
       .op =
           [](const std::vector<Variable>& in) {
             return saturated_activity(make_code(kFeatures, kBegin, kFeature, in[0]), in[1], 0.7f);
           },
       .reference =
           [](const std::vector<Doubles>& in) {
             Doubles y;
             for (std::size_t p = 0; p < 8; ++p)
               y.push_back(std::tanh(static_cast<double>(0.7f) * in[0][p] *
                                     in[1][static_cast<std::size_t>(kFeature[p])]));
             return y;
           }});
}

}  // namespace
}  // namespace filigree
