// A block a row. The first pass sums the exponentials, the second finds the row in the cache and
// writes the gradient over it.

#include "ops/output_loss/output_loss_kernels.h"
#include "runtime/cuda/launch_cuda.h"
#include "runtime/cuda/rows_cuda.cuh"

namespace filigree::cuda {
namespace {

constexpr int kThreads = 256;

template <typename T, bool kTeacher>
__global__ void loss_rows_each(LossRowsArgs<T> args) {
  __shared__ float shared[32];
  const std::int64_t row = blockIdx.x;
  T* logits = args.logits + row * args.step;
  const T* teacher = kTeacher ? args.teacher + row * args.step : logits;
  const std::int32_t target = args.targets[row];
  if (target < 0) {
    if (threadIdx.x == 0) {
      args.cross_entropy[row] = 0.0f;
      if (kTeacher) args.divergence[row] = args.teacher_cross_entropy[row] = 0.0f;
    }
    if (args.gradient)
      map_rows(logits, logits, logits, args.width, [](std::int64_t, float, float) { return 0.0f; });
    return;
  }
  const Exponentials s = sum_of_exponentials<T>(logits, args.width, shared);
  Exponentials t = {0.0f, 1.0f};
  if (kTeacher) t = sum_of_exponentials<T>(teacher, args.width, shared);
  const float ls = s.maximum + logf(s.sum), lt = t.maximum + logf(t.sum);
  if (threadIdx.x == 0) {
    args.cross_entropy[row] = logf(s.sum) - (to_float(logits[target]) - s.maximum);
    if (kTeacher)
      args.teacher_cross_entropy[row] = logf(t.sum) - (to_float(teacher[target]) - t.maximum);
  }
  if (!kTeacher && !args.gradient) return;
  __syncthreads();  // the target's logit has been read before the gradient takes its place
  float divergence = 0.0f;
  const float kd = args.distillation;
  // p - (1 - kd) [c = target] - kd p_teacher
  const auto slope = [&](std::int64_t c, float log_t, float log_s, float p_teacher) {
    float d = __expf(log_s) - (c == target ? 1.0f - kd : 0.0f);
    if (kTeacher) {
      d -= kd * p_teacher;
      divergence += p_teacher * (log_t - log_s);
    }
    return d * args.factor;
  };
  if (args.gradient)
    map_rows<T>(teacher, logits, logits, args.width, [&](std::int64_t c, float x_teacher, float x) {
      const float log_t = x_teacher - lt;
      return slope(c, log_t, x - ls, kTeacher ? __expf(log_t) : 0.0f);
    });
  else
    for_row(teacher, args.width, [&](std::int64_t c, float x_teacher) {
      const float log_t = x_teacher - lt;
      slope(c, log_t, to_float(logits[c]) - ls, __expf(log_t));
    });
  if (!kTeacher) return;
  divergence = block_sum(divergence, shared);
  if (threadIdx.x == 0) args.divergence[row] = divergence;
}

template <typename T>
__global__ void scale_each(T* x, std::int64_t count, const float* factor, bool aligned) {
  const float by = *factor;
  const std::int64_t thread = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const std::int64_t threads = static_cast<std::int64_t>(gridDim.x) * kThreads;
  const std::int64_t vectors = aligned ? count / kWide<T> : 0;
  for (std::int64_t v = thread; v < vectors; v += threads) {
    Wide<T> values = reinterpret_cast<Wide<T>*>(x)[v];
#pragma unroll
    for (int k = 0; k < kWide<T>; ++k)
      values.values[k] = from_float<T>(to_float(values.values[k]) * by);
    reinterpret_cast<Wide<T>*>(x)[v] = values;
  }
  for (std::int64_t i = vectors * kWide<T> + thread; i < count; i += threads)
    x[i] = from_float<T>(to_float(x[i]) * by);
}

}  // namespace

template <typename T>
void loss_rows(const LossRowsArgs<T>& args) {
  if (args.rows == 0) return;
  const auto blocks = static_cast<unsigned>(args.rows);
  const unsigned threads = row_threads(args.width);
  if (args.teacher != nullptr)
    loss_rows_each<T, true><<<blocks, threads, 0, stream()>>>(args);
  else
    loss_rows_each<T, false><<<blocks, threads, 0, stream()>>>(args);
  check_launch("output_loss");
}

template <typename T>
void scale_by(T* x, std::int64_t count, const float* factor) {
  if (count == 0) return;
  const bool aligned = reinterpret_cast<std::uintptr_t>(x) % 16 == 0;
  scale_each<<<blocks_for(count, kThreads * kWide<T>), kThreads, 0, stream()>>>(x, count, factor,
                                                                                aligned);
  check_launch("scale_by");
}

template void loss_rows(const LossRowsArgs<float>&);
template void loss_rows(const LossRowsArgs<Bf16>&);
template void scale_by(float*, std::int64_t, const float*);
template void scale_by(Bf16*, std::int64_t, const float*);

}  // namespace filigree::cuda
