#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "filigree/autograd.h"
#include "filigree/error.h"
#include "filigree/ops.h"
#include "ops/linear/linear_products.h"
#include "ops/matmul/gemm.h"
#include "ops/sparse_code/on_device.h"
#include "ops/sparse_code/sparse_code_kernels.h"
#include "ops/sparse_encode/encode_parts.h"
#include "ops/sparse_encode/sparse_encode_kernels.h"
#include "tensor/dispatch.h"

namespace filigree {
namespace {

constexpr const char* kOp = "sparse_encode";

const float* data_or_null(const Variable& variable) {
  return variable.defined() ? variable.value().data<float>() : nullptr;
}

// The largest float below a positive one: what is above it is at least that one.
float just_below(float value) { return std::nextafter(value, 0.0f); }

// Of each row, the value that the k-th largest of all processes' features has.
Tensor row_bounds(const Tensor& h, const Tensor& bias, const SparseEncodeOptions& options) {
  const std::int64_t rows = h.size(0), features = h.size(1);
  const bool shared = options.processes > 1;
  if (!shared && options.k >= features) return Tensor::zeros({rows}, DType::kF32, h.device());
  Tensor bounds = h.like({rows});
  require(!shared || !h.on_gpu(),
          "{}: top-k of features that several GPUs hold is not there; use batch-top-k", kOp);
  const std::int64_t k = std::min(options.k, features);
  Tensor largest = shared ? Tensor::empty({rows, k}) : Tensor();
  const LargestArgs args{rows,
                         features,
                         k,
                         h.data<float>(),
                         bias.data<float>(),
                         bounds.mutable_data<float>(),
                         shared ? largest.mutable_data<float>() : nullptr};
  on_device_of(
      h, [&] { cpu::largest_of_rows(args); }, [&](auto) { cuda::largest_of_rows(args); });
  if (shared) {
    // The k largest of every process side by side. Negative ones never pass.
    const auto wide =
        static_cast<std::size_t>(options.k) * static_cast<std::size_t>(options.processes);
    std::vector<double> all(static_cast<std::size_t>(rows) * wide, 0.0);
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t i = 0; i < k; ++i)
        all[static_cast<std::size_t>(r) * wide +
            static_cast<std::size_t>(options.process * options.k + i)] =
            std::max(0.0, static_cast<double>(largest.f32()[r * k + i]));
    options.sum(all);
    for (std::int64_t r = 0; r < rows; ++r) {
      const auto first = all.begin() + r * static_cast<std::int64_t>(wide);
      std::nth_element(first, first + options.k - 1, first + static_cast<std::int64_t>(wide),
                       std::greater<>());
      bounds.mutable_f32()[r] = static_cast<float>(first[options.k - 1]);
    }
  }
  if (!bounds.on_gpu())
    for (std::int64_t r = 0; r < rows; ++r)
      bounds.mutable_f32()[r] = bounds.f32()[r] > 0.0f ? just_below(bounds.f32()[r]) : 0.0f;
  return bounds;
}

// The value that the k * rows-th largest has, by its bits from the highest on; 0 when there are
// fewer above 0.
float batch_bound(const Tensor& h, const Tensor& bias, const SparseEncodeOptions& options) {
  struct Digit {
    int shift, bits;
  };
  constexpr Digit kDigits[] = {{20, 11}, {10, 10}, {0, 10}};  // the sign is 0
  static_assert(kDigits[0].bits <= kMostDigitBits && kDigits[1].bits <= kMostDigitBits);
  const auto rows = static_cast<double>(h.size(0));
  double wanted = static_cast<double>(options.k) * rows, equal = 0.0;
  std::uint32_t prefix = 0;
  for (const Digit& digit : kDigits) {
    std::vector<std::int64_t> counts(std::size_t{1} << digit.bits);
    const DigitArgs args{h.size(0), h.size(1),   h.data<float>(), bias.data<float>(),
                         prefix,    digit.shift, digit.bits,      counts.data()};
    on_device_of(
        h, [&] { cpu::count_digits(args); }, [&](auto) { cuda::count_digits(args); });
    std::vector<double> all(counts.begin(), counts.end());
    if (options.sum) options.sum(all);
    auto found = static_cast<std::int64_t>(all.size()) - 1;
    for (; found >= 0 && all[static_cast<std::size_t>(found)] < wanted; --found)
      wanted -= all[static_cast<std::size_t>(found)];
    if (found < 0) return 0.0f;
    equal = all[static_cast<std::size_t>(found)];
    prefix = prefix << digit.bits | static_cast<std::uint32_t>(found);
  }
  const auto last = std::bit_cast<float>(prefix);
  return equal - wanted <= rows ? just_below(last) : last;
}

// Where each row's entries begin.
Tensor begins_of(const SelectArgs& select, const Tensor& h) {
  Tensor begins = h.like({select.rows + 1}, DType::kI32);
  on_device_of(
      h,
      [&] {
        std::int32_t* begin = begins.mutable_data<std::int32_t>();
        begin[0] = 0;
        cpu::count_selected(select, begin + 1);
        std::int64_t entries = 0;
        for (std::int64_t r = 0; r < select.rows; ++r) {
          entries += begin[r + 1];
          require(entries <= INT32_MAX, "{}: more active features than 32 bits count", kOp);
          begin[r + 1] = static_cast<std::int32_t>(entries);
        }
      },
      [&](auto) { cuda::begin_selected(select, begins.mutable_data<std::int32_t>()); });
  return begins;
}

// The entries put down. `pre` is defined where it is wanted.
SparseCode selected(const BegunEncoding& begun, std::int64_t entries, Tensor* pre) {
  const SelectArgs& select = begun.select;
  const Tensor& h = begun.h;
  SparseCode code;
  code.rows = select.rows;
  code.features = select.features;
  code.begin = begun.begin;
  code.feature = h.like({entries}, DType::kI32);
  Tensor value = h.like({entries});
  if (pre != nullptr) *pre = h.like({entries});
  const FillArgs fill{select,
                      data_or_null(begun.encoder.threshold),
                      code.begin.data<std::int32_t>(),
                      code.feature.mutable_data<std::int32_t>(),
                      value.mutable_data<float>(),
                      pre != nullptr ? pre->mutable_data<float>() : nullptr};
  on_device_of(
      h, [&] { cpu::fill_selected(fill); }, [&](auto) { cuda::fill_selected(fill); });
  code.value = Variable(std::move(value));
  if (begun.recorded) code.by_feature = entries_by_feature(code);
  return code;
}

// dW[f] += sum of coefficients times rows of x, dx[r] += sum of coefficients times rows of W.
void add_products(const SparseCode& code, const Variable& x, const EncoderWeights& encoder,
                  const Tensor& coefficient, DType precision) {
  const std::int64_t width = x.size(1);
  if (encoder.weight.requires_grad()) {
    const CodeByFeature by = entries_by_feature(code);
    float* to = encoder.weight.grad_to_add_into().mutable_data<float>();
    const auto args = [&](auto type) {
      using T = decltype(type);
      return GatherRowsArgs<T>{.features = code.features,
                               .targets = 1,
                               .width = width,
                               .begin = by.begin.data<std::int32_t>(),
                               .row = by.row.data<std::int32_t>(),
                               .entry = by.entry.data<std::int32_t>(),
                               .coefficient = coefficient.data<float>(),
                               .from = {x.value().data<T>(), width, 0},
                               .to = {to, width, 0}};
    };
    dispatch(
        kOp, x.value(), [&] { cpu::gather_rows_by_feature(args(float())); },
        [&](auto type) {
          const auto rows_of = args(type);
          cuda::gather_rows_by_feature(&rows_of, 1);
        });
  }
  if (x.requires_grad()) {
    Tensor dx = Tensor::zeros(x.shape(), DType::kF32, x.value().device());
    const Tensor& weight = encoder.weight.as(precision);
    const auto args = [&](auto type) {
      using T = decltype(type);
      return MixRowsArgs<T>{.rows = code.rows,
                            .targets = 1,
                            .width = width,
                            .begin = code.begin.data<std::int32_t>(),
                            .feature = code.feature.data<std::int32_t>(),
                            .coefficient = coefficient.data<float>(),
                            .from = {weight.data<T>(), width, 0},
                            .to = {dx.mutable_data<float>(), width, 0}};
    };
    dispatch(
        kOp, weight, [&] { cpu::mix_rows(args(float())); },
        [&](auto type) { cuda::mix_rows(args(type)); });
    x.accumulate_grad(std::move(dx));
  }
}

void sum_to(const SparseCode& code, const Tensor& coefficient, const Variable& parameter) {
  const CodeByFeature by = entries_by_feature(code);
  const SumEntriesArgs sums{code.features,
                            by.begin.data<std::int32_t>(),
                            by.entry.data<std::int32_t>(),
                            coefficient.data<float>(),
                            1.0f,
                            parameter.grad_to_add_into().mutable_data<float>()};
  on_device_of(
      coefficient, [&] { cpu::sum_entries(sums); }, [&](auto) { cuda::sum_entries(&sums, 1); });
}

void value_gradients(const SparseCode& code, const Variable& x, const EncoderWeights& encoder,
                     const SparseEncodeOptions& options, const Tensor& pre, const Tensor& grad) {
  Tensor passed = grad.like(grad.shape());
  const bool steps = options.bandwidth > 0.0f && encoder.threshold.requires_grad();
  Tensor step = steps ? grad.like(grad.shape()) : Tensor();
  const EntryGradArgs args{.entries = code.entries(),
                           .feature = code.feature.data<std::int32_t>(),
                           .value = code.value.value().data<float>(),
                           .pre = pre.defined() ? pre.data<float>() : nullptr,
                           .threshold = data_or_null(encoder.threshold),
                           .bandwidth = options.bandwidth,
                           .grad = grad.data<float>(),
                           .passed = passed.mutable_data<float>(),
                           .step = steps ? step.mutable_data<float>() : nullptr};
  on_device_of(
      grad, [&] { cpu::entry_grad(args); }, [&](auto) { cuda::entry_grad(args); });
  if (steps) sum_to(code, step, encoder.threshold);
  if (encoder.bias.requires_grad()) sum_to(code, passed, encoder.bias);
  add_products(code, x, encoder, passed, options.precision);
}

// Where a feature is below its threshold its gradient is -g for every row: the sum over all rows
// less that over the active ones.
void below_gradients(const SparseCode& code, const Variable& x, const EncoderWeights& encoder,
                     DType precision, const Tensor& grad) {
  const CodeByFeature by = entries_by_feature(code);
  Tensor coefficient = grad.like({code.entries()});
  const auto gradient_of = [](const Variable& parameter) {
    return parameter.requires_grad() ? parameter.grad_to_add_into().mutable_data<float>() : nullptr;
  };
  const BelowGradArgs args{.rows = code.rows,
                           .features = code.features,
                           .begin = by.begin.data<std::int32_t>(),
                           .entry = by.entry.data<std::int32_t>(),
                           .value = code.value.value().data<float>(),
                           .grad = grad.data<float>(),
                           .coefficient = coefficient.mutable_data<float>(),
                           .dbias = gradient_of(encoder.bias),
                           .dthreshold = gradient_of(encoder.threshold)};
  on_device_of(
      grad, [&] { cpu::below_grad(args); }, [&](auto) { cuda::below_grad(args); });
  const NoGrad constant;
  const Variable minus = scale(Variable(grad), -1.0f);
  if (encoder.weight.requires_grad()) {
    const Tensor x32 = x.value().to(DType::kF32);
    const Tensor all = sum(Variable(x32), 0).value();
    const Variable product = mul(Variable(minus.value().reshape({code.features, 1})),
                                 Variable(all.reshape({1, x.size(1)})));
    encoder.weight.accumulate_grad(product.value());
  }
  if (x.requires_grad()) {
    const Tensor& weight = encoder.weight.value();
    const Tensor all =
        sum(mul(Variable(weight), Variable(minus.value().reshape({code.features, 1}))), 0).value();
    x.accumulate_grad(add(Variable(Tensor::zeros(x.shape(), DType::kF32, x.value().device())),
                          Variable(all.reshape({1, x.size(1)})))
                          .value());
  }
  add_products(code, x, encoder, coefficient, precision);
}

}  // namespace

