#include <cstddef>
#include <cstdint>

#include "filigree/runtime.h"
#include "ops/reduce/reduce_kernels.h"

namespace filigree::cpu {

void sum(const SumArgs<>& a) {
  parallel_for(a.outer * a.inner, 256, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const float* from = a.x + i / a.inner * a.extent * a.inner + i % a.inner;
      double total = 0.0;
      for (std::int64_t k = 0; k < a.extent; ++k) total += static_cast<double>(from[k * a.inner]);
      a.sums[i] = static_cast<float>(total * a.factor);
    }
  });
}

void spread(const SpreadArgs<>& a) {
  parallel_for(a.outer * a.extent, 256, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      for (std::int64_t c = 0; c < a.inner; ++c)
        a.dx[i * a.inner + c] = a.grad[i / a.extent * a.inner + c] * a.factor;
  });
}

void maximum(const MaximumArgs<>& a) {
  for (std::int64_t i = 0; i < a.outer * a.inner; ++i) {
    const float* from = a.x + i / a.inner * a.extent * a.inner + i % a.inner;
    std::int64_t best = 0;
    for (std::int64_t k = 1; k < a.extent; ++k)
      if (from[k * a.inner] > from[best * a.inner]) best = k;
    if (a.values != nullptr) a.values[i] = from[best * a.inner];
    a.places[i] = static_cast<std::int32_t>(best);
  }
}

void maximum_grad(const MaximumGradArgs<>& a) {
  for (std::int64_t i = 0; i < a.outer * a.inner; ++i)
    a.dx[i / a.inner * a.extent * a.inner + a.places[i] * a.inner + i % a.inner] = a.grad[i];
}

}  // namespace filigree::cpu
