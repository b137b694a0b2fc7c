#include "ops/reconstruction/reconstruction.h"

#include "filigree/autograd.h"
#include "filigree/error.h"
#include "filigree/ops.h"
#include "ops/reconstruction/reconstruction_kernels.h"
#include "ops/reduce/total.h"
#include "ops/sparse_code/on_device.h"
#include "tensor/dispatch.h"

namespace filigree {
namespace {

constexpr const char* kOp = "reconstruction";

void check(const Variable& written, const Variable& bias, const Tensor& targets) {
  require(
      targets.shape().rank() == 3 && written.shape() == targets.shape() && targets.elements() > 0,
      "{}: {} was written for targets {}", kOp, written.shape().to_string(),
      targets.shape().to_string());
  require_same_device(kOp, written.value(), targets);
  if (bias.defined())
    require(bias.shape() == Shape({targets.size(0), 1, targets.size(2)}),
            "{}: the bias {} is not [{}, 1, {}]", kOp, bias.shape().to_string(), targets.size(0),
            targets.size(2));
}

Tensor squares_of_layers(const Tensor& difference, const Tensor& targets) {
  const NoGrad constant;
  const std::int64_t layers = targets.size(0);
  Tensor squares = Tensor::empty({2, layers});
  const auto put = [&](std::int64_t row, const Variable& x) {
    const Tensor flat = square(x).value().reshape({layers, targets.elements() / layers});
    squares.rows(row, row + 1).copy_from(sum(Variable(flat), 1).value().reshape({1, layers}));
  };
  const Variable all(targets);
  put(0, Variable(difference));
  put(1, sub(all, mean(all, 1, true)));
  return squares;
}

Reconstruction on_cpu(const Variable& written, const Variable& bias, const Tensor& targets,
                      float factor) {
  const Variable whole = bias.defined() ? add(written, bias) : written;
  const Variable difference = sub(whole, Variable(targets));
  return {scale(sum_all(square(difference)), factor), difference.value(),
          squares_of_layers(difference.value(), targets)};
}

Tensor error_gradient(const Tensor& from, const Tensor& grad, float factor, const Shape& shape) {
  Tensor to = from.like(shape);
  const ErrorGradArgs args{from.elements(), factor, grad.data<float>(), from.data<float>(),
                           to.mutable_data<float>()};
  on_device_of(
      from, [] {}, [&](auto) { cuda::error_grad(args); });
  return to;
}

Reconstruction on_gpu(const Variable& written, const Variable& bias, const Tensor& targets,
                      float factor) {
  const std::int64_t layers = targets.size(0), rows = targets.size(1), width = targets.size(2);
  Reconstruction result;
  result.difference = targets.like(targets.shape());
  result.squares = targets.like({2, layers});
  Tensor column_sums = targets.like({layers, width});
  const ReconstructionArgs args{layers,
                                rows,
                                width,
                                written.value().data<float>(),
                                bias.defined() ? bias.value().data<float>() : nullptr,
                                targets.data<float>(),
                                result.difference.mutable_data<float>(),
                                column_sums.mutable_data<float>(),
                                result.squares.mutable_data<float>()};
  on_device_of(
      targets, [] {}, [&](auto) { cuda::reconstruction(args); });
  Tensor error = total(result.squares.rows(0, 1), static_cast<double>(factor));
  result.error = make_result(
      std::move(error), {&written, &bias},
      [written, bias, factor, column_sums, difference = result.difference](const Tensor& grad) {
        if (written.requires_grad())
          written.accumulate_grad(error_gradient(difference, grad, factor, written.shape()));
        if (bias.requires_grad())
          bias.accumulate_grad(error_gradient(column_sums, grad, factor, bias.shape()));
      });
  return result;
}

}  // namespace

Reconstruction reconstruction(const Variable& written, const Variable& bias, const Tensor& targets,
                              float factor) {
  check(written, bias, targets);
  return (targets.on_gpu() ? on_gpu : on_cpu)(written, bias, targets, factor);
}

}  // namespace filigree
