#include "filigree/error.h"
#include "filigree/ops.h"
#include "support/check_op.h"
#include "support/errors.h"

namespace filigree {
namespace {

TEST(Embedding, ValuesAndGradientsWithRepeatedIds) {
  const std::vector<std::int32_t> ids = {3, 0, 3, 3, 6, 1, 0, 3};
  for (const std::int64_t width : {1, 5, 70, 130})
    check_op({.name = fmt::format("embedding of width {}", width),
              .inputs = {random_tensor({7, width}, 1)},
              .op =
                  [=](const std::vector<Variable>& x) {
                    return embedding(x[0], Tensor::from_ids({2, 4}, ids));
                  },
              .reference =
                  [=](const std::vector<Doubles>& x) {
                    Doubles y;
                    for (std::int32_t id : ids)
                      for (std::int64_t c = 0; c < width; ++c)
                        y.push_back(x[0][static_cast<std::size_t>(id * width + c)]);
                    return y;
                  }});
}

TEST(Embedding, NamesAnIdOutsideTheTable) {
  const std::vector<std::int32_t> high = {1, 7}, low = {-1};
  const Tensor table = Tensor::zeros({7, 3});
  EXPECT_EQ(error_of([&] { embedding(table, Tensor::from_ids({2}, high)); }),
            "embedding: id 7 at position 1 is not within the table's 7 rows");
  EXPECT_THROW(embedding(table, Tensor::from_ids({1}, low)), Error);
}

TEST(ScaledRows, OfSeveralTables) {
  const std::vector<Tensor> tables = {random_tensor({4, 3}, 1), random_tensor({4, 3}, 2)};
  const std::vector<float> factors = {2.0f, -1.0f};
  const Tensor ids = Tensor::from_ids({3}, std::vector<std::int32_t>{3, -1, 0});
  const Tensor rows = scaled_rows(tables, ids, factors);
  ASSERT_EQ(rows.shape(), Shape({2, 3, 3}));
  for (std::int64_t c = 0; c < 3; ++c) {
    EXPECT_EQ(rows.f32()[c], 2.0f * tables[0].f32()[9 + c]);
    EXPECT_EQ(rows.f32()[3 + c], 0.0f);
    EXPECT_EQ(rows.f32()[15 + c], -tables[1].f32()[c]);
  }
  EXPECT_THROW(scaled_rows(tables, ids, {factors.data(), 1}), Error);
}

}  // namespace
}  // namespace filigree
