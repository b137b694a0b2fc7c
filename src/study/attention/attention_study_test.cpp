#include "filigree/attention_study.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "filigree/error.h"
#include "support/files.h"
#include "support/model_folder.h"
#include "support/npz_reader.h"

namespace filigree::study {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
using ::testing::ThrowsMessage;

const std::vector<std::string> kTexts = {"one two three four five", "red apple green pear plum"};

class AttentionStudyTest : public ::testing::Test {
 protected:
  AttentionStudyTest()
      : sparse_(dense_.gated(scratch_ / "sparse", {{0.1f}})),
        models_(load_models({dense_.name(), sparse_}, {})) {
    request_.prompts = {numbered_prompts(kTexts), 5};
  }

  AttentionResult run(std::size_t models = 2) const {
    return study::run(request_, std::span(models_).first(models), {});
  }

  const ModelFolder dense_;
  const TemporaryFolder scratch_;
  const std::string sparse_;
  const std::vector<LoadedModel> models_;
  AttentionRequest request_;
};

TEST_F(AttentionStudyTest, LoadsNothingWhateverIsAskedFor) {
  const std::int64_t before = models_loaded();
  request_.roles = request_.statistics = request_.pairs = true;
  request_.files = {scratch_ / "maps.npz", scratch_ / "stats.csv"};
  const AttentionResult result = run();
  request_.average = true;
  request_.files.push_back(scratch_ / "mean.svg");
  run();
  EXPECT_EQ(models_loaded(), before);
  EXPECT_EQ(result.models[1].label, "sparse");
  EXPECT_EQ(result.models[0].parameters, models_[0].model().parameter_count());
  EXPECT_EQ(result.models[0].roles.size(), 8u);
  ASSERT_TRUE(result.comparison);
  EXPECT_THAT(read_file(scratch_ / "stats.csv"), StartsWith("scope,layer,head,over,statistic,"));
}

TEST_F(AttentionStudyTest, MapsAreTakenAlongInThePass) {
  request_.statistics = true;
  request_.heads = "L0H1,L1H3";
  for (const MapKind kind : {MapKind::kWeights, MapKind::kScores, MapKind::kGate}) {
    request_.kind = kind;
    const std::string name = "." + std::string(name_of(kind)) + ".npy";
    const std::vector<Prompt> prompts = read_prompts(request_.prompts, models_, {}).prompts;
    request_.average = false;
    request_.files = {scratch_ / "each.npz", scratch_ / "each.json"};
    run();
    request_.average = true;
    request_.files = {scratch_ / "mean.npz"};
    run();
    const auto each = read_zip((scratch_ / "each.npz").string());
    const auto mean = read_zip((scratch_ / "mean.npz").string());
    EXPECT_EQ(Json::parse(read_file(scratch_ / "each.json"))["series"].size(), 4u);
    for (std::size_t m = 0; m < 2; ++m) {
      const std::string model = "model" + std::to_string(m);
      // As the library gives them by themselves.
      std::vector<std::vector<float>> expected(prompts.size());
      capture_maps(models_[m].model(), prompts, CaptureOptions::of({{0, 1}, {1, 3}}, kind),
                   [&](std::span<const HeadMap> heads) {
                     std::vector<float> map(25);
                     for (const HeadMap& head : heads) {
                       fill_map(head, kind, map);
                       expected[head.prompt].insert(expected[head.prompt].end(), map.begin(),
                                                    map.end());
                     }
                   });
      for (std::size_t p = 0; p < prompts.size(); ++p)
        EXPECT_EQ(parse_npy(each.at(model + ".prompt" + std::to_string(p) + name)).values<float>(),
                  expected[p]);
      const std::vector<float> means = parse_npy(mean.at(model + ".mean" + name)).values<float>();
      ASSERT_EQ(means.size(), 50u);
      for (std::size_t c = 0; c < 50; ++c)
        if (std::isfinite(expected[0][c])) {
          EXPECT_NEAR(means[c], (expected[0][c] + expected[1][c]) / 2, 1e-5);
        }
    }
  }
}

TEST_F(AttentionStudyTest, AFigureShowsOnePromptOrTheMean) {
  request_.files = {scratch_ / "maps.svg"};
  EXPECT_THAT([&] { run(); }, ThrowsMessage<RequestError>(HasSubstr("or the mean of 2")));
  request_.average = true;
  run();
  const std::string mean = read_file(scratch_ / "maps.svg");
  EXPECT_THAT(mean, HasSubstr("<svg"));
  request_.average = false;
  request_.prompts = {numbered_prompts({kTexts[0]}), 5};
  run();
  const std::string plain = read_file(scratch_ / "maps.svg");
  EXPECT_NE(plain, mean);
  request_.roles = true;  // now known, and marked
  run();
  EXPECT_NE(read_file(scratch_ / "maps.svg"), plain);
}

TEST_F(AttentionStudyTest, RefusesWhatMakesNoSense) {
  request_.files = {scratch_ / "maps.txt"};
  EXPECT_THAT([&] { check_request(request_); }, ThrowsMessage<RequestError>(HasSubstr(".npz")));
  request_.files = {scratch_ / "stats.csv"};
  request_.average = true;
  EXPECT_THROW(check_request(request_), RequestError);
  request_.average = false;
  EXPECT_THROW(run(0), RequestError);
  request_.heads = "L2H0";
  EXPECT_THAT([&] { run(); }, ThrowsMessage<Error>(HasSubstr("no 'L2H0'")));
  EXPECT_FALSE(std::filesystem::exists(scratch_ / "stats.csv"));
}

TEST_F(AttentionStudyTest, JsonHasEveryKeyAndNamesHeads) {
  request_.roles = true;
  const Json one = to_json(run(1));
  EXPECT_EQ(one["heads"][5], "L1H1");
  const Json& role = one["models"][0]["roles"][5];
  EXPECT_EQ(role["name"], "L1H1");
  EXPECT_EQ(role["layer"], 1);
  EXPECT_EQ(role["head"], 1);
  for (const char* key : {"statistics", "pairs"})
    EXPECT_TRUE(one["models"][0].at(key).is_null()) << key;
  EXPECT_TRUE(one.at("comparison").is_null());
  EXPECT_TRUE(one.at("files").empty());
  request_.roles = false;
  request_.statistics = request_.pairs = true;
  const Json two = to_json(run());
  EXPECT_TRUE(two["models"][1].at("roles").is_null());
  EXPECT_EQ(two["models"][1]["pairs"]["order"].size(), 8u);
  EXPECT_TRUE(two["models"][1]["pairs"]["order"][0].is_string());
  EXPECT_EQ(two["comparison"]["heads"][7]["name"], "L1H3");
}

TEST_F(AttentionStudyTest, ReportsPromptsAndStopsBetweenLayers) {
  struct Counted final : WorkReport {
    explicit Counted(std::vector<std::int64_t>& list) : counts(list) {}
    void update(std::int64_t done, std::string_view) override { counts.push_back(done); }
    void finish() override { counts.push_back(-1); }
    std::vector<std::int64_t>& counts;
  };
  std::vector<std::int64_t> seen;
  std::vector<std::string> labels;
  Context context;
  context.watch = [&](const Work& work) {
    labels.push_back(work.label);
    return std::make_unique<Counted>(seen);
  };
  request_.pairs = true;
  study::run(request_, models_, context);
  EXPECT_EQ(labels.size(), 2u);
  EXPECT_EQ(labels[1], "sparse");
  EXPECT_EQ(seen, (std::vector<std::int64_t>{1, 2, -1, 1, 2, -1}));
  context.stop = [] { return true; };
  EXPECT_THROW(study::run(request_, models_, context), Stopped);
}

TEST(GridLayout, HasALayerARowWhereWholeLayersAreShown) {
  ModelConfig config;
  config.layers = 4, config.heads = 3;
  const auto columns = [&](const std::string& heads) {
    return columns_of_layers(heads_in_order(heads, config), config.heads);
  };
  EXPECT_EQ(columns("*"), 3u);
  EXPECT_EQ(columns("L3,L1"), 3u);  // in any order of layers
  EXPECT_EQ(columns("L0H0"), 0u);
  EXPECT_EQ(columns("L1H2,L1H1,L1H0"), 0u);
  EXPECT_EQ(columns("L0H0,L1H1,L2H2"), 0u);

  EXPECT_EQ(heads_in_order("L3H1,L0H2,L3", config),
            (std::vector<HeadId>{{3, 1}, {0, 2}, {3, 0}, {3, 2}}));
}

TEST_F(AttentionStudyTest, MeansHaveIntervalsOverThePrompts) {
  request_.statistics = true;
  const AttentionResult result = run();
  ASSERT_TRUE(result.comparison);
  for (const ComparedStatistic& row : *result.comparison) {
    if (row.group.scope != HeadGroup::Scope::kModel) continue;
    const figure::Estimate estimate = mean_with_interval(row, 0);
    EXPECT_DOUBLE_EQ(estimate.value, row.first);
    // Of two prompts: between their values, which the ends of a bootstrap of two reach.
    const std::vector<double> series =
        result.models[0].statistics->series(row.group, row.statistic, row.over);
    ASSERT_EQ(series.size(), 2u);
    EXPECT_DOUBLE_EQ(estimate.low, std::min(series[0], series[1]));
    EXPECT_DOUBLE_EQ(estimate.high, std::max(series[0], series[1]));
  }
  request_.prompts = {numbered_prompts({kTexts[0]}), 5};
  const AttentionResult one = run();
  const figure::Estimate alone = mean_with_interval(one.comparison->front(), 0);
  EXPECT_EQ(alone.low, alone.high);
}

}  // namespace
}  // namespace filigree::study
