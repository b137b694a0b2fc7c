#include "ops/linear/linear_kernels.h"
#include "runtime/cuda/sum_cuda.h"

namespace filigree::cuda {

template <typename T>
void add_column_sums(const ColumnSumArgs<T>& args) {
  if (args.rows == 0) return;
  sum_axis(1, args.rows, args.cols, 1.0, args.x, args.sums, true);
}

template void add_column_sums(const ColumnSumArgs<float>&);
template void add_column_sums(const ColumnSumArgs<Bf16>&);

}  // namespace filigree::cuda
