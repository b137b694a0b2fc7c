// The text of a circuit that was found: what the fixtures' models are too small to show.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "filigree/circuit_study.h"

namespace filigree::study {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

ModelCircuit circuit_with(const std::string& label, std::size_t size, bool published) {
  ModelCircuit circuit;
  circuit.model = circuit.label = label;
  circuit.task.prompts.task = "ioi";
  circuit.check.better_than_chance = circuit.check.corruption_matters = true;
  FoundCircuit found;
  found.part_count = 144;
  for (const std::size_t kept : {std::size_t{0}, size, std::size_t{144}}) {
    CurvePoint point;
    point.kept = kept + (kept == size ? 3 : 0);  // three of them lead nowhere
    point.parts = kept;
    point.effect = kept == 0 ? 0 : 0.95;
    found.curve.points.push_back(point);
  }
  if (published) {
    ModelConfig config;
    config.family = "gpt2";
    config.layers = config.heads = config.key_heads = 12;
    config.width = 768, config.vocabulary = 50257;
    found.published = published_circuit("ioi", config);
    std::vector<PatchTarget> heads = all_heads(config);
    std::vector<double> scores;
    for (const PatchTarget& head : heads)
      scores.push_back(found.published->find(head) != nullptr ? 2 : 1);
    found.agreement =
        agreement(*found.published, heads, scores, {{Site::kZ, 9, 9}, {Site::kZ, 9, 8}});
  }
  circuit.found = found;
  return circuit;
}

TEST(CircuitText, ComparesSizesWithoutWhatLeadsNowhere) {
  const std::vector<ModelCircuit> circuits = {circuit_with("dense", 60, false),
                                              circuit_with("sparse", 20, false)};
  EXPECT_EQ(circuits[0].size(), 60u);
  EXPECT_EQ(size_ratio(circuits[0], circuits[1]), 3.0);
  EXPECT_THAT(text_of(circuits, 5), AllOf(HasSubstr("heads for 90 %"), HasSubstr("3.00x")));
  EXPECT_EQ(to_json(circuits[1])["size"], 20);
  EXPECT_TRUE(to_json(circuits[1])["published"].is_null());

  std::vector<ModelCircuit> none = circuits;
  none[1].found.reset();
  EXPECT_FALSE(size_ratio(none[0], none[1]));
  EXPECT_THAT(text_of(none, 5), HasSubstr("none claimed"));
}

TEST(CircuitText, ClaimsNothingOfPartsThatTheTaskDoesWithout) {
  ModelCircuit circuit = circuit_with("dense", 20, false);
  circuit.found->curve.points[0].effect = 0.123;
  EXPECT_THAT(text_of({circuit}, 5),
              AllOf(HasSubstr("none kept"), HasSubstr("12.3 %"), Not(HasSubstr("NOT carry"))));
  EXPECT_EQ(to_json(circuit)["none_kept"]["effect"], 0.123);
  EXPECT_EQ(to_json(circuit)["carried"], true);

  circuit.found->curve.points[0].effect = 0.838;
  circuit.found->carried = false;
  EXPECT_FALSE(circuit.size());
  EXPECT_FALSE(size_ratio(circuit, circuit));
  EXPECT_THAT(text_of({circuit}, 5),
              AllOf(HasSubstr("The heads do NOT carry this task: with none of them kept 83.8 %"),
                    HasSubstr("not carried"), HasSubstr("--parts heads+mlps")));
  EXPECT_TRUE(to_json(circuit)["size"].is_null());
  EXPECT_EQ(to_json(circuit)["carried"], false);
  // Where both prompts make heads look alike, the values do the work.
  circuit.options.parts = Parts::kAttentionEdges;
  EXPECT_THAT(text_of({circuit}, 5), HasSubstr("--replacement zero"));
  circuit.options.replacement = Replacement::kZero;
  EXPECT_THAT(text_of({circuit}, 5), Not(HasSubstr("--replacement zero")));
}

TEST(CircuitText, CallsADropOnlyWhatWasMeasured) {
  ModelCircuit circuit = circuit_with("dense", 2, false);
  circuit.found->parts = {{"L0H1", {0.5, 0.1}, PatchTarget{Site::kZ, 0, 1}}};
  EXPECT_THAT(text_of({circuit}, 5),
              AllOf(HasSubstr("drop without it"), HasSubstr("0.500 +- 0.100")));
  EXPECT_EQ(to_json(circuit)["scores"][0]["drop"], 0.5);
  circuit.found->parts[0].score.error.reset();  // of one prompt
  EXPECT_THAT(text_of({circuit}, 5), Not(HasSubstr("0.500 +-")));
  EXPECT_TRUE(to_json(circuit)["scores"][0]["standard_error"].is_null());
  circuit.options.parts = Parts::kEdges;
  circuit.options.method = Method::kIntegrated;
  EXPECT_THAT(text_of({circuit}, 5),
              AllOf(HasSubstr("estimate by eap-ig"), Not(HasSubstr("drop without"))));
  EXPECT_EQ(to_json(circuit)["scores"][0].count("drop"), 0u);
  EXPECT_EQ(to_json(circuit)["scores"][0]["estimate"], 0.5);
}

TEST(CircuitText, ComparesMethodsBySizesAndRanks) {
  std::vector<CircuitsOfKind> methods;
  for (const Method method : {Method::kExact, Method::kAttribution}) {
    ModelCircuit circuit = circuit_with("dense", method == Method::kExact ? 20 : 30, false);
    circuit.options.method = method;
    const double sign = method == Method::kExact ? 1 : -1;
    // Of the absolute scores 4, 3, 2, 1 and 4, 2, 3, 1: Spearman 1 - 6 * 2 / (4 * 15).
    const std::vector<double> scores = method == Method::kExact ? std::vector<double>{4, 3, 2, 1}
                                                                : std::vector<double>{4, 2, 3, 1};
    for (std::int64_t h = 0; h < 4; ++h)
      circuit.found->parts.push_back({"L0H" + std::to_string(h),
                                      {sign * scores[static_cast<std::size_t>(h)], 0.1},
                                      PatchTarget{Site::kZ, 0, h}});
    methods.push_back({circuit});
  }
  EXPECT_NEAR(rank_correlation(methods[0][0], methods[1][0]).value(), 0.8, 1e-6);
  EXPECT_THAT(methods_text(methods, 2),
              AllOf(HasSubstr("ranks as attribution"), HasSubstr("0.800"),
                    HasSubstr("estimate by attribution"), HasSubstr("drop without it")));
  const Json json = methods_json(methods, Scores::kLeftOut);
  EXPECT_EQ(json["methods"].size(), 2u);
  EXPECT_NEAR(json["rank_correlations"][0]["spearman"].get<double>(), 0.8, 1e-6);
  methods[1][0].found.reset();
  EXPECT_FALSE(rank_correlation(methods[0][0], methods[1][0]));
}

TEST(CircuitText, SaysHowWellThePublishedCircuitIsMet) {
  const ModelCircuit circuit = circuit_with("gpt2", 2, true);
  EXPECT_THAT(
      text_of({circuit}, 5),
      AllOf(HasSubstr("arXiv 2211.00593"), HasSubstr("1 of its 26 parts"),
            HasSubstr("precision 0.50"), HasSubstr("recall 0.04"), HasSubstr("ROC curve 1.000")));
  const Json json = to_json(circuit)["published"];
  EXPECT_EQ(json["common"], 1);
  EXPECT_EQ(json["roc_area"], 1.0);
}

}  // namespace
}  // namespace filigree::study
