// Toy models that others trained (../shared/real): loaded as they were published, they do what they
// were trained to do, on data drawn as their courses draw it.
#include <algorithm>
#include <array>
#include <cmath>

#include "base/file_status.h"
#include "filigree/model.h"
#include "filigree/ops.h"
#include "filigree/random.h"
#include "json/json.h"
#include "support/files.h"
#include "support/temporary_folder.h"

namespace filigree {
namespace {

namespace fs = std::filesystem;

const fs::path kReal = FILIGREE_SOURCE_DIR "/../shared/real";

class RealToyModels : public testing::Test {
 protected:
  void SetUp() override {
    if (!is_there(kReal)) GTEST_SKIP() << kReal << " is not there: no models of others to try";
    previous_ = set_warning_handler([this](const std::string& text) { warnings_ += text; });
  }
  void TearDown() override {
    if (previous_) set_warning_handler(previous_);
  }

  static fs::path lens(const char* name) { return kReal / "transformer-lens" / name; }

  // Index of the largest logit at every position of rows of equal length.
  static std::vector<std::int32_t> predictions(const Model& model, std::int64_t rows,
                                               const std::vector<std::int32_t>& ids) {
    const auto length = static_cast<std::int64_t>(ids.size()) / rows;
    const Tensor best = argmax(model.forward(Tensor::from_ids({rows, length}, ids)).value());
    return {best.i32(), best.i32() + best.elements()};
  }

