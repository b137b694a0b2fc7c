// Models of TransformerLens against TransformerLens: logits, every cached activation and every
// gradient, from state dicts that have no configuration (tests/golden/make_hooked_goldens.py).
#include <set>

#include "filigree/ops.h"
#include "json/json.h"
#include "model/family.h"
#include "support/check_op.h"
#include "support/golden.h"
#include "support/temporary_folder.h"

namespace filigree {
namespace {

class HookedGolden : public testing::TestWithParam<const char*> {
 protected:
  HookedGolden() {
    previous_ = set_warning_handler([this](const std::string& text) { warnings_ += text; });
  }
  ~HookedGolden() override { set_warning_handler(previous_); }

  std::filesystem::path file(const char* ending) const {
    return golden_folder() / "hooked" / (std::string(GetParam()) + ending);
  }
  std::unique_ptr<Model> model() const { return load_model(file(".pt")); }
  SafetensorsFile expected() const { return SafetensorsFile::open(file(".safetensors")); }

  std::string warnings_;
  WarningHandler previous_;
};

// By the largest number that is there; both have minus infinity in the same places.
double distance(const Tensor& found, const Tensor& wanted) {
  double largest = 1e-30, apart = 0.0;
  for (std::int64_t i = 0; i < wanted.elements(); ++i) {
    const auto a = static_cast<double>(found.f32()[i]), b = static_cast<double>(wanted.f32()[i]);
    if (std::isinf(b) && a == b) continue;
    largest = std::max(largest, std::abs(b));
    apart = std::max(apart, std::isfinite(a - b) ? std::abs(a - b) : INFINITY);
  }
  return apart / largest;
}

TEST_P(HookedGolden, LogitsAndEveryActivation) {
  const auto model = this->model();
  EXPECT_EQ(model->config().family, "hooked_transformer");
  const SafetensorsFile golden = expected();
  const EveryLevel levels;
  for (const SimdLevel level : EveryLevel::available()) {
    set_simd_level(level);
    Taps taps;
    for (const std::string& name : model->tap_names()) taps.observe(name);
    const Variable logits = model->forward(golden_tensor(golden, "input_ids"), {.taps = &taps});
    EXPECT_LT(distance(logits.value(), golden_tensor(golden, "logits")), 1e-5);
    std::set<std::string> ours(model->tap_names().begin(), model->tap_names().end());
    for (const TensorView& view : golden.tensors()) {
      if (!view.name.starts_with("act.")) continue;
      const std::string name = view.name.substr(4);
      ASSERT_EQ(ours.erase(name), 1u) << name;
      const Tensor wanted = golden_tensor(golden, view.name);
      ASSERT_EQ(taps.value(name).shape(), wanted.shape()) << name;
      EXPECT_LT(distance(taps.value(name), wanted), 1e-5) << name;
    }
    EXPECT_EQ(ours, std::set<std::string>());
  }
}

TEST_P(HookedGolden, EveryGradient) {
  const auto model = this->model();
  model->set_requires_grad(true);
  const SafetensorsFile golden = expected();
  Tape tape;
  const Variable logits = model->forward(golden_tensor(golden, "input_ids"));
  tape.backward(sum_all(mul(log_softmax(logits), golden_tensor(golden, "weights"))));
  const std::vector<ParameterSpec> specs =
      family_of("hooked_transformer", "test").parameters(model->config());
  ASSERT_EQ(specs.size(), model->parameters().size());
  for (std::size_t p = 0; p < specs.size(); ++p) {
    const Tensor stored = golden_tensor(golden, "grad." + specs[p].name);
    EXPECT_EQ(stored.shape(), specs[p].stored_shape()) << specs[p].name;
    const Tensor wanted = in_our_order(specs[p], stored.reshape(specs[p].shape));
    const Tensor& found = model->parameters()[p].variable.grad();
    double size = 0.0;
    for (const float x : wanted.values()) size = std::max(size, std::abs(static_cast<double>(x)));
    if (size < 1e-6) continue;  // of keys' biases, which move all scores of a query alike
    EXPECT_LT(distance(found, wanted), 5e-5) << specs[p].name;
  }
}

TEST_P(HookedGolden, WhatIsSavedIsTheSameModelUnderTheSameNames) {
  const auto model = this->model();
  const TemporaryFolder folder;
  save_model(*model, folder.path());
  const nlohmann::json config = read_json(folder.path() / "config.json");
  EXPECT_EQ(config["model_type"], "hooked_transformer");
  warnings_.clear();
  const auto again = load_model(folder.path());
  EXPECT_EQ(warnings_, "");
  const Tensor ids = golden_tensor(expected(), "input_ids");
  EXPECT_TRUE(std::ranges::equal(again->forward(ids).value().values(),
                                 model->forward(ids).value().values()));
  const SafetensorsFile saved = SafetensorsFile::open(folder.path() / "model.safetensors");
  const SafetensorsFile golden = expected();
  for (const TensorView& view : saved.tensors())
    EXPECT_EQ(view.shape, golden.at("grad." + view.name).shape) << view.name;
}

INSTANTIATE_TEST_SUITE_P(Kinds, HookedGolden,
                         testing::Values("attn_only", "no_norm", "lnpre", "rmspre", "rms_gated",
                                         "solu_ln", "solu_folded", "rotary", "shortformer",
                                         "bidirectional", "parallel", "unscaled", "grouped",
                                         "local"));

}  // namespace
}  // namespace filigree
