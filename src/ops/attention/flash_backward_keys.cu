// The half of flash attention's backward pass that a block of keys does: dk and dv.
//
//   dk_j = scale * sum_i dL/ds_ij q_i        dv_j = sum_i A_ij e_ij dL/dz_i
//
// Scores are computed transposed (keys are rows), so that the weights are already the left operand
// of the products that follow. A warp holds 32 keys: 8 neighbours and those 16, 32 and 48 after
// them, the four that share a block of noise.
#include "filigree/ops/attention/flash_backward_cuda.h"
#include "filigree/ops/attention/flash_loop_cuda.h"

namespace filigree::cuda::flash {

constexpr int kWarps = 4, kThreads = kWarps * 32;
constexpr int kKeys = 128;    // of a block
constexpr int kQueries = 64;  // in a tile

struct KeyParameters {
  FlashBackwardArgs args;
  NoiseKeys noise;
};

// The key of row r (0 to 15) of a warp's left operand m (0 or 1), within the block.
__device__ __forceinline__ int key_of(int warp, int m, int r) {
  return (warp >> 1) * 64 + (warp & 1) * 8 + (r & 7) + 16 * (2 * m + (r >> 3));
}

// Accumulators of 128-wide heads would not fit: such heads are done in two halves.
constexpr int kMostColumns = 64;
template <int D>
constexpr int kColumns = D < kMostColumns ? D : kMostColumns;

template <int D, FlashGate kGate>
__global__ void __launch_bounds__(kThreads, 2)
    key_gradients(const __grid_constant__ KeyParameters parameters, const float* totals) {
  constexpr int kSteps = D / 16, kPairs = kColumns<D> / 16;
  constexpr int kKeyBytes = kKeys * D * 2, kQueryBytes = kQueries * D * 2;
  const FlashBackwardArgs& args = parameters.args;
  const FlashShape& shape = args.shape;
  const int lane = static_cast<int>(threadIdx.x) & 31, warp = static_cast<int>(threadIdx.x) >> 5;
  const int first_key = static_cast<int>(blockIdx.x) * kKeys;
  const int key_head = static_cast<int>(blockIdx.y);
  const int batch = static_cast<int>(blockIdx.z) / (D / kColumns<D>);
  const int half = static_cast<int>(blockIdx.z) % (D / kColumns<D>);
  const int group = shape.H / shape.G;  // query heads that read this key head
  const int offset = shape.Tk - shape.Tq;

  extern __shared__ __align__(128) unsigned char memory[];
  const std::uint32_t k_tile = shared_address(memory), v_tile = k_tile + kKeyBytes;
  const std::uint32_t q_tiles = v_tile + kKeyBytes, dz_tiles = q_tiles + 2 * kQueryBytes;
  float* rows = reinterpret_cast<float*>(memory + 2 * kKeyBytes + 4 * kQueryBytes);
  // rows: [2 tiles][log-sum-exp, total][kQueries]

  const std::int64_t key_base = batch * args.kv_strides.batch + key_head * D;
  load_tile<D, kKeys, kThreads>(k_tile, static_cast<const bf16*>(args.k) + key_base,
                                args.kv_strides.token, first_key, shape.Tk);
  load_tile<D, kKeys, kThreads>(v_tile, static_cast<const bf16*>(args.v) + key_base,
                                args.kv_strides.token, first_key, shape.Tk);

  const int first_tile = max(first_key - offset, 0) / kQueries;
  const int tiles = (shape.Tq + kQueries - 1) / kQueries - first_tile;  // of one head
  const auto load_queries = [&](int turn) {
    const int head = key_head * group + turn / tiles;
    const int first = (first_tile + turn % tiles) * kQueries;
    const std::uint32_t at = static_cast<std::uint32_t>(turn & 1) * kQueryBytes;
    load_tile<D, kQueries, kThreads>(
        q_tiles + at, static_cast<const bf16*>(args.q) + batch * args.q_strides.batch + head * D,
        args.q_strides.token, first, shape.Tq);
    load_tile<D, kQueries, kThreads>(
        dz_tiles + at, static_cast<const bf16*>(args.dz) + batch * args.z_strides.batch + head * D,
        args.z_strides.token, first, shape.Tq);
    commit_copies();
    const int row = first + static_cast<int>(threadIdx.x) % kQueries;
    const bool is_total = threadIdx.x >= kQueries;
    const std::int64_t place = (static_cast<std::int64_t>(batch) * shape.H + head) * shape.Tq + row;
    float value = is_total ? 0.0f : -INFINITY;
    if (row < shape.Tq) value = is_total ? totals[place] : -args.log_sum_exp[place] * kLog2E;
    rows[(turn & 1) * 2 * kQueries + static_cast<int>(threadIdx.x)] = value;
  };
  const int turns = tiles > 0 ? tiles * group : 0;
  if (turns > 0) load_queries(0);

  const float scale = shape.scale * kLog2E;
  float dk[2][2 * kPairs][4] = {}, dv[2][2 * kPairs][4] = {};
  const int my_key = first_key + key_of(warp, 0, lane >> 2);  // and 16, 32, 48 after it
  const int warp_first_key = first_key + key_of(warp, 0, 0), warp_last_key = warp_first_key + 55;

  over_pieces(turns, load_queries, [&](int turn) {
    const int head = key_head * group + turn / tiles;
    const int tile_query = (first_tile + turn % tiles) * kQueries;
    const std::uint32_t at = static_cast<std::uint32_t>(turn & 1) * kQueryBytes;
    const std::uint32_t q_tile = q_tiles + at, dz_tile = dz_tiles + at;
    const float* minus_lse = rows + (turn & 1) * 2 * kQueries;
    const float* total = minus_lse + kQueries;
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

#pragma unroll 1
    for (int part = 0; part < kQueries / 16; ++part) {
      const int first_query = tile_query + part * 16;
      // No query of these sees a key of this warp.
      if (first_query + 15 + offset < warp_first_key || first_query >= shape.Tq) continue;
      float s[2][2][4] = {}, slope[2][2][4] = {};  // q . k, then A e; dz . v, then dL/ds
#pragma unroll
      for (int step = 0; step < kSteps; ++step) {
        std::uint32_t b[4], c[4];
        load_right_rows<D>(b, q_tile, part * 16, step, lane);
        load_right_rows<D>(c, dz_tile, part * 16, step, lane);
#pragma unroll
        for (int m = 0; m < 2; ++m) {
          const std::uint32_t from =
              chunk_offset<D>(key_of(warp, m, lane & 15), step * 2 + (lane >> 4));
          std::uint32_t a[4];
          load_matrices(a, k_tile + from);
          multiply(s[m][0], a, b[0], b[1]);
          multiply(s[m][1], a, b[2], b[3]);
          load_matrices(a, v_tile + from);
          multiply(slope[m][0], a, c[0], c[1]);
          multiply(slope[m][1], a, c[2], c[3]);
        }
      }
      const bool cut = first_query + offset < warp_last_key || warp_last_key >= shape.Tk ||
                       first_query + 16 > shape.Tq;
#pragma unroll
      for (int n = 0; n < 2; ++n)
#pragma unroll
        for (int c0 = 0; c0 < 2; ++c0) {
          const int column = part * 16 + n * 8 + 2 * (lane & 3) + c0;
          const int query = tile_query + column;
          std::uint32_t words[4] = {};
          if constexpr (kGate == FlashGate::kSampled)
            noise_words(words, parameters.noise,
                        query_noise(parameters.noise, head_part,
                                    static_cast<std::uint32_t>(query + offset)),
                        key_part);
          const float row_lse = minus_lse[column], row_total = total[column];
#pragma unroll
          for (int w = 0; w < 4; ++w) {
            float& x = s[w >> 1][n][2 * (w & 1) + c0];
            float& y = slope[w >> 1][n][2 * (w & 1) + c0];
            EdgeGradient edge =
                edge_gradient<kGate>(x, scale, bias, row_lse, y, row_total, dexpected, words[w]);
            if (cut) {
              const int key = my_key + 16 * w;
              if (key > query + offset || key >= shape.Tk || query >= shape.Tq)
                edge.open_weight = edge.score = 0.0f;
            }
            x = edge.open_weight, y = edge.score;
          }
        }
      std::uint32_t weights[2][4], scores[2][4];
#pragma unroll
      for (int m = 0; m < 2; ++m) {
        as_left(weights[m], s[m][0], s[m][1]);
        as_left(scores[m], slope[m][0], slope[m][1]);
      }
#pragma unroll
      for (int pair = 0; pair < kPairs; ++pair) {
        std::uint32_t b[4], c[4];
        load_right_columns<D>(b, dz_tile, part * 16, half * kPairs + pair, lane);
        load_right_columns<D>(c, q_tile, part * 16, half * kPairs + pair, lane);
#pragma unroll
        for (int m = 0; m < 2; ++m) {
          multiply(dv[m][2 * pair], weights[m], b[0], b[1]);
          multiply(dv[m][2 * pair + 1], weights[m], b[2], b[3]);
          multiply(dk[m][2 * pair], scores[m], c[0], c[1]);
          multiply(dk[m][2 * pair + 1], scores[m], c[2], c[3]);
        }
      }
    }
  });

  // Through shared memory: each warp reads and writes its own keys' rows only. A block without
  // queries still has copies under way.
  wait_copies<0>();
  __syncthreads();
#pragma unroll
  for (int m = 0; m < 2; ++m)
#pragma unroll
    for (int r = 0; r < 2; ++r)
#pragma unroll
      for (int n = 0; n < 2 * kPairs; ++n) {
        const int row = key_of(warp, m, (lane >> 2) + 8 * r), chunk = half * 2 * kPairs + n;
        put_pair<D>(k_tile, row, chunk, lane, dk[m][n][2 * r] * shape.scale,
                    dk[m][n][2 * r + 1] * shape.scale);
        put_pair<D>(v_tile, row, chunk, lane, dv[m][n][2 * r], dv[m][n][2 * r + 1]);
      }
  __syncwarp();
  const std::int64_t out_base = batch * args.dkv_strides.batch + key_head * D;
  bf16* out_k = static_cast<bf16*>(args.dk) + out_base;
  bf16* out_v = static_cast<bf16*>(args.dv) + out_base;
  for (int i = lane; i < 32 * 2 * kPairs; i += 32) {
    const int row = i / (2 * kPairs), chunk = half * 2 * kPairs + i % (2 * kPairs);
    const int key = key_of(warp, row / 16, row % 16);
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
  const dim3 grid(static_cast<unsigned>((shape.Tk + kKeys - 1) / kKeys),
                  static_cast<unsigned>(shape.G),
                  static_cast<unsigned>(shape.B * backward_keys_blocks(D)));
  return launch_with_memory(key_gradients<D, kGate>, grid, kThreads, backward_keys_bytes(D), stream,
                            KeyParameters{args, noise_keys(args.gate.noise)},
                            divide_scratch(args).totals);
}

int backward_keys_bytes(int D) {
  return 2 * kKeys * D * 2 + 4 * kQueries * D * 2 + 4 * kQueries * static_cast<int>(sizeof(float));
}

int backward_keys_blocks(int D) { return D > kMostColumns ? D / kMostColumns : 1; }

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
