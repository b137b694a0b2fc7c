#include "filigree/train/weights_checksum.h"

#include <span>

#include "filigree/text/shard_checksum.h"

namespace filigree {

std::uint64_t weights_checksum(const Model& model) {
  std::uint64_t sum = 0;  // each checksum is the seed of the next
  for (const NamedParameter& parameter : model.parameters()) {
    const Tensor value = parameter.variable.value().to(DeviceKind::kCpu);
    sum = xxh64(parameter.name, sum);
    sum = xxh64(std::span(value.raw(), value.bytes()), sum);
  }
  for (const Variable& bias : model.gate_biases()) {
    const Tensor value = bias.value().to(DeviceKind::kCpu);
    sum = xxh64(std::span(value.raw(), value.bytes()), sum);
  }
  return sum;
}

}  // namespace filigree
