#include "model/rounded_weights.h"

#include "filigree/error.h"

namespace filigree {

void place_rounded(Model& model, const Placement& placement) {
  check_placement(placement);
  require(placement.precision == DType::kBf16,
          "weights are rounded to bf16 only where the model computes in it, not in {}",
          name_of(placement.precision));
  // One after the other, and rounded there: no more than one matrix has f32 values on the device.
  for (const NamedParameter& parameter : model.parameters()) {
    if (parameter.variable.shape().rank() < 2) continue;
    Tensor& value = parameter.variable.mutable_value();
    value = value.to(placement.device).to(DType::kBf16);
  }
  model.place(placement);
}

}  // namespace filigree
