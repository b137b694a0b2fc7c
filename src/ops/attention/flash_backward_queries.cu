// The half of flash attention's backward pass that a block of queries does: the totals
// dL/dz_i . z_i, dq, and the gradient of the gates' biases.
//
//   dq_i = scale * sum_j dL/ds_ij k_j
//
// A warp has 16 queries and all columns of dq; at heads of 256, whose accumulators would not fit,
// two warps share them: each computes dL/ds for half of the keys of a tile, eight by eight in turn,
// so that the four keys of a block of noise stay together, they exchange these through shared
// memory, and each has half of the columns.
#include "ops/attention/flash_backward_cuda.h"
#include "ops/attention/flash_loop_cuda.h"

namespace filigree::cuda::flash {
namespace {

constexpr int kRowGroups = kQueriesOfBlock / 16;
// Warps that share 16 queries.
template <int D>
constexpr int kParty = D <= 128 ? 1 : 2;
template <int D>
constexpr int kThreads = kRowGroups* kParty<D> * 32;
template <int D>
constexpr int kBlocks = D <= 64    ? 3
                        : D <= 128 ? 2
                                   : 1;  // on a multiprocessor
template <int D>
constexpr int kBytes = (2 * kQueriesOfBlock + 4 * kTileKeys) * kRowBytes<D> +
                       (kParty<D> > 1 ? kQueriesOfBlock * kRowBytes<kTileKeys> : 0);

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

// s [16, 64 / kParty] of 16 rows of one tile times the keys of another: all of them, or of every 16
// keys the eight that `half` says.
template <int D, int kTiles>
__device__ __forceinline__ void score_products(float (&s)[kTiles][4], std::uint32_t left,
                                               std::uint32_t right, int group, int half, int lane) {
  if constexpr (kParty<D> == 1) {
    add_products<D>(s, left, right, group, lane);
  } else {
#pragma unroll
    for (int step = 0; step < D / 16; ++step) {
      std::uint32_t rows[4];
      load_left<D>(rows, left, group * 16, step, lane);
#pragma unroll
      for (int n = 0; n < kTiles; n += 2) {
        std::uint32_t b[4];
        load_right_rows_apart<D>(b, right, n * 16 + half * 8, step, lane);
        multiply(s[n], rows, b[0], b[1]);
        multiply(s[n + 1], rows, b[2], b[3]);
      }
    }
  }
}

template <int D, FlashGate kGate, bool kCap>
__global__ void __launch_bounds__(kThreads<D>, kBlocks<D>)
    query_gradients(const __grid_constant__ QueryParameters parameters, float* totals,
                    float* bias_parts) {
  constexpr int kTileBytes = kQueriesOfBlock * kRowBytes<D>;
  constexpr int kTiles = 8 / kParty<D>;            // of 8 keys, a warp's
  constexpr int kColumnTiles = D / 8 / kParty<D>;  // of 8 columns of dq, likewise
  constexpr int kWarps = kThreads<D> / 32;
  const FlashBackwardArgs& args = parameters.args;
  const FlashShape& shape = args.shape;
  const int lane = static_cast<int>(threadIdx.x) & 31, warp = static_cast<int>(threadIdx.x) >> 5;
  const int group = warp / kParty<D>, half = warp % kParty<D>;
  const int block = static_cast<int>(gridDim.x - 1 - blockIdx.x);  // the long ones first
  const int first_query = block * kQueriesOfBlock;
  const int head = static_cast<int>(blockIdx.y), batch = static_cast<int>(blockIdx.z);
  const int key_head = head / (shape.H / shape.G);
  const Sight sight(shape);
  const SoftCap cap(shape);

  extern __shared__ __align__(128) unsigned char memory[];
  const std::uint32_t q_tile = shared_address(memory), dz_tile = q_tile + kTileBytes;
  const KeyTiles<D, kThreads<D>> keys(args, batch, key_head, dz_tile + kTileBytes);
  const std::uint32_t exchange = dz_tile + kTileBytes + 4 * keys.kBytes;

  const bf16* q = static_cast<const bf16*>(args.q) + batch * args.q_strides.batch + head * D;
  const bf16* dz = static_cast<const bf16*>(args.dz) + batch * args.z_strides.batch + head * D;
  const int last_position = min(first_query + kQueriesOfBlock, shape.Tq) - 1 + sight.offset;
  const int first_tile = sight.first_tile(first_query);
  load_tile<D, kQueriesOfBlock, kThreads<D>>(q_tile, q, args.q_strides.token, first_query,
                                             shape.Tq);
  load_tile<D, kQueriesOfBlock, kThreads<D>>(dz_tile, dz, args.z_strides.token, first_query,
                                             shape.Tq);
  keys.load(first_tile);

  const float scale = shape.scale * kLog2E;
  const std::int64_t row_of_head = static_cast<std::int64_t>(batch) * shape.H + head;
  float bias = 0.0f, dexpected = 0.0f;
  if constexpr (kGate != FlashGate::kNone) {
    bias = args.gate.bias[head] * kLog2E;
    dexpected = args.dexpected[row_of_head];
  }
  const int group_query = first_query + group * 16;
  const int row0 = group_query + (lane >> 2);  // and row0 + 8
  float minus_lse[2], total[2];
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int row = row0 + 8 * r;
    const bool valid = row < shape.Tq;
    minus_lse[r] = valid ? -args.log_sum_exp[row_of_head * shape.Tq + row] * kLog2E : -INFINITY;
    total[r] = row_total<D>(
        args, batch * args.z_strides.batch + row * args.z_strides.token + head * D, valid, lane);
    if (valid && half == 0 && (lane & 3) == 0) totals[row_of_head * shape.Tq + row] = total[r];
  }
  const RowNoise noise =
      row_noise<kGate>(parameters.noise, (parameters.noise.first_batch + batch) * shape.H + head,
                       row0 + sight.offset);

