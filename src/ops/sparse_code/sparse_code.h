// Rows of numbers most of which are zero: the features of a transcoder that are active at each
// token. Operations on them cost what is active, not what there is.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "autograd/variable.h"

namespace filigree {

// The same entries in the order of their columns, for sums over the rows of a column.
struct CodeByFeature {
  Tensor begin;  // i32 [features + 1]
  Tensor row;    // i32 [entries], ascending within a feature
  Tensor entry;  // i32 [entries]: where it is in the code

  bool defined() const { return begin.defined(); }
};

struct SparseCode {
  std::int64_t rows = 0, features = 0;
  Tensor begin;    // i32 [rows + 1]: the entries of row r are begin[r] ... begin[r + 1] - 1
  Tensor feature;  // i32 [entries], ascending within a row
  Variable value;  // f32 [entries], on the device of the others
  CodeByFeature by_feature;  // made where gradients will be wanted

  // Of codes that were made without asking the GPU how many there are: the room for them. Zeros of
  // feature 0 then follow the last row, and by_feature leaves them out.
  std::int64_t entries() const { return feature.elements(); }
};

// A code of given entries. Throws Error unless begin rises from 0 to the number of entries and
// features are ascending in each row and below `features`.
SparseCode make_code(std::int64_t features, const std::vector<std::int32_t>& begin,
                     const std::vector<std::int32_t>& feature, const Variable& value);

// The entries by feature: those that the code has, or made now.
CodeByFeature entries_by_feature(const SparseCode& code);

// How often features are active of late, f32 [codes, features] on the codes' device:
// density = keep * density + (1 - keep) * (share of the rows where the value is above 0).
// Returns i32 [codes, 2] there: values above 0, and densities that are now below `dead`.
Tensor update_density(std::span<const SparseCode> codes, float keep, float dead, Tensor& density);

// As a matrix [rows, features] with zeros, on the CPU: for small ones and for tests.
Tensor dense_code(const SparseCode& code);

// tanh(c a_p N_i) for every entry p of feature i, [entries]: how far each counts as active.
// `norms` is [features]. Gradients flow to the values and the norms.
Variable saturated_activity(const SparseCode& code, const Variable& norms, float c);

}  // namespace filigree
