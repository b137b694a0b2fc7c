// Register-tile matrix product, the inner loop of every kernel that multiplies matrices. Included
// into a vector level's namespace by the bodies that need it.
//
// A tile is kTileRows x kTileCols: 24 accumulators of 32 registers with AVX-512 (12 of 16 below),
// so that each loaded vector of B serves kTileRows products and each broadcast of A three.

constexpr int kTileRows = kAccumulatorRows;
constexpr int kTileVectors = 3;
constexpr int kTileCols = kTileVectors * kLanes;

// Where a tile kernel reads its operands: A[i * a_row + k * a_col] and B[k * b_row + column].
struct TileOperands {
  const float* A;
  const float* B;
  std::int64_t a_row, a_col, b_row;
};

// tile[i, :] (+)= sum_k A[i, k] B[k, :] for kRows rows and kVectors vectors. With kPacked the
// strides are the packed panels' own, known to the compiler.
template <int kRows, int kVectors, bool kPacked>
void multiply_tile(std::int64_t depth, const TileOperands& operands, float* tile,
                   std::int64_t tile_row, bool accumulate) {
  const std::int64_t a_row = kPacked ? 1 : operands.a_row;
  const std::int64_t a_col = kPacked ? kTileRows : operands.a_col;
  const std::int64_t b_row = kPacked ? kTileCols : operands.b_row;
  const float* A = operands.A;
  const float* B = operands.B;
  Vec acc[kRows][kVectors] = {};
#pragma GCC unroll 4
  for (std::int64_t k = 0; k < depth; ++k) {
    Vec b[kVectors];
#pragma GCC unroll 3
    for (int v = 0; v < kVectors; ++v) b[v] = load(B + v * kLanes);
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i) {
      const Vec a = broadcast(A[i * a_row]);
#pragma GCC unroll 3
      for (int v = 0; v < kVectors; ++v) acc[i][v] += a * b[v];
    }
    A += a_col;
    B += b_row;
  }
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) {
    float* row = tile + i * tile_row;
#pragma GCC unroll 3
    for (int v = 0; v < kVectors; ++v)
      store(row + v * kLanes, accumulate ? load(row + v * kLanes) + acc[i][v] : acc[i][v]);
  }
}

using TileKernel = void (*)(std::int64_t, const TileOperands&, float*, std::int64_t, bool);

template <int kVectors, bool kPacked>
TileKernel tile_kernel(int rows) {
  static_assert(kTileRows == 4 || kTileRows == 8);
  switch (rows) {
    case 1: return multiply_tile<1, kVectors, kPacked>;
    case 2: return multiply_tile<2, kVectors, kPacked>;
    case 3: return multiply_tile<3, kVectors, kPacked>;
    case 4: return multiply_tile<4, kVectors, kPacked>;
    case 5: return multiply_tile < kTileRows == 8 ? 5 : 1, kVectors, kPacked > ;
    case 6: return multiply_tile < kTileRows == 8 ? 6 : 1, kVectors, kPacked > ;
    case 7: return multiply_tile < kTileRows == 8 ? 7 : 1, kVectors, kPacked > ;
    default: return multiply_tile<kTileRows, kVectors, kPacked>;
  }
}

template <bool kPacked>
TileKernel tile_kernel(int rows, int vectors) {
  return vectors == 1   ? tile_kernel<1, kPacked>(rows)
         : vectors == 2 ? tile_kernel<2, kPacked>(rows)
                        : tile_kernel<3, kPacked>(rows);
}
