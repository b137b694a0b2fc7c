// The half of flash attention's backward pass that a block of queries does: the totals
// dL/dz_i . z_i, dq, and the gradient of the gates' biases.
//
//   dq_i = scale * sum_j dL/ds_ij k_j
#include "filigree/ops/attention/flash_backward_cuda.h"
#include "filigree/ops/attention/flash_gate_cuda.h"
#include "filigree/ops/attention/flash_tiles_cuda.h"

namespace filigree::cuda::flash {

constexpr int kKeys = 64;  // in a tile
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
  constexpr int kSteps = D / 16, kTileBytes = kKeys * D * 2;
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
  const std::uint32_t k_tiles = dz_tile + kTileBytes, v_tiles = k_tiles + 2 * kTileBytes;

  const bf16* q = static_cast<const bf16*>(args.q) + batch * args.q_strides.batch + head * D;
  const bf16* dz = static_cast<const bf16*>(args.dz) + batch * args.z_strides.batch + head * D;
  const bf16* k = static_cast<const bf16*>(args.k) + batch * args.kv_strides.batch + key_head * D;
  const bf16* v = static_cast<const bf16*>(args.v) + batch * args.kv_strides.batch + key_head * D;
  const int last_position = min(first_query + kQueriesOfBlock, shape.Tq) - 1 + offset;
  const int tiles = last_position / kKeys + 1;

  load_tile<D, kQueriesOfBlock, kThreads>(q_tile, q, args.q_strides.token, first_query, shape.Tq);
  load_tile<D, kQueriesOfBlock, kThreads>(dz_tile, dz, args.z_strides.token, first_query, shape.Tq);
  load_tile<D, kKeys, kThreads>(k_tiles, k, args.kv_strides.token, 0, shape.Tk);
  load_tile<D, kKeys, kThreads>(v_tiles, v, args.kv_strides.token, 0, shape.Tk);
  commit_copies();

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
  HighLow head_part = {};
  QueryNoise query_parts[2] = {};
  if constexpr (kGate == FlashGate::kSampled) {
    head_part = head_noise((parameters.noise.first_batch + batch) * shape.H + head);
#pragma unroll
    for (int r = 0; r < 2; ++r)
      query_parts[r] = query_noise(parameters.noise, head_part,
                                   static_cast<std::uint32_t>(row0 + 8 * r + offset));
  }

  float dq[2 * kSteps][4] = {};
  float dbias = 0.0f;
  for (int tile = 0; tile < tiles; ++tile) {
    wait_copies<0>();
    __syncthreads();
    if (tile + 1 < tiles) {
      const std::uint32_t next = static_cast<std::uint32_t>((tile + 1) & 1) * kTileBytes;
      load_tile<D, kKeys, kThreads>(k_tiles + next, k, args.kv_strides.token, (tile + 1) * kKeys,
                                    shape.Tk);
      load_tile<D, kKeys, kThreads>(v_tiles + next, v, args.kv_strides.token, (tile + 1) * kKeys,
                                    shape.Tk);
      commit_copies();
    }
    const std::uint32_t k_tile = k_tiles + static_cast<std::uint32_t>(tile & 1) * kTileBytes;
    const std::uint32_t v_tile = v_tiles + static_cast<std::uint32_t>(tile & 1) * kTileBytes;
    const int first_key = tile * kKeys;
    if (first_key > first_query + warp * 16 + 15 + offset) continue;

    float s[8][4] = {}, slope[8][4] = {};  // q . k, then dL/ds; dz . v
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      std::uint32_t a[4];
      load_left<D>(a, q_tile, warp * 16, step, lane);
#pragma unroll
      for (int pair = 0; pair < 4; ++pair) {
        std::uint32_t b[4];
        load_right_rows<D>(b, k_tile, pair * 16, step, lane);
        multiply(s[2 * pair], a, b[0], b[1]);
        multiply(s[2 * pair + 1], a, b[2], b[3]);
      }
    }
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      std::uint32_t a[4];
      load_left<D>(a, dz_tile, warp * 16, step, lane);
#pragma unroll
      for (int pair = 0; pair < 4; ++pair) {
        std::uint32_t b[4];
        load_right_rows<D>(b, v_tile, pair * 16, step, lane);
        multiply(slope[2 * pair], a, b[0], b[1]);
        multiply(slope[2 * pair + 1], a, b[2], b[3]);
      }
    }
    const bool cut = first_key + kKeys - 1 > first_query + warp * 16 + offset ||
                     first_key + kKeys > shape.Tk || first_query + warp * 16 + 16 > shape.Tq;
#pragma unroll
    for (int part = 0; part < 4; ++part) {
      const int n0 = part >> 1, c0 = part & 1;
      KeyNoise key_part = {};
      if constexpr (kGate == FlashGate::kSampled)
        key_part = key_noise(parameters.noise, head_part,
                             static_cast<std::uint32_t>(tile * 16 + n0 * 8 + 2 * (lane & 3) + c0));
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        std::uint32_t words[4] = {};
        if constexpr (kGate == FlashGate::kSampled)
          noise_words(words, parameters.noise, query_parts[r], key_part);
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
#pragma unroll
    for (int step = 0; step < 4; ++step) {
      std::uint32_t a[4];
      as_left(a, s[2 * step], s[2 * step + 1]);
#pragma unroll
      for (int pair = 0; pair < kSteps; ++pair) {
        std::uint32_t b[4];
        load_right_columns<D>(b, k_tile, step * 16, pair, lane);
        multiply(dq[2 * pair], a, b[0], b[1]);
        multiply(dq[2 * pair + 1], a, b[2], b[3]);
      }
    }
  }

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
  constexpr int kBytes = 6 * kKeys * D * 2;
  const auto kernel = query_gradients<D, kGate>;
  if (const cudaError_t code =
          cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes);
      code != cudaSuccess)
    return code;
  const BackwardScratch scratch = divide_scratch(args);
  const dim3 grid(static_cast<unsigned>(query_blocks(shape)), static_cast<unsigned>(shape.H),
                  static_cast<unsigned>(shape.B));
  kernel<<<grid, kThreads, kBytes, stream>>>({args, noise_keys(args.gate.noise)}, scratch.totals,
                                             scratch.bias_parts);
  if constexpr (kGate != FlashGate::kNone) {
    const int heads = shape.B * shape.H;
    sum_bias_parts<<<static_cast<unsigned>((heads + 127) / 128), 128, 0, stream>>>(
        scratch.bias_parts, args.dbias, heads, query_blocks(shape));
  }
  return cudaGetLastError();
}

template <int D>
cudaError_t launch_queries(const FlashBackwardArgs& args, cudaStream_t stream) {
  switch (args.gate.kind) {
    case FlashGate::kNone: return launch_queries<D, FlashGate::kNone>(args, stream);
    case FlashGate::kHard: return launch_queries<D, FlashGate::kHard>(args, stream);
    case FlashGate::kSampled: return launch_queries<D, FlashGate::kSampled>(args, stream);
  }
  return cudaErrorInvalidValue;
}

cudaError_t backward_queries(const FlashBackwardArgs& args, cudaStream_t stream) {
  switch (args.shape.D) {
    case 16: return launch_queries<16>(args, stream);
    case 32: return launch_queries<32>(args, stream);
    case 64: return launch_queries<64>(args, stream);
    default: return launch_queries<128>(args, stream);
  }
}

}  // namespace filigree::cuda::flash
