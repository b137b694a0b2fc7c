// What the encoding of one layer and that of several share.
#pragma once

#include "filigree/ops.h"
#include "ops/sparse_encode/sparse_encode_kernels.h"

namespace filigree {

// Throws Error for shapes that do not fit, or options that make no sense.
void check_encode(const Variable& x, const EncoderWeights& encoder,
                  const SparseEncodeOptions& options);

// Most entries of batch-top-k.
std::int64_t room_of_batch(std::int64_t rows, std::int64_t features,
                           const SparseEncodeOptions& options);

// An encoding whose entries are counted where it lies and not put down yet: nothing has waited for
// their number.
struct BegunEncoding {
  Variable x;
  EncoderWeights encoder;
  SelectArgs select;
  Tensor h, bounds;
  Tensor begin;  // i32 [rows + 1], the last of which is that number
  bool recorded = false, near = false;
};
BegunEncoding begin_encode(const Variable& x, const EncoderWeights& encoder,
                           const SparseEncodeOptions& options);
// The numbers of entries of several, in one look at the device.
std::vector<std::int64_t> entries_of(std::span<const BegunEncoding> begun);
Encoded finish_encode(const BegunEncoding& begun, std::int64_t entries,
                      const SparseEncodeOptions& options, bool with_below);

}  // namespace filigree
