// Products of sparse codes and rows of dense matrices. A matrix is a number of `targets` of rows:
// row r of target m begins at m * target_step + r * row_step.
#pragma once

#include <cstdint>

namespace filigree {

template <typename T>
struct TargetRows {
  T* data = nullptr;
  std::int64_t row_step = 0;
  std::int64_t target_step = 0;
};

// to[m][r] += sum over the entries p of row r of coefficient[p] * from[m][feature[p]]
template <typename T = float>
struct MixRowsArgs {
  std::int64_t rows = 0, targets = 1, width = 0;
  const std::int32_t* begin = nullptr;    // [rows + 1]
  const std::int32_t* feature = nullptr;  // [entries]
  const float* coefficient = nullptr;     // [entries]
  TargetRows<const T> from;
  TargetRows<float> to;
};

// to[m][f] += sum over the entries of feature f of coefficient[entry] * from[m][row]; on the GPU
// also without what was there.
template <typename T = float>
struct GatherRowsArgs {
  std::int64_t features = 0, targets = 1, width = 0;
  const std::int32_t* begin = nullptr;  // [features + 1]
  const std::int32_t* row = nullptr;    // [entries]
  const std::int32_t* entry = nullptr;  // [entries]
  const float* coefficient = nullptr;   // [entries], in the order of the code
  TargetRows<const T> from;
  TargetRows<float> to;
  bool add = true;
};

// to[p] = sum over m of the product of features' row m of feature[p] and rows' row m of its row
struct DotRowsArgs {
  std::int64_t rows = 0, targets = 1, width = 0;
  const std::int32_t* begin = nullptr;
  const std::int32_t* feature = nullptr;
  TargetRows<const float> of_features;
  TargetRows<const float> of_rows;
  float* to = nullptr;  // [entries]
};

struct CodeByFeatureArgs {
  std::int64_t rows = 0, features = 0, entries = 0;
  const std::int32_t* begin = nullptr;
  const std::int32_t* feature = nullptr;
  std::int32_t* feature_begin = nullptr;  // [features + 1]
  std::int32_t* row = nullptr;            // [entries]
  std::int32_t* entry = nullptr;          // [entries]
};

// Entries in the order of their groups, which are features of one layer or of several.
struct EntryOrderArgs {
  std::int64_t groups = 0, entries = 0;
  std::int64_t room = 0;  // entries of a layer: where it is in its code is modulo this
  const std::int32_t* group = nullptr;   // [entries]; negative: of none, and comes last
  const std::int32_t* number = nullptr;  // [entries]: 0, 1, 2 ... where there is a group
  const std::int32_t* row_of = nullptr;  // [entries]
  std::int32_t* begin = nullptr;         // [groups + 1]
  std::int32_t* row = nullptr;           // [entries]
  std::int32_t* entry = nullptr;         // [entries]
};

// y[p] = tanh(c a[p] norm[feature[p]])
struct SaturationArgs {
  std::int64_t entries = 0;
  float c = 1.0f;
  const std::int32_t* feature = nullptr;
  const float* value = nullptr;
  const float* norm = nullptr;
  float* y = nullptr;
};
// dvalue[p] = g (1 - y^2) c norm, and slope[p] = g (1 - y^2) c a, which sums up to the norm's
struct SaturationGradArgs {
  std::int64_t entries = 0;
  float c = 1.0f;
  const std::int32_t* feature = nullptr;
  const float* value = nullptr;
  const float* norm = nullptr;
  const float* y = nullptr;
  const float* dy = nullptr;
  float* dvalue = nullptr;
  float* slope = nullptr;
};

// to[f] += factor * sum over the entries of feature f of coefficient[entry]; on the GPU also
// without what was there.
struct SumEntriesArgs {
  std::int64_t features = 0;
  const std::int32_t* begin = nullptr;
  const std::int32_t* entry = nullptr;
  const float* coefficient = nullptr;
  float factor = 1.0f;
  float* to = nullptr;
  bool add = true;
};

// density[f] = keep * density[f] + (1 - keep) * active / rows, of the entries of feature f that are
// above 0; counts[0] += active of all features, counts[1] += densities below `dead`.
struct DensityArgs {
  std::int64_t features = 0;
  const std::int32_t* begin = nullptr;  // by feature
  const std::int32_t* entry = nullptr;
  const float* value = nullptr;
  float keep = 0.0f, rows = 1.0f, dead = 0.0f;
  float* density = nullptr;        // [features]
  std::int32_t* counts = nullptr;  // [2]
};

namespace cpu {
void mix_rows(const MixRowsArgs<>& args);
void gather_rows_by_feature(const GatherRowsArgs<>& args);
void dot_rows(const DotRowsArgs& args);
void code_by_feature(const CodeByFeatureArgs& args);
void saturation(const SaturationArgs& args);
void saturation_grad(const SaturationGradArgs& args);
void sum_entries(const SumEntriesArgs& args);
}  // namespace cpu

namespace cuda {
template <typename T>
void mix_rows(const MixRowsArgs<T>& args);
// Those that are given as arrays are done in few launches.
template <typename T>
void gather_rows_by_feature(const GatherRowsArgs<T>* arrays, std::int64_t count);
void code_by_feature(const CodeByFeatureArgs& args);
void order_entries(const EntryOrderArgs& args);
void saturation(const SaturationArgs& args);
void saturation_grad(const SaturationGradArgs& args);
void sum_entries(const SumEntriesArgs* arrays, std::int64_t count);
void update_density(const DensityArgs* arrays, std::int64_t count);
}  // namespace cuda
}  // namespace filigree
