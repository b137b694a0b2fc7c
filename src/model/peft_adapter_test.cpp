// Adapters in peft's layout: written and read again they are the merged model, and what does not
// fit is refused by name. tests/peft_golden_test.cpp compares with peft.
#include "model/peft_adapter.h"

#include <algorithm>
#include <cmath>
#include <fstream>

#include "io/folder_checksums.h"
#include "io/safetensors.h"
#include "io/safetensors_writer.h"
#include "json/json.h"
#include "model/family_samples_test_support.h"
#include "model/lora_test_support.h"
#include "support/temporary_folder.h"

namespace filigree {
namespace {

class PeftAdapter : public testing::TestWithParam<const char*> {
 protected:
  std::filesystem::path adapter() const { return folder_.path() / "adapter"; }

  TemporaryFolder folder_;
};

TEST_P(PeftAdapter, SavedAndReadItIsTheMergedModel) {
  const std::string name = GetParam();
  const auto base = sample_model(name), adapted = sample_model(name + "+gated+adapted");
  save_peft_adapter(peft_adapter_of(*adapted, "the-base"), adapted->config(), adapter());
  adapted->merge_lora();

  EXPECT_TRUE(is_peft_adapter(adapter()));
  EXPECT_EQ(base_of_adapter(adapter()), "the-base");
  EXPECT_EQ(adapted_config(base->config(), adapter()).gate.bias, std::vector<float>({-0.2f}));
  const auto read = adapted_model(*base, adapter());
  EXPECT_EQ(read->config().gate.bias, std::vector<float>({-0.2f}));
  const Tensor ids = sample_ids(2, 9);
  const Tensor found = read->forward(ids).value(), wanted = adapted->forward(ids).value();
  for (std::int64_t i = 0; i < found.elements(); ++i)
    EXPECT_NEAR(found.f32()[i], wanted.f32()[i], 1e-5) << i;
  // What the adapters leave alone is in the memory of the base.
  EXPECT_EQ(read->parameters()[0].variable.value().raw(),
            base->parameters()[0].variable.value().raw());
  std::size_t changed = 0;
  for (std::size_t p = 0; p < base->parameters().size(); ++p)
    changed +=
        read->parameters()[p].variable.value().raw() != base->parameters()[p].variable.value().raw()
            ? 1
            : 0;
  EXPECT_GT(changed, 0u);
  EXPECT_LT(changed, base->parameters().size() / 2);
}

INSTANTIATE_TEST_SUITE_P(Families, PeftAdapter,
                         testing::Values("gpt2", "llama", "family-gpt_neox", "family-gpt_neo"),
                         [](const auto& sample) { return sample_test_name(sample.param); });

class PeftAdapterFiles : public testing::Test {
 protected:
  PeftAdapterFiles() {
    save_peft_adapter(peft_adapter_of(*sample_model("llama+adapted"), "the-base"), base_->config(),
                      folder_.path());
    std::filesystem::remove(folder_.path() / kChecksumsFile);
  }

  void say(const nlohmann::json& settings) {
    nlohmann::json config = read_json(folder_.path() / kAdapterConfig);
    config.update(settings);
    write_json(folder_.path() / kAdapterConfig, config);
  }

  // The file of weights with one tensor called otherwise, or of another shape.
  void change(const std::string& from, const std::string& to,
              std::vector<std::int64_t> shape = {}) {
    const std::filesystem::path file = folder_.path() / "adapter_model.safetensors";
    std::vector<TensorToWrite> tensors;
    std::vector<std::vector<std::byte>> kept;
    const SafetensorsFile before = SafetensorsFile::open(file);
    for (const TensorView& view : before.tensors()) {
      kept.emplace_back(view.bytes().begin(), view.bytes().end());
      tensors.push_back({view.name == from ? to : view.name, view.kind,
                         view.name == from && !shape.empty() ? shape : view.shape,
                         [bytes = kept.back()] { return std::span<const std::byte>(bytes); }});
    }
    write_safetensors(file, tensors);
  }

