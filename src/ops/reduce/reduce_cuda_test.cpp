#include "filigree/ops.h"
#include "support/check_cuda.h"

namespace filigree {
namespace {

const std::vector<Shape>& shapes() {
  static const std::vector<Shape> all = {{1, 1, 1},    {2, 3, 5},   {4, 33, 7},   {1, 20000, 1},
                                         {1, 3000, 9}, {70, 1, 64}, {3, 100, 40}, {2, 5, 1000}};
  return all;
}

TEST(CudaReduce, SumsAndMeans) {
  FILIGREE_NEEDS_GPU();
  for (const Shape& shape : shapes())
    for (const int axis : {0, 1, 2})
      for (const bool average : {false, true})
        check_cuda({.name = shape.to_string() + " axis " + std::to_string(axis),
                    .inputs = {random_tensor(shape, 1, 0.0f, 1.0f)},
                    .op = [=](const std::vector<Variable>& in) {
                      return average ? mean(in[0], axis, true) : sum(in[0], axis);
                    }});
}

TEST(CudaReduce, OverEverything) {
  FILIGREE_NEEDS_GPU();
  for (const Shape& shape : shapes())
    check_cuda({.name = shape.to_string(),
                .inputs = {random_tensor(shape, 1, 0.0f, 1.0f)},
                .op = [](const std::vector<Variable>& in) { return mean_all(in[0]); }});
}

TEST(CudaReduce, MaximaAndTheirPlaces) {
  FILIGREE_NEEDS_GPU();
  for (const Shape& shape : shapes()) {
    Tensor x = random_tensor(shape, 1);
    // Equal values, of which the first counts.
    for (std::int64_t i = 0; i < x.elements(); ++i)
      x.mutable_f32()[i] = std::round(x.f32()[i] * 16.0f);
    for (const int axis : {0, 1, 2})
      check_cuda({.name = shape.to_string() + " axis " + std::to_string(axis),
                  .inputs = {x},
                  .op = [=](const std::vector<Variable>& in) { return maximum(in[0], axis); }});
    const Tensor here = argmax(x), there = argmax(x.to(DeviceKind::kCuda)).to(DeviceKind::kCpu);
    EXPECT_TRUE(check_op_detail::same_bits(here, there)) << shape.to_string();
  }
}

}  // namespace
}  // namespace filigree
