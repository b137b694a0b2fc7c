// Logit lens, logit attribution and head circuits as studies.
#include "filigree/lens_study.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "support/errors.h"
#include "support/test_task.h"

namespace filigree::study {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class Lens : public ::testing::Test {
 protected:
  const ModelFolder folder_;
  const std::vector<LoadedModel> models_ = load_models({folder_.name()}, {});
};

TEST_F(Lens, LastPointIsTheModelsOwnPrediction) {
  const LensRequest request = {.prompt = "The cat sat on the", .token = " the", .middle = true};
  const LensResult result = study::run(request, models_, {});
  const LensOfModel& found = result.models[0];
  ASSERT_EQ(found.lens.points.size(), 5u);
  const Tensor ids = Tensor::from_ids({1, static_cast<std::int64_t>(found.ids.size())}, found.ids);
  const Tensor logits = models_[0].model().forward(ids, {.last_position_only = true}).value();
  const auto likeliest = static_cast<TokenId>(
      std::max_element(logits.f32(), logits.f32() + logits.elements()) - logits.f32());
  EXPECT_EQ(found.lens.at(4, found.lens.positions - 1).top[0].id, likeliest);
  const Json json = to_json(result)["models"][0];
  EXPECT_EQ(json["token"], " the");
  EXPECT_EQ(json["points"][4]["positions"].back()["top"][0]["token"],
            models_[0].tokenizer().token_text(likeliest));
  EXPECT_EQ(figure_of(result).panels[0].words.size(), 5 * found.ids.size());
}

TEST_F(Lens, OfAChangedRunEndsWithItsPrediction) {
  RunRequest run = {.prompt = "The cat sat on the", .tokens = {" the"}};
  run.interventions.add_ablations("L0H1,L1MLP");
  LensRequest request = {.prompt = run.prompt, .token = " the"};
  request.interventions = run.interventions;
  const RunResult expected = study::run(run, models_[0], {});
  const LensResult result = study::run(request, models_, {});
  const LogitLens& lens = result.models[0].lens;
  const LensCell& last = lens.at(lens.points.size() - 1, lens.positions - 1);
  EXPECT_NEAR(std::exp(last.log_probability), expected.changed->listed[0].probability, 1e-5);
  EXPECT_EQ(last.rank, expected.changed->listed[0].rank);
  EXPECT_NE(expected.changed->listed[0].logit, expected.plain.listed[0].logit);
  EXPECT_EQ(to_json(result)["interventions"].size(), 2u);
}

TEST_F(Lens, WithoutATokenRanksEachNextOne) {
  const Json json =
      to_json(study::run(LensRequest{.prompt = "The cat sat"}, models_, {}))["models"][0];
  EXPECT_TRUE(json["token"].is_null());
  EXPECT_FALSE(json["points"][0]["positions"][0]["rank"].is_null());
  EXPECT_TRUE(json["points"][0]["positions"].back()["rank"].is_null());
}

TEST_F(Lens, RefusesWhatIsNoPromptOrToken) {
  EXPECT_THAT(error_of([&] { study::run(LensRequest{}, models_, {}); }), HasSubstr("empty"));
  EXPECT_THAT(error_of([&] {
                study::run(LensRequest{.prompt = "a", .token = " extraordinarily long"}, models_,
                           {});
              }),
              AllOf(HasSubstr("the token"), HasSubstr("not one")));
  std::string much;
  for (int i = 0; i < 100; ++i) much += " cat";
  EXPECT_THAT(error_of([&] { study::run(LensRequest{.prompt = much}, models_, {}); }),
              HasSubstr("more than the context of 64"));
}

TEST_F(Lens, AttributionOfAPromptSumsToTheLogitDifference) {
  AttributionRequest request;
  request.prompt = "The cat", request.answers = {" the"}, request.wrong = {" a"};
  const AttributionResult result = study::run(request, models_, {});
  const Json json = to_json(result)["models"][0];
  double parts = 0, sums = 0;
  for (const Json& part : json["parts"]) parts += part["contribution"].get<double>();
  for (const auto& [name, sum] : json["sums"].items()) sums += sum["mean"].get<double>();
  const double total = json["total"]["mean"];
  EXPECT_GT(std::abs(total), 0.01);
  EXPECT_NEAR(parts, total, 1e-3);
  EXPECT_NEAR(sums, total, 1e-3);
  EXPECT_TRUE(json["check"].is_null());
  EXPECT_EQ(json["parts"][2]["kind"], "head");
  EXPECT_EQ(json["parts"][2]["part"], "L0H0");
  EXPECT_EQ(measured_text(request), "logit of ' the' less that of ' a'");
  const figure::LabelledMaps figure = figure_of(result);
  EXPECT_EQ(figure.panels[0].values.size(), 2u * 5);  // 4 heads and the MLP
  EXPECT_FLOAT_EQ(figure.panels[0].values[0], json["parts"][2]["contribution"].get<float>());
}

TEST_F(Lens, AttributionOfAChangedRunExplainsThatRun) {
  RunRequest run = {.prompt = "The cat sat on the", .tokens = {" the"}};
  run.interventions.add_ablations("L0H1,L1MLP");
  AttributionRequest request;
  request.prompt = run.prompt, request.answers = {" the"};
  request.interventions = run.interventions;
  const RunResult expected = study::run(run, models_[0], {});
  const Json json = to_json(study::run(request, models_, {}));
  EXPECT_NEAR(json["models"][0]["total"]["mean"].get<double>(), expected.changed->listed[0].logit,
              1e-3);
  EXPECT_EQ(json["interventions"].size(), 2u);
  for (const Json& part : json["models"][0]["parts"])
    if (part["part"] == "L0H1" || part["part"] == "L1 MLP") {
      EXPECT_EQ(part["contribution"], 0) << part;
    }
}

TEST_F(Lens, AttributionOfATokenOfThePromptIsThatAfterThoseBeforeIt) {
  AttributionRequest whole, part;
  whole.prompt = "The cat sat", part.prompt = "The cat";
  whole.at = 2;
  part.answers = {" sat"};
  const auto total = [&](const AttributionRequest& request) {
    return study::run(request, models_, {}).models[0].found.total[0];
  };
  if (prompt_tokens(models_[0], whole.prompt).size() == 3) {
    EXPECT_NEAR(total(whole), total(part), 1e-4);
  }
  whole.at = 99;
  EXPECT_THAT(error_of([&] { total(whole); }), HasSubstr("position 99"));
  whole.at = 0;
  EXPECT_THAT(error_of([&] { total(whole); }), HasSubstr("needs one before it"));
}

TEST(AttributionRequests, AreATaskOrAPromptWithItsAnswer) {
  const auto refused = [](const AttributionRequest& request) {
    EXPECT_THROW(check_request(request), RequestError);
    return error_of([&] { check_request(request); });
  };
  AttributionRequest neither, both, unanswered, answered;
  both.task.name = answered.task.name = "ioi";
  both.prompt = unanswered.prompt = "a";
  answered.wrong = {" a"};
  EXPECT_THAT(refused(neither), HasSubstr("either a task"));
  EXPECT_THAT(refused(both), HasSubstr("either a task"));
  EXPECT_THAT(refused(unanswered), HasSubstr("needs an answer"));
  EXPECT_THAT(refused(answered), HasSubstr("go with a prompt"));
  AttributionRequest twice = unanswered, changed;
  twice.answers = {" a"}, twice.at = 1;
  changed.task.name = "ioi";
  changed.interventions.add_ablations("L0H0");
  EXPECT_THAT(refused(twice), HasSubstr("or a position"));
  EXPECT_THAT(refused(changed), HasSubstr("changes go with a prompt"));
}

TEST_F(Lens, HeadCircuitsListTheStrongestOfAllPairs) {
  HeadCircuitsRequest request;
  request.heads = "L0H0", request.top = 3, request.from = {" the"}, request.less_random = true;
  const HeadCircuits found = study::run(request, models_[0], {});
  const Json json = to_json(found, Matrices::kEvery);
  ASSERT_EQ(json["heads"].size(), 8u);
  EXPECT_EQ(json["heads"][5]["name"], "L1H1");
  EXPECT_EQ(json["heads"][5]["layer"], 1);
  EXPECT_EQ(json["heads"][5]["head"], 1);
  const Json& q = json["composition"]["q"];
  ASSERT_EQ(q["strongest"].size(), 3u);
  EXPECT_TRUE(q["scores"][4][1].is_null());  // nothing reads backwards
  double most = -1;
  for (std::size_t a = 0; a < 4; ++a)
    for (std::size_t b = 4; b < 8; ++b) most = std::max(most, q["scores"][a][b].get<double>());
  EXPECT_EQ(q["strongest"][0]["score"], most);
  EXPECT_TRUE(to_json(found, Matrices::kLeftOut)["composition"]["q"]["scores"].is_null());
  ASSERT_EQ(found.pairs.size(), 1u);
  for (const Json& pair : json["token_pairs"][0]["ov"]) EXPECT_EQ(pair["from"], " the");
  EXPECT_EQ(figure_of(found).panels.size(), 3u);
  EXPECT_EQ(json["input"], "mlp0");
  EXPECT_TRUE(json["living_heads"].is_null());  // no gates: every head attends
  request.heads.clear();
  EXPECT_THROW(study::run(request, models_[0], {}), RequestError);
}

TEST_F(Lens, HeadCircuitsOfAGatedModelAreThoseOfHeadsThatOpen) {
  const TemporaryFolder place;
  GateConfig gate;
  gate.bias = {-1e6f, 2, 2, 2, 2, -1e6f, -1e6f, 2};
  const std::vector<LoadedModel> models = load_models({folder_.gated(place / "gated", gate)}, {});
  HeadCircuitsRequest request;
  request.heads = "L1H1";  // closed, and asked for
  const HeadCircuits found = study::run(request, models[0], {});
  EXPECT_EQ(found.listed, (std::vector<HeadId>{{0, 1}, {0, 2}, {0, 3}, {1, 0}, {1, 3}}));
  EXPECT_EQ(found.scores.size(), 5u);
  EXPECT_EQ(found.pairs.size(), 1u);
  const Json json = to_json(found, Matrices::kEvery);
  EXPECT_EQ(json["heads"].size(), 5u);
  EXPECT_EQ(json["living_heads"]["living"], 5);
  EXPECT_EQ(json["living_heads"]["heads"], 8);
  EXPECT_EQ(json["composition"]["k"]["scores"].size(), 5u);
  for (const Json& pair : json["composition"]["k"]["strongest"]) {
    EXPECT_NE(pair["earlier"], "L0H0");
    EXPECT_TRUE(pair["later"] == "L1H0" || pair["later"] == "L1H3") << pair;
  }
  const figure::LabelledMaps figure = figure_of(found);
  EXPECT_EQ(figure.panels[0].values.size(), 3u * 2);
  EXPECT_THAT(figure.caption, HasSubstr("Of 8 heads the 5 that open"));
}

TEST_F(Lens, MeanInputsAreOfTheTokensOfTheText) {
  const TemporaryFolder folder;
  const std::filesystem::path text = folder.path() / "text.txt";
  std::ofstream(text) << "The cat sat on the mat.";
  HeadCircuitsRequest request;
  request.heads = "L1H0", request.input = TokenInput::kText, request.text = text;
  request.from = {" cat"};
  const HeadCircuits found = study::run(request, models_[0], {});
  for (const TokenPair& pair : found.pairs[0].qk)  // keys that the text has
    EXPECT_TRUE(std::string("The cat sat on the mat.").find(found.shown[pair.to]) !=
                std::string::npos);
  request.from = {" dog"};
  EXPECT_THAT(error_of([&] { study::run(request, models_[0], {}); }),
              AllOf(HasSubstr("' dog' does not occur in"), HasSubstr("text.txt")));
}

}  // namespace
}  // namespace filigree::study
