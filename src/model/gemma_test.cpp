// The text part of models that see pictures.
#include <gmock/gmock.h>

#include <algorithm>

#include "filigree/model.h"
#include "io/checkpoint.h"
#include "io/safetensors_writer.h"
#include "json/json.h"
#include "model/family_samples_test_support.h"
#include "support/errors.h"
#include "support/golden.h"
#include "support/temporary_folder.h"

namespace filigree {
namespace {

namespace fs = std::filesystem;

class Gemma3Pictures : public testing::TestWithParam<const char*> {
 protected:
  const fs::path text_ = golden_folder() / "gemma3-tiny";

  // The text model's folder as a model that sees pictures has it.
  void write(const fs::path& folder, const std::string& prefix) const {
    nlohmann::json config = {{"model_type", "gemma3"},
                             {"architectures", {"Gemma3ForConditionalGeneration"}},
                             {"text_config", read_json(text_ / "config.json")},
                             {"vision_config", {{"hidden_size", 8}}},
                             {"mm_tokens_per_image", 4}};
    config["text_config"].erase("architectures");
    write_json(folder / "config.json", config);
    const SafetensorsFile file = SafetensorsFile::open(text_ / "model.safetensors");
    const std::vector<float> picture(6, 1.0f);
    std::vector<TensorToWrite> tensors = {
        tensor_to_write("vision_tower.patch.weight", TensorKind::kF32, {2, 3},
                        std::as_bytes(std::span(picture))),
        tensor_to_write("multi_modal_projector.norm.weight", TensorKind::kF32, {6},
                        std::as_bytes(std::span(picture)))};
    for (const TensorView& view : file.tensors()) {
      // "model.x" is "language_model.model.x", or "model.language_model.x" of transformers 5.
      const std::string name =
          prefix == "model." ? "model.language_model." + view.name.substr(6) : prefix + view.name;
      tensors.push_back(tensor_to_write(name, view.kind, view.shape, view.bytes()));
    }
    write_safetensors(folder / "model.safetensors", tensors);
  }
};

TEST_P(Gemma3Pictures, AreReadAsTheirTextPart) {
  const TemporaryFolder folder, saved;
  write(folder.path(), GetParam());
  const auto text = load_model(text_), found = load_model(folder.path());
  EXPECT_EQ(found->config().family, "gemma3_text");
  Tensor ids = sample_ids(1, 9);
  for (std::int64_t i = 0; i < 9; ++i) ids.mutable_i32()[i] %= 40;
  const Tensor wanted = text->forward(ids).value();
  EXPECT_TRUE(std::ranges::equal(found->forward(ids).value().values(), wanted.values()));
  // Saved, it is a text model.
  save_model(*found, saved.path());
  EXPECT_EQ(read_json(saved.path() / "config.json")["model_type"], "gemma3_text");
  EXPECT_TRUE(
      std::ranges::equal(load_model(saved.path())->forward(ids).value().values(), wanted.values()));
}

INSTANTIATE_TEST_SUITE_P(, Gemma3Pictures, testing::Values("language_model.", "model."),
                         [](const auto& prefix) { return sample_test_name(prefix.param); });

TEST(Gemma3, TextPartsTakeTheDefaultsOfTheirClass) {
  const nlohmann::json text = {{"hidden_size", 2560},
                               {"intermediate_size", 10240},
                               {"num_hidden_layers", 34},
                               {"rope_scaling", {{"factor", 8.0}, {"rope_type", "linear"}}},
                               {"sliding_window", 1024}};
  const ModelConfig config =
      parse_model_config({{"model_type", "gemma3"}, {"text_config", text}}, "test");
  EXPECT_EQ(config.heads, 8);
  EXPECT_EQ(config.key_heads, 4);
  EXPECT_EQ(config.head_width, 256);
  EXPECT_EQ(config.vocabulary, 262208);
  EXPECT_EQ(config.context, 131072);
  EXPECT_EQ(config.window(5), 0);
  EXPECT_EQ(config.window(6), 1024);
  EXPECT_EQ(config.rotary_angles(5).base, 1e6);
  EXPECT_EQ(config.rotary_angles(5).scaling.factor, 8.0);
  EXPECT_EQ(config.rotary_angles(4), (RotaryAngles{1e4, {}}));
  EXPECT_THAT(error_of([&] {
                parse_model_config({{"model_type", "gemma3"}, {"text_config", 3}}, "test");
              }),
              testing::HasSubstr("text_config"));
}

}  // namespace
}  // namespace filigree
