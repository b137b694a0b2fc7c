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

// to[m][f] += sum over the entries of feature f of coefficient[entry] * from[m][row]
template <typename T = float>
struct GatherRowsArgs {
  std::int64_t features = 0, targets = 1, width = 0;
  const std::int32_t* begin = nullptr;  // [features + 1]
  const std::int32_t* row = nullptr;    // [entries]
  const std::int32_t* entry = nullptr;  // [entries]
  const float* coefficient = nullptr;   // [entries], in the order of the code
  TargetRows<const T> from;
  TargetRows<float> to;
};

// to[p] = sum over m of the product of features' row m of feature[p] and rows' row m of its row
template <typename T = float>
struct DotRowsArgs {
  std::int64_t rows = 0, targets = 1, width = 0;
  const std::int32_t* begin = nullptr;
  const std::int32_t* feature = nullptr;
  TargetRows<const T> of_features;
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

// to[f] += factor * sum over the entries of feature f of coefficient[entry]
struct SumEntriesArgs {
  std::int64_t features = 0;
  const std::int32_t* begin = nullptr;
  const std::int32_t* entry = nullptr;
  const float* coefficient = nullptr;
  float factor = 1.0f;
  float* to = nullptr;
};

namespace cpu {
void mix_rows(const MixRowsArgs<>& args);
void gather_rows_by_feature(const GatherRowsArgs<>& args);
void dot_rows(const DotRowsArgs<>& args);
void code_by_feature(const CodeByFeatureArgs& args);
void saturation(const SaturationArgs& args);
void saturation_grad(const SaturationGradArgs& args);
void sum_entries(const SumEntriesArgs& args);
}  // namespace cpu

namespace cuda {
template <typename T>
void mix_rows(const MixRowsArgs<T>& args);
template <typename T>
void gather_rows_by_feature(const GatherRowsArgs<T>& args);
template <typename T>
void dot_rows(const DotRowsArgs<T>& args);
void code_by_feature(const CodeByFeatureArgs& args);
void saturation(const SaturationArgs& args);
void saturation_grad(const SaturationGradArgs& args);
void sum_entries(const SumEntriesArgs& args);
}  // namespace cuda
}  // namespace filigree
