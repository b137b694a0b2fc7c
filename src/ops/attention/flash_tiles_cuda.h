// Tiles of bf16 in shared memory and the tensor-core instructions on them (sm_80 and later).
//
// A tile holds rows of D elements, so laid out that the eight rows that one 8x8 matrix load reads
// lie in different banks: the 16-byte chunks of a row are permuted where rows fill whole lines of
// 128 bytes or parts of one, and rows of other lengths (80, 96) are padded by a chunk, which makes
// their distance an odd number of chunks.
#pragma once

#include <cuda_bf16.h>

#include <cstdint>

namespace filigree::cuda::flash {

using bf16 = __nv_bfloat16;

template <int D>
inline constexpr bool kPadded = D > 64 && D % 64 != 0;
// From one row of a tile to the next.
template <int D>
inline constexpr int kRowBytes = (D + (kPadded<D> ? 8 : 0)) * 2;

// Byte offset of a 16-byte chunk (8 elements) of a row.
template <int D>
__device__ __forceinline__ std::uint32_t chunk_offset(int row, int chunk) {
  if constexpr (kPadded<D>) return static_cast<std::uint32_t>(row * kRowBytes<D> + (chunk << 4));
  constexpr int kChunks = D / 8;
  constexpr int kRowsInLine = kChunks >= 8 ? 1 : 8 / kChunks;  // rows in 128 bytes, all 32 banks
  constexpr int kMask = kChunks >= 8 ? 7 : kChunks - 1;
  return static_cast<std::uint32_t>(row * D * 2 + ((chunk ^ ((row / kRowsInLine) & kMask)) << 4));
}

__device__ __forceinline__ std::uint32_t shared_address(const void* pointer) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(pointer));
}

// 16 bytes from global to shared memory without passing through registers; zeros unless `valid`.
__device__ __forceinline__ void copy_async(std::uint32_t to, const void* from, bool valid) {
  const int bytes = valid ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(to), "l"(from), "r"(bytes));
}
__device__ __forceinline__ void commit_copies() { asm volatile("cp.async.commit_group;\n"); }
template <int kPending>
__device__ __forceinline__ void wait_copies() {
  asm volatile("cp.async.wait_group %0;\n" ::"n"(kPending));
}

// Rows [first, first + kRows) of one head; rows from `limit` on become zeros.
template <int D, int kRows, int kThreads>
__device__ __forceinline__ void load_tile(std::uint32_t tile, const bf16* head, std::int64_t stride,
                                          int first, int limit) {
  constexpr int kChunks = D / 8;
#pragma unroll
  for (int i = static_cast<int>(threadIdx.x); i < kRows * kChunks; i += kThreads) {
    const int row = i / kChunks, chunk = i % kChunks;
    const bool valid = first + row < limit;
    const bf16* from = head + (valid ? (first + row) * stride : 0) + chunk * 8;
    copy_async(tile + chunk_offset<D>(row, chunk), from, valid);
  }
}

__device__ __forceinline__ void load_matrices(std::uint32_t (&r)[4], std::uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];\n"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address));
}
__device__ __forceinline__ void load_matrices_transposed(std::uint32_t (&r)[4],
                                                         std::uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];\n"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address));
}

// c [16, 8] += a [16, 16] b [16, 8]
__device__ __forceinline__ void multiply(float (&c)[4], const std::uint32_t (&a)[4],
                                         std::uint32_t b0, std::uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};\n"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Left operand: 16 rows of a tile from `row` on, columns [16 step, 16 step + 16).
template <int D>
__device__ __forceinline__ void load_left(std::uint32_t (&a)[4], std::uint32_t tile, int row,
                                          int step, int lane) {
  load_matrices(a, tile + chunk_offset<D>(row + (lane & 15), step * 2 + (lane >> 4)));
}

// Right operand whose 16 columns are the rows [row, row + 16) of a tile (a product with the tile
// transposed), inner index [16 step, 16 step + 16): b[0..1] for the first 8 columns, b[2..3] for
// the others.
template <int D>
__device__ __forceinline__ void load_right_rows(std::uint32_t (&b)[4], std::uint32_t tile, int row,
                                                int step, int lane) {
  load_matrices(b, tile + chunk_offset<D>(row + (lane & 7) + ((lane >> 4) << 3),
                                          step * 2 + ((lane >> 3) & 1)));
}

// The same of 8 rows from `row` on and of 8 more that are 16 after them: b[0..1] and b[2..3].
template <int D>
__device__ __forceinline__ void load_right_rows_apart(std::uint32_t (&b)[4], std::uint32_t tile,
                                                      int row, int step, int lane) {
  load_matrices(
      b, tile + chunk_offset<D>(row + (lane & 7) + (lane >> 4) * 16, step * 2 + ((lane >> 3) & 1)));
}

