// The text of a circuit that was found: what the fixtures' models are too small to show.
#include "apps/cli/circuits/circuit_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace filigree::cli {

using study::FoundCircuit;
using study::ModelCircuit;
using study::Parts;

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
  EXPECT_EQ(study::size_ratio(circuits[0], circuits[1]), 3.0);
  EXPECT_THAT(circuit_text(circuits, 5), AllOf(HasSubstr("heads for 90 %"), HasSubstr("3.00x")));
  EXPECT_EQ(to_json(circuits[1])["size"], 20);
  EXPECT_TRUE(to_json(circuits[1])["published"].is_null());

  std::vector<ModelCircuit> none = circuits;
  none[1].found.reset();
  EXPECT_FALSE(study::size_ratio(none[0], none[1]));
  EXPECT_THAT(circuit_text(none, 5), HasSubstr("none claimed"));
}

TEST(CircuitText, SaysWhatToAskWhenNoAttentionEdgeIsNeeded) {
  ModelCircuit circuit = circuit_with("dense", 20, false);
  circuit.options.parts = Parts::kAttentionEdges;
  EXPECT_THAT(circuit_text({circuit}, 5), Not(HasSubstr("--replacement zero")));
  for (CurvePoint& point : circuit.found->curve.points) point.effect = 1;
  EXPECT_EQ(circuit.size(), 0u);
  EXPECT_THAT(circuit_text({circuit}, 5), HasSubstr("--replacement zero"));
  circuit.options.replacement = Replacement::kZero;
  EXPECT_THAT(circuit_text({circuit}, 5), Not(HasSubstr("--replacement zero")));
}

TEST(CircuitText, SaysHowWellThePublishedCircuitIsMet) {
  const ModelCircuit circuit = circuit_with("gpt2", 2, true);
  EXPECT_THAT(
      circuit_text({circuit}, 5),
      AllOf(HasSubstr("arXiv 2211.00593"), HasSubstr("1 of its 26 parts"),
            HasSubstr("precision 0.50"), HasSubstr("recall 0.04"), HasSubstr("ROC curve 1.000")));
  const study::Json json = to_json(circuit)["published"];
  EXPECT_EQ(json["common"], 1);
  EXPECT_EQ(json["roc_area"], 1.0);
}

}  // namespace
}  // namespace filigree::cli
