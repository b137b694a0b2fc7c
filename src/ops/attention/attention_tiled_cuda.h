// Attention in f32 by tiles of 64 queries and 64 keys: heads of 16, 32, 64 or 128 numbers, any
// length. As in flash attention no more than a tile of the scores is there at a time, and every sum
// has one owner and one order.
#pragma once

#include "ops/attention/attention_kernels.h"

namespace filigree::cuda::tiled {

// Whether the kernels take this shape, on the GPU in use. Their operands must lie at 16 bytes.
bool takes(const AttentionShape& shape);

void attention(const AttentionArgs<float>& args);
// Needs the forward result z.
void attention_grad(const AttentionGradArgs<float>& args);

}  // namespace filigree::cuda::tiled
