#include <algorithm>
#include <cmath>
#include <span>

#include "filigree/autograd.h"
#include "filigree/error.h"
#include "filigree/layers.h"
#include "filigree/ops.h"
#include "filigree/random.h"
#include "ops/matmul/gemm.h"

namespace filigree {

void check_lora(const LoraOptions& options) {
  require(options.rank >= 1, "lora: the rank {} must be at least 1", options.rank);
  require(std::isfinite(options.alpha) && options.alpha > 0.0,
          "lora: alpha {} must be a positive number; it scales the adapters by alpha / rank",
          options.alpha);
}

LoraAdapter make_lora(const LinearWeight& w, const LoraOptions& options, std::uint64_t seed,
                      std::uint64_t stream) {
  check_lora(options);
  const std::int64_t in = w.inputs(), out = w.outputs();
  require(options.rank <= std::min(in, out),
          "lora: the rank {} is above {}, the smaller side of a layer from {} to {}; a lower rank "
          "is the point of the method",
          options.rank, std::min(in, out), in, out);
  Tensor down = Tensor::empty({in, options.rank});
  const std::span<float> values(down.mutable_f32(), static_cast<std::size_t>(down.elements()));
  fill_uniform(values, seed, stream);
  const float bound = 1.0f / std::sqrt(static_cast<float>(in));
  for (float& value : values) value = bound * (2.0f * value - 1.0f);
  return {Variable(std::move(down), true), Variable(Tensor::zeros({options.rank, out}), true),
          static_cast<float>(options.alpha / static_cast<double>(options.rank))};
}

Variable linear(const Variable& x, const LinearWeight& w, const LoraAdapter& adapter) {
  if (!adapter.on()) return linear(x, w);
  // Scaled where it is narrow.
  const Variable h = scale(linear(x, {adapter.down, Variable()}), adapter.scale);  // [..., rank]
  return linear_sum(x, w, h, {adapter.up, Variable()});
}

void merge_lora(const LinearWeight& w, const LoraAdapter& adapter) {
  Tensor& weight = w.weight.mutable_value();
  // A weight in bf16 alone becomes f32: rounded to bf16 again, small changes would be lost.
  weight = weight.to(DType::kF32);
  if (!weight.writable() || !weight.unique()) weight = weight.clone();
  const NoGrad no_grad;
  const Tensor down = scale(adapter.down, adapter.scale).value();
  const Tensor& up = adapter.up.value();
  const std::int64_t in = w.inputs(), out = w.outputs(), rank = down.size(1);
  GemmArgs<> args;
  args.K = rank;
  args.accumulate = true;
  args.c_row = weight.size(1);
  if (w.out_in) {
    args.M = out, args.N = in;  // W^T += B^T A^T
    args.A = up.data<float>(), args.a_row = 1, args.a_col = out;
    args.B = down.data<float>(), args.b_row = 1, args.b_col = rank;
    args.C = weight.mutable_data<float>() + w.begin * in;
  } else {
    args.M = in, args.N = out;
    args.A = down.data<float>(), args.a_row = rank, args.a_col = 1;
    args.B = up.data<float>(), args.b_row = out, args.b_col = 1;
    args.C = weight.mutable_data<float>() + w.begin;
  }
  gemm_on(weight.device(), args);
}

}  // namespace filigree
