// The half of flash attention's backward pass that a block of keys does: dk and dv.
//
//   dk_j = scale * sum_i dL/ds_ij q_i        dv_j = sum_i A_ij e_ij dL/dz_i
//
// Scores are computed transposed (keys are rows), so that the weights are already the left operand
// of the products that follow. A group of warps holds 32 keys: 8 neighbours and those 16, 32 and 48
// after them, the four that share a block of noise. Up to 64 columns the group is one warp and
// keeps weights and dL/ds in registers. The accumulators of wider heads would not fit: two or four
// warps then share the keys, each with its part of the queries of a tile for the scores and of the
// columns for dk and dv, and exchange weights and dL/ds through shared memory, so that nothing is
// computed twice.
#include "ops/attention/flash_backward_cuda.h"
#include "ops/attention/flash_loop_cuda.h"

namespace filigree::cuda::flash {
namespace {

// Warps that share 32 keys.
template <int D>
constexpr int kParty = D <= 64    ? 1
                       : D <= 128 ? 2
                                  : 4;
template <int D>
constexpr int kGroups = D <= 128 ? 4 : 2;
template <int D>
constexpr int kWarps = kGroups<D>* kParty<D>;
template <int D>
constexpr int kThreads = kWarps<D> * 32;
template <int D>
constexpr int kKeys = kGroups<D> * 32;  // of a block
template <int D>
constexpr int kQueries = D <= 128 ? 64 : 32;  // in a tile
// Columns of dk and dv that a warp has, in pairs of 8; the last warp may have fewer.
template <int D>
constexpr int kPairs = (D / 16 + kParty<D> - 1) / kParty<D>;
template <int D>
constexpr int kExchangeBytes = kParty<D> > 1 ? kKeys<D>* kRowBytes<kQueries<D>> : 0;
template <int D>
constexpr int kBytes = (2 * kKeys<D> + 4 * kQueries<D>)*kRowBytes<D> + 2 * kExchangeBytes<D> +
                       4 * kQueries<D>* static_cast<int>(sizeof(float));

struct KeyParameters {
  FlashBackwardArgs args;
  NoiseKeys noise;
};

// The key of row r (0 to 15) of a group's left operand m (0 or 1), within the block.
__device__ __forceinline__ int key_of(int group, int m, int r) {
  return (group >> 1) * 64 + (group & 1) * 8 + (r & 7) + 16 * (2 * m + (r >> 3));
}

// Of kTiles times 8 queries and a group's 32 keys: s [32, 8 kTiles] = k . q, slope = v . dz.
template <int D, int kTiles>
__device__ __forceinline__ void transposed_scores(float (&s)[2][kTiles][4],
                                                  float (&slope)[2][kTiles][4],
                                                  std::uint32_t k_tile, std::uint32_t v_tile,
                                                  std::uint32_t q_tile, std::uint32_t dz_tile,
                                                  int query, int group, int lane) {
  constexpr int kSteps = D / 16;
  std::uint32_t b[4], c[4];
#pragma unroll
  for (int step = 0; step < kSteps; ++step) {
    if constexpr (kTiles == 2) {
      load_right_rows<D>(b, q_tile, query, step, lane);
      load_right_rows<D>(c, dz_tile, query, step, lane);
    } else if (step % 2 == 0) {  // one load serves two steps
      load_right_eight<D>(b, q_tile, query, step / 2, lane);
      load_right_eight<D>(c, dz_tile, query, step / 2, lane);
    }
#pragma unroll
    for (int m = 0; m < 2; ++m) {
      const std::uint32_t from =
          chunk_offset<D>(key_of(group, m, lane & 15), step * 2 + (lane >> 4));
      std::uint32_t a[4];
      load_matrices(a, k_tile + from);
#pragma unroll
      for (int n = 0; n < kTiles; ++n) {
        const int at = kTiles == 2 ? 2 * n : 2 * (step % 2);
        multiply(s[m][n], a, b[at], b[at + 1]);
      }
      load_matrices(a, v_tile + from);
#pragma unroll
      for (int n = 0; n < kTiles; ++n) {
        const int at = kTiles == 2 ? 2 * n : 2 * (step % 2);
        multiply(slope[m][n], a, c[at], c[at + 1]);
      }
    }
  }
}

template <int D, FlashGate kGate, bool kCap>
__global__ void __launch_bounds__(kThreads<D>, D <= 64 ? 2 : 1)
    key_gradients(const __grid_constant__ KeyParameters parameters, const float* totals) {
  constexpr int kKeyBytes = kKeys<D> * kRowBytes<D>, kQueryBytes = kQueries<D> * kRowBytes<D>;
  constexpr int kWarpQueries = kQueries<D> / kParty<D>;  // whose scores a warp computes
  constexpr int kTiles = kWarpQueries < 16 ? 1 : 2;      // of 8 queries at a time
  constexpr int kStep = 8 * kTiles;
  const FlashBackwardArgs& args = parameters.args;
  const FlashShape& shape = args.shape;
  const int lane = static_cast<int>(threadIdx.x) & 31, warp = static_cast<int>(threadIdx.x) >> 5;
  const int group = warp / kParty<D>, member = warp % kParty<D>;
  const int first_key = static_cast<int>(blockIdx.x) * kKeys<D>;
  const int key_head = static_cast<int>(blockIdx.y), batch = static_cast<int>(blockIdx.z);
  const int heads = shape.H / shape.G;  // query heads that read this key head
  const Sight sight(shape);
  const SoftCap cap(shape);

  extern __shared__ __align__(128) unsigned char memory[];
  const std::uint32_t k_tile = shared_address(memory), v_tile = k_tile + kKeyBytes;
  const std::uint32_t q_tiles = v_tile + kKeyBytes, dz_tiles = q_tiles + 2 * kQueryBytes;
  const std::uint32_t weight_tile = dz_tiles + 2 * kQueryBytes;  // [keys, queries], likewise dL/ds
  const std::uint32_t score_tile = weight_tile + kExchangeBytes<D>;
  float* rows =
      reinterpret_cast<float*>(memory + 2 * kKeyBytes + 4 * kQueryBytes + 2 * kExchangeBytes<D>);
  // rows: [2 tiles][log-sum-exp, total][kQueries]

  const std::int64_t key_base = batch * args.kv_strides.batch + key_head * D;
  load_tile<D, kKeys<D>, kThreads<D>>(k_tile, static_cast<const bf16*>(args.k) + key_base,
                                      args.kv_strides.token, first_key, shape.Tk);
  load_tile<D, kKeys<D>, kThreads<D>>(v_tile, static_cast<const bf16*>(args.v) + key_base,
                                      args.kv_strides.token, first_key, shape.Tk);
  commit_copies();  // also where no queries follow: only copies that are committed are waited for

  // The queries that see a key of this block.
  const int first_tile = max(first_key - sight.offset, 0) / kQueries<D>;
  const int last_query =
      min(first_key + kKeys<D> - 1 + sight.window - 1 - sight.offset, shape.Tq - 1);
  const int tiles = last_query < 0 ? 0 : last_query / kQueries<D> + 1 - first_tile;  // of one head
  const auto load_queries = [&](int turn) {
    const int head = key_head * heads + turn / tiles;
    const int first = (first_tile + turn % tiles) * kQueries<D>;
    const std::uint32_t at = static_cast<std::uint32_t>(turn & 1) * kQueryBytes;
    load_tile<D, kQueries<D>, kThreads<D>>(
        q_tiles + at, static_cast<const bf16*>(args.q) + batch * args.q_strides.batch + head * D,
        args.q_strides.token, first, shape.Tq);
    load_tile<D, kQueries<D>, kThreads<D>>(
        dz_tiles + at, static_cast<const bf16*>(args.dz) + batch * args.z_strides.batch + head * D,
        args.z_strides.token, first, shape.Tq);
    commit_copies();
    const int i = static_cast<int>(threadIdx.x);
    if (i < 2 * kQueries<D>) {
      const int row = first + i % kQueries<D>;
      const bool is_total = i >= kQueries<D>;
      const std::int64_t place =
          (static_cast<std::int64_t>(batch) * shape.H + head) * shape.Tq + row;
      float value = is_total ? 0.0f : -INFINITY;
      if (row < shape.Tq) value = is_total ? totals[place] : -args.log_sum_exp[place] * kLog2E;
      rows[(turn & 1) * 2 * kQueries<D> + i] = value;
    }
  };
  const int turns = tiles > 0 ? tiles * heads : 0;
  if (turns > 0) load_queries(0);

  const float scale = shape.scale * kLog2E;
  const int first_pair = member * kPairs<D>;
  const int pairs = D / 16 % kParty<D> == 0 ? kPairs<D> : min(kPairs<D>, D / 16 - first_pair);
  float dk[2][2 * kPairs<D>][4] = {}, dv[2][2 * kPairs<D>][4] = {};
  const int my_key = first_key + key_of(group, 0, lane >> 2);  // and 16, 32, 48 after it
  const int group_first_key = first_key + key_of(group, 0, 0);
  const int group_last_key = group_first_key + 55;

  over_pieces(0, turns, load_queries, [&](int turn) {
    const int head = key_head * heads + turn / tiles;
    const int tile_query = (first_tile + turn % tiles) * kQueries<D>;
    const std::uint32_t at = static_cast<std::uint32_t>(turn & 1) * kQueryBytes;
    const std::uint32_t q_tile = q_tiles + at, dz_tile = dz_tiles + at;
    const float* minus_lse = rows + (turn & 1) * 2 * kQueries<D>;
    const float* total = minus_lse + kQueries<D>;
    float bias = 0.0f, dexpected = 0.0f;
    HighLow head_part = {};
    KeyNoise key_part = {};
    if constexpr (kGate != FlashGate::kNone) {
      bias = args.gate.bias[head] * kLog2E;
      dexpected = args.dexpected[static_cast<std::int64_t>(batch) * shape.H + head];
    }
    if constexpr (kGate == FlashGate::kSampled) {
      head_part = head_noise((parameters.noise.first_batch + batch) * shape.H + head);
      key_part = key_noise(parameters.noise, head_part,
                           static_cast<std::uint32_t>(my_key / 64 * 16 + my_key % 16));
    }
    // Whether none of the 16 queries from `column` of the tile on sees a key of this group.
    const auto unseen = [&](int column) {
      const int query = tile_query + column;
      return query >= shape.Tq || sight.none(query, query + 15, group_first_key, group_last_key);
    };
    // dv += weights dz and dk += scores q, for 16 queries.
    const auto add_up = [&](int column, const std::uint32_t(&weights)[2][4],
                            const std::uint32_t(&scores)[2][4]) {
#pragma unroll
      for (int pair = 0; pair < kPairs<D>; ++pair) {
        if (pair >= pairs) break;
        std::uint32_t b[4], c[4];
        load_right_columns<D>(b, dz_tile, column, first_pair + pair, lane);
        load_right_columns<D>(c, q_tile, column, first_pair + pair, lane);
#pragma unroll
        for (int m = 0; m < 2; ++m) {
          multiply(dv[m][2 * pair], weights[m], b[0], b[1]);
          multiply(dv[m][2 * pair + 1], weights[m], b[2], b[3]);
          multiply(dk[m][2 * pair], scores[m], c[0], c[1]);
          multiply(dk[m][2 * pair + 1], scores[m], c[2], c[3]);
        }
      }
    };

#pragma unroll 1
    for (int part = 0; part < kWarpQueries; part += kStep) {
      const int column0 = member * kWarpQueries + part;
      if (unseen(column0 / 16 * 16)) continue;
      const int first_query = tile_query + column0;
      float s[2][kTiles][4] = {}, slope[2][kTiles][4] = {};  // q . k, then A e; dz . v, then dL/ds
      transposed_scores<D, kTiles>(s, slope, k_tile, v_tile, q_tile, dz_tile, column0, group, lane);
      if constexpr (kCap) cap.apply(s[0]), cap.apply(s[1]);
      const bool cut =
          !sight.all(first_query, first_query + kStep - 1, group_first_key, group_last_key) ||
          first_query + kStep > shape.Tq;
#pragma unroll
      for (int n = 0; n < kTiles; ++n)
#pragma unroll
        for (int c0 = 0; c0 < 2; ++c0) {
          const int column = column0 + n * 8 + 2 * (lane & 3) + c0;
          const int query = tile_query + column;
          std::uint32_t words[4] = {};
          if constexpr (kGate == FlashGate::kSampled)
            noise_words(words, parameters.noise,
                        query_noise(parameters.noise, head_part,
                                    static_cast<std::uint32_t>(query + sight.offset)),
                        key_part);
          const float row_lse = minus_lse[column], row_total = total[column];
#pragma unroll
          for (int w = 0; w < 4; ++w) {
            float& x = s[w >> 1][n][2 * (w & 1) + c0];
            float& y = slope[w >> 1][n][2 * (w & 1) + c0];
            EdgeGradient edge =
                edge_gradient<kGate>(x, scale, bias, row_lse, y, row_total, dexpected, words[w]);
            if (cut && (!sight.sees(query, my_key + 16 * w) || query >= shape.Tq))
              edge.open_weight = edge.score = 0.0f;
            if constexpr (kCap) edge.score *= cap.slope(x);
            x = edge.open_weight, y = edge.score;
          }
        }
      if constexpr (kParty<D> == 1) {
        std::uint32_t weights[2][4], scores[2][4];
#pragma unroll
        for (int m = 0; m < 2; ++m) {
          as_left(weights[m], s[m][0], s[m][1]);
          as_left(scores[m], slope[m][0], slope[m][1]);
        }
        add_up(column0, weights, scores);
      } else {
#pragma unroll
        for (int m = 0; m < 2; ++m)
#pragma unroll
          for (int n = 0; n < kTiles; ++n)
#pragma unroll
            for (int r = 0; r < 2; ++r) {
              const int row = group * 32 + m * 16 + (lane >> 2) + 8 * r;
              put_pair<kQueries<D>>(weight_tile, row, column0 / 8 + n, lane, s[m][n][2 * r],
                                    s[m][n][2 * r + 1]);
              put_pair<kQueries<D>>(score_tile, row, column0 / 8 + n, lane, slope[m][n][2 * r],
                                    slope[m][n][2 * r + 1]);
            }
      }
    }
    if constexpr (kParty < D >> 1) {
      party_barrier<kParty<D>>(1 + group);
#pragma unroll 1
      for (int column = 0; column < kQueries<D>; column += 16) {
        if (unseen(column)) continue;
        std::uint32_t weights[2][4], scores[2][4];
#pragma unroll
        for (int m = 0; m < 2; ++m) {
          load_left<kQueries<D>>(weights[m], weight_tile, group * 32 + m * 16, column / 16, lane);
          load_left<kQueries<D>>(scores[m], score_tile, group * 32 + m * 16, column / 16, lane);
        }
        add_up(column, weights, scores);
      }
    }
  });

  // Through shared memory: each group reads and writes its own keys' rows only. A block without
  // queries still has copies of keys and values under way.
  wait_copies<0>();
  __syncthreads();
#pragma unroll
  for (int m = 0; m < 2; ++m)
#pragma unroll
    for (int r = 0; r < 2; ++r)
#pragma unroll
      for (int n = 0; n < 2 * kPairs<D>; ++n) {
        if (n >= 2 * pairs) break;
        const int row = key_of(group, m, (lane >> 2) + 8 * r), chunk = 2 * first_pair + n;
        put_pair<D>(k_tile, row, chunk, lane, dk[m][n][2 * r] * shape.scale,
                    dk[m][n][2 * r + 1] * shape.scale);
        put_pair<D>(v_tile, row, chunk, lane, dv[m][n][2 * r], dv[m][n][2 * r + 1]);
      }
  __syncwarp();
  const std::int64_t out_base = batch * args.dkv_strides.batch + key_head * D;
  bf16* out_k = static_cast<bf16*>(args.dk) + out_base;
  bf16* out_v = static_cast<bf16*>(args.dv) + out_base;
  for (int i = lane; i < 32 * 2 * pairs; i += 32) {
    const int row = i / (2 * pairs), chunk = 2 * first_pair + i % (2 * pairs);
    const int key = key_of(group, row / 16, row % 16);
    if (first_key + key >= shape.Tk) continue;
    const std::uint32_t from = chunk_offset<D>(key, chunk);
    const std::int64_t to = (first_key + key) * args.dkv_strides.token + chunk * 8;
    *reinterpret_cast<uint4*>(out_k + to) = *reinterpret_cast<const uint4*>(memory + from);
    *reinterpret_cast<uint4*>(out_v + to) =
        *reinterpret_cast<const uint4*>(memory + kKeyBytes + from);
  }
}

template <int D, FlashGate kGate>
cudaError_t launch_keys(const FlashBackwardArgs& args, cudaStream_t stream) {
  const FlashShape& shape = args.shape;
  const dim3 grid(static_cast<unsigned>((shape.Tk + kKeys<D> - 1) / kKeys<D>),
                  static_cast<unsigned>(shape.G), static_cast<unsigned>(shape.B));
  const auto kernel =
      shape.soft_cap > 0.0f ? key_gradients<D, kGate, true> : key_gradients<D, kGate, false>;
  return launch_with_memory(kernel, grid, kThreads<D>, kBytes<D>, stream,
                            KeyParameters{args, noise_keys(args.gate.noise)},
                            divide_scratch(args).totals);
}

}  // namespace

int backward_keys_bytes(int D) {
  int bytes = 0;
  with_width(D, [&](auto width) {
    bytes = kBytes<width()>;
    return cudaSuccess;
  });
  return bytes;
}

cudaError_t backward_keys(const FlashBackwardArgs& args, cudaStream_t stream) {
  return with_constants(args.shape, args.gate, [&](auto width, auto gate) {
    return launch_keys<width(), gate()>(args, stream);
  });
}

}  // namespace filigree::cuda::flash

namespace filigree::cuda {

std::int64_t flash_backward_scratch(const FlashShape& shape) {
  return static_cast<std::int64_t>(shape.B) * shape.H * (shape.Tq + flash::query_blocks(shape));
}

cudaError_t flash_backward(const FlashBackwardArgs& args, cudaStream_t stream) {
  if (!flash_attention_takes(args.shape)) return cudaErrorInvalidValue;
  if (const cudaError_t code = flash::backward_queries(args, stream); code != cudaSuccess)
    return code;
  return flash::backward_keys(args, stream);
}

}  // namespace filigree::cuda
