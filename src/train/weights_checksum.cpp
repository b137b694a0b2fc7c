#include "train/weights_checksum.h"

#include <span>

#include "base/checksum.h"
#include "filigree/train.h"

namespace filigree {

std::uint64_t weights_checksum(const Model& model) {
  std::uint64_t sum = parameters_checksum(model.parameters());
  for (const Variable& bias : model.gate_biases()) {
    const Tensor value = bias.value().to(DeviceKind::kCpu);
    sum = xxh64(std::span(value.raw(), value.bytes()), sum);
  }
  return sum;
}

}  // namespace filigree
