#include <vector>

#include "filigree/autograd.h"
#include "filigree/error.h"
#include "filigree/ops.h"
#include "filigree/runtime.h"
#include "ops/matmul/gemm.h"
#include "tensor/dispatch.h"

namespace filigree {
namespace {

// A batch of row-major matrices; one matrix serves the whole batch when `step` is 0.
struct Matrices {
  Tensor tensor;
  std::int64_t rows, cols;  // after the transpose
  std::int64_t row_stride, col_stride;
  std::int64_t step;
};

Matrices matrices(const Tensor& tensor, bool transposed, bool shared) {
  const std::int64_t rows = tensor.size(-2);
  const std::int64_t cols = tensor.size(-1);
  const std::int64_t step = shared ? 0 : rows * cols;
  if (transposed) return {tensor, cols, rows, 1, cols, step};
  return {tensor, rows, cols, cols, 1, step};
}

Matrices transpose(Matrices m) {
  std::swap(m.rows, m.cols);
  std::swap(m.row_stride, m.col_stride);
  return m;
}

// C = A B for every matrix of the batch. A shared C sums over the batch, one after another.
void multiply(std::int64_t batch, const Matrices& a, const Matrices& b, Tensor& c,
              std::int64_t c_step) {
  const auto one = [&](auto type, std::int64_t i) {
    using T = decltype(type);
    GemmArgs<T> args;
    args.M = a.rows, args.N = b.cols, args.K = a.cols;
    args.A = a.tensor.data<T>() + i * a.step;
    args.a_row = a.row_stride, args.a_col = a.col_stride;
    args.B = b.tensor.data<T>() + i * b.step;
    args.b_row = b.row_stride, args.b_col = b.col_stride;
    args.C = c.mutable_data<T>() + i * c_step, args.c_row = b.cols;
    args.accumulate = c_step == 0 && i > 0;
    return args;
  };
  const auto on_cpu = [&] {
    const bool many_small = batch >= 2L * num_threads() && c_step != 0;
    if (many_small) {
      parallel_for(batch, 1, [&](std::int64_t i, std::int64_t) { cpu::gemm(one(float(), i)); });
    } else {
      for (std::int64_t i = 0; i < batch; ++i) cpu::gemm(one(float(), i));
    }
  };
  dispatch("matmul", c, on_cpu, [&](auto type) {
    if (c_step != 0 || batch <= 1)
      cuda::gemm(one(type, 0), {batch, a.step, b.step, c_step});
    else
      for (std::int64_t i = 0; i < batch; ++i) cuda::gemm(one(type, i));
  });
}

}  // namespace

Variable matmul(const Variable& a, const Variable& b, MatmulOptions options) {
  const Shape& sa = a.shape();
  const Shape& sb = b.shape();
  const auto mismatch = [&](const char* why) {
    fail("matmul: {}{} times {}{}: {}", sa.to_string(), options.transpose_a ? "^T" : "",
         sb.to_string(), options.transpose_b ? "^T" : "", why);
  };
  if (sa.rank() < 2 || sb.rank() < 2) mismatch("both factors need at least two axes");
  const bool shared = sb.rank() == 2 && sa.rank() > 2;
  if (!shared && sa.rank() != sb.rank()) mismatch("the leading axes differ");
  std::vector<std::int64_t> extents(sa.extents().begin(), sa.extents().end());
  std::int64_t batch = 1;
  for (int axis = 0; axis + 2 < sa.rank(); ++axis) {
    if (!shared && sa[axis] != sb[axis]) mismatch("the leading axes differ");
    batch *= sa[axis];
  }
  require_same_device("matmul", a.value(), b.value());
  // An f32 parameter beside a bf16 activation works in bf16.
  const bool mixed = a.value().dtype() != b.value().dtype();
  const Tensor x = mixed ? a.as(DType::kBf16) : a.value();
  const Matrices A = matrices(x, options.transpose_a, false);
  const Matrices B = matrices(mixed ? b.as(DType::kBf16) : b.value(), options.transpose_b, shared);
  if (A.cols != B.rows) mismatch("the inner extents differ");
  extents[extents.size() - 2] = A.rows;
  extents[extents.size() - 1] = B.cols;
  Tensor c = x.like(Shape(extents));
  multiply(batch, A, B, c, A.rows * B.cols);

  return make_result(std::move(c), {&a, &b}, [=](const Tensor& grad) {
    const Matrices G = {grad, A.rows, B.cols, B.cols, 1, A.rows * B.cols};  // [M, N]
    if (a.requires_grad()) {
      Tensor da = grad.like(a.shape());
      if (options.transpose_a)
        multiply(batch, B, transpose(G), da, A.rows * A.cols);  // dA^T = B G^T
      else
        multiply(batch, G, transpose(B), da, A.rows * A.cols);  // dA = G B^T
      a.accumulate_grad(std::move(da));
    }
    if (b.requires_grad()) {
      Tensor db = grad.like(b.shape());
      const std::int64_t step = shared ? 0 : B.rows * B.cols;
      if (options.transpose_b)
        multiply(batch, transpose(G), A, db, step);  // dB^T = G^T A
      else
        multiply(batch, transpose(A), G, db, step);  // dB = A^T G
      b.accumulate_grad(std::move(db));
    }
  });
}

}  // namespace filigree
