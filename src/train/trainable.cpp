#include <cstring>
#include <span>

#include "base/checksum.h"
#include "filigree/error.h"
#include "filigree/train.h"

namespace filigree {

std::uint64_t Trainable::checksum() const { return parameters_checksum(parameters()); }

void Trainable::set_requires_grad(bool on) {
  for (const NamedParameter& parameter : parameters()) parameter.variable.set_requires_grad(on);
  for (const NamedParameter& parameter : own_parameters()) parameter.variable.set_requires_grad(on);
}

void Trainable::clear_grads() {
  for (const NamedParameter& parameter : parameters()) parameter.variable.clear_grad();
  for (const NamedParameter& parameter : own_parameters()) parameter.variable.clear_grad();
}

std::uint64_t parameters_checksum(const std::vector<NamedParameter>& parameters,
                                  std::uint64_t seed) {
  for (const NamedParameter& parameter : parameters) {
    const Tensor value = parameter.variable.value().to(DeviceKind::kCpu);
    seed = xxh64(parameter.name, seed);
    seed = xxh64(std::span(value.raw(), value.bytes()), seed);
  }
  return seed;
}

namespace {

bool same_bytes(const Tensor& a, const Tensor& b) {
  const Tensor x = a.to(DeviceKind::kCpu), y = b.to(DeviceKind::kCpu);
  return x.bytes() == y.bytes() && std::memcmp(x.raw(), y.raw(), x.bytes()) == 0;
}

}  // namespace

void restore_parameters(const std::vector<NamedParameter>& stored,
                        const std::vector<NamedParameter>& into, const std::string& source) {
  require(stored.size() == into.size(), "'{}': the checkpoint has {} parameters and not {}", source,
          stored.size(), into.size());
  for (std::size_t i = 0; i < into.size(); ++i) {
    const NamedParameter &from = stored[i], &to = into[i];
    require(from.name == to.name && from.variable.shape() == to.variable.shape(),
            "'{}': parameter '{}' {} is not '{}' {}", source, from.name,
            from.variable.shape().to_string(), to.name, to.variable.shape().to_string());
    const Tensor& there = to.variable.value();
    const Tensor value = from.variable.value().to(there.dtype());
    // Frozen weights are those of the checkpoint already, in memory that a teacher may share.
    if (!to.variable.requires_grad() && same_bytes(value, there)) continue;
    // A copy of its own, since training changes it in place.
    to.variable.mutable_value() =
        value.device() == there.device() ? value.clone() : value.to(there.device());
  }
}

}  // namespace filigree