  TemporaryFolder folder_;
  std::unique_ptr<Model> base_ = sample_model("llama");
};

constexpr const char* kQueries = "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight";

TEST_F(PeftAdapterFiles, WhatPeftDoesBesidesIsRefusedByName) {
  const nlohmann::json others[] = {{{"peft_type", "IA3"}},
                                   {{"use_dora", true}},
                                   {{"lora_bias", true}},
                                   {{"layer_replication", {{0, 1}}}},
                                   {{"target_parameters", {"experts"}}}};
  for (const nlohmann::json& other : others) {
    const nlohmann::json before = read_json(folder_.path() / kAdapterConfig);
    say(other);
    EXPECT_ERROR_WITH(adapted_model(*base_, folder_.path()), other.begin().key());
    write_json(folder_.path() / kAdapterConfig, before);
  }
  adapted_model(*base_, folder_.path());
}

TEST_F(PeftAdapterFiles, WhatDoesNotFitIsNamed) {
  EXPECT_ERROR_WITH(adapted_model(*sample_model("gpt2"), folder_.path()),
                    "'model.layers.0.self_attn.k_proj.weight', which the base model");
  say({{"r", 4}});
  EXPECT_ERROR_WITH(adapted_model(*base_, folder_.path()), "the rank 4 and has 3");
  say({{"r", 3}, {"rank_pattern", {{"layers.*.q_proj", 3}}}});
  EXPECT_ERROR_WITH(adapted_model(*base_, folder_.path()), "regular expression 'layers.*.q_proj'");
  say({{"rank_pattern", nlohmann::json::object()}});
  change(kQueries, kQueries, {24, 3});
  EXPECT_ERROR_WITH(adapted_model(*base_, folder_.path()), "are [24, 3] and [32, 3]");
  change(kQueries, kQueries, {3, 24});
  change(kQueries, "base_model.model.model.layers.0.self_attn.q_proj.lora_C.weight");
  EXPECT_ERROR_WITH(adapted_model(*base_, folder_.path()), "q_proj.lora_C.weight'");
}

TEST_F(PeftAdapterFiles, HalfAnAdapterAndNoneAreNamed) {
  change(kQueries, "model.layers.0.self_attn.q_proj.lora_A.weight");
  EXPECT_ERROR_WITH(adapted_model(*base_, folder_.path()), "does not begin with");
  std::filesystem::remove(folder_.path() / "adapter_model.safetensors");
  EXPECT_ERROR_WITH(adapted_model(*base_, folder_.path()), "there is no adapter_model.safetensors");
  say({{"base_model_name_or_path", ""}});
  EXPECT_ERROR_WITH(base_of_adapter(folder_.path()), "--adapter");
}

TEST_F(PeftAdapterFiles, DamageIsNoticed) {
  write_checksums(folder_.path(), {"adapter_model.safetensors"});
  std::fstream file(folder_.path() / "adapter_model.safetensors",
                    std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(-3, std::ios::end);
  file.put('x');
  file.close();
  EXPECT_ERROR_WITH(adapted_model(*base_, folder_.path()), "adapter_model.safetensors");
}

// Scales as peft has them: by the root of the rank, and of single layers.
TEST_F(PeftAdapterFiles, ScalesAreThoseOfPeft) {
  const auto weight = [&] {
    const auto model = adapted_model(*base_, folder_.path());
    for (const NamedParameter& p : model->parameters())
      if (p.name == "model.layers.0.self_attn.q_proj.weight")
        return std::vector<float>(p.variable.value().values().begin(),
                                  p.variable.value().values().end());
    throw std::runtime_error("no q_proj");
  };
  const std::vector<float> by_two = weight();
  say({{"use_rslora", true}, {"lora_alpha", 2 * std::sqrt(3.0)}});
  const std::vector<float> by_root = weight();
  say({{"use_rslora", false}, {"lora_alpha", 1.0}, {"alpha_pattern", {{"self_attn.q_proj", 6.0}}}});
  const std::vector<float> by_pattern = weight();
  say({{"alpha_pattern", {{"elf_attn.q_proj", 600.0}, {"^self_attn.q_proj", 600.0}}}});
  const std::vector<float> by_none = weight();
  double apart = 0.0;
  for (std::size_t i = 0; i < by_two.size(); ++i) {
    EXPECT_NEAR(by_root[i], by_two[i], 1e-6);
    EXPECT_EQ(by_pattern[i], by_two[i]);
    apart = std::max(apart, static_cast<double>(std::abs(by_none[i] - by_two[i])));
  }
  EXPECT_GT(apart, 1e-3);
}

}  // namespace
}  // namespace filigree
