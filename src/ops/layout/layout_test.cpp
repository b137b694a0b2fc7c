#include "filigree/error.h"
#include "filigree/ops.h"
#include "support/check_op.h"

namespace filigree {
namespace {

// The elements of a flat [3, 4, 5] for which `keep` says so, in order.
Doubles chosen(const Doubles& x, const std::function<bool(int, int, int)>& keep) {
  Doubles y;
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 4; ++j)
      for (int k = 0; k < 5; ++k)
        if (keep(i, j, k)) y.push_back(x[static_cast<std::size_t>((i * 4 + j) * 5 + k)]);
  return y;
}

TEST(Layout, SliceOfEveryAxis) {
  for (int axis = 0; axis < 3; ++axis)
    check_op({.name = fmt::format("slice of axis {}", axis),
              .inputs = {random_tensor({3, 4, 5}, 1)},
              .op = [=](const std::vector<Variable>& x) { return slice(x[0], axis, 1, 3); },
              .reference =
                  [=](const std::vector<Doubles>& x) {
                    return chosen(x[0], [=](int i, int j, int k) {
                      const int at = axis == 0 ? i : axis == 1 ? j : k;
                      return at >= 1 && at < 3;
                    });
                  }});
}

TEST(Layout, ConcatUndoesSlices) {
  for (int axis = -3; axis < 3; ++axis)
    check_op({.name = fmt::format("concat along axis {}", axis),
              .inputs = {random_tensor({3, 4, 5}, 1)},
              .op =
                  [=](const std::vector<Variable>& x) {
                    const std::int64_t extent = x[0].size(axis);
                    return concat({slice(x[0], axis, 0, 1), slice(x[0], axis, 1, extent)}, axis);
                  },
              .reference = [](const std::vector<Doubles>& x) { return x[0]; }});
}

TEST(Layout, TransposeOfEveryPairOfAxes) {
  const int extents[] = {3, 4, 5};
  for (int a = 0; a < 3; ++a)
    for (int b = 0; b < 3; ++b)
      check_op(
          {.name = fmt::format("transpose {} {}", a, b),
           .inputs = {random_tensor({3, 4, 5}, 1)},
           .op = [=](const std::vector<Variable>& x) { return transpose(x[0], a, b); },
           .reference =
               [&](const std::vector<Doubles>& x) {
                 int size[] = {extents[0], extents[1], extents[2]};
                 std::swap(size[a], size[b]);
                 Doubles y;
                 int at[3];
                 for (at[0] = 0; at[0] < size[0]; ++at[0])
                   for (at[1] = 0; at[1] < size[1]; ++at[1])
                     for (at[2] = 0; at[2] < size[2]; ++at[2]) {
                       int from[] = {at[0], at[1], at[2]};
                       std::swap(from[a], from[b]);
                       y.push_back(
                           x[0][static_cast<std::size_t>((from[0] * 4 + from[1]) * 5 + from[2])]);
                     }
                 return y;
               }});
}

TEST(Layout, RefusesWhatDoesNotFit) {
  EXPECT_THROW(slice(Tensor::zeros({3}), 0, 2, 4), Error);
  EXPECT_THROW(reshape(Tensor::zeros({3}), {2, 2}), Error);
  EXPECT_THROW(concat({Tensor::zeros({2, 3}), Tensor::zeros({2, 4})}, 0), Error);
}

}  // namespace
}  // namespace filigree
