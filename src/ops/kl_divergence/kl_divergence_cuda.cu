// A block a row. The second pass over a row, for the divergence itself, finds it in the cache.

#include "ops/kl_divergence/kl_divergence_kernels.h"
#include "runtime/cuda/launch_cuda.h"
#include "runtime/cuda/rows_cuda.cuh"

namespace filigree::cuda {
namespace {

template <typename T>
__global__ void kl_rows(KlArgs<T> args) {
  __shared__ float shared[32];
  const std::int64_t row = blockIdx.x;
  if (args.targets != nullptr && args.targets[row] == args.ignored) {
    if (threadIdx.x == 0) args.divergence[row] = 0.0f;
    return;
  }
  const T* teacher = args.teacher + row * args.width;
  const T* student = args.student + row * args.width;
  const Exponentials t = sum_of_exponentials(teacher, args.width, shared);
  const Exponentials s = sum_of_exponentials(student, args.width, shared);
  const float lt = t.maximum + logf(t.sum), ls = s.maximum + logf(s.sum);
  float total = 0.0f;
  for_row(teacher, args.width, [&](std::int64_t c, float value) {
    const float log_t = value - lt, log_s = to_float(student[c]) - ls;
    total += expf(log_t) * (log_t - log_s);
  });
  total = block_sum(total, shared);
  if (threadIdx.x != 0) return;
  args.divergence[row] = total;
  args.teacher_log_sum_exp[row] = lt;
  args.student_log_sum_exp[row] = ls;
}

template <typename T>
__global__ void kl_grad_rows(KlGradArgs<T> args) {
  const std::int64_t row = blockIdx.x;
  const bool ignored = args.targets != nullptr && args.targets[row] == args.ignored;
  const float factor = args.upstream != nullptr ? args.factor * *args.upstream : args.factor;
  const float lt = ignored ? 0.0f : args.teacher_log_sum_exp[row];
  const float ls = ignored ? 0.0f : args.student_log_sum_exp[row];
  map_rows(args.teacher + row * args.width, args.student + row * args.width,
           args.dstudent + row * args.width, args.width,
           [&](std::int64_t, float teacher, float student) {
             return ignored ? 0.0f : (expf(student - ls) - expf(teacher - lt)) * factor;
           });
}

}  // namespace

template <typename T>
void kl_divergence(const KlArgs<T>& args) {
  if (args.rows == 0) return;
  kl_rows<<<static_cast<unsigned>(args.rows), row_threads(args.width), 0, stream()>>>(args);
  check_launch("kl_divergence");
}

template <typename T>
void kl_divergence_grad(const KlGradArgs<T>& args) {
  if (args.rows == 0) return;
  kl_grad_rows<<<static_cast<unsigned>(args.rows), row_threads(args.width), 0, stream()>>>(args);
  check_launch("kl_divergence_grad");
}

template void kl_divergence(const KlArgs<float>&);
template void kl_divergence(const KlArgs<Bf16>&);
template void kl_divergence_grad(const KlGradArgs<float>&);
template void kl_divergence_grad(const KlGradArgs<Bf16>&);

}  // namespace filigree::cuda
