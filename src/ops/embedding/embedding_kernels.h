#pragma once

#include <cstdint>

namespace filigree {

// Tables are f32, or bf16 on the GPU where they are not trained; their gradients are f32; the rows
// that are taken out of them are of type To.
template <typename From, typename To>
struct RowsArgs {
  std::int64_t count = 0, width = 0;
  const std::int32_t* ids = nullptr;  // [count], already checked
  const From* from = nullptr;
  To* to = nullptr;
};

// The places of equal ids one after the other: those of `ids[s]` are order[begins[s]], ...,
// order[begins[s + 1] - 1], ascending.
template <typename From>
struct SortedRowsArgs {
  std::int64_t segments = 0, width = 0;
  const std::int32_t* ids = nullptr;     // [segments]
  const std::int32_t* begins = nullptr;  // [segments + 1]
  const std::int32_t* order = nullptr;
  const From* from = nullptr;
  float* to = nullptr;
};

constexpr int kScaledTables = 64;  // of one launch

// to[t][i] = factor[t] * table[t][ids[i]], or 0 where the id is negative
template <typename T>
struct ScaledRowsArgs {
  std::int64_t count = 0, width = 0;
  const std::int32_t* ids = nullptr;
  T* to = nullptr;  // [tables, count, width]
  int tables = 0;
  const float* table[kScaledTables] = {};
  float factor[kScaledTables] = {};
};

namespace cpu {
void scaled_rows(const ScaledRowsArgs<float>& args);
void gather_rows(const RowsArgs<float, float>& args);       // to[i] = from[ids[i]]
void scatter_add_rows(const RowsArgs<float, float>& args);  // to[ids[i]] += from[i]
}  // namespace cpu

namespace cuda {
template <typename T>
void scaled_rows(const ScaledRowsArgs<T>& args);
template <typename From, typename To>
void gather_rows(const RowsArgs<From, To>& args);
template <typename T>
void add_sorted_rows(const SortedRowsArgs<T>& args);  // to[ids[s]] += sum of from[order[...]]
}  // namespace cuda
}  // namespace filigree
