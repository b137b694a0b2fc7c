// Models of text that others trained (../shared/real), as they were published: logits against an
// independent computation in double precision, and what they are known to say.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/file_status.h"
#include "filigree/model.h"
#include "filigree/ops.h"
#include "filigree/tokenizer.h"
#include "support/golden.h"

namespace filigree {
namespace {

namespace fs = std::filesystem;

const fs::path kFolder = FILIGREE_SOURCE_DIR "/../shared/real";

class RealModels : public testing::Test {
 protected:
  void SetUp() override {
    if (!is_there(kFolder)) GTEST_SKIP() << kFolder << " is not there: no models of others to try";
  }

  // Stored in 64 bits.
  static Tensor ids_of(const TensorView& view) {
    std::vector<std::int64_t> wide(static_cast<std::size_t>(view.element_count()));
    std::memcpy(wide.data(), view.bytes().data(), wide.size() * sizeof(std::int64_t));
    return Tensor::from_ids(Shape(view.shape), std::vector<std::int32_t>(wide.begin(), wide.end()));
  }

  static void expect_golden_logits(const char* name) {
    const auto model = load_model(kFolder / name);
    const SafetensorsFile golden = SafetensorsFile::open(kFolder / name / "golden.safetensors");
    const Tensor wanted = golden_tensor(golden, "logits");
    const Tensor found = model->forward(ids_of(golden.at("input_ids"))).value();
    ASSERT_EQ(found.elements(), wanted.elements());
    float largest = 0.0f, apart = 0.0f;
    for (std::int64_t i = 0; i < wanted.elements(); ++i) {
      largest = std::max(largest, std::abs(wanted.f32()[i]));
      apart = std::max(apart, std::abs(found.f32()[i] - wanted.f32()[i]));
    }
    EXPECT_LT(apart, 1e-5f * largest);
  }
};

// Its tied embedding is stored as the output layer alone.
TEST_F(RealModels, TinyStories656KHasItsLogits) { expect_golden_logits("TinyStories-656K"); }

TEST_F(RealModels, Stories260KHasItsLogits) { expect_golden_logits("stories260K"); }

TEST_F(RealModels, Stories260KBeginsAsItIsKnownTo) {
  const auto model = load_model(kFolder / "stories260K");
  const Tokenizer tokenizer = Tokenizer::from_folder(kFolder / "stories260K");
  std::vector<TokenId> ids = tokenizer.begin_ids();
  ASSERT_EQ(ids.size(), 1u);
  std::string text;
  while (ids.size() < 60 && text.find("Lily.") == std::string::npos) {
    const auto length = static_cast<std::int64_t>(ids.size());
    const Tensor best = argmax(
        model->forward(Tensor::from_ids({1, length}, ids), {.last_position_only = true}).value());
    ids.push_back(best.i32()[0]);
    text = tokenizer.decode({ids.begin() + 1, ids.end()});
  }
  EXPECT_EQ(text, "Once upon a time, there was a little girl named Lily.");
}

}  // namespace
}  // namespace filigree
