#include "filigree/ops/layer_norm/layer_norm.h"

#include "filigree/autograd/tape.h"
#include "filigree/base/error.h"
#include "filigree/ops/layer_norm/layer_norm_kernels.h"
#include "filigree/tensor/dispatch.h"

namespace filigree {

Variable layer_norm(const Variable& x, const Variable& weight, const Variable& bias,
                    float epsilon) {
  require(x.shape().rank() >= 1, "layer_norm: the input is a single number");
  const std::int64_t width = x.size(-1);
  require(width > 0, "layer_norm: the input {} has no last axis to normalise",
          x.shape().to_string());
  require(weight.shape() == Shape{width} && bias.shape() == Shape{width},
          "layer_norm: weight {} and bias {} do not fit an input of {}", weight.shape().to_string(),
          bias.shape().to_string(), x.shape().to_string());
  require_same_device("layer_norm", x.value(), weight.value());
  require_same_device("layer_norm", x.value(), bias.value());
  const std::int64_t rows = x.shape().elements() / width;
  Tensor y = x.value().like(x.shape());
  Tensor mean = y.like({rows}, DType::kF32), inverse = y.like({rows}, DType::kF32);
  const auto args = [&](auto type) {
    using T = decltype(type);
    return LayerNormArgs<T>{rows,
                            width,
                            epsilon,
                            x.value().data<T>(),
                            weight.value().data<float>(),
                            bias.value().data<float>(),
                            y.mutable_data<T>(),
                            mean.mutable_data<float>(),
                            inverse.mutable_data<float>()};
  };
  dispatch(
      "layer_norm", y, [&] { cpu::layer_norm(args(float())); },
      [&](auto type) { cuda::layer_norm(args(type)); });
  return make_result(std::move(y), {&x, &weight, &bias},
                     [x, weight, bias, rows, width, mean, inverse](const Tensor& grad) {
                       // The residual stream's gradient is there already: it is added to.
                       const bool wanted = x.requires_grad(), add = x.grad().defined();
                       Tensor dx = wanted && !add ? x.value().like(x.shape()) : Tensor();
                       const auto grad_args = [&](auto type) {
                         using T = decltype(type);
                         LayerNormGradArgs<T> back{rows,
                                                   width,
                                                   x.value().data<T>(),
                                                   weight.value().data<float>(),
                                                   mean.data<float>(),
                                                   inverse.data<float>(),
                                                   grad.data<T>()};
                         if (wanted)
                           back.dx = (add ? x.grad_to_add_into() : dx).template mutable_data<T>();
                         back.add_to_dx = add;
                         if (weight.requires_grad())
                           back.dweight = weight.grad_to_add_into().mutable_data<float>();
                         if (bias.requires_grad())
                           back.dbias = bias.grad_to_add_into().mutable_data<float>();
                         return back;
                       };
                       dispatch(
                           "layer_norm", grad, [&] { cpu::layer_norm_grad(grad_args(float())); },
                           [&](auto type) { cuda::layer_norm_grad(grad_args(type)); });
                       if (dx.defined()) x.accumulate_grad(std::move(dx));
                     });
}

}  // namespace filigree
