#include "ops/embedding/embedding.h"

#include <algorithm>
#include <vector>

#include "autograd/tape.h"
#include "base/error.h"
#include "ops/embedding/embedding_kernels.h"

namespace filigree {

Variable embedding(const Variable& table, const Tensor& ids) {
  require(table.shape().rank() == 2, "embedding: the table {} is not a matrix",
          table.shape().to_string());
  const std::int64_t V = table.size(0), d = table.size(1), count = ids.elements();
  const std::int32_t* id = ids.i32();
  for (std::int64_t i = 0; i < count; ++i)
    if (id[i] < 0 || id[i] >= V)
      fail("embedding: id {} at position {} is not within the table's {} rows", id[i], i, V);
  std::vector<std::int64_t> extents(ids.shape().extents().begin(), ids.shape().extents().end());
  extents.push_back(d);
  Tensor rows = Tensor::empty(Shape(extents));
  cpu::gather_rows({count, d, id, table.value().f32(), rows.mutable_f32()});
  return make_result(std::move(rows), {&table}, [table, ids, count, d](const Tensor& grad) {
    cpu::scatter_add_rows(
        {count, d, ids.i32(), grad.f32(), table.grad_to_add_into().mutable_f32()});
  });
}

}  // namespace filigree
