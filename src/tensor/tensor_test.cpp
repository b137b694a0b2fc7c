#include "filigree/tensor.h"

#include <gtest/gtest.h>

#include <limits>

#include "filigree/error.h"

namespace filigree {
namespace {

TEST(Shape, CountsItsElementsAndSplitsAtAnAxis) {
  const Shape shape{2, 3, 5};
  EXPECT_EQ(shape.elements(), 30);
  EXPECT_EQ(shape[-1], 5);
  EXPECT_EQ(shape.outer(1), 2);
  EXPECT_EQ(shape.inner(1), 5);
  EXPECT_EQ(shape.to_string(), "[2, 3, 5]");
  EXPECT_EQ(Shape().elements(), 1);
  EXPECT_EQ(Shape({4, 0}).elements(), 0);
  EXPECT_NE(Shape({2, 3}), Shape({2, 3, 1}));
}

TEST(Shape, RefusesWhatCannotBe) {
  EXPECT_THROW(Shape({-1}), Error);
  EXPECT_THROW(Shape({1, 1, 1, 1, 1, 1, 1}), Error);
  EXPECT_THROW(Shape({std::numeric_limits<std::int64_t>::max(), 2}), Error);
  EXPECT_THROW(Shape({3})[1], Error);
}

TEST(Tensor, ViewsShareMemoryAndClonesDoNot) {
  Tensor x = Tensor::zeros({4, 3});
  Tensor flat = x.reshape({12}), middle = x.rows(1, 3), copy = x.clone();
  flat.mutable_f32()[3] = 7.0f;
  EXPECT_EQ(middle.f32()[0], 7.0f);
  EXPECT_EQ(middle.shape(), Shape({2, 3}));
  EXPECT_EQ(copy.f32()[3], 0.0f);
  EXPECT_FALSE(x.unique());
  EXPECT_TRUE(copy.unique());
}

TEST(Tensor, ChecksTypesSizesAndUse) {
  EXPECT_THROW(Tensor().f32(), Error);
  EXPECT_THROW(Tensor::zeros({2}).i32(), Error);
  EXPECT_THROW(Tensor::zeros({2}).item(), Error);
  EXPECT_THROW(Tensor::zeros({2}).reshape({3}), Error);
  EXPECT_THROW(Tensor::zeros({2}).rows(1, 3), Error);
  const std::vector<float> two = {1, 2};
  EXPECT_THROW(Tensor::from({3}, two), Error);
  EXPECT_EQ(Tensor::scalar(2.5f).item(), 2.5f);
}

TEST(Tensor, BorrowedMemoryIsReadOnly) {
  const auto owner = std::make_shared<std::vector<float>>(6, 1.5f);
  Tensor view = Tensor::borrow({2, 3}, DType::kF32, owner, owner->data());
  EXPECT_EQ(view.f32(), owner->data());
  EXPECT_THROW(view.mutable_f32(), Error);
  EXPECT_TRUE(view.clone().writable());
}

TEST(Tensor, ConvertsBetweenTheFloatTypes) {
  const std::vector<float> values = {1.0f, -0.333333f, 65504.0f, 1e-8f};
  const Tensor x = Tensor::from({4}, values);
  for (const DType dtype : {DType::kBf16, DType::kF16}) {
    const Tensor narrow = x.to(dtype);
    EXPECT_EQ(narrow.bytes(), 8u);
    const Tensor back = narrow.to(DType::kF32);
    for (int i = 0; i < 3; ++i)
      EXPECT_NEAR(back.f32()[i], values[static_cast<std::size_t>(i)],
                  std::abs(values[static_cast<std::size_t>(i)]) / 128);
    EXPECT_EQ(narrow.to(dtype == DType::kBf16 ? DType::kF16 : DType::kBf16).bytes(), 8u);
  }
  EXPECT_THROW(x.to(DType::kI32), Error);
}

}  // namespace
}  // namespace filigree
