// Attention with windows, soft caps and gates on the CPU against double precision, at widths that
// are and are not multiples of a vector.
#include "ops/attention/doubles_test_support.h"

namespace filigree {
namespace {

using namespace against_doubles;

TEST(AttentionWidths, AsInDoublePrecision) {
  for (const std::int64_t D : {20, 80})
    for (const Extents& e : kExtents)
      for (const ReferenceGate kind : kGates)
        check_against_doubles(e, D, kind, DeviceKind::kCpu, DType::kF32);
}

}  // namespace
}  // namespace filigree
