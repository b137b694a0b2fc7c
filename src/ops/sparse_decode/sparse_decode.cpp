#include "ops/sparse_decode/sparse_decode.h"

#include <unordered_set>
#include <vector>

#include "filigree/autograd.h"
#include "filigree/error.h"
#include "ops/sparse_code/on_device.h"
#include "ops/sparse_code/sparse_code_kernels.h"
#include "ops/sparse_decode/sparse_decode_kernels.h"
#include "tensor/dispatch.h"

namespace filigree {
namespace {

struct DecodeShape {
  std::int64_t rows = 0, targets = 0, width = 0;
  DType precision = DType::kF32;
};

// Of the decoder: a feature's rows lie side by side.
template <typename T>
TargetRows<T> decoder_rows(const DecoderSource& source, T* data, std::int64_t width) {
  return {data, source.reach * width, width};
}
// Of [targets, rows, width], from the source's first target on.
template <typename T>
TargetRows<T> target_rows(const DecoderSource& source, T* data, const DecodeShape& shape) {
  return {data + source.first * shape.rows * shape.width, shape.width, shape.rows * shape.width};
}

void check_source(const DecoderSource& source, const DecodeShape& shape) {
  require(source.first >= 0 && source.reach >= 1 && source.first + source.reach <= shape.targets,
          "sparse_decode: targets {} to {} of {}", source.first, source.first + source.reach - 1,
          shape.targets);
  require(source.decoder.shape() == Shape({source.code.features, source.reach * shape.width}),
          "sparse_decode: the decoder {} is not [{}, {}]", source.decoder.shape().to_string(),
          source.code.features, source.reach * shape.width);
  require(source.code.rows == shape.rows, "sparse_decode: codes of {} and of {} rows",
          source.code.rows, shape.rows);
  require_same_device("sparse_decode", source.decoder.value(), source.code.feature);
}

namespace on_cpu {

void add_source(const DecoderSource& source, const DecodeShape& shape, Tensor& y) {
  const SparseCode& code = source.code;
  cpu::mix_rows({.rows = shape.rows,
                 .targets = source.reach,
                 .width = shape.width,
                 .begin = code.begin.data<std::int32_t>(),
                 .feature = code.feature.data<std::int32_t>(),
                 .coefficient = code.value.value().data<float>(),
                 .from = decoder_rows(source, source.decoder.value().data<float>(), shape.width),
                 .to = target_rows(source, y.mutable_data<float>(), shape)});
}

void add_value_gradients(const DecoderSource& source, const DecodeShape& shape,
                         const Tensor& grad) {
  const SparseCode& code = source.code;
  Tensor dvalue = code.value.value().like(code.value.shape());
  cpu::dot_rows(
      {.rows = shape.rows,
       .targets = source.reach,
       .width = shape.width,
       .begin = code.begin.data<std::int32_t>(),
       .feature = code.feature.data<std::int32_t>(),
       .of_features = decoder_rows(source, source.decoder.value().data<float>(), shape.width),
       .of_rows = target_rows(source, grad.data<float>(), shape),
       .to = dvalue.mutable_data<float>()});
  code.value.accumulate_grad(std::move(dvalue));
}

}  // namespace on_cpu

// Calls run(args) with the sources, many at a time; `fill` completes each.
template <typename T, typename Fill, typename Run>
void in_launches(std::span<const DecoderSource> sources, DecodeArgs<T> args, DType precision,
                 const Fill& fill, const Run& run) {
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const DecoderSource& from = sources[i];
    DecodeSource<T>& source = args.sources[args.count++];
    source.first = from.first, source.reach = from.reach;
    source.begin = from.code.begin.data<std::int32_t>();
    source.feature = from.code.feature.data<std::int32_t>();
    source.decoder = from.decoder.as(precision).data<T>();
    fill(from, source);
    if (args.count < kDecodeSources && i + 1 < sources.size()) continue;
    run(args);
    args.count = 0;
    args.add = true;
  }
}

template <typename T>
DecodeArgs<T> arguments(const DecodeShape& shape) {
  DecodeArgs<T> args;
  args.rows = shape.rows, args.targets = shape.targets, args.width = shape.width;
  return args;
}

Tensor written(std::span<const DecoderSource> sources, const DecodeShape& shape) {
  const DeviceKind device = sources[0].decoder.value().device();
  const Shape extents({shape.targets, shape.rows, shape.width});
  Tensor y;
  dispatch(
      "sparse_decode", sources[0].decoder.as(shape.precision),
      [&] {
        y = Tensor::zeros(extents);
        for (const DecoderSource& source : sources) on_cpu::add_source(source, shape, y);
      },
      [&](auto type) {
        using T = decltype(type);
        y = Tensor::empty(extents, DType::kF32, device);
        DecodeArgs<T> args = arguments<T>(shape);
        args.y = y.mutable_data<float>();
        in_launches<T>(
            sources, args, shape.precision,
            [](const DecoderSource& from, DecodeSource<T>& source) {
              source.value = from.code.value.value().data<float>();
            },
            [](const DecodeArgs<T>& all) { cuda::decode_rows(all); });
      });
  return y;
}

void add_value_gradients(const std::vector<DecoderSource>& sources, const DecodeShape& shape,
                         const Tensor& grad) {
  std::vector<DecoderSource> wanted;
  for (const DecoderSource& source : sources)
    if (source.code.value.requires_grad()) wanted.push_back(source);
  if (wanted.empty()) return;
  dispatch(
      "sparse_decode", wanted[0].decoder.as(shape.precision),
      [&] {
        for (const DecoderSource& source : wanted) on_cpu::add_value_gradients(source, shape, grad);
      },
      [&](auto type) {
        using T = decltype(type);
        std::vector<Tensor> dvalues;
        DecodeArgs<T> args = arguments<T>(shape);
        args.dy = grad.data<float>();
        in_launches<T>(
            wanted, args, shape.precision,
            [&](const DecoderSource& from, DecodeSource<T>& source) {
              const Tensor& value = from.code.value.value();
              source.dvalue = dvalues.emplace_back(value.like(value.shape())).mutable_data<float>();
            },
            [](const DecodeArgs<T>& all) { cuda::decode_dots(all); });
        for (std::size_t i = 0; i < wanted.size(); ++i)
          wanted[i].code.value.accumulate_grad(std::move(dvalues[i]));
      });
}

void add_decoder_gradients(const std::vector<DecoderSource>& sources, const DecodeShape& shape,
                           const Tensor& grad) {
  std::vector<CodeByFeature> orders;
  std::vector<GatherRowsArgs<float>> all;
  std::unordered_set<const void*> seen;
  const auto run = [&] {
    on_device_of(
        grad,
        [&] {
          for (const GatherRowsArgs<float>& args : all) cpu::gather_rows_by_feature(args);
        },
        [&](auto) {
          cuda::gather_rows_by_feature(all.data(), static_cast<std::int64_t>(all.size()));
        });
    all.clear(), seen.clear();
  };
  for (const DecoderSource& source : sources) {
    if (!source.decoder.requires_grad()) continue;
    // What adds to the same gradient comes one after the other.
    if (!seen.insert(source.decoder.id()).second) run(), seen.insert(source.decoder.id());
    const CodeByFeature& by = orders.emplace_back(entries_by_feature(source.code));
    bool add = true;
    Tensor& to =
        grad.on_gpu() ? source.decoder.grad_to_write(add) : source.decoder.grad_to_add_into();
    all.push_back({.features = source.code.features,
                   .targets = source.reach,
                   .width = shape.width,
                   .begin = by.begin.data<std::int32_t>(),
                   .row = by.row.data<std::int32_t>(),
                   .entry = by.entry.data<std::int32_t>(),
                   .coefficient = source.code.value.value().data<float>(),
                   .from = target_rows(source, grad.data<float>(), shape),
                   .to = decoder_rows(source, to.mutable_data<float>(), shape.width),
                   .add = add});
  }
  run();
}

}  // namespace

Variable sparse_decode(std::span<const DecoderSource> sources, std::int64_t targets,
                       std::int64_t width, DType precision) {
  require(!sources.empty() && targets >= 1 && width >= 1,
          "sparse_decode: {} sources, {} targets of width {}", sources.size(), targets, width);
  const DecodeShape shape{sources[0].code.rows, targets, width, precision};
  for (const DecoderSource& source : sources) check_source(source, shape);
  Tensor y = written(sources, shape);
  std::vector<const Variable*> inputs;
  bool recorded = false;
  for (const DecoderSource& source : sources) {
    inputs.push_back(&source.code.value);
    inputs.push_back(&source.decoder);
    recorded = recorded || needs_grad({&source.code.value, &source.decoder});
  }
  if (!recorded) return Variable(std::move(y));
  Variable result = Variable::result(std::move(y));
  Tape::current()->add(result, inputs,
                       [kept = std::vector<DecoderSource>(sources.begin(), sources.end()),
                        shape](const Tensor& grad) {
                         add_value_gradients(kept, shape, grad);
                         add_decoder_gradients(kept, shape, grad);
                       });
  return result;
}

}  // namespace filigree