  std::string warnings_;
  WarningHandler previous_;
};

// Ten different numbers below 51, a separator, and the same in order: each position from the
// separator on predicts the next number.
TEST_F(RealToyModels, SortsLists) {
  const auto model = load_model(lens("sorted_list_model.pt"));
  EXPECT_EQ(model->config().mlp, MlpKind::kNone);
  EXPECT_EQ(model->config().norm, NormKind::kLayer);
  EXPECT_NE(warnings_.find("attention_dir causal"), std::string::npos) << warnings_;
  EXPECT_EQ(warnings_.find("act_fn"), std::string::npos) << warnings_;
  constexpr std::int64_t kLists = 1000, kLength = 10, kSeparator = 51;
  Random random(1);
  std::vector<std::int32_t> ids;
  for (std::int64_t list = 0; list < kLists; ++list) {
    std::vector<std::int32_t> all(kSeparator);
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::int32_t>(i);
    for (std::size_t i = 0; i < kLength; ++i)
      std::swap(all[i], all[i + random.below(all.size() - i)]);
    all.resize(kLength);
    ids.insert(ids.end(), all.begin(), all.end());
    ids.push_back(kSeparator);
    std::ranges::sort(all);
    ids.insert(ids.end(), all.begin(), all.end());
  }
  const std::vector<std::int32_t> found = predictions(*model, kLists, ids);
  std::int64_t right = 0;
  for (std::int64_t list = 0; list < kLists; ++list)
    for (std::int64_t i = kLength; i < 2 * kLength; ++i) {
      const auto at = static_cast<std::size_t>(list * (2 * kLength + 1) + i);
      right += found[at] == ids[at + 1] ? 1 : 0;
    }
  const double accuracy = static_cast<double>(right) / static_cast<double>(kLists * kLength);
  RecordProperty("accuracy", std::to_string(accuracy));
  EXPECT_GT(accuracy, 0.998);
}

// Numbers from -5 to 5, negative ones stored from the end as Python counts; the sign of the sum so
// far, as negative, zero or positive.
TEST_F(RealToyModels, TellsTheSignOfSums) {
  const auto model = load_model(lens("cumsum_model.pt"));
  EXPECT_EQ(model->config().outputs(), 3);
  EXPECT_EQ(model->config().norm, NormKind::kNone);
  EXPECT_EQ(model->config().head_width, 12);
  EXPECT_NE(warnings_.find("no normalisation"), std::string::npos) << warnings_;
  Random random(2);
  constexpr std::int64_t kRows = 2000, kLength = 20;
  std::vector<std::int32_t> ids, wanted;
  for (std::int64_t row = 0; row < kRows; ++row) {
    std::int32_t sum = 0;
    for (std::int64_t i = 0; i < kLength; ++i) {
      const std::int32_t value = static_cast<std::int32_t>(random.below(11)) - 5;
      sum += value;
      ids.push_back((value + 11) % 11);
      wanted.push_back(sum < 0 ? 0 : (sum == 0 ? 1 : 2));
    }
  }
  EXPECT_EQ(predictions(*model, kRows, ids), wanted);  // every one of 40,000
}

// Random tokens, among which some pairs have one token that follows: what follows each of the
// 5,625 pairs is either nearly certain or nothing.
TEST_F(RealToyModels, KnowsItsTrigrams) {
  const auto model = load_model(lens("trigram_model.pt"));
  EXPECT_EQ(model->config().head_width, 16);
  constexpr std::int64_t kTokens = 75, kPairs = kTokens * kTokens, kLength = 12, kContexts = 4;
  std::vector<double> least(static_cast<std::size_t>(kPairs), 1.0);
  std::vector<double> most(static_cast<std::size_t>(kPairs), 0.0);
  std::vector<std::int32_t> follows(static_cast<std::size_t>(kPairs), -1);
  Random random(3);
  for (std::int64_t context = 0; context < kContexts; ++context) {
    std::vector<std::int32_t> ids;
    for (std::int64_t pair = 0; pair < kPairs; ++pair) {
      for (std::int64_t i = 0; i + 2 < kLength; ++i)
        ids.push_back(static_cast<std::int32_t>(random.below(kTokens)));
      ids.push_back(static_cast<std::int32_t>(pair / kTokens));
      ids.push_back(static_cast<std::int32_t>(pair % kTokens));
    }
    const Tensor share = softmax(model->forward(Tensor::from_ids({kPairs, kLength}, ids),
                                                {.last_position_only = true}))
                             .value();
    for (std::size_t pair = 0; pair < follows.size(); ++pair) {
      const float* row = share.f32() + pair * kTokens;
      if (context == 0)
        follows[pair] = static_cast<std::int32_t>(std::max_element(row, row + kTokens) - row);
      const auto found = static_cast<double>(row[follows[pair]]);
      least[pair] = std::min(least[pair], found), most[pair] = std::max(most[pair], found);
    }
  }
  const auto certain = std::ranges::count_if(least, [](double x) { return x > 0.8; });
  const auto between =
      kPairs - certain - std::ranges::count_if(most, [](double x) { return x < 0.2; });
  EXPECT_EQ(certain, 221);
  EXPECT_EQ(between, 0);
}

// "(" and ")" between a token of the start and one of the end; the classes at the start are
// unbalanced and balanced. Its padding was masked, so that texts without any are the same to it.
TEST_F(RealToyModels, TellsBalancedBrackets) {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "brackets.pt";
  fs::copy_file(lens("brackets_model_state_dict.pt"), file);
  write_json(folder.path() / "brackets.json", {{"attention_dir", "bidirectional"}});
  const auto model = load_model(file);
  EXPECT_TRUE(model->config().bidirectional);
  EXPECT_EQ(model->config().outputs(), 2);
  EXPECT_EQ(warnings_.find("attention_dir"), std::string::npos) << warnings_;
  Random random(4);
  std::int64_t right = 0, balanced_ones = 0;
  constexpr std::int64_t kTexts = 2000;
  for (std::int64_t text = 0; text < kTexts; ++text) {
    const auto half = static_cast<std::int64_t>(1 + random.below(20));
    std::vector<std::int32_t> ids = {0};
    // A third balanced, a third of as many of both, a third of either at random.
    std::int64_t open = 0, left = half, closing = half;
    bool balanced = true;
    for (std::int64_t i = 0; i < 2 * half; ++i) {
      bool opens = random.below(2) == 0;
      if (text % 3 == 1)
        opens = random.below(static_cast<std::uint64_t>(left + closing)) <
                static_cast<std::uint64_t>(left);
      if (text % 3 == 0) opens = left > 0 && (open == 0 || opens);
      (opens ? left : closing) -= 1;
      open += opens ? 1 : -1;
      balanced = balanced && open >= 0;
      ids.push_back(opens ? 3 : 4);
    }
    balanced = balanced && open == 0;
    balanced_ones += balanced ? 1 : 0;
    ids.push_back(2);
    right += predictions(*model, 1, ids)[0] == (balanced ? 1 : 0) ? 1 : 0;
  }
  EXPECT_GT(balanced_ones, kTexts / 3);
  EXPECT_LT(balanced_ones, kTexts / 2);
  const double accuracy = static_cast<double>(right) / static_cast<double>(kTexts);
  RecordProperty("accuracy", std::to_string(accuracy));
  EXPECT_GT(accuracy, 0.995);
}

TEST_F(RealToyModels, SortsAllInputsOfSixLetters) {
  const auto model = load_model(kReal / "nano-sort");
  std::vector<std::int32_t> ids;
  for (std::int32_t input = 0; input < 729; ++input) {
    std::array<std::int32_t, 6> letters = {};
    for (std::int32_t i = 0, rest = input; i < 6; ++i, rest /= 3)
      letters[static_cast<std::size_t>(i)] = rest % 3;
    ids.insert(ids.end(), letters.begin(), letters.end());
    std::ranges::sort(letters);
    ids.insert(ids.end(), letters.begin(), letters.end() - 1);
  }
  const std::vector<std::int32_t> found = predictions(*model, 729, ids);
  for (std::size_t input = 0; input < 729; ++input) {
    std::vector<std::int32_t> sorted(ids.begin() + static_cast<std::ptrdiff_t>(input * 11),
                                     ids.begin() + static_cast<std::ptrdiff_t>(input * 11 + 6));
    std::ranges::sort(sorted);
    const std::vector<std::int32_t> answer(
        found.begin() + static_cast<std::ptrdiff_t>(input * 11 + 5),
        found.begin() + static_cast<std::ptrdiff_t>(input * 11 + 11));
    EXPECT_EQ(answer, sorted) << "input " << input;
  }
}

}  // namespace
}  // namespace filigree
