// Adapters that peft saved, on the models they were made for (tests/golden/make_peft_goldens.py):
// logits against peft's.
#include <gtest/gtest.h>

#include <cmath>

#include "filigree/model.h"
#include "model/peft_adapter.h"
#include "support/golden.h"

namespace filigree {
namespace {

struct PeftCase {
  const char* name;
  const char* base;
};

void PrintTo(const PeftCase& golden, std::ostream* out) { *out << golden.name; }

class PeftGolden : public testing::TestWithParam<PeftCase> {};

TEST_P(PeftGolden, LogitsAreThoseOfPeft) {
  const std::filesystem::path folder = golden_folder() / "peft" / GetParam().name;
  const SafetensorsFile golden = SafetensorsFile::open(folder / "golden.safetensors");
  const Tensor ids = golden_tensor(golden, "input_ids"), wanted = golden_tensor(golden, "logits");
  const auto base = load_model(golden_folder() / GetParam().base);
  const Tensor plain = base->forward(ids).value();
  const Tensor found = adapted_model(*base, folder)->forward(ids).value();
  ASSERT_EQ(found.elements(), wanted.elements());
  double worst = 0.0, changed = 0.0;
  for (std::int64_t i = 0; i < wanted.elements(); ++i) {
    worst = std::max(worst, std::abs(static_cast<double>(found.f32()[i]) - wanted.f32()[i]));
    changed = std::max(changed, std::abs(static_cast<double>(plain.f32()[i]) - wanted.f32()[i]));
  }
  RecordProperty("largest_difference", std::to_string(worst));
  EXPECT_LT(worst, 2e-5);
  EXPECT_GT(changed, 1e-2);
}

INSTANTIATE_TEST_SUITE_P(
    Adapters, PeftGolden,
    testing::Values(PeftCase{"llama-all", "llama-tiny"}, PeftCase{"llama-rslora", "llama-tiny"},
                    PeftCase{"gpt2-fused", "gpt2-tiny"}, PeftCase{"pythia-fused", "pythia-tiny"},
                    PeftCase{"qwen2-bias", "qwen2-tiny"}, PeftCase{"gptj-pairs", "gptj-wide-tiny"},
                    PeftCase{"cohere-pairs", "cohere-tiny"}, PeftCase{"phi3-fused", "phi3-tiny"},
                    PeftCase{"gpt-bigcode-heads", "gpt-bigcode-heads-tiny"}));

}  // namespace
}  // namespace filigree
