#include "features/files/stored_matrix.h"

#include <gtest/gtest.h>

#include <fstream>
#include <vector>

#include "support/temporary_folder.h"

namespace filigree {
namespace {

// 6 stretches of 5 integers in a file, with a scale each.
class IntegerMatrixTest : public ::testing::Test {
 protected:
  static constexpr std::int64_t kStretches = 6, kLength = 5, kCount = kStretches * kLength;

  IntegerMatrixTest() {
    for (std::int64_t i = 0; i < kCount; ++i)
      integers_.push_back(static_cast<std::int8_t>(i * 37 % 255 - 127));
    std::ofstream file(folder_ / "integers", std::ios::binary);
    file.write(reinterpret_cast<const char*>(integers_.data()), kCount);
    file.close();
    for (std::int64_t s = 0; s < kStretches; ++s)
      scales_.mutable_f32()[s] = 0.01f * static_cast<float>(s + 1);
  }

  // Its numbers as rows of another width than a stretch is long.
  StoredMatrix rows_of(std::int64_t width) const {
    StoredTensor tensor;
    tensor.file = MappedFile::open(folder_ / "integers");
    tensor.view.name = "integers";
    tensor.view.kind = TensorKind::kI8;
    tensor.view.shape = {kStretches, kLength};
    tensor.view.data = tensor.file->bytes();
    return StoredMatrix(tensor, scales_, kCount / width, width);
  }

  float number(std::int64_t i) const {
    return static_cast<float>(integers_[static_cast<std::size_t>(i)]) * scales_.f32()[i / kLength];
  }

  const TemporaryFolder folder_;
  std::vector<std::int8_t> integers_;
  Tensor scales_ = Tensor::empty({kStretches});
};

// Rows and blocks that lie in one stretch, begin and end inside of stretches, and hold several.
TEST_F(IntegerMatrixTest, EveryNumberHasTheScaleOfItsStretch) {
  for (const std::int64_t width : {1, 2, 3, 5, 6, 10, 15, 30}) {
    const StoredMatrix matrix = rows_of(width);
    const std::int64_t rows = kCount / width;
    std::vector<float> row(static_cast<std::size_t>(width));
    for (std::int64_t first = 0; first < rows; ++first) {
      matrix.read_row(first, row.data());
      for (std::int64_t w = 0; w < width; ++w)
        EXPECT_EQ(row[static_cast<std::size_t>(w)], number(first * width + w)) << width;
      for (std::int64_t count = 1; first + count <= rows; ++count) {
        const Tensor block = matrix.block(first, count);
        for (std::int64_t i = 0; i < count * width; ++i)
          ASSERT_EQ(block.f32()[i], number(first * width + i)) << width << " " << first;
      }
    }
  }
}

}  // namespace
}  // namespace filigree