  float dq[kColumnTiles][4] = {};
  float dbias = 0.0f;
  keys.each(
      first_tile, last_position / kTileKeys + 1,
      [&](int tile, std::uint32_t k_tile, std::uint32_t v_tile) {
        const int first_key = tile * kTileKeys, last_key = first_key + kTileKeys - 1;
        if (sight.none(group_query, group_query + 15, first_key, last_key)) return;

        float s[kTiles][4] = {}, slope[kTiles][4] = {};  // q . k, then dL/d(q . k); dz . v
        score_products<D>(s, q_tile, k_tile, group, half, lane);
        score_products<D>(slope, dz_tile, v_tile, group, half, lane);
        if constexpr (kCap) cap.apply(s);
        const bool cut = !sight.all(group_query, group_query + 15, first_key, last_key) ||
                         group_query + 16 > shape.Tq;
#pragma unroll
        for (int part = 0; part < 4 / kParty<D>; ++part) {
          const int n0 = kParty<D> == 1 ? part >> 1 : half, c0 = part & 1;
          KeyNoise key_part = {};
          if constexpr (kGate == FlashGate::kSampled)
            key_part =
                key_noise(parameters.noise, noise.head,
                          static_cast<std::uint32_t>(tile * 16 + n0 * 8 + 2 * (lane & 3) + c0));
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            std::uint32_t words[4] = {};
            if constexpr (kGate == FlashGate::kSampled)
              noise_words(words, parameters.noise, noise.query[r], key_part);
#pragma unroll
            for (int w = 0; w < 4; ++w) {
              const int n = kParty<D> == 1 ? 2 * w + (part >> 1) : w;  // in this warp's tiles
              float& x = s[n][2 * r + c0];
              EdgeGradient edge =
                  edge_gradient<kGate>(x, scale, bias, minus_lse[r], slope[n][2 * r + c0], total[r],
                                       dexpected, words[w]);
              if (cut) {
                const int key = first_key + (2 * w + n0) * 8 + 2 * (lane & 3) + c0;
                const int row = row0 + 8 * r;
                if (!sight.sees(row, key) || row >= shape.Tq) edge.score = edge.logit = 0.0f;
              }
              if constexpr (kCap) edge.score *= cap.slope(x);
              x = edge.score;
              if constexpr (kGate != FlashGate::kNone) dbias += edge.logit;
            }
          }
        }
        if constexpr (kParty<D> == 1) {
          add_mixture<D>(dq, s, k_tile, lane, [](const std::uint32_t(&)[4]) {});
        } else {
#pragma unroll
          for (int n = 0; n < kTiles; ++n)
#pragma unroll
            for (int r = 0; r < 2; ++r)
              put_pair<kTileKeys>(exchange, group * 16 + (lane >> 2) + 8 * r, 2 * n + half, lane,
                                  s[n][2 * r], s[n][2 * r + 1]);
          party_barrier<kParty<D>>(1 + group);
#pragma unroll
          for (int step = 0; step < kTileKeys / 16; ++step) {
            std::uint32_t a[4];
            load_left<kTileKeys>(a, exchange, group * 16, step, lane);
#pragma unroll
            for (int pair = 0; pair < kColumnTiles / 2; ++pair) {
              std::uint32_t b[4];
              load_right_columns<D>(b, k_tile, step * 16, half * (kColumnTiles / 2) + pair, lane);
              multiply(dq[2 * pair], a, b[0], b[1]);
              multiply(dq[2 * pair + 1], a, b[2], b[3]);
            }
          }
        }
      });

  // Only this party reads its rows of the query tile, so it may write them once all of it is done.
  if constexpr (kParty < D >> 1) party_barrier<kParty<D>>(1 + group);
#pragma unroll
  for (int r = 0; r < 2; ++r)
#pragma unroll
    for (int n = 0; n < kColumnTiles; ++n)
      put_pair<D>(q_tile, group * 16 + (lane >> 2) + 8 * r, half * kColumnTiles + n, lane,
                  dq[n][2 * r] * shape.scale, dq[n][2 * r + 1] * shape.scale);
  store_rows<D, kColumnTiles>(
      memory, group * 16, static_cast<bf16*>(args.dq) + batch * args.dq_strides.batch + head * D,
      args.dq_strides.token, group_query, shape.Tq, lane, half * kColumnTiles);

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
  const BackwardScratch scratch = divide_scratch(args);
  const dim3 grid(static_cast<unsigned>(query_blocks(shape)), static_cast<unsigned>(shape.H),
                  static_cast<unsigned>(shape.B));
  const auto kernel =
      shape.soft_cap > 0.0f ? query_gradients<D, kGate, true> : query_gradients<D, kGate, false>;
  if (const cudaError_t code = launch_with_memory(
          kernel, grid, kThreads<D>, kBytes<D>, stream,
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

}  // namespace

int backward_queries_bytes(int D) {
  int bytes = 0;
  with_width(D, [&](auto width) {
    bytes = kBytes<width()>;
    return cudaSuccess;
  });
  return bytes;
}

cudaError_t backward_queries(const FlashBackwardArgs& args, cudaStream_t stream) {
  return with_constants(args.shape, args.gate, [&](auto width, auto gate) {
    return launch_queries<width(), gate()>(args, stream);
  });
}

}  // namespace filigree::cuda::flash
