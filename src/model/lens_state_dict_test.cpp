// State dicts of TransformerLens as people saved them: behind prefixes, inside other dictionaries'
// shapes, in old layouts, with parts left out.
#include "model/lens_state_dict.h"

#include <gmock/gmock.h>

#include <memory>
#include <span>

#include "filigree/error.h"
#include "io/torch_file.h"
#include "json/json.h"
#include "model/hooked_state_dict.h"
#include "support/check_op.h"
#include "support/errors.h"
#include "support/files.h"
#include "support/temporary_folder.h"

namespace filigree {
namespace {

constexpr std::int64_t kWidth = 12;

// The tensors of a stored state dict, to be changed.
class LensStateDict : public testing::Test {
 protected:
  LensStateDict() {
    const TorchFile file = TorchFile::open(golden_folder() / "hooked" / "no_norm.pt");
    tensors_ = file.tensors();
    plain_ = logits(tensors_);
  }

  static Tensor logits(const std::vector<TensorView>& tensors,
                       const nlohmann::json& settings = nullptr) {
    const std::vector<TensorView> modern = lens_tensors(tensors, "test");
    const ModelConfig config = hooked_config(modern, settings, "test");
    const auto model = hooked_model(modern, config, "test");
    return model->forward(Tensor::from_ids({1, 5}, std::vector<std::int32_t>{1, 5, 2, 9, 0}))
        .value();
  }
  void expect_same() const {
    EXPECT_TRUE(std::ranges::equal(logits(tensors_).values(), plain_.values()));
  }
  TensorView& at(const std::string& name) {
    for (TensorView& view : tensors_)
      if (view.name == name) return view;
    throw std::runtime_error("no " + name);
  }
  void erase(const std::string& ending) {
    std::erase_if(tensors_, [&](const TensorView& view) { return view.name.ends_with(ending); });
  }
  // Other numbers of another shape under a name.
  void put(const std::string& name, const std::vector<std::int64_t>& shape,
           const std::vector<float>& values) {
    const auto bytes = std::as_bytes(std::span(values));
    const auto kept = std::make_shared<std::vector<std::byte>>(bytes.begin(), bytes.end());
    TensorView view;
    view.name = name, view.shape = shape, view.data = *kept, view.owner = kept;
    erase(name);
    tensors_.push_back(view);
  }
  std::vector<float> values(const std::string& name) {
    std::vector<float> all(static_cast<std::size_t>(at(name).element_count()));
    read_f32(at(name), all);
    return all;
  }
  // [outer, a, b] -> [outer, b, a] with the given new shape.
  void turn(const std::string& name, std::int64_t outer, std::int64_t a, std::int64_t b,
            const std::vector<std::int64_t>& shape) {
    const std::vector<float> from = values(name);
    std::vector<float> to(from.size());
    for (std::int64_t o = 0; o < outer; ++o)
      for (std::int64_t i = 0; i < a; ++i)
        for (std::int64_t j = 0; j < b; ++j)
          to[static_cast<std::size_t>((o * b + j) * a + i)] =
              from[static_cast<std::size_t>((o * a + i) * b + j)];
    put(name, shape, to);
  }