void check_encode(const Variable& x, const EncoderWeights& encoder,
                  const SparseEncodeOptions& options) {
  require(x.shape().rank() == 2 && encoder.weight.shape().rank() == 2 &&
              x.size(1) == encoder.weight.size(1),
          "{}: inputs {} and the encoder {} do not fit", kOp, x.shape().to_string(),
          encoder.weight.shape().to_string());
  const Shape features({encoder.weight.size(0)});
  require(encoder.bias.shape() == features, "{}: the bias {} is not {}", kOp,
          encoder.bias.shape().to_string(), features.to_string());
  if (encoder.threshold.defined())
    require(encoder.threshold.shape() == features, "{}: the thresholds {} are not {}", kOp,
            encoder.threshold.shape().to_string(), features.to_string());
  require_same_device(kOp, x.value(), encoder.weight.value());
  require(x.size(0) * features[0] <= INT32_MAX * std::int64_t{64}, "{}: {} values at once", kOp,
          x.size(0) * features[0]);
  if (options.selection == Selection::kThreshold) {
    require(options.bandwidth >= 0.0f && (options.bandwidth == 0.0f || encoder.threshold.defined()),
            "{}: a bandwidth of {} needs thresholds", kOp, options.bandwidth);
    return;
  }
  require(!encoder.threshold.defined(), "{}: {} has no thresholds", kOp,
          name_of(options.selection));
  require(options.k >= 1, "{}: {} of the features are to pass", kOp, options.k);
}

