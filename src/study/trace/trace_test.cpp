// A prompt traced through random features of a random model: results, JSON, graph files, figures.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "filigree/trace_study.h"
#include "json/json.h"
#include "support/errors.h"
#include "support/model_folder.h"
#include "support/random_transcoder.h"

namespace filigree::study {
namespace {

using ::testing::HasSubstr;

const std::filesystem::path kGraphSchema =
    FILIGREE_SOURCE_DIR "/../shared/fixtures/neuronpedia/graph-schema.json";

class Trace : public ::testing::Test {
 protected:
  Trace() {
    GateConfig gate;
    gate.bias = {0.3f};
    const std::string sparse = folder_.gated(twin_.path() / "gated", gate);
    models_ = load_models({folder_.name(), sparse}, {});
    for (const LoadedModel& model : models_) {
      through_.push_back({&model,
                          dictionary_of(random_transcoder(
                              model.config(), TranscoderKind::kCrossLayer, 16, false, 0.3f)),
                          "random features"});
    }
  }

  TraceResult traced(const TraceRequest& request) const { return run(request, {through_[0]}, {}); }

  const ModelFolder folder_;
  const TemporaryFolder twin_;
  std::vector<LoadedModel> models_;
  std::vector<FeaturesOfModel> through_;
  const TraceRequest request_ = {.prompt = "The cat sat on the mat because"};
};

TEST_F(Trace, SumsUpAndSplitsExactly) {
  const TracedModel model = std::move(traced(request_).models[0]);
  EXPECT_LT(model.row_error, 1e-5);
  EXPECT_GT(model.pruned.edges.size(), 10u);
  double largest = 0.0;
  for (const EffectEdge& edge : model.pruned.edges)
    largest = std::max(largest, std::abs(edge.effect));
  for (std::size_t e = 0; e < model.pruned.edges.size(); ++e) {
    const EdgeLoading& loading = model.loadings[e];
    double first = loading.beside[0] + loading.behind[0];  // layer 0 is below every target
    for (std::int64_t h = 0; h < model.frozen.heads; ++h) first += loading.heads.f32()[h];
    EXPECT_NEAR(first, model.pruned.edges[e].effect, 1e-5 * largest);
  }
  ASSERT_TRUE(model.pair.has_value());
  EXPECT_EQ(model.pair->loading.to, model.frozen.positions - 1);
  EXPECT_EQ(std::ssize(model.carrying), model.pair->heads_for_80);
  double share = 0.0;
  for (const CarryingHead& head : model.carrying) share += head.share;
  EXPECT_GE(share, 0.8);
  EXPECT_LT(share - model.carrying.back().share, 0.8);
  double modulated = 0.0;
  for (const Modulation& token : model.modulated_by) modulated += token.share;
  EXPECT_GE(modulated, 0.8 - 1e-9);
  EXPECT_FALSE(model.carrying[0].gate_logit.has_value());
}

TEST_F(Trace, TargetsAreTokensDifferencesOrFeatures) {
  TraceRequest request = request_;
  request.target = " the";
  EXPECT_EQ(traced(request).models[0].targets.size(), 1u);
  request.against = " cat";
  const TracedModel difference = std::move(traced(request).models[0]);
  const std::vector<GraphTarget> both = {
      logit_target(difference.frozen, difference.targets[0].node.feature),
      logit_target(difference.frozen, difference.targets[0].against)};
  EXPECT_NEAR(difference.targets[0].value, both[0].value - both[1].value, 1e-4);
  EXPECT_EQ(node_name(difference, difference.graph.first_target()), "' the' - ' cat'");
  request.target = request.against = "";
  request.feature = "L1F3@4";
  const TracedModel feature = std::move(traced(request).models[0]);
  EXPECT_EQ(node_name(feature, feature.graph.first_target()), "L1F3");
  for (const EffectEdge& edge : feature.pruned.edges)
    EXPECT_LE(feature.graph.nodes[static_cast<std::size_t>(edge.source)].position, 4);
}

TEST_F(Trace, TheTwinLooksAtTheSamePair) {
  TraceRequest request = request_;
  request.target = " the";
  const TraceResult result = run(request, through_, {});
  ASSERT_EQ(result.models.size(), 2u);
  EXPECT_EQ(result.models[0].pair->loading.from, result.models[1].pair->loading.from);
  EXPECT_EQ(result.models[0].pair->loading.to, result.models[1].pair->loading.to);
  EXPECT_TRUE(result.models[1].gated());
  for (const CarryingHead& head : result.models[1].carrying) {
    EXPECT_NEAR(*head.gate_logit, head.score + 0.3, 1e-5);
    EXPECT_GT(*head.gate_logit, 0.0);  // a closed gate carries nothing
  }
  const Json json = to_json(result);
  EXPECT_EQ(json["models"].size(), 2u);
  EXPECT_EQ(json["models"][1]["heads"].size(), result.models[1].carrying.size());
  const figure::CarriedPairFigure heads = heads_figure(result);
  EXPECT_EQ(heads.panels.size(), 2u);
  EXPECT_THAT(heads.panels[1].title, HasSubstr("carr"));
  const figure::FeatureGraphFigure graph = graph_figure(result, 20);
  EXPECT_EQ(graph.panels[0].nodes.size(),
            std::min<std::size_t>(20, result.models[0].pruned.nodes().size()));
}

TEST_F(Trace, GraphFilesAreWhatViewersRead) {
  const TraceResult result = traced(request_);
  const TemporaryFolder out;
  const std::vector<std::string> files =
      write_graph_files(result, out.path() / "cat-graph.json", {});
  ASSERT_EQ(files.size(), 2u);
  const nlohmann::json graph = read_json(files[0]);
  std::set<std::string> ids;
  bool above = false;
  for (const auto& node : graph["nodes"]) {
    EXPECT_TRUE(ids.insert(node["node_id"]).second) << node["node_id"];
    const bool logit = node["feature_type"] == "logit";
    EXPECT_EQ(node["clerp"].get<std::string>().find(" (p=") != std::string::npos, logit);
    above = above || (!logit && node["layer"] != "E" && node["layer"] != "0");
    if (node["feature_type"] == "cross layer transcoder") {
      const LayerFeature pair = unpaired(node["feature"]);
      EXPECT_EQ(std::to_string(pair.layer), node["layer"]);
      EXPECT_EQ(node["node_id"],
                fmt::format("{}_{}_{}", pair.layer, pair.feature, node["ctx_idx"].get<int>()));
    }
  }
  EXPECT_TRUE(above);
  EXPECT_EQ(
      std::count_if(graph["nodes"].begin(), graph["nodes"].end(),
                    [](const auto& node) { return node["is_target_logit"].template get<bool>(); }),
      1);
  bool loaded = false;
  for (const auto& link : graph["links"]) {
    EXPECT_TRUE(ids.contains(link["source"]) && ids.contains(link["target"]));
    loaded = loaded || !link["head_loadings"].empty();
  }
  EXPECT_TRUE(loaded);
  std::int64_t traced_nodes = 0;
  for (const auto& node : graph["nodes"]) {
    if (!node.contains("qk_tracing_results")) continue;
    ++traced_nodes;
    const auto& qk = node["qk_tracing_results"];
    for (const auto& pair : qk["pair_wise_contributors"])
      for (const int side : {0, 1})
        EXPECT_TRUE(ids.contains(pair[static_cast<std::size_t>(side)]) ||
                    graph["qk_only_nodes"].contains(
                        pair[static_cast<std::size_t>(side)].get<std::string>()));
  }
  EXPECT_GT(traced_nodes, 0);
  EXPECT_EQ(graph["metadata"]["slug"], "cat-graph");
  EXPECT_EQ(read_json(files[1])["graphs"][0], graph["metadata"]);

  const std::string command =
      fmt::format("'{}/tests/schemas/validate' '{}' '{}' > '{}' 2>&1", FILIGREE_SOURCE_DIR,
                  kGraphSchema.string(), files[0], (out.path() / "said").string());
  const int status = std::system(command.c_str());  // NOLINT(concurrency-mt-unsafe)
  const std::string said = read_file(out.path() / "said");
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << said;
  EXPECT_EQ(WEXITSTATUS(status), 0) << said;
}

TEST_F(Trace, LinksAreBounded) {
  const TraceResult result = traced(request_);
  const TracedModel& model = result.models[0];
  const GraphFile file = graph_json(model, "", request_, {.max_links = 5, .qk_nodes = 0});
  EXPECT_EQ(file.graph["links"].size(), 5u);
  EXPECT_EQ(file.links_left_out, std::ssize(model.pruned.edges) - 5);
}

TEST_F(Trace, OtherFilesAreWritten) {
  const TraceResult result = traced(request_);
  const TemporaryFolder out;
  write_graph_files(result, out.path() / "g.dot", {});
  EXPECT_THAT(read_file(out.path() / "g.dot"), HasSubstr("digraph"));
  write_graph_files(result, out.path() / "g.npz", {});
  EXPECT_THAT(read_file(out.path() / "g.npz"), HasSubstr("edge_loadings.npy"));
}

TEST(TracePairing, InvertsForEveryLayerAndFeature) {
  for (std::int64_t l = 0; l < 80; l += 7)
    for (const std::int64_t f : {0L, 1L, 17L, 24575L, 1048575L}) {
      const LayerFeature pair = unpaired(paired_number(l, f));
      EXPECT_EQ(pair.layer, l);
      EXPECT_EQ(pair.feature, f);
    }
  EXPECT_EQ(slug_of("a \"b\" c/"), "a-b-c");
}

TEST_F(Trace, RequestsThatMakeNoSenseAreRefused) {
  const auto message = [&](TraceRequest request) {
    request.prompt = request_.prompt;
    return error_of([&] { traced(request); });
  };
  EXPECT_THAT(message({.target = " a", .feature = "L0F1@2"}), HasSubstr("both"));
  EXPECT_THAT(message({.against = " a"}), HasSubstr("target"));
  EXPECT_THAT(message({.feature = "3.17@2"}), HasSubstr("L3F17@5"));
  EXPECT_THAT(message({.key = 3}), HasSubstr("query"));
  EXPECT_THAT(message({.key = 3, .query = 2}), HasSubstr("before"));
  EXPECT_THAT(message({.target = " the", .against = " the"}), HasSubstr("same token"));
}

}  // namespace
}  // namespace filigree::study
