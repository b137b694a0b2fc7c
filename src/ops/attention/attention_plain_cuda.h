// Attention row by row, for every shape and every option: what runs where no faster kernel applies.
#pragma once

#include "ops/attention/attention_kernels.h"

namespace filigree::cuda::plain {

// The scores of a row lie in shared memory: throws Error when there are too many keys for it.
template <typename T>
void attention(const AttentionArgs<T>& args);
template <typename T>
void attention_grad(const AttentionGradArgs<T>& args);

}  // namespace filigree::cuda::plain