std::int64_t room_of_batch(std::int64_t rows, std::int64_t features,
                           const SparseEncodeOptions& options) {
  return rows * (options.k < features ? options.k + 1 : features);
}

Tensor pre_activations(const Tensor& x, const EncoderWeights& encoder, DType precision) {
  const std::int64_t rows = x.size(0), width = x.size(1), features = encoder.weight.size(0);
  Tensor h = x.like({rows, features}, DType::kF32);
  const Tensor& weight = encoder.weight.as(precision);
  const Tensor inputs = x.to(precision);
  const auto args = [&](auto type) {
    using T = decltype(type);
    GemmArgs<T, float> gemm;
    gemm.M = rows, gemm.N = features, gemm.K = width;
    gemm.A = inputs.data<T>(), gemm.a_row = width;
    gemm.B = weight.data<T>(), gemm.b_row = 1, gemm.b_col = width;
    gemm.C = h.mutable_data<float>(), gemm.c_row = features;
    return gemm;
  };
  dispatch(
      kOp, weight, [&] { cpu::gemm(args(float())); }, [&](auto type) { cuda::gemm(args(type)); });
  return h;
}

BegunEncoding begin_encode(const Variable& x, const EncoderWeights& encoder,
                           const SparseEncodeOptions& options) {
  check_encode(x, encoder, options);
  BegunEncoding begun;
  begun.x = x;
  begun.encoder = encoder;
  begun.recorded = needs_grad({&x, &encoder.weight, &encoder.bias, &encoder.threshold});
  begun.near = begun.recorded && options.bandwidth > 0.0f;
  const Tensor& bias = encoder.bias.value();
  begun.h = pre_activations(x.value(), encoder, options.precision);
  SelectArgs& select = begun.select;
  select.rows = begun.h.size(0);
  select.features = begun.h.size(1);
  select.h = begun.h.data<float>();
  select.bias = bias.data<float>();
  if (options.selection == Selection::kTopK) {
    begun.bounds = row_bounds(begun.h, bias, options);
    select.row_bound = begun.bounds.data<float>();
  } else if (options.selection == Selection::kBatchTopK) {
    select.bound = batch_bound(begun.h, bias, options);
  } else if (encoder.threshold.defined()) {
    const NoGrad constant;
    begun.bounds =
        begun.near ? shift(Variable(encoder.threshold.value()), -0.5f * options.bandwidth).value()
                   : encoder.threshold.value();
    select.feature_bound = begun.bounds.data<float>();
  }
  begun.begin = begins_of(select, begun.h);
  return begun;
}

