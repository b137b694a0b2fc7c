#include "filigree/error.h"
#include "filigree/model.h"

namespace filigree {
void check_placement(const Placement& placement) {
  require(placement.precision == DType::kF32 || placement.precision == DType::kBf16,
          "placement: models compute in f32 or bf16, not in {}", name_of(placement.precision));
  require(placement.precision == DType::kF32 || placement.device == DeviceKind::kCuda,
          "placement: bf16 needs a GPU; on the CPU models compute in f32");
  require_device(placement.device);
}

}  // namespace filigree
