#include "filigree/ops.h"
#include "support/check_cuda.h"

namespace filigree {
namespace {

// Moves lose nothing, in either element type.
void check_exact(CudaCase c) {
  c.tolerance = c.bf16_tolerance = 1e-30;
  check_cuda(c);
}

TEST(CudaLayout, SlicesJoinsAndTransposes) {
  FILIGREE_NEEDS_GPU();
  for (const Shape& shape : {Shape{2, 6, 5}, Shape{3, 8, 16}, Shape{1, 4, 1}})
    for (const int axis : {0, 1, 2}) {
      const std::string name = shape.to_string() + " axis " + std::to_string(axis);
      const std::int64_t extent = shape[axis];
      check_exact({.name = "slice " + name,
                   .inputs = {random_tensor(shape, 1)},
                   .op = [=](const std::vector<Variable>& in) {
                     return slice(in[0], axis, extent > 2 ? 1 : 0,
                                  extent > 2 ? extent - 1 : extent);
                   }});
      check_exact({.name = "concat " + name,
                   .inputs = {random_tensor(shape, 1), random_tensor(shape, 2)},
                   .op = [=](const std::vector<Variable>& in) {
                     return concat({in[0], in[1]}, axis);
                   }});
      for (const int other : {0, 1, 2})
        check_exact({.name = "transpose " + name + " and " + std::to_string(other),
                     .inputs = {random_tensor(shape, 1)},
                     .op = [=](const std::vector<Variable>& in) {
                       return transpose(reshape(in[0], shape), axis, other);
                     }});
    }
  check_exact({.name = "an empty slice",
               .inputs = {random_tensor({2, 3}, 1)},
               .op = [](const std::vector<Variable>& in) { return slice(in[0], 1, 2, 2); }});
}

TEST(CudaLayout, GradientsComeBackToTheDeviceTheyBelongTo) {
  FILIGREE_NEEDS_GPU();
  for (const DType dtype : {DType::kF32, DType::kBf16}) {
    const Variable x(random_tensor({3, 4}, 1).to(DeviceKind::kCuda).to(dtype), true);
    Tape tape;
    const Variable here = placed(x, DeviceKind::kCpu);
    EXPECT_FALSE(here.value().on_gpu());
    EXPECT_EQ(here.value().dtype(), DType::kF32);
    tape.backward(here, Tensor::full({3, 4}, 2.0f));
    EXPECT_TRUE(x.grad().on_gpu());
    EXPECT_EQ(x.grad().dtype(), dtype);
    EXPECT_EQ(x.grad().on_host().f32()[11], 2.0f);
  }
}

}  // namespace
}  // namespace filigree
