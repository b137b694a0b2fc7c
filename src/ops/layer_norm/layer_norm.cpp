#include "ops/layer_norm/layer_norm.h"

#include "autograd/tape.h"
#include "base/error.h"
#include "ops/layer_norm/layer_norm_kernels.h"

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
  const std::int64_t rows = x.shape().elements() / width;
  Tensor y = Tensor::empty(x.shape());
  Tensor mean = Tensor::empty({rows}), inverse = Tensor::empty({rows});
  cpu::layer_norm({rows, width, epsilon, x.value().f32(), weight.value().f32(), bias.value().f32(),
                   y.mutable_f32(), mean.mutable_f32(), inverse.mutable_f32()});
  return make_result(std::move(y), {&x, &weight, &bias},
                     [x, weight, bias, rows, width, mean, inverse](const Tensor& grad) {
                       LayerNormGradArgs args{
                           rows,       width,         x.value().f32(), weight.value().f32(),
                           mean.f32(), inverse.f32(), grad.f32()};
                       Tensor dx = x.requires_grad() ? Tensor::empty(x.shape()) : Tensor();
                       if (dx.defined()) args.dx = dx.mutable_f32();
                       if (weight.requires_grad())
                         args.dweight = weight.grad_to_add_into().mutable_f32();
                       if (bias.requires_grad()) args.dbias = bias.grad_to_add_into().mutable_f32();
                       cpu::layer_norm_grad(args);
                       if (dx.defined()) x.accumulate_grad(std::move(dx));
                     });
}

}  // namespace filigree
