#pragma once

#include <cstdint>

namespace filigree {

// Values v = h + bias, of which those pass that are above the largest of the bounds given.
struct SelectArgs {
  std::int64_t rows = 0, features = 0;
  const float* h = nullptr;     // [rows, features]
  const float* bias = nullptr;  // [features]
  float bound = 0.0f;
  const float* feature_bound = nullptr;  // [features] or null: `bound` for all
  const float* row_bound = nullptr;      // [rows] or null
};

struct FillArgs {
  SelectArgs select;
  const float* threshold = nullptr;     // [features] or null: values below it are 0
  const std::int32_t* begin = nullptr;  // [rows + 1]
  std::int32_t* feature = nullptr;      // [entries]
  float* value = nullptr;               // [entries]
  float* pre = nullptr;                 // [entries] or null: v itself
};

// The k-th largest of v in each row, and with `largest` the k largest in falling order. k is at
// most the number of features.
struct LargestArgs {
  std::int64_t rows = 0, features = 0, k = 0;
  const float* h = nullptr;
  const float* bias = nullptr;
  float* kth = nullptr;      // [rows]
  float* largest = nullptr;  // [rows, k] or null; on the CPU only
};

constexpr int kMostDigitBits = 11;

// How many of the positive v there are of each value of a digit: bits [shift, shift + digit_bits)
// of the number as a whole one, among those whose higher bits are `prefix`.
struct DigitArgs {
  std::int64_t rows = 0, features = 0;
  const float* h = nullptr;
  const float* bias = nullptr;
  std::uint32_t prefix = 0;
  int shift = 0, digit_bits = 0;
  std::int64_t* counts = nullptr;  // [2^digit_bits] on the CPU, overwritten
};

// sums[f] = sum over the rows of max(threshold[f] - v, 0)
struct BelowArgs {
  std::int64_t rows = 0, features = 0;
  const float* h = nullptr;
  const float* bias = nullptr;
  const float* threshold = nullptr;  // [features] or null: 0
  float* sums = nullptr;             // [features]
};

// From the gradient of the values g: passed[p] = g where pre > threshold, and step[p] =
// -(threshold / bandwidth) g where |pre - threshold| < bandwidth / 2; else 0.
struct EntryGradArgs {
  std::int64_t entries = 0;
  const std::int32_t* feature = nullptr;
  const float* value = nullptr;
  const float* pre = nullptr;  // null: all passed
  const float* threshold = nullptr;
  float bandwidth = 0.0f;
  const float* grad = nullptr;
  float* passed = nullptr;
  float* step = nullptr;  // or null
};

// The gradient of `below`, of which a row takes part where v < threshold, that is all rows but
// those of entries whose value is above 0:
// dbias[f] -= g (rows - active), dthreshold[f] += g (rows - active), scale[f] = -g, and the
// coefficients of the entries: g where they are active, else 0.
struct BelowGradArgs {
  std::int64_t rows = 0, features = 0;
  const std::int32_t* begin = nullptr;  // [features + 1], by feature
  const std::int32_t* entry = nullptr;
  const float* value = nullptr;
  const float* grad = nullptr;   // [features]
  float* coefficient = nullptr;  // [entries]
  float* dbias = nullptr;        // [features] or null
  float* dthreshold = nullptr;   // [features] or null
};

namespace cpu {
// counts[r]: entries of row r.
void count_selected(const SelectArgs& args, std::int32_t* counts);
void fill_selected(const FillArgs& args);
void largest_of_rows(const LargestArgs& args);
void count_digits(const DigitArgs& args);
void below_sums(const BelowArgs& args);
void entry_grad(const EntryGradArgs& args);
void below_grad(const BelowGradArgs& args);
}  // namespace cpu

namespace cuda {
// begin[rows + 1] on the device; returns the number of entries, which waits for it.
std::int64_t begin_selected(const SelectArgs& args, std::int32_t* begin);
void fill_selected(const FillArgs& args);
void largest_of_rows(const LargestArgs& args);
void count_digits(const DigitArgs& args);
void below_sums(const BelowArgs& args);
void entry_grad(const EntryGradArgs& args);
void below_grad(const BelowGradArgs& args);
}  // namespace cuda
}  // namespace filigree
