// Studies of a model of every family, saved as a folder with a tokenizer of its kind.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "filigree/attention_study.h"
#include "filigree/error.h"
#include "filigree/generation_study.h"
#include "filigree/lens_study.h"
#include "model/family_samples_test_support.h"
#include "support/files.h"
#include "support/temporary_folder.h"

namespace filigree::study {
namespace {

struct FamilyCase {
  const char* family;
  const char* tokenizer;  // of tests/golden
};

class FamilyStudies : public ::testing::TestWithParam<FamilyCase> {
 protected:
  FamilyStudies() {
    nlohmann::json json = sample_family_json(GetParam().family);
    // Generation passes the length from which on positions turn otherwise.
    if (json["model_type"] == "phi3")
      json.update({{"partial_rotary_factor", 1.0},
                   {"original_max_position_embeddings", 16},
                   {"rope_scaling", kSampleLongRope}});
    // Generation leaves out ids that the tokenizer does not have.
    json["vocab_size"] =
        Tokenizer::from_folder(golden_folder() / GetParam().tokenizer).vocab_size();
    const auto model = sample_model(parse_model_config(json, "test"));
    for (const bool gated : {false, true}) {
      if (gated) model->set_gate({{0.3f}});
      const std::string folder = (scratch_.path() / (gated ? "sparse" : "dense")).string();
      save_model(*model, folder);
      std::filesystem::copy_file(golden_folder() / GetParam().tokenizer / "tokenizer.json",
                                 std::filesystem::path(folder) / "tokenizer.json");
      names_.push_back(folder);
    }
    models_ = load_models(names_, {});
  }

  const TemporaryFolder scratch_;
  std::vector<std::string> names_;
  std::vector<LoadedModel> models_;
};

constexpr const char* kText = "The old man and the sea, 1234 and more";

TEST_P(FamilyStudies, AttentionWithRolesStatisticsAndMaps) {
  AttentionRequest request;
  request.prompts = {numbered_prompts({kText}), 12};
  request.roles = request.statistics = true;
  request.heads = "L0H1,L1H0";
  request.files = {scratch_ / "maps.npz", scratch_ / "stats.csv"};
  const AttentionResult result = run(request, models_, {});
  EXPECT_EQ(result.models[0].parameters, models_[0].model().parameter_count());
  EXPECT_FALSE(result.models[0].roles.empty());
  // Without gates every edge is open, however short the window.
  EXPECT_THAT(read_file(scratch_ / "stats.csv"), ::testing::HasSubstr("active_edges"));
  request.roles = request.statistics = false;
  request.kind = MapKind::kScores;
  request.files = {scratch_ / "scores.npz"};
  run(request, models_, {});
}

// Behind the begin-of-text token, where the tokenizer has one; greedily the tokens of whole runs.
TEST_P(FamilyStudies, GenerationTakesTheModelsOwnBestTokens) {
  for (const LoadedModel& model : models_) {
    GenerationRequest request;
    request.prompt = kText;
    request.options = {.sampling = {.temperature = 0.0}, .max_tokens = 6};
    const Generation result = run(request, model, {}, {});
    std::vector<TokenId> ids = model.tokenizer().begin_ids();
    const std::vector<TokenId> text = model.tokenizer().encode(kText);
    ids.insert(ids.end(), text.begin(), text.end());
    EXPECT_EQ(result.prompt_tokens, ids.size());
    ASSERT_FALSE(result.continuations[0].ids.empty());
    for (const TokenId id : result.continuations[0].ids) {
      const Tensor input = Tensor::from_ids({1, static_cast<std::int64_t>(ids.size())}, ids);
      const Variable logits = model.model().forward(input, {.last_position_only = true});
      const std::span<const float> last = logits.value().values();
      EXPECT_EQ(id, std::max_element(last.begin(), last.end()) - last.begin());
      ids.push_back(id);
    }
  }
}

TEST_P(FamilyStudies, TheLogitLensEndsAtTheModelsPrediction) {
  LensRequest request;
  request.prompt = kText;
  const LensResult result = run(request, models_, {});
  for (const LensOfModel& of : result.models) EXPECT_FALSE(of.ids.empty());
}

INSTANTIATE_TEST_SUITE_P(
    Families, FamilyStudies,
    ::testing::Values(
        FamilyCase{"gpt_neo", "tokenizer-neox"}, FamilyCase{"gpt_neox", "tokenizer-neox"},
        FamilyCase{"llama", "tokenizer-llama3"}, FamilyCase{"mistral", "tokenizer-llama2"},
        FamilyCase{"qwen2", "tokenizer-qwen2"}, FamilyCase{"qwen3", "tokenizer-qwen2"},
        FamilyCase{"olmo", "tokenizer-neox"}, FamilyCase{"olmo2", "tokenizer-neox"},
        FamilyCase{"gemma2", "tokenizer-llama2"}, FamilyCase{"gemma3_text", "tokenizer-llama2"},
        FamilyCase{"phi3", "tokenizer-llama2"}, FamilyCase{"phi", "tokenizer-neox"},
        FamilyCase{"gptj", "tokenizer-neox"}, FamilyCase{"gpt_bigcode", "tokenizer-neox"},
        FamilyCase{"opt", "tokenizer-neox"}, FamilyCase{"olmo3", "tokenizer-neox"},
        FamilyCase{"olmoe", "tokenizer-neox"}, FamilyCase{"smollm3", "tokenizer-llama3"},
        FamilyCase{"cohere", "tokenizer-neox"}),
    [](const auto& of) { return std::string(of.param.family); });

}  // namespace
}  // namespace filigree::study
