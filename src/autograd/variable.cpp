#include "autograd/variable.h"

#include "base/error.h"
#include "runtime/threads.h"

namespace filigree {

void Variable::accumulate_grad(Tensor contribution) const {
  require(contribution.shape() == shape(), "gradient: {} does not fit a value of {}",
          contribution.shape().to_string(), shape().to_string());
  if (!node_->grad.defined()) {
    node_->grad = std::move(contribution);
    return;
  }
  // Another holder must not see its tensor change.
  if (!node_->grad.unique()) node_->grad = node_->grad.clone();
  float* sum = node_->grad.mutable_f32();
  const float* add = contribution.f32();
  const std::int64_t count = contribution.elements();
  parallel_for(count, std::int64_t{1} << 15, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) sum[i] += add[i];
  });
}

Tensor& Variable::grad_to_add_into() const {
  if (!node_->grad.defined())
    node_->grad = Tensor::zeros(shape());
  else if (!node_->grad.unique())
    node_->grad = node_->grad.clone();
  return node_->grad;
}

Tensor Variable::take_grad() const {
  if (node_->retain_grad) return node_->grad;
  return std::exchange(node_->grad, Tensor());
}

}  // namespace filigree
