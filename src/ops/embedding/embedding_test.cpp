#include "filigree/ops/embedding/embedding.h"

#include "filigree/base/error.h"
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

}  // namespace
}  // namespace filigree
