#include "autograd/recompute.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "filigree/autograd.h"

namespace filigree {

Recomputed recompute(const Variable& x, const std::vector<Variable>& leaves,
                     const std::function<Recomputed(const Variable&)>& part) {
  std::vector<const Variable*> inputs = {&x};
  for (const Variable& leaf : leaves) inputs.push_back(&leaf);
  const bool wanted = std::any_of(inputs.begin(), inputs.end(),
                                  [](const Variable* input) { return input->requires_grad(); });
  if (Tape::current() == nullptr || !wanted) return part(x);

  Recomputed first;
  {
    const NoGrad not_recorded;
    first = part(x);
  }
  Recomputed result;
  result.note = first.note;
  result.value = Variable::result(first.value.value());
  // The tape runs the closure of `second` first, because it is recorded last; it leaves its
  // gradient here for the closure of `value`.
  const auto second_grad = std::make_shared<Tensor>();
  Tape::current()->add(result.value, inputs, [x, part, second_grad](const Tensor& grad) {
    const Variable again(x.value(), x.requires_grad());
    Tape tape;
    const Recomputed results = part(again);
    if (!second_grad->defined()) {
      tape.backward(results.value, grad);
    } else {
      const Variable value = results.value, second = results.second;
      tape.backward(
          make_result(Tensor::full({}, 1.0f, grad.device()), {&value, &second}, [&](const Tensor&) {
            value.accumulate_grad(grad);
            second.accumulate_grad(*second_grad);
          }));
    }
    if (x.requires_grad() && again.grad().defined()) x.accumulate_grad(again.take_grad());
  });
  if (!first.second.defined()) return result;
  result.second = Variable::result(first.second.value());
  Tape::current()->add(
      result.second, inputs, [value = result.value, second_grad](const Tensor& grad) {
        *second_grad = grad;
        // Without a gradient of its own, the closure of `value` would not run.
        if (!value.grad().defined())
          value.accumulate_grad(
              Tensor::zeros(value.shape(), value.value().dtype(), value.value().device()));
      });
  return result;
}

}  // namespace filigree
