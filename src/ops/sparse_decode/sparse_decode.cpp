#include "filigree/ops/sparse_decode/sparse_decode.h"

#include <vector>

#include "filigree/autograd/tape.h"
#include "filigree/base/error.h"
#include "filigree/ops/sparse_code/sparse_code_kernels.h"
#include "filigree/tensor/dispatch.h"

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

void add_source(const DecoderSource& source, const DecodeShape& shape, Tensor& y) {
  const SparseCode& code = source.code;
  const Tensor& decoder = source.decoder.as(shape.precision);
  const auto args = [&](auto type) {
    using T = decltype(type);
    return MixRowsArgs<T>{.rows = shape.rows,
                          .targets = source.reach,
                          .width = shape.width,
                          .begin = code.begin.data<std::int32_t>(),
                          .feature = code.feature.data<std::int32_t>(),
                          .coefficient = code.value.value().data<float>(),
                          .from = decoder_rows(source, decoder.data<T>(), shape.width),
                          .to = target_rows(source, y.mutable_data<float>(), shape)};
  };
  dispatch(
      "sparse_decode", decoder, [&] { cpu::mix_rows(args(float())); },
      [&](auto type) { cuda::mix_rows(args(type)); });
}

void add_value_gradients(const DecoderSource& source, const DecodeShape& shape,
                         const Tensor& grad) {
  const SparseCode& code = source.code;
  const Tensor& decoder = source.decoder.as(shape.precision);
  Tensor dvalue = code.value.value().like(code.value.shape());
  const auto args = [&](auto type) {
    using T = decltype(type);
    return DotRowsArgs<T>{.rows = shape.rows,
                          .targets = source.reach,
                          .width = shape.width,
                          .begin = code.begin.data<std::int32_t>(),
                          .feature = code.feature.data<std::int32_t>(),
                          .of_features = decoder_rows(source, decoder.data<T>(), shape.width),
                          .of_rows = target_rows(source, grad.data<float>(), shape),
                          .to = dvalue.mutable_data<float>()};
  };
  dispatch(
      "sparse_decode", decoder, [&] { cpu::dot_rows(args(float())); },
      [&](auto type) { cuda::dot_rows(args(type)); });
  code.value.accumulate_grad(std::move(dvalue));
}

void add_decoder_gradients(const DecoderSource& source, const DecodeShape& shape,
                           const Tensor& grad) {
  const CodeByFeature by = entries_by_feature(source.code);
  float* to = source.decoder.grad_to_add_into().mutable_data<float>();
  const auto args = [&](auto) {
    return GatherRowsArgs<float>{.features = source.code.features,
                                 .targets = source.reach,
                                 .width = shape.width,
                                 .begin = by.begin.data<std::int32_t>(),
                                 .row = by.row.data<std::int32_t>(),
                                 .entry = by.entry.data<std::int32_t>(),
                                 .coefficient = source.code.value.value().data<float>(),
                                 .from = target_rows(source, grad.data<float>(), shape),
                                 .to = decoder_rows(source, to, shape.width)};
  };
  dispatch(
      "sparse_decode", grad, [&] { cpu::gather_rows_by_feature(args(float())); },
      [&](auto type) { cuda::gather_rows_by_feature(args(type)); });
}

}  // namespace

Variable sparse_decode(std::span<const DecoderSource> sources, std::int64_t targets,
                       std::int64_t width, DType precision) {
  require(!sources.empty() && targets >= 1 && width >= 1,
          "sparse_decode: {} sources, {} targets of width {}", sources.size(), targets, width);
  const DecodeShape shape{sources[0].code.rows, targets, width, precision};
  for (const DecoderSource& source : sources) check_source(source, shape);
  const DeviceKind device = sources[0].decoder.value().device();
  Tensor y = Tensor::zeros({targets, shape.rows, width}, DType::kF32, device);
  std::vector<const Variable*> inputs;
  bool recorded = false;
  for (const DecoderSource& source : sources) {
    add_source(source, shape, y);
    inputs.push_back(&source.code.value);
    inputs.push_back(&source.decoder);
    recorded = recorded || needs_grad({&source.code.value, &source.decoder});
  }
  if (!recorded) return Variable(std::move(y));
  Variable result = Variable::result(std::move(y));
  Tape::current()->add(result, inputs,
                       [kept = std::vector<DecoderSource>(sources.begin(), sources.end()),
                        shape](const Tensor& grad) {
                         for (const DecoderSource& source : kept) {
                           if (source.code.value.requires_grad())
                             add_value_gradients(source, shape, grad);
                           if (source.decoder.requires_grad())
                             add_decoder_gradients(source, shape, grad);
                         }
                       });
  return result;
}

}  // namespace filigree
