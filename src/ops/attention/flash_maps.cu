// Maps of a forward pass that has been: the scores again, tile by tile on tensor cores, and of them
// the weights by the row's log-sum-exp. A block has one tile of 64 queries and 64 keys; the gates
// are those of the forward pass, by the same expressions.
#include "ops/attention/flash_attention_cuda.h"
#include "ops/attention/flash_loop_cuda.h"

namespace filigree::cuda {
namespace flash {
namespace {

constexpr int kSide = 64, kMapWarps = kSide / 16, kMapThreads = kMapWarps * 32;

struct MapsParameters {
  FlashMapsArgs args;
  NoiseKeys noise;
};

template <int D, FlashGate kGate>
__global__ void __launch_bounds__(kMapThreads)
    maps(const __grid_constant__ MapsParameters parameters) {
  extern __shared__ __align__(128) unsigned char memory[];
  const FlashMapsArgs& args = parameters.args;
  const FlashShape& shape = args.shape;
  const int lane = static_cast<int>(threadIdx.x) & 31, warp = static_cast<int>(threadIdx.x) >> 5;
  const unsigned key_tiles = static_cast<unsigned>((shape.Tk + kSide - 1) / kSide);
  const int first_query = static_cast<int>(blockIdx.x / key_tiles) * kSide;
  const int tile = static_cast<int>(blockIdx.x % key_tiles), first_key = tile * kSide;
  const int head = static_cast<int>(blockIdx.y), batch = static_cast<int>(blockIdx.z);
  const int key_head = head / (shape.H / shape.G);
  const Sight sight(shape);
  const int row0 = first_query + warp * 16 + (lane >> 2);  // and row0 + 8
  const std::int64_t rows = (static_cast<std::int64_t>(batch) * shape.H + head) * shape.Tq;

  float weight[8][4] = {};
  std::uint32_t open = 0;  // bit 4 n + c of weight[n][c]
  if (!sight.none(first_query, first_query + kSide - 1, first_key, first_key + kSide - 1)) {
    const std::uint32_t q_tile = shared_address(memory), k_tile = q_tile + kSide * kRowBytes<D>;
    load_tile<D, kSide, kMapThreads>(
        q_tile, static_cast<const bf16*>(args.q) + batch * args.q_strides.batch + head * D,
        args.q_strides.token, first_query, shape.Tq);
    load_tile<D, kSide, kMapThreads>(
        k_tile, static_cast<const bf16*>(args.k) + batch * args.kv_strides.batch + key_head * D,
        args.kv_strides.token, first_key, shape.Tk);
    commit_copies();
    wait_copies<0>();
    __syncthreads();
    add_products<D>(weight, q_tile, k_tile, warp, lane);
    SoftCap(shape).apply(weight);

    const float scale = shape.scale * kLog2E;
    float bias = 0.0f;
    if constexpr (kGate != FlashGate::kNone) bias = args.gate.bias[head] * kLog2E;
    HighLow head_part = {};
    if constexpr (kGate == FlashGate::kSampled)
      head_part = head_noise((parameters.noise.first_batch + batch) * shape.H + head);
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int row = row0 + 8 * r;
      const float minus_lse = row < shape.Tq ? -args.log_sum_exp[rows + row] * kLog2E : 0.0f;
      QueryNoise query_part = {};
      if constexpr (kGate == FlashGate::kSampled)
        query_part = query_noise(parameters.noise, head_part,
                                 static_cast<std::uint32_t>(row + sight.offset));
#pragma unroll
      for (int part = 0; part < 4; ++part) {  // keys 8 (part / 2) + 2 (lane % 4) + part % 2, mod 16
        const int n0 = part >> 1, c0 = part & 1;
        std::uint32_t words[4] = {};
        if constexpr (kGate == FlashGate::kSampled)
          noise_words(
              words, parameters.noise, query_part,
              key_noise(parameters.noise, head_part,
                        static_cast<std::uint32_t>(tile * 16 + n0 * 8 + 2 * (lane & 3) + c0)));
#pragma unroll
        for (int w = 0; w < 4; ++w) {
          const int n = 2 * w + n0, c = 2 * r + c0;
          float& x = weight[n][c];
          bool is_open = sight.sees(row, first_key + n * 8 + 2 * (lane & 3) + c0);
          if constexpr (kGate == FlashGate::kSampled) {
            const float u = uniform_of(words[w]);
            is_open = is_open && u > closing_weight(exp2_approx(fmaf(x, -scale, -bias)), u);
          } else if constexpr (kGate == FlashGate::kHard) {
            is_open = is_open && fmaf(x, scale, bias) > 0.0f;
          }
          x = is_open ? exp2_approx(fmaf(x, scale, minus_lse)) : 0.0f;
          open |= static_cast<std::uint32_t>(is_open) << (4 * n + c);
        }
      }
    }
  }

#pragma unroll
  for (int n = 0; n < 8; ++n)
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      const int row = row0 + 8 * (c >> 1), key = first_key + n * 8 + 2 * (lane & 3) + (c & 1);
      if (row >= shape.Tq || key >= shape.Tk) continue;
      const std::int64_t place = (rows + row) * shape.Tk + key;
      if (args.pattern != nullptr) args.pattern[place] = weight[n][c];
      if (args.mask != nullptr) args.mask[place] = (open >> (4 * n + c) & 1) != 0 ? 1.0f : 0.0f;
    }
}

template <int D, FlashGate kGate>
cudaError_t launch_maps(const FlashMapsArgs& args, cudaStream_t stream) {
  const auto tiles = [](int length) { return static_cast<unsigned>((length + kSide - 1) / kSide); };
  const dim3 grid(tiles(args.shape.Tq) * tiles(args.shape.Tk), static_cast<unsigned>(args.shape.H),
                  static_cast<unsigned>(args.shape.B));
  return launch_with_memory(maps<D, kGate>, grid, kMapThreads, 2 * kSide * kRowBytes<D>, stream,
                            MapsParameters{args, noise_keys(args.gate.noise)});
}

}  // namespace
}  // namespace flash

cudaError_t flash_maps(const FlashMapsArgs& args, cudaStream_t stream) {
  if (!flash_attention_takes(args.shape)) return cudaErrorInvalidValue;
  return flash::with_constants(args.shape, args.gate, [&](auto width, auto gate) {
    return flash::launch_maps<width(), gate()>(args, stream);
  });
}

}  // namespace filigree::cuda
