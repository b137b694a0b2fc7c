// Adapters in model folders.
#include <filesystem>

#include "io/folder_checksums.h"
#include "io/safetensors_writer.h"
#include "json/json.h"
#include "model/lora_test_support.h"
#include "support/check_op.h"
#include "support/temporary_folder.h"

namespace filigree {
namespace {

class LoraFiles : public testing::Test {
 protected:
  LoraFiles() { save_model(*model_, folder_.path(), {.keep_adapters = true}); }

  void change_config(const nlohmann::json& lora) {
    nlohmann::json config = read_json(folder_.path() / "config.json");
    config["lora"] = lora;
    write_json(folder_.path() / "config.json", config);
  }

  TemporaryFolder folder_;
  std::unique_ptr<Model> model_ = adapted_model(kGated);
};

TEST_F(LoraFiles, UnmergedAdaptersAreRefusedUnlessTheyAreToBeKept) {
  const TemporaryFolder elsewhere;
  EXPECT_ERROR_WITH(save_model(*model_, elsewhere.path() / "model"), "merge them first");
  EXPECT_FALSE(std::filesystem::exists(elsewhere.path() / "model"));
}

TEST_F(LoraFiles, KeptTheyAreThereAgain) {
  const auto loaded = load_model(folder_.path());
  EXPECT_EQ(loaded->lora(), model_->lora());
  EXPECT_EQ(logits_of(*loaded), logits_of(*model_));
  for (std::size_t i = 0; i < 16; ++i) {
    const NamedParameter &a = loaded->lora_parameters()[i], &b = model_->lora_parameters()[i];
    EXPECT_EQ(a.name, b.name);
    EXPECT_EQ(to_doubles(a.variable.value()), to_doubles(b.variable.value())) << a.name;
    EXPECT_FALSE(a.variable.requires_grad());
  }
  // Merged and saved over them they are gone.
  loaded->merge_lora();
  save_model(*loaded, folder_.path());
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "adapters.safetensors"));
  const auto merged = load_model(folder_.path());
  EXPECT_FALSE(merged->lora().has_value());
  EXPECT_FALSE(merged->config().source.contains("lora"));
  EXPECT_EQ(logits_of(*merged), logits_of(*loaded));
}

TEST_F(LoraFiles, DamagedOnesAreNamed) {
  // Written by somebody else: with checksums any change is refused before it is looked at.
  std::filesystem::remove(folder_.path() / kChecksumsFile);
  change_config({{"rank", 4}, {"alpha", 6.0}});
  EXPECT_ERROR_WITH(load_model(folder_.path()), "'h.0.attn.lora_q.down' is [24, 3]");
  change_config({{"rank", 1000000000}, {"alpha", 6.0}});
  EXPECT_ERROR_WITH(load_model(folder_.path()), "rank 1000000000 is above 24");
  change_config({{"rank", 3}, {"alpha", -6.0}});
  EXPECT_ERROR_WITH(load_model(folder_.path()), "alpha -6");
  change_config({{"alpha", 6.0}});
  EXPECT_ERROR_WITH(load_model(folder_.path()), "lora.rank");
  change_config({{"rank", 3}, {"alpha", 6.0}});
  load_model(folder_.path());

  std::vector<TensorToWrite> tensors;
  const auto bytes = [](const Variable& variable) {
    return std::span(variable.value().raw(), variable.value().bytes());
  };
  for (const NamedParameter& p : model_->lora_parameters()) {
    const auto extents = p.variable.shape().extents();
    tensors.push_back(tensor_to_write(p.name, TensorKind::kF32, {extents.begin(), extents.end()},
                                      bytes(p.variable)));
  }
  auto more = tensors, fewer = tensors;
  more.push_back(more.back());
  more.back().name = "h.2.attn.lora_q.down";
  fewer.pop_back();
  write_safetensors(folder_.path() / "adapters.safetensors", more);
  EXPECT_ERROR_WITH(load_model(folder_.path()), "17 tensors");
  write_safetensors(folder_.path() / "adapters.safetensors", fewer);
  EXPECT_ERROR_WITH(load_model(folder_.path()), "h.1.attn.lora_o.up");
  std::filesystem::remove(folder_.path() / "adapters.safetensors");
  EXPECT_ERROR_WITH(load_model(folder_.path()), "adapters.safetensors");
}

}  // namespace
}  // namespace filigree
