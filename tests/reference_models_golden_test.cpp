// The bundled models against what transformers computes of the same folders (bf16 weights, f32
// arithmetic): tests/golden/reference-models/NAME.safetensors has 256 token ids and the logits of
// the last eight positions. transformers knows no gates, so the sparse model's are left open here
// too.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "filigree/autograd.h"
#include "filigree/model.h"
#include "support/golden.h"

namespace filigree {
namespace {

class ReferenceModelsGolden : public testing::TestWithParam<const char*> {};

TEST_P(ReferenceModelsGolden, LogitsAreThoseOfTransformers) {
  const std::string name = GetParam();
  const auto model = load_model(golden_folder().parent_path().parent_path() / "models" / name);
  const SafetensorsFile golden =
      SafetensorsFile::open(golden_folder() / "reference-models" / (name + ".safetensors"));
  const Tensor wanted = golden_tensor(golden, "logits");
  const NoGrad no_grad;
  const Tensor all =
      model->forward(golden_tensor(golden, "ids"), {.gates = GateMode::kIgnored}).value();
  ASSERT_EQ(all.shape(), Shape({1, 256, wanted.size(1)}));
  const auto found = all.values().last(static_cast<std::size_t>(wanted.elements()));
  double most = 0.0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const double difference = std::abs(static_cast<double>(found[i]) - wanted.values()[i]);
    ASSERT_TRUE(std::isfinite(difference)) << i;
    most = std::max(most, difference);
  }
  EXPECT_LT(most, 1e-3) << "after packing another model, run models/transformers_logits.py again";
  std::printf("largest difference of %zu logits: %.1e\n", found.size(), most);
}

INSTANTIATE_TEST_SUITE_P(, ReferenceModelsGolden, testing::Values("dense-12x12", "sparse-12x12"),
                         [](const auto& each) {
                           std::string name = each.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace filigree
