#include "ops/elementwise/elementwise_kernels.h"
#include "runtime/cuda/map_cuda.cuh"

namespace filigree::cuda {
namespace {

constexpr int kThreads = 256;

__device__ inline float apply(Binary op, float x, float y) {
  switch (op) {
    case Binary::kAdd: return x + y;
    case Binary::kSub: return x - y;
    case Binary::kMul: return x * y;
    case Binary::kDiv: return x / y;
  }
  return 0.0f;
}

__device__ inline float apply(Unary op, float x, float factor, float offset) {
  switch (op) {
    case Unary::kScaleShift: return x * factor + offset;
    case Unary::kExp: return expf(x);
    case Unary::kLog: return logf(x);
    case Unary::kSqrt: return sqrtf(x);
    case Unary::kSquare: return x * x;
    case Unary::kTanh: return tanhf(x);
    case Unary::kClamp: return x < -factor ? -factor : x > factor ? factor : x;
  }
  return 0.0f;
}

__device__ inline float slope(Unary op, float x, float y, float factor) {
  switch (op) {
    case Unary::kScaleShift: return factor;
    case Unary::kExp: return y;
    case Unary::kLog: return 1.0f / x;
    case Unary::kSqrt: return 0.5f / y;
    case Unary::kSquare: return 2.0f * x;
    case Unary::kTanh: return 1.0f - y * y;
    case Unary::kClamp: return x >= -factor && x <= factor ? 1.0f : 0.0f;
  }
  return 0.0f;
}

struct Combine {
  Binary op;
  __device__ float operator()(float x, float y, float) const { return apply(op, x, y); }
};

struct Apply {
  Unary op;
  float factor, offset;
  __device__ float operator()(float x, float, float) const { return apply(op, x, factor, offset); }
};

struct Slope {
  Unary op;
  float factor;
  __device__ float operator()(float x, float y, float grad) const {
    return grad * slope(op, x, y, factor);
  }
};

template <typename T>
__global__ void broadcast(BinaryArgs<T> args) {
  const std::int64_t count = args.rows * args.cols;
  const std::int64_t threads = static_cast<std::int64_t>(gridDim.x) * kThreads;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < count;
       i += threads) {
    const std::int64_t c = i % args.cols;
    std::int64_t rest = i / args.cols, a = c * args.a_step, b = c * args.b_step;
#pragma unroll
    for (int axis = kOuterAxes - 1; axis >= 0; --axis) {
      if (rest == 0) break;
      const std::int64_t extent = args.extents[axis];
      a += rest % extent * args.a_strides[axis];
      b += rest % extent * args.b_strides[axis];
      rest /= extent;
    }
    args.out[i] = from_float<T>(apply(args.op, to_float(args.a[a]), to_float(args.b[b])));
  }
}

}  // namespace

template <typename T>
void binary(const BinaryArgs<T>& args) {
  const std::int64_t count = args.rows * args.cols;
  if (count == 0) return;
  if (args.rows == 1 && args.a_step == 1 && args.b_step == 1) {
    map("binary", count, args.a, args.b, args.b, args.out, Combine{args.op});
    return;
  }
  broadcast<<<blocks_for(count, kThreads * 4), kThreads, 0, stream()>>>(args);
  check_launch("binary");
}

template <typename T>
void unary(const UnaryArgs<T>& args) {
  map("unary", args.count, args.x, args.x, args.x, args.out,
      Apply{args.op, args.factor, args.offset});
}

template <typename T>
void unary_grad(const UnaryGradArgs<T>& args) {
  map("unary_grad", args.count, args.x, args.y, args.grad, args.dx, Slope{args.op, args.factor});
}

template void binary(const BinaryArgs<float>&);
template void binary(const BinaryArgs<Bf16>&);
template void unary(const UnaryArgs<float>&);
template void unary(const UnaryArgs<Bf16>&);
template void unary_grad(const UnaryGradArgs<float>&);
template void unary_grad(const UnaryGradArgs<Bf16>&);

}  // namespace filigree::cuda
