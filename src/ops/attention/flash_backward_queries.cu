// The half of flash attention's backward pass that a block of queries does: the totals
// dL/dz_i . z_i, dq, and the gradient of the gates' biases.
//
//   dq_i = scale * sum_j dL/ds_ij k_j
#include "filigree/ops/attention/flash_backward_cuda.h"
#include "filigree/ops/attention/flash_loop_cuda.h"

namespace filigree::cuda::flash {

constexpr int kWarps = 4, kThreads = kWarps * 32;
static_assert(kWarps * 16 == kQueriesOfBlock);

struct QueryParameters {
  FlashBackwardArgs args;
  NoiseKeys noise;
};

// dz_i . z_i of the row at `at`, with the four lanes that share it. Softmax takes a constant that
// is added to all scores of a row away, so the gradient of that constant, sum_j dL/ds_ij, must
// vanish: it is what this total subtracts. With z as rounded it would not, and where z hardly
// differs from token to token the remainder has one sign for thousands of steps, so that keys drift
// without end.
template <int D>
__device__ __forceinline__ float row_total(const FlashBackwardArgs& args, std::int64_t at,
                                           bool valid, int lane) {
  float sum = 0.0f;
#pragma unroll
  for (int step = 0; step < D / 16; ++step) {
    if (!valid) continue;
    const std::int64_t column = at + (lane & 3) * (D / 4) + 4 * step;
    const auto four = [&](const void* row) {
      return *reinterpret_cast<const uint2*>(static_cast<const bf16*>(row) + column);
    };
    const uint2 z = four(args.z), dz = four(args.dz);
    const uint2 error = args.z_error != nullptr ? four(args.z_error) : uint2{0, 0};
    const auto add = [&](std::uint32_t x, std::uint32_t lost, std::uint32_t y) {
      const float2 a = as_pair(x), b = as_pair(lost), c = as_pair(y);
      sum = fmaf(a.x + b.x, c.x, fmaf(a.y + b.y, c.y, sum));
    };
    add(z.x, error.x, dz.x);
    add(z.y, error.y, dz.y);
  }
  return row_sum(sum);
}

template <int D, FlashGate kGate>
__global__ void __launch_bounds__(kThreads, D <= 64 ? 3 : 2)
    query_gradients(const __grid_constant__ QueryParameters parameters, float* totals,
                    float* bias_parts) {
  constexpr int kSteps = D / 16, kTileBytes = kQueriesOfBlock * D * 2;
  const FlashBackwardArgs& args = parameters.args;
  const FlashShape& shape = args.shape;
  const int lane = static_cast<int>(threadIdx.x) & 31, warp = static_cast<int>(threadIdx.x) >> 5;
  const int block = static_cast<int>(gridDim.x - 1 - blockIdx.x);  // the long ones first
  const int first_query = block * kQueriesOfBlock;
  const int head = static_cast<int>(blockIdx.y), batch = static_cast<int>(blockIdx.z);
  const int key_head = head / (shape.H / shape.G);
  const int offset = shape.Tk - shape.Tq;

  extern __shared__ __align__(128) unsigned char memory[];
  const std::uint32_t q_tile = shared_address(memory), dz_tile = q_tile + kTileBytes;
  const KeyTiles<D, kThreads> keys(args, batch, key_head, dz_tile + kTileBytes);

  const bf16* q = static_cast<const bf16*>(args.q) + batch * args.q_strides.batch + head * D;
  const bf16* dz = static_cast<const bf16*>(args.dz) + batch * args.z_strides.batch + head * D;
  const int last_position = min(first_query + kQueriesOfBlock, shape.Tq) - 1 + offset;
  load_tile<D, kQueriesOfBlock, kThreads>(q_tile, q, args.q_strides.token, first_query, shape.Tq);
  load_tile<D, kQueriesOfBlock, kThreads>(dz_tile, dz, args.z_strides.token, first_query, shape.Tq);
  keys.load(0);

  const float scale = shape.scale * kLog2E;
  const std::int64_t row_of_head = static_cast<std::int64_t>(batch) * shape.H + head;
  float bias = 0.0f, dexpected = 0.0f;
  if constexpr (kGate != FlashGate::kNone) {
    bias = args.gate.bias[head] * kLog2E;
    dexpected = args.dexpected[row_of_head];
  }
  const int row0 = first_query + warp * 16 + (lane >> 2);  // and row0 + 8
  float minus_lse[2], total[2];
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int row = row0 + 8 * r;
    const bool valid = row < shape.Tq;
    minus_lse[r] = valid ? -args.log_sum_exp[row_of_head * shape.Tq + row] * kLog2E : -INFINITY;
    total[r] = row_total<D>(
        args, batch * args.z_strides.batch + row * args.z_strides.token + head * D, valid, lane);
    if (valid && (lane & 3) == 0) totals[row_of_head * shape.Tq + row] = total[r];
  }
  const RowNoise noise = row_noise<kGate>(
      parameters.noise, (parameters.noise.first_batch + batch) * shape.H + head, row0 + offset);