std::vector<std::int64_t> entries_of(std::span<const BegunEncoding> begun) {
  const Tensor& first = begun[0].begin;
  Tensor totals = first.like({std::ssize(begun)});
  for (std::size_t i = 0; i < begun.size(); ++i) {
    const Tensor& begin = begun[i].begin;
    copy_memory(totals.mutable_bytes_on_device() + i * sizeof(std::int32_t), totals.device(),
                begin.bytes_on_device() + begin.bytes() - sizeof(std::int32_t), begin.device(),
                sizeof(std::int32_t));
  }
  const Tensor here = totals.to(DeviceKind::kCpu);
  return {here.i32(), here.i32() + here.elements()};
}

Encoded finish_encode(const BegunEncoding& begun, std::int64_t entries,
                      const SparseEncodeOptions& options, bool with_below) {
  const Variable& x = begun.x;
  const EncoderWeights& encoder = begun.encoder;
  const SelectArgs& select = begun.select;
  Tensor pre;
  Encoded result;
  result.code = selected(begun, entries, begun.near ? &pre : nullptr);
  SparseCode& code = result.code;
  result.bound = select.bound;
  // What the closures keep is the code as it is here, without a gradient of its own.
  const SparseCode kept = code;
  code.value =
      make_result(code.value.value(), {&x, &encoder.weight, &encoder.bias, &encoder.threshold},
                  [kept, x, encoder, options, pre](const Tensor& grad) {
                    value_gradients(kept, x, encoder, options, pre, grad);
                  });
  if (!with_below) return result;
  Tensor below = begun.h.like({select.features});
  const BelowArgs args{select.rows,
                       select.features,
                       select.h,
                       select.bias,
                       data_or_null(encoder.threshold),
                       below.mutable_data<float>()};
  on_device_of(
      begun.h, [&] { cpu::below_sums(args); }, [&](auto) { cuda::below_sums(args); });
  result.below =
      make_result(std::move(below), {&x, &encoder.weight, &encoder.bias, &encoder.threshold},
                  [kept, x, encoder, precision = options.precision](const Tensor& grad) {
                    below_gradients(kept, x, encoder, precision, grad);
                  });
  return result;
}

Encoded sparse_encode(const Variable& x, const EncoderWeights& encoder,
                      const SparseEncodeOptions& options, bool with_below) {
  const BegunEncoding begun = begin_encode(x, encoder, options);
  return finish_encode(begun, entries_of({&begun, 1})[0], options, with_below);
}

}  // namespace filigree
