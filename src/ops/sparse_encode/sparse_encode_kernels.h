#pragma once

#include <cstddef>
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

// Batch-top-k of one layer of several, found without the host: `wanted` of the positive v, and what
// is equal to the last of them unless that makes more than there is room for. What the launches
// share is in `state`, of kBatchStateBytes, which are 0 at first.
struct BatchTopKArgs {
  std::int64_t rows = 0, features = 0, wanted = 0, room = 0;
  std::int64_t layer = 0;
  const float* h = nullptr;
  const float* bias = nullptr;
  void* state = nullptr;
  std::int32_t* begin = nullptr;    // [rows + 1]
  std::int32_t* feature = nullptr;  // [room]
  float* value = nullptr;           // [room]
  // Of all layers, [layers * room]: for EntryOrderArgs.
  std::int32_t* group = nullptr;
  std::int32_t* number = nullptr;
  std::int32_t* row_of = nullptr;
};
constexpr std::size_t kBatchStateBytes = 3 * (sizeof(std::int64_t) << kMostDigitBits) + 64;

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
// begin[rows + 1] on the device, the last of which is the number of entries.
void begin_selected(const SelectArgs& args, std::int32_t* begin);
void fill_selected(const FillArgs& args);
void largest_of_rows(const LargestArgs& args);
void count_digits(const DigitArgs& args);
// Of each layer in turn; before the first, no entry has a group.
void no_groups(std::int32_t* group, std::int64_t entries);
void batch_top_k(const BatchTopKArgs& args);
void below_sums(const BelowArgs& args);
void entry_grad(const EntryGradArgs& args);
void below_grad(const BelowGradArgs& args);
}  // namespace cuda
}  // namespace filigree