// The same of 8 rows from `row` on, inner index [32 two_steps, 32 two_steps + 32): b[0..1] for the
// first 16 of it, b[2..3] for the others.
template <int D>
__device__ __forceinline__ void load_right_eight(std::uint32_t (&b)[4], std::uint32_t tile, int row,
                                                 int two_steps, int lane) {
  load_matrices(b, tile + chunk_offset<D>(row + (lane & 7), two_steps * 4 + (lane >> 3)));
}

// Right operand whose inner index is the rows [row, row + 16) of a tile and whose 16 columns are
// the tile's [16 pair, 16 pair + 16).
template <int D>
__device__ __forceinline__ void load_right_columns(std::uint32_t (&b)[4], std::uint32_t tile,
                                                   int row, int pair, int lane) {
  load_matrices_transposed(b, tile + chunk_offset<D>(row + (lane & 7) + (((lane >> 3) & 1) << 3),
                                                     pair * 2 + (lane >> 4)));
}

__device__ __forceinline__ std::uint32_t pack(float low, float high) {
  const __nv_bfloat162 both = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const std::uint32_t*>(&both);
}

__device__ __forceinline__ float2 as_pair(std::uint32_t packed) {
  return __bfloat1622float2(*reinterpret_cast<const __nv_bfloat162*>(&packed));
}
// What rounding to bf16 takes from x.
__device__ __forceinline__ float lost(float x) {
  return x - __bfloat162float(__float2bfloat16_rn(x));
}

// Accumulators as left operand of the next product: two neighbouring [16, 8] tiles.
__device__ __forceinline__ void as_left(std::uint32_t (&a)[4], const float (&first)[4],
                                        const float (&second)[4]) {
  a[0] = pack(first[0], first[1]), a[1] = pack(first[2], first[3]);
  a[2] = pack(second[0], second[1]), a[3] = pack(second[2], second[3]);
}

// Two neighbouring accumulators into chunk `chunk` of a row of a tile.
template <int D>
__device__ __forceinline__ void put_pair(std::uint32_t tile, int row, int chunk, int lane,
                                         float low, float high) {
  const std::uint32_t at = tile + chunk_offset<D>(row, chunk) + 4 * (lane & 3);
  asm volatile("st.shared.b32 [%0], %1;\n" ::"r"(at), "r"(pack(low, high)));
}

// Of the 16 rows of a tile from `row` on kChunks chunks from `first_chunk` on, which this warp has
// put there, as tokens of one head from `first` on, 16 bytes at once; those from `limit` on are
// left out.
template <int D, int kChunks = D / 8>
__device__ __forceinline__ void store_rows(const unsigned char* tile, int row, bf16* head,
                                           std::int64_t stride, int first, int limit, int lane,
                                           int first_chunk = 0) {
  __syncwarp();
  for (int i = lane; i < 16 * kChunks; i += 32) {
    const int r = i / kChunks, chunk = first_chunk + i % kChunks;
    if (first + r >= limit) continue;
    *reinterpret_cast<uint4*>(head + (first + r) * stride + chunk * 8) =
        *reinterpret_cast<const uint4*>(tile + chunk_offset<D>(row + r, chunk));
  }
}

// The threads of kWarps warps that count as one party; `id` from 1 on tells parties apart.
template <int kWarps>
__device__ __forceinline__ void party_barrier(int id) {
  asm volatile("bar.sync %0, %1;\n" ::"r"(id), "n"(kWarps * 32) : "memory");
}

// Over the four lanes that share an accumulator row.
__device__ __forceinline__ float row_max(float x) {
  x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 1));
  return fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 2));
}
__device__ __forceinline__ float row_sum(float x) {
  x += __shfl_xor_sync(0xffffffffu, x, 1);
  return x + __shfl_xor_sync(0xffffffffu, x, 2);
}

__device__ __forceinline__ float exp2_approx(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
__device__ __forceinline__ float reciprocal_approx(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// tanh to about the last bit: for small arguments, where the other expression would lose digits, by
// its series.
__device__ __forceinline__ float tanh_fast(float x) {
  const float size = fabsf(x), square = x * x;
  const float far =
      fmaf(-2.0f, reciprocal_approx(1.0f + exp2_approx(size * 2.8853900817779268f)), 1.0f);
  float series = fmaf(square, 62.0f / 2835.0f, -17.0f / 315.0f);
  series = fmaf(square, series, 2.0f / 15.0f);
  series = fmaf(square, series, -1.0f / 3.0f);
  const float near = fmaf(x * square, series, x);
  return size < 0.35f ? near : copysignf(far, x);
}

}  // namespace filigree::cuda::flash
