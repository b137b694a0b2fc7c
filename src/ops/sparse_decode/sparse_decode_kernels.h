// What the features of several sources write, all in one launch on the GPU. A source's columns are
// those of its targets side by side, which is how a row of its decoder lies in memory.
#pragma once

#include <cstdint>

namespace filigree {

template <typename T>
struct DecodeSource {
  std::int64_t first = 0, reach = 1;      // targets
  const std::int32_t* begin = nullptr;    // [rows + 1]
  const std::int32_t* feature = nullptr;  // [entries]
  const float* value = nullptr;           // [entries], read by decode_rows
  float* dvalue = nullptr;                // [entries], written by decode_dots
  const T* decoder = nullptr;             // [features, reach * width]
};

constexpr int kDecodeSources = 64;  // of one launch

template <typename T>
struct DecodeArgs {
  std::int64_t rows = 0, targets = 0, width = 0;
  const float* dy = nullptr;  // [targets, rows, width], read by decode_dots
  float* y = nullptr;         // likewise, written by decode_rows
  bool add = false;           // to what is there
  int count = 0;
  DecodeSource<T> sources[kDecodeSources];
};

namespace cuda {
// y[m][r] = sum over sources and the entries p of row r of value[p] * decoder[feature[p]][m].
template <typename T>
void decode_rows(const DecodeArgs<T>& args);
// dvalue[p] = sum over m of the product of decoder[feature[p]][m] and dy[m][row of p].
template <typename T>
void decode_dots(const DecodeArgs<T>& args);
}  // namespace cuda
}  // namespace filigree
