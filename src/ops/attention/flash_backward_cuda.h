// The two halves of flash attention's backward pass and what they share.
#pragma once

#include <algorithm>

#include "ops/attention/flash_attention_cuda.h"

namespace filigree::cuda::flash {

constexpr int kQueriesOfBlock = 64;  // of the half that goes over keys

inline int query_blocks(const FlashShape& shape) {
  return (shape.Tq + kQueriesOfBlock - 1) / kQueriesOfBlock;
}

struct BackwardScratch {
  float* totals;      // [B, H, Tq]: dL/dz_i . z_i
  float* bias_parts;  // [B, H, query blocks]
};

inline BackwardScratch divide_scratch(const FlashBackwardArgs& args) {
  const FlashShape& shape = args.shape;
  return {args.scratch, args.scratch + static_cast<std::int64_t>(shape.B) * shape.H * shape.Tq};
}

// dq, dbias, and the totals for the other half, which follows on the same stream.
cudaError_t backward_queries(const FlashBackwardArgs& args, cudaStream_t stream);
// dk and dv.
cudaError_t backward_keys(const FlashBackwardArgs& args, cudaStream_t stream);

// Shared memory of a block; the forward pass takes no more than the larger of them.
int backward_queries_bytes(int D);
int backward_keys_bytes(int D);
inline int most_shared_bytes(int D) {
  return std::max(backward_queries_bytes(D), backward_keys_bytes(D));
}

}  // namespace filigree::cuda::flash
