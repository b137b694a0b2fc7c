#include <algorithm>
#include <vector>

#include "filigree/autograd.h"
#include "filigree/error.h"
#include "filigree/ops.h"
#include "ops/embedding/embedding_kernels.h"
#include "tensor/dispatch.h"

namespace filigree {
namespace {

// The places of equal ids side by side, in their order: what SortedRowsArgs wants.
struct SortedIds {
  Tensor ids, begins, order;
};

// A counting sort on the CPU, where the ids are, while the GPU is busy with the backward pass.
[[maybe_unused]] SortedIds sort_ids(const Tensor& ids, std::int64_t V, DeviceKind device) {
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
  const auto args = [&](auto from, auto to) {
    using From = decltype(from);
    using To = decltype(to);
    return RowsArgs<From, To>{count, d, places.data<std::int32_t>(), table.value().data<From>(),
                              rows.mutable_data<To>()};
  };
  dispatch(
      "embedding", rows, [&] { cpu::gather_rows(args(float(), float())); },
      [&](auto type) {
        if (table.value().dtype() == DType::kBf16)
          cuda::gather_rows(args(Bf16(), type));
        else
          cuda::gather_rows(args(float(), type));
      });
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

Tensor scaled_rows(std::span<const Tensor> tables, const Tensor& ids,
                   std::span<const float> factors, DType dtype) {
  require(!tables.empty() && tables.size() == factors.size(),
          "scaled_rows: {} tables and {} factors", tables.size(), factors.size());
  const Shape& shape = tables[0].shape();
  for (const Tensor& table : tables) {
    require(shape.rank() == 2 && table.shape() == shape, "scaled_rows: tables of {} and {}",
            shape.to_string(), table.shape().to_string());
    require_same_device("scaled_rows", table, ids);
  }
  const std::int64_t count = ids.elements(), width = shape[1];
  Tensor rows = tables[0].like({static_cast<std::int64_t>(tables.size()), count, width}, dtype);
  const auto run = [&](auto type, const auto& kernel) {
    using T = decltype(type);
    for (std::size_t first = 0; first < tables.size(); first += kScaledTables) {
      ScaledRowsArgs<T> args;
      args.count = count, args.width = width;
      args.ids = ids.data<std::int32_t>();
      args.to = rows.mutable_data<T>() + static_cast<std::int64_t>(first) * count * width;
      for (std::size_t t = first; t < tables.size() && t < first + kScaledTables; ++t) {
        args.table[args.tables] = tables[t].data<float>();
        args.factor[args.tables++] = factors[t];
      }
      kernel(args);
    }
  };
  dispatch(
      "scaled_rows", rows, [&] { run(float(), [](const auto& args) { cpu::scaled_rows(args); }); },
      [&](auto type) { run(type, [](const auto& args) { cuda::scaled_rows(args); }); });
  return rows;
}

}  // namespace filigree
