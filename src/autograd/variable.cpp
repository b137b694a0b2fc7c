#include <mutex>

#include "filigree/autograd.h"
#include "filigree/device.h"
#include "filigree/error.h"
#include "filigree/runtime.h"
#include "runtime/cuda/vector_cuda.h"

namespace filigree {

namespace {

void add_on_cpu(Tensor& sum, const Tensor& contribution) {
  float* to = sum.mutable_f32();
  const float* add = contribution.f32();
  parallel_for(contribution.elements(), std::int64_t{1} << 15,
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t i = begin; i < end; ++i) to[i] += add[i];
               });
}

void add_on_gpu(Tensor& sum, const Tensor& contribution) {
  if constexpr (kHasCuda) {
    const std::int64_t count = sum.elements();
    const bool from_f32 = contribution.dtype() == DType::kF32;
    if (sum.dtype() == DType::kF32) {
      float* to = sum.mutable_data<float>();
      from_f32 ? cuda::add_into(to, contribution.data<float>(), count)
               : cuda::add_into(to, contribution.data<Bf16>(), count);
    } else {
      Bf16* to = sum.mutable_data<Bf16>();
      from_f32 ? cuda::add_into(to, contribution.data<float>(), count)
               : cuda::add_into(to, contribution.data<Bf16>(), count);
    }
  }
}

}  // namespace

const Tensor& Variable::as(DType dtype) const {
  if (node_->value.dtype() == dtype) return node_->value;
  // One lock for all variables: it is held for as long as it takes to look, or to start a kernel.
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  if (!node_->working_copy.defined() || node_->working_copy.dtype() != dtype)
    node_->working_copy = node_->value.to(dtype);
  return node_->working_copy;
}

void Variable::accumulate_grad(Tensor contribution) const {
  require(contribution.shape() == shape(), "gradient: {} does not fit a value of {}",
          contribution.shape().to_string(), shape().to_string());
  require(contribution.device() == value().device(),
          "gradient: it lies on the {} and its value on the {}", name_of(contribution.device()),
          name_of(value().device()));
  if (!node_->grad.defined()) {
    const DType dtype = value().dtype();
    node_->grad = contribution.dtype() == dtype ? std::move(contribution) : contribution.to(dtype);
    return;
  }
  // Another holder must not see its tensor change.
  if (!node_->grad.unique()) node_->grad = node_->grad.clone();
  (node_->grad.on_gpu() ? add_on_gpu : add_on_cpu)(node_->grad, contribution);
}

Tensor& Variable::grad_to_add_into() const {
  if (!node_->grad.defined())
    node_->grad = Tensor::zeros(shape(), value().dtype(), value().device());
  else if (!node_->grad.unique())
    node_->grad = node_->grad.clone();
  return node_->grad;
}

Tensor& Variable::grad_to_write(bool& add) const {
  add = node_->grad.defined();
  if (add) return grad_to_add_into();
  node_->grad = value().like(shape());
  return node_->grad;
}

Tensor Variable::take_grad() const {
  if (node_->retain_grad) return node_->grad;
  return std::exchange(node_->grad, Tensor());
}

}  // namespace filigree
