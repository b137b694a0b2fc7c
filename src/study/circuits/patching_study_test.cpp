#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "filigree/circuit_study.h"
#include "support/errors.h"
#include "support/test_task.h"

namespace filigree::study {
namespace {

using ::testing::HasSubstr;

TEST(PatchRequests, ThatMakeNoSenseAreRefused) {
  PatchRequest request;
  request.task.name = "ioi";
  EXPECT_NO_THROW(check_request(request));
  request.sites = {Site::kResidual};
  EXPECT_NO_THROW(check_request(request));
  request.by = SweepAxis::kHead;
  EXPECT_THROW(check_request(request), RequestError);
  EXPECT_THAT(error_of([&] { check_request(request); }), HasSubstr("resid has no heads"));
  request.sites = {Site::kEmbedding}, request.by = SweepAxis::kPosition;
  EXPECT_THROW(check_request(request), RequestError);
  request.sites = {Site::kZ}, request.direction = PatchDirection::kDenoising;
  EXPECT_NO_THROW(check_request(request));
  request.replacement = Replacement::kZero;
  EXPECT_THAT(error_of([&] { check_request(request); }), HasSubstr("zero values go with noising"));
  request.replacement = Replacement::kCorrupt, request.task.name = "iio";
  EXPECT_THAT(error_of([&] { check_request(request); }), HasSubstr("ioi"));
}

TEST(SweptSites, NameTheirPlacesAndOrderThem) {
  SweptSite heads;
  heads.columns = {"0", "1"};
  heads.sweep.layers = heads.sweep.columns = 2;
  heads.sweep.effects = {{0.1, 0}, {-0.9, 0}, {0.5, 0}, {0, 0}};
  EXPECT_EQ(heads.order(), (std::vector<std::size_t>{1, 2, 0, 3}));
  EXPECT_EQ(heads.place(1), "L0H1");
  SweptSite positions = heads;
  positions.axis = SweepAxis::kPosition;
  positions.columns = {"-2", " to"};
  positions.sweep.from_end = true;
  EXPECT_EQ(positions.place(2), "L1 position -2");
  EXPECT_EQ(positions.place(3), "L1 position -1 ' to'");
  positions.roles = {"S2", "END"};
  EXPECT_EQ(positions.place(2), "L1 position -2 S2");
  EXPECT_EQ(positions.place(3), "L1 position -1 END ' to'");
}

TEST(Patching, SweepsSitesOfModelsSideBySide) {
  const ModelFolder folder;
  const TemporaryFolder scratch;
  PatchRequest request;
  request.task.name = (scratch.path() / "own.jsonl").string();
  write_own_task(folder, request.task.name, 24);
  request.sites = {Site::kZ, Site::kMlpOut};
  const std::vector<LoadedModel> models = load_models({folder.name(), folder.name()}, {});
  const std::int64_t before = models_loaded();
  const PatchResult result = study::run(request, models, {});
  EXPECT_EQ(models_loaded(), before);
  const Json json = to_json(result);
  ASSERT_EQ(json["models"].size(), 2u);
  const Json& model = json["models"][0];
  EXPECT_EQ(model["prompts"], 24);
  ASSERT_EQ(model["sites"].size(), 2u);
  EXPECT_EQ(model["sites"][0]["by"], "layer-head");
  EXPECT_EQ(model["sites"][1]["by"], "layer-position");
  EXPECT_EQ(model["sites"][1]["site"], "mlp-out");
  EXPECT_TRUE(model["sites"][0]["roles"].empty());  // columns are heads
  EXPECT_TRUE(model["sites"][1]["from_end"]);
  EXPECT_EQ(model["sites"][1]["roles"].back(), "END");
  EXPECT_EQ(model["sites"][0]["effect"][1][3],
            result.models[1].sites[0].sweep.at(1, 3).mean);  // the same model twice
  const std::optional<figure::LabelledMaps> figure = figure_of(result);
  ASSERT_TRUE(figure);
  ASSERT_EQ(figure->panels.size(), 4u);
  EXPECT_THAT(figure->title, HasSubstr("z, mlp-out"));
  EXPECT_THAT(figure->panels[3].title, HasSubstr(": mlp-out"));

  request.one_length = true;
  request.sites = {Site::kZ};
  request.by = SweepAxis::kPosition;
  const SweptModel one = study::run(request, std::span(models).first(1), {}).models[0];
  EXPECT_LT(one.prompts.size(), one.task.prompts.prompts.size());
  for (const SweptSite& site : one.sites) {
    EXPECT_FALSE(site.sweep.from_end);
    ASSERT_EQ(site.roles.size(), site.columns.size());
    EXPECT_EQ(site.roles.front(), "START");
    EXPECT_EQ(site.roles.back(), "END");
  }
}

}  // namespace
}  // namespace filigree::study
