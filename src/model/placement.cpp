#include "model/placement.h"

#include <mutex>

#include "base/error.h"

namespace filigree {
namespace {

std::mutex mutex;
Placement chosen;

}  // namespace

void check_placement(const Placement& placement) {
  require(placement.precision == DType::kF32 || placement.precision == DType::kBf16,
          "placement: models compute in f32 or bf16, not in {}", name_of(placement.precision));
  require(placement.precision == DType::kF32 || placement.device == DeviceKind::kCuda,
          "placement: bf16 needs a GPU; on the CPU models compute in f32");
  require_device(placement.device);
}

Placement default_placement() {
  const std::lock_guard lock(mutex);
  return chosen;
}

void set_default_placement(const Placement& placement) {
  check_placement(placement);
  const std::lock_guard lock(mutex);
  chosen = placement;
}

}  // namespace filigree
