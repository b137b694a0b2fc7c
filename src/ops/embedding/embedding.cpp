#include "filigree/ops/embedding/embedding.h"

#include <algorithm>
#include <vector>

#include "filigree/autograd/tape.h"
#include "filigree/base/error.h"
#include "filigree/ops/embedding/embedding_kernels.h"
#include "filigree/tensor/dispatch.h"

namespace filigree {
namespace {

// The places of equal ids side by side, in their order: what SortedRowsArgs wants.
struct SortedIds {
  Tensor ids, begins, order;
};

// A counting sort on the CPU, where the ids are, while the GPU is busy with the backward pass.
SortedIds sort_ids(const Tensor& ids, std::int64_t V, DeviceKind device) {
  const std::int32_t* id = ids.i32();
  const std::int64_t count = ids.elements();
  std::vector<std::int32_t> begin(static_cast<std::size_t>(V) + 1, 0);
  for (std::int64_t i = 0; i < count; ++i) ++begin[static_cast<std::size_t>(id[i]) + 1];
  std::vector<std::int32_t> used, begins;
  for (std::size_t v = 0; v < static_cast<std::size_t>(V); ++v) {
    if (begin[v + 1] > 0) {
      used.push_back(static_cast<std::int32_t>(v));
      begins.push_back(begin[v]);
    }
    begin[v + 1] += begin[v];
  }
  begins.push_back(static_cast<std::int32_t>(count));
  std::vector<std::int32_t> order(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i)
    order[static_cast<std::size_t>(begin[static_cast<std::size_t>(id[i])]++)] =
        static_cast<std::int32_t>(i);
  const auto on_device = [&](const std::vector<std::int32_t>& values) {
    return Tensor::from_ids({static_cast<std::int64_t>(values.size())}, values).to(device);
  };
  return {on_device(used), on_device(begins), on_device(order)};
}

}  // namespace

Variable embedding(const Variable& table, const Tensor& ids, DType dtype) {
  require(table.shape().rank() == 2, "embedding: the table {} is not a matrix",
          table.shape().to_string());
  const std::int64_t V = table.size(0), d = table.size(1), count = ids.elements();
  const std::int32_t* id = ids.i32();
  require(count <= INT32_MAX, "embedding: {} ids are more than 32 bits count", count);
  for (std::int64_t i = 0; i < count; ++i)
    if (id[i] < 0 || id[i] >= V)
      fail("embedding: id {} at position {} is not within the table's {} rows", id[i], i, V);
  std::vector<std::int64_t> extents(ids.shape().extents().begin(), ids.shape().extents().end());
  extents.push_back(d);
  Tensor rows = table.value().like(Shape(extents), dtype);
  const Tensor places = ids.to(table.value().device());
  const auto args = [&](auto type) {
    using T = decltype(type);
    return RowsArgs<float, T>{count, d, places.data<std::int32_t>(), table.value().data<float>(),
                              rows.mutable_data<T>()};
  };
  dispatch(
      "embedding", rows, [&] { cpu::gather_rows(args(float())); },
      [&](auto type) { cuda::gather_rows(args(type)); });
  return make_result(std::move(rows), {&table}, [table, ids, count, d](const Tensor& grad) {
    float* to = table.grad_to_add_into().mutable_data<float>();
    dispatch(
        "embedding", grad,
        [&] {
          cpu::scatter_add_rows({count, d, ids.i32(), grad.f32(), to});
        },
        [&](auto type) {
          using T = decltype(type);
          const SortedIds sorted = sort_ids(ids, table.size(0), grad.device());
          cuda::add_sorted_rows(
              SortedRowsArgs<T>{sorted.ids.elements(), d, sorted.ids.data<std::int32_t>(),
                                sorted.begins.data<std::int32_t>(),
                                sorted.order.data<std::int32_t>(), grad.data<T>(), to});
        });
  });
}

}  // namespace filigree
