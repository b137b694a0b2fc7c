#include <utility>

#include "filigree/ops.h"
#include "ops/activation/activation_test_support.h"
#include "support/check_cuda.h"

namespace filigree {
namespace {

TEST(CudaLinear, ValuesAndGradients) {
  FILIGREE_NEEDS_GPU();
  struct Extents {
    std::int64_t rows, in, out;
  };
  for (const Extents e : {Extents{1, 1, 1},
                          {1, 8, 5},
                          {3, 7, 5},
                          {33, 64, 48},
                          {130, 48, 192},
                          {256, 128, 96},
                          {17, 1, 3},
                          {5, 3, 1}})
    for (const bool out_in : {false, true})
      for (const Activation activation :
           {Activation::kNone, Activation::kGeluNew, Activation::kGelu, Activation::kSilu}) {
        const Shape weight = out_in ? Shape{e.out, e.in} : Shape{e.in, e.out};
        check_cuda({.name = weight.to_string() + (out_in ? " out_in " : " ") + text_of(activation) +
                            " rows " + std::to_string(e.rows),
                    .inputs = {random_tensor({e.rows, e.in}, 1), random_tensor(weight, 2),
                               random_tensor({e.out}, 3)},
                    .op =
                        [=](const std::vector<Variable>& in) {
                          return linear(in[0], {in[1], in[2], out_in}, activation);
                        },
                    .parameter = {false, true, true},
                    .bf16_tolerance = 1.5e-2});
      }
}

TEST(CudaLinear, ReadsRangesOfAFusedMatrixAndSumsTheirGradients) {
  FILIGREE_NEEDS_GPU();
  for (const std::int64_t d : {8, 7, 32})
    for (const bool out_in : {false, true})
      check_cuda({.name = "fused " + std::to_string(d),
                  .inputs = {random_tensor({2, 5, d}, 1),
                             random_tensor(out_in ? Shape{3 * d, d} : Shape{d, 3 * d}, 2),
                             random_tensor({3 * d}, 3)},
                  .op =
                      [=](const std::vector<Variable>& in) {
                        const Variable q = linear(in[0], {in[1], in[2], out_in, 0, d});
                        const Variable v = linear(in[0], {in[1], in[2], out_in, 2 * d, d});
                        return linear_sum(q, {in[1], in[2], out_in, d, d}, v,
                                          {in[1], Variable(), out_in, 0, d});
                      },
                  .parameter = {false, true, true},
                  .bf16_tolerance = 2e-2});
}

TEST(CudaLinear, GivesThePreActivation) {
  FILIGREE_NEEDS_GPU();
  for (const std::int64_t out : {16, 13}) {
    const Tensor x = random_tensor({6, 8}, 1), w = random_tensor({8, out}, 2);
    Tensor here, there;
    linear(x, {w, Variable()}, Activation::kGeluNew, &here);
    linear(x.to(DeviceKind::kCuda), {w.to(DeviceKind::kCuda), Variable()}, Activation::kGeluNew,
           &there);
    EXPECT_LT(relative_error(there.on_host().values(), to_doubles(here)), 1e-5);
    linear(x.to(DeviceKind::kCuda).to(DType::kBf16), {w.to(DeviceKind::kCuda), Variable()},
           Activation::kGeluNew, &there);
    EXPECT_LT(l2_error(there.on_host().values(), here.values()), 1e-2);
  }
}

TEST(CudaFeedForward, ValuesAndGradients) {
  FILIGREE_NEEDS_GPU();
  for (const std::int64_t rows : {1, 33, 256})
    for (const auto& [width, f] : {std::pair<std::int64_t, Activation>{7, Activation::kGeluNew},
                                   {32, Activation::kGeluNew},
                                   {32, Activation::kGelu},
                                   {32, Activation::kRelu},
                                   {32, Activation::kSilu}})
      check_cuda(
          {.name = std::to_string(rows) + " rows of " + std::to_string(width) + " " + text_of(f),
           .inputs = {random_tensor({rows, width}, 1), random_tensor({width, 4 * width}, 2),
                      random_tensor({4 * width}, 3), random_tensor({4 * width, width}, 4),
                      random_tensor({width}, 5)},
           .op =
               [f = f](const std::vector<Variable>& in) {
                 return feed_forward(in[0], {in[1], in[2]}, {in[3], in[4]}, f);
               },
           .parameter = {false, true, true, true, true},
           // The slope of ReLU jumps at 0: what rounds across it has another gradient altogether.
           .bf16_tolerance = f == Activation::kRelu ? 5e-2 : 2e-2});
}

TEST(CudaLinear, NoRows) {
  FILIGREE_NEEDS_GPU();
  const Variable y = linear(Tensor::empty({0, 4}, DType::kF32, DeviceKind::kCuda),
                            {Tensor::zeros({4, 3}, DType::kF32, DeviceKind::kCuda), Variable()});
  EXPECT_EQ(y.shape(), Shape({0, 3}));
}

}  // namespace
}  // namespace filigree