  float dq[2 * kSteps][4] = {};
  float dbias = 0.0f;
  keys.each(last_position / kTileKeys + 1, [&](int tile, std::uint32_t k_tile,
                                               std::uint32_t v_tile) {
    const int first_key = tile * kTileKeys;
    if (first_key > first_query + warp * 16 + 15 + offset) return;

    float s[8][4] = {}, slope[8][4] = {};  // q . k, then dL/ds; dz . v
    add_products<D>(s, q_tile, k_tile, warp, lane);
    add_products<D>(slope, dz_tile, v_tile, warp, lane);
    const bool cut = first_key + kTileKeys - 1 > first_query + warp * 16 + offset ||
                     first_key + kTileKeys > shape.Tk || first_query + warp * 16 + 16 > shape.Tq;
#pragma unroll
    for (int part = 0; part < 4; ++part) {
      const int n0 = part >> 1, c0 = part & 1;
      KeyNoise key_part = {};
      if constexpr (kGate == FlashGate::kSampled)
        key_part = key_noise(parameters.noise, noise.head,
                             static_cast<std::uint32_t>(tile * 16 + n0 * 8 + 2 * (lane & 3) + c0));
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        std::uint32_t words[4] = {};
        if constexpr (kGate == FlashGate::kSampled)
          noise_words(words, parameters.noise, noise.query[r], key_part);
#pragma unroll
        for (int w = 0; w < 4; ++w) {
          float& x = s[2 * w + n0][2 * r + c0];
          EdgeGradient edge =
              edge_gradient<kGate>(x, scale, bias, minus_lse[r], slope[2 * w + n0][2 * r + c0],
                                   total[r], dexpected, words[w]);
          if (cut) {
            const int key = first_key + (2 * w + n0) * 8 + 2 * (lane & 3) + c0;
            const int row = row0 + 8 * r;
            if (key > row + offset || key >= shape.Tk || row >= shape.Tq)
              edge.score = edge.logit = 0.0f;
          }
          x = edge.score;
          if constexpr (kGate != FlashGate::kNone) dbias += edge.logit;
        }
      }
    }
    add_mixture<D>(dq, s, k_tile, lane, [](const std::uint32_t(&)[4]) {});
  });

  // Each warp only ever reads its own rows of the query tile, so it may write them now.
#pragma unroll
  for (int r = 0; r < 2; ++r)
#pragma unroll
    for (int n = 0; n < 2 * kSteps; ++n)
      put_pair<D>(q_tile, warp * 16 + (lane >> 2) + 8 * r, n, lane, dq[n][2 * r] * shape.scale,
                  dq[n][2 * r + 1] * shape.scale);
  store_rows<D>(memory, warp * 16,
                static_cast<bf16*>(args.dq) + batch * args.dq_strides.batch + head * D,
                args.dq_strides.token, first_query + warp * 16, shape.Tq, lane);

  if constexpr (kGate != FlashGate::kNone) {
    for (int step = 16; step > 0; step /= 2) dbias += __shfl_xor_sync(0xffffffffu, dbias, step);
    __shared__ float by_warp[kWarps];
    if (lane == 0) by_warp[warp] = dbias;
    __syncthreads();
    if (threadIdx.x == 0) {
      float sum = 0.0f;
      for (int w = 0; w < kWarps; ++w) sum += by_warp[w];
      bias_parts[row_of_head * gridDim.x + block] = sum;
    }
  }
}

__global__ void sum_bias_parts(const float* parts, float* dbias, int rows, int blocks) {
  const int row = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (row >= rows) return;
  float sum = 0.0f;
  for (int i = 0; i < blocks; ++i) sum += parts[static_cast<std::int64_t>(row) * blocks + i];
  dbias[row] = sum;
}

template <int D, FlashGate kGate>
cudaError_t launch_queries(const FlashBackwardArgs& args, cudaStream_t stream) {
  const FlashShape& shape = args.shape;
  constexpr int kBytes = 2 * kQueriesOfBlock * D * 2 + 4 * kTileKeys * D * 2;
  const BackwardScratch scratch = divide_scratch(args);
  const dim3 grid(static_cast<unsigned>(query_blocks(shape)), static_cast<unsigned>(shape.H),
                  static_cast<unsigned>(shape.B));
  if (const cudaError_t code = launch_with_memory(
          query_gradients<D, kGate>, grid, kThreads, kBytes, stream,
          QueryParameters{args, noise_keys(args.gate.noise)}, scratch.totals, scratch.bias_parts);
      code != cudaSuccess)
    return code;
  if constexpr (kGate != FlashGate::kNone) {
    const int heads = shape.B * shape.H;
    sum_bias_parts<<<static_cast<unsigned>((heads + 127) / 128), 128, 0, stream>>>(
        scratch.bias_parts, args.dbias, heads, query_blocks(shape));
  }
  return cudaGetLastError();
}

cudaError_t backward_queries(const FlashBackwardArgs& args, cudaStream_t stream) {
  return with_constants(args.shape, args.gate, [&](auto width, auto gate) {
    return launch_queries<width(), gate()>(args, stream);
  });
}

}  // namespace filigree::cuda::flash
