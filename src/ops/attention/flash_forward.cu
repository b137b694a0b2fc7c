// Forward pass of flash attention: a block of queries goes over its keys, 64 at a time, with the
// running maximum and sum of the softmax. The sum is over all causal keys, the mixture over the
// open ones: z_i = sum_j e_ij exp(s_ij - m) v_j / sum_j exp(s_ij - m).
#include "ops/attention/flash_attention_cuda.h"
#include "ops/attention/flash_backward_cuda.h"
#include "ops/attention/flash_loop_cuda.h"
#include "runtime/cuda/devices_cuda.h"

namespace filigree::cuda {
namespace flash {

// Wide heads have so many accumulators that fewer warps fit; those of 256 have no registers left
// for the queries, which stay in shared memory, and need all warps of a multiprocessor for one
// block.
template <int D>
constexpr int kForwardWarps = D <= 64 || D > 128 ? 8 : 4;
template <int D>
constexpr int kForwardBlocks = D > 128             ? 1
                               : D > 64 && D < 128 ? 3
                                                   : 2;  // on a multiprocessor
template <int D>
constexpr bool kKeepQueries = D <= 128;

struct ForwardParameters {
  FlashForwardArgs args;
  NoiseKeys noise;
};

template <int D, FlashGate kGate>
__global__ void __launch_bounds__(kForwardWarps<D> * 32, kForwardBlocks<D>)
    forward(const __grid_constant__ ForwardParameters parameters) {
  constexpr int kWarps = kForwardWarps<D>, kThreads = kWarps * 32, kQueries = kWarps * 16;
  constexpr int kSteps = D / 16;
  const FlashForwardArgs& args = parameters.args;
  const FlashShape& shape = args.shape;
  const int lane = static_cast<int>(threadIdx.x) & 31, warp = static_cast<int>(threadIdx.x) >> 5;
  // Late queries have the most keys: first come, first served, so that short blocks fill the end.
  const int first_query = static_cast<int>(gridDim.x - 1 - blockIdx.x) * kQueries;
  const int head = static_cast<int>(blockIdx.y), batch = static_cast<int>(blockIdx.z);
  const int key_head = head / (shape.H / shape.G);
  const Sight sight(shape);
  const SoftCap cap(shape);

  extern __shared__ __align__(128) unsigned char memory[];
  const std::uint32_t q_tile = shared_address(memory);
  const KeyTiles<D, kThreads> keys(args, batch, key_head, q_tile + kQueries * kRowBytes<D>);

  const bf16* q = static_cast<const bf16*>(args.q) + batch * args.q_strides.batch + head * D;
  const int last_position = min(first_query + kQueries, shape.Tq) - 1 + sight.offset;
  const int first_tile = sight.first_tile(first_query);
  load_tile<D, kQueries, kThreads>(q_tile, q, args.q_strides.token, first_query, shape.Tq);
  keys.load(first_tile);

  const float scale = shape.scale * kLog2E;  // scores in units of log 2
  float bias = 0.0f;
  if constexpr (kGate != FlashGate::kNone) bias = args.gate.bias[head] * kLog2E;
  const int warp_query = first_query + warp * 16;
  const int row0 = warp_query + (lane >> 2);  // and row0 + 8
  const RowNoise noise =
      row_noise<kGate>(parameters.noise, (parameters.noise.first_batch + batch) * shape.H + head,
                       row0 + sight.offset);

  std::uint32_t q_part[kKeepQueries<D> ? kSteps : 1][4];
  float z[2 * kSteps][4] = {};
  float maximum[2] = {-INFINITY, -INFINITY}, sum[2] = {};
  // Without a gate the weights are divided by the sum of what they are rounded to, so that they add
  // up to 1 as the gradient takes for granted (row_total). The product with ones gives that sum.
  float rounded_sum[4] = {};
  constexpr std::uint32_t kOnes = 0x3f803f80u;
  float expected[2] = {}, active[2] = {};

  keys.each(
      first_tile, last_position / kTileKeys + 1,
      [&](int tile, std::uint32_t k_tile, std::uint32_t v_tile) {
        if constexpr (kKeepQueries<D>) {
          if (tile == first_tile) {
#pragma unroll
            for (int step = 0; step < kSteps; ++step)
              load_left<D>(q_part[step], q_tile, warp * 16, step, lane);
          }
        }
        const int first_key = tile * kTileKeys, last_key = first_key + kTileKeys - 1;
        if (sight.none(warp_query, warp_query + 15, first_key, last_key)) return;

        float s[8][4] = {};
#pragma unroll
        for (int step = 0; step < kSteps; ++step) {
          if constexpr (!kKeepQueries<D>) load_left<D>(q_part[0], q_tile, warp * 16, step, lane);
          add_products<D>(s, q_part[kKeepQueries<D> ? step : 0], k_tile, step, lane);
        }
        cap.apply(s);
        // Keys from Tk on are after every query that counts.
        if (!sight.all(warp_query, warp_query + 15, first_key, last_key)) {
#pragma unroll
          for (int n = 0; n < 8; ++n)
#pragma unroll
            for (int c = 0; c < 4; ++c)
              if (!sight.sees(row0 + 8 * (c >> 1), first_key + n * 8 + 2 * (lane & 3) + (c & 1)))
                s[n][c] = -INFINITY;
        }

        float minus_maximum[2];
#pragma unroll
        for (int r = 0; r < 2; ++r) {
          float largest = maximum[r];
#pragma unroll
          for (int n = 0; n < 8; ++n) largest = fmaxf(largest, fmaxf(s[n][2 * r], s[n][2 * r + 1]));
          largest = row_max(largest);
          // A query whose window begins after this tile has seen no key yet.
          const float reference = largest == -INFINITY ? 0.0f : largest;
          const float shrink = exp2_approx((maximum[r] - reference) * scale);
          maximum[r] = largest;
          minus_maximum[r] = -reference * scale;
          sum[r] *= shrink;
          rounded_sum[2 * r] *= shrink;
#pragma unroll
          for (int n = 0; n < 2 * kSteps; ++n) z[n][2 * r] *= shrink, z[n][2 * r + 1] *= shrink;
        }

        if constexpr (kGate == FlashGate::kSampled) {
#pragma unroll
          for (int part = 0; part < 4;
               ++part) {  // keys 8 (part / 2) + 2 (lane % 4) + part % 2, mod 16
            const int n0 = part >> 1, c0 = part & 1;
            const KeyNoise key_part =
                key_noise(parameters.noise, noise.head,
                          static_cast<std::uint32_t>(tile * 16 + n0 * 8 + 2 * (lane & 3) + c0));
#pragma unroll
            for (int r = 0; r < 2; ++r) {
              std::uint32_t words[4];
              noise_words(words, parameters.noise, noise.query[r], key_part);
#pragma unroll
              for (int w = 0; w < 4; ++w) {
                float& x = s[2 * w + n0][2 * r + c0];
                const float p = exp2_approx(fmaf(x, scale, minus_maximum[r]));
                const float E = exp2_approx(fmaf(x, -scale, -bias));
                const float u = uniform_of(words[w]);
                const bool open = u > closing_weight(E, u);
                sum[r] += p;
                expected[r] += reciprocal_approx(1.0f + E);
                active[r] += open ? 1.0f : 0.0f;
                x = open ? p : 0.0f;
              }
            }
          }
        } else {
#pragma unroll
          for (int n = 0; n < 8; ++n)
#pragma unroll
            for (int c = 0; c < 4; ++c) {
              const int r = c >> 1;
              const float p = exp2_approx(fmaf(s[n][c], scale, minus_maximum[r]));
              sum[r] += p;
              if constexpr (kGate == FlashGate::kHard) {
                const float logit = fmaf(s[n][c], scale, bias);
                expected[r] += reciprocal_approx(1.0f + exp2_approx(-logit));
                active[r] += logit > 0.0f ? 1.0f : 0.0f;
                s[n][c] = logit > 0.0f ? p : 0.0f;
              } else {
                s[n][c] = p;
              }
            }
        }

        add_mixture<D>(z, s, v_tile, lane, [&](const std::uint32_t(&weights)[4]) {
          if constexpr (kGate == FlashGate::kNone) multiply(rounded_sum, weights, kOnes, kOnes);
        });
      });

#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const float total = row_sum(sum[r]);
    const float inverse = 1.0f / (kGate == FlashGate::kNone ? rounded_sum[2 * r] : total);
    const int row = row0 + 8 * r;
    const std::int64_t place = (static_cast<std::int64_t>(batch) * shape.H + head) * shape.Tq + row;
    const float expected_total = row_sum(expected[r]), active_total = row_sum(active[r]);
    if (row < shape.Tq && (lane & 3) == 0) {
      args.log_sum_exp[place] = (maximum[r] * scale + log2f(total)) * kLn2;
      if constexpr (kGate != FlashGate::kNone) {
        args.expected_rows[place] = expected_total;
        args.active_rows[place] = active_total;
      }
    }
#pragma unroll
    for (int n = 0; n < 2 * kSteps; ++n) {
      z[n][2 * r] *= inverse;
      z[n][2 * r + 1] *= inverse;
      put_pair<D>(q_tile, warp * 16 + (lane >> 2) + 8 * r, n, lane, z[n][2 * r], z[n][2 * r + 1]);
    }
  }
  const std::int64_t place = batch * args.z_strides.batch + head * D;
  store_rows<D>(memory, warp * 16, static_cast<bf16*>(args.z) + place, args.z_strides.token,
                first_query + warp * 16, shape.Tq, lane);
  if (args.z_error == nullptr) return;
  __syncwarp();
#pragma unroll
  for (int r = 0; r < 2; ++r)
#pragma unroll
    for (int n = 0; n < 2 * kSteps; ++n)
      put_pair<D>(q_tile, warp * 16 + (lane >> 2) + 8 * r, n, lane, lost(z[n][2 * r]),
                  lost(z[n][2 * r + 1]));
  store_rows<D>(memory, warp * 16, static_cast<bf16*>(args.z_error) + place, args.z_strides.token,
                first_query + warp * 16, shape.Tq, lane);
}

template <int D, FlashGate kGate>
cudaError_t launch_forward(const FlashForwardArgs& args, cudaStream_t stream) {
  constexpr int kQueries = kForwardWarps<D> * 16;
  constexpr int kBytes = (kQueries + 4 * kTileKeys) * kRowBytes<D>;
  const dim3 grid(static_cast<unsigned>((args.shape.Tq + kQueries - 1) / kQueries),
                  static_cast<unsigned>(args.shape.H), static_cast<unsigned>(args.shape.B));
  return launch_with_memory(forward<D, kGate>, grid, kForwardWarps<D> * 32, kBytes, stream,
                            ForwardParameters{args, noise_keys(args.gate.noise)});
}

}  // namespace flash

namespace {

// Of the GPU in use; 0 where it cannot be asked.
int shared_memory_of_block() {
  static const int bytes = [] {
    int most = 0;
    const cudaError_t code =
        cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device_in_use());
    return code == cudaSuccess ? most : 0;
  }();
  return bytes;
}

}  // namespace

bool flash_attention_takes(const FlashShape& shape) {
  constexpr int kMostBlocks = 65536;  // of the second and third axis of a grid
  const int D = shape.D;
  const bool width = D == 16 || D == 32 || D == 64 || D == 80 || D == 96 || D == 128 || D == 256;
  return width && shape.G > 0 && shape.H % shape.G == 0 && shape.Tq > 0 && shape.Tk >= shape.Tq &&
         shape.scale > 0.0f && shape.H < kMostBlocks && shape.B < kMostBlocks &&
         flash::most_shared_bytes(D) <= shared_memory_of_block();
}

cudaError_t flash_forward(const FlashForwardArgs& args, cudaStream_t stream) {
  if (!flash_attention_takes(args.shape)) return cudaErrorInvalidValue;
  return flash::with_constants(args.shape, args.gate, [&](auto width, auto gate) {
    return flash::launch_forward<width(), gate()>(args, stream);
  });
}

}  // namespace filigree::cuda
