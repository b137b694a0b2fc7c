#include <gtest/gtest.h>

#include "filigree/error.h"
#include "filigree/model.h"
#include "model/lora_test_support.h"

namespace filigree {
namespace {

TEST(Placement, RefusesWhatCannotBe) {
  EXPECT_THROW(check_placement({DeviceKind::kCpu, DType::kBf16}), Error);
  EXPECT_THROW(check_placement({DeviceKind::kCpu, DType::kI32}), Error);
  EXPECT_NO_THROW(check_placement({}));
  if (!has_device(DeviceKind::kCuda)) {
    EXPECT_THROW(check_placement({DeviceKind::kCuda, DType::kF32}), Error);
  }
}

TEST(Placement, AModelStaysOnTheCpuUnlessTold) {
  const auto model = tiny_model();
  EXPECT_EQ(model->placement().device, DeviceKind::kCpu);
  EXPECT_EQ(model->placement().precision, DType::kF32);
  model->place({});
  EXPECT_THROW(model->place({DeviceKind::kCpu, DType::kBf16}), Error);
}

}  // namespace
}  // namespace filigree
