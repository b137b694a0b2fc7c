// Chooses among the attention kernels of the GPU.

#include "ops/attention/attention_kernels.h"
#include "ops/attention/attention_plain_cuda.h"
#include "runtime/dtype.h"

namespace filigree::cuda {

template <typename T>
void attention(const AttentionArgs<T>& args) {
  plain::attention(args);
}

template <typename T>
void attention_grad(const AttentionGradArgs<T>& args) {
  plain::attention_grad(args);
}

template void attention(const AttentionArgs<float>&);
template void attention(const AttentionArgs<Bf16>&);
template void attention_grad(const AttentionGradArgs<float>&);
template void attention_grad(const AttentionGradArgs<Bf16>&);

}  // namespace filigree::cuda