  std::vector<TensorView> tensors_;
  Tensor plain_;
};

TEST_F(LensStateDict, PrefixesOfWrappersAreTakenOff) {
  for (const char* prefix : {"model.", "_orig_mod.", "module.", "_orig_mod.model."}) {
    const std::vector<TensorView> before = tensors_;
    for (TensorView& view : tensors_) view.name = prefix + view.name;
    ASSERT_TRUE(has_transformer_lens_names(tensors_)) << prefix;
    expect_same();
    tensors_ = before;
  }
}

TEST_F(LensStateDict, TheLayoutOfTheFirstVersionsIsTurned) {
  turn("embed.W_E", 1, 11, kWidth, {kWidth, 11});
  for (const char* block : {"blocks.0.", "blocks.1."}) {
    for (const char* name : {"attn.W_Q", "attn.W_K", "attn.W_V"})
      turn(std::string(block) + name, 2, kWidth, 5, {2, 5, kWidth});
    turn(std::string(block) + "attn.W_O", 1, 10, kWidth, {kWidth, 10});
    turn(std::string(block) + "mlp.W_in", 1, kWidth, 16, {16, kWidth});
    turn(std::string(block) + "mlp.W_out", 1, 16, kWidth, {kWidth, 16});
  }
  expect_same();
  // And that between, which has a head's outputs by themselves and the output matrix turned.
  for (const char* block : {"blocks.0.", "blocks.1."}) {
    const std::string name = std::string(block) + "attn.W_O";
    turn(name, 1, kWidth, 10, {2, 5, kWidth});
    turn(name, 2, 5, kWidth, {2, kWidth, 5});
  }
  turn("unembed.W_U", 1, kWidth, 5, {5, kWidth});
  expect_same();
}

TEST_F(LensStateDict, BuffersAndBiasesMayBeMissing) {
  erase(".mask"), erase(".IGNORE");
  expect_same();
  for (const char* name : {"blocks.0.mlp.b_in", "blocks.1.attn.b_O", "unembed.b_U"})
    put(name, at(name).shape, std::vector<float>(values(name).size(), 0.0f));
  plain_ = logits(tensors_);
  for (const char* name : {"blocks.0.mlp.b_in", "blocks.1.attn.b_O", "unembed.b_U"}) erase(name);
  expect_same();
}

TEST_F(LensStateDict, WhatDoesNotFitIsNamed) {
  const auto message = [&](const nlohmann::json& settings = nullptr) {
    return error_of([&] { logits(tensors_, settings); });
  };
  EXPECT_THAT(message({{"d_model", 13}}), testing::HasSubstr("d_model is 13 in the settings"));
  EXPECT_THAT(message({{"act_fn", "tanh"}}), testing::HasSubstr("'tanh' is not supported"));
  EXPECT_THAT(message({{"attention_dir", "up"}}), testing::HasSubstr("causal"));
  EXPECT_THAT(message({{"positional_embedding_type", "alibi"}}), testing::HasSubstr("'alibi'"));
  put("blocks.0.attn.W_X", {2}, {1.0f, 2.0f});
  EXPECT_THAT(message(), testing::HasSubstr("does not have: blocks.0.attn.W_X"));
  erase("W_X");
  put("blocks.1.attn.b_Q", {3}, {1.0f, 2.0f, 3.0f});
  EXPECT_THAT(message(), testing::HasSubstr("'blocks.1.attn.b_Q' is [3], not [2, 5]"));
  erase("blocks.1.attn.b_Q");
  erase("blocks.1.mlp.W_out");
  EXPECT_THAT(message(), testing::HasSubstr("'blocks.1.mlp.W_out' [16, 12] is missing"));
  for (TensorView& view : tensors_)
    if (view.name.starts_with("blocks.")) view.name = "attn_" + view.name;
  EXPECT_THAT(message(), testing::HasSubstr("attn_blocks"));
}

TEST_F(LensStateDict, OfAnyExtentItIsReadOrRefused) {
  // Every tensor with each extent changed in turn: an Error, and never a crash.
  const std::vector<TensorView> before = tensors_;
  int refused = 0;
  for (std::size_t t = 0; t < before.size(); ++t)
    for (std::size_t axis = 0; axis < before[t].shape.size(); ++axis)
      for (const std::int64_t extent : {0, 1, 7}) {
        tensors_ = before;
        std::vector<std::int64_t> shape = before[t].shape;
        shape[axis] = extent;
        std::int64_t count = 1;
        for (const std::int64_t n : shape) count *= n;
        put(before[t].name, shape, std::vector<float>(static_cast<std::size_t>(count), 0.5f));
        try {
          logits(tensors_);
        } catch (const Error&) {
          ++refused;
        }
      }
  EXPECT_GT(refused, 100);
}

TEST_F(LensStateDict, SettingsBesideTheFileAreRead) {
  const TemporaryFolder folder;
  std::string warnings;
  const WarningHandler previous =
      set_warning_handler([&](const std::string& text) { warnings += text; });
  std::filesystem::copy_file(golden_folder() / "hooked" / "no_norm.pt", folder.path() / "toy.pt");
  EXPECT_EQ(load_model(folder.path() / "toy.pt")->config().norm, NormKind::kNone);
  EXPECT_THAT(warnings, testing::HasSubstr("act_fn relu"));
  write_json(folder.path() / "toy.json", {{"act_fn", "silu"},
                                          {"attention_dir", "bidirectional"},
                                          {"normalization_type", "LNPre"},
                                          {"use_attn_scale", false},
                                          {"parallel_attn_mlp", true}});
  warnings.clear();
  const ModelConfig config = load_model(folder.path() / "toy.pt")->config();
  EXPECT_EQ(warnings, "");
  EXPECT_EQ(config.activation, Activation::kSilu);
  EXPECT_TRUE(config.bidirectional);
  EXPECT_EQ(config.norm, NormKind::kLayer);
  EXPECT_EQ(config.attention_scale, 1.0);
  EXPECT_EQ(config.residual, ResidualKind::kParallel);
  EXPECT_EQ(read_model_config(folder.path() / "toy.pt", {{"act_fn", "gelu"}}).activation,
            Activation::kGelu);
  set_warning_handler(previous);
}

}  // namespace
}  // namespace filigree
