// Features of a small model: an index of a text, pages of features, and files for others' viewers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <zlib.h>

#include <cstdlib>
#include <cstring>
#include <set>

#include "filigree/feature_study.h"
#include "filigree/generation_study.h"
#include "filigree/lens.h"
#include "filigree/lens_study.h"
#include "filigree/names.h"
#include "filigree/trace_study.h"
#include "json/json.h"
#include "study/features/feature_sheet_data.h"
#include "support/errors.h"
#include "support/model_folder.h"
#include "support/random_transcoder.h"

namespace filigree::study {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::int64_t kFeaturesOfALayer = 40;

class FeaturesStudyTest : public ::testing::Test {
 protected:
  FeaturesStudyTest() {
    write_random_transcoder(clt_, {TranscoderKind::kCrossLayer, 2, 32, kFeaturesOfALayer, false});
    dictionary_ = open_features(clt_.string(), model_.model());
  }

  IndexResult indexed() const {
    std::string text;
    for (int i = 0; i < 40; ++i)
      text += "The ferryman rowed " + std::to_string(i) + " people <b>over</b> the river. ";
    return study::run(IndexRequest{.features = clt_.string(),
                                   .data = EvaluationText{text, "the text", false},
                                   .text = "text",
                                   .windows = {.length = 16, .batch = 4},
                                   .out = index_},
                      model_, {});
  }
  FeaturePage page(const std::string& feature, bool with_index = true) const {
    FeatureRequest request{.feature = feature, .features = clt_.string()};
    if (with_index) request.index = index_;
    return describe_feature(request, model_, *dictionary_);
  }
  // One that is active in the text.
  FeatureId active() const {
    const FeatureIndex index = FeatureIndex::open(index_);
    for (std::int64_t f = 0; f < kFeaturesOfALayer; ++f)
      if (index.record({0, f}).count > 40) return {0, f};
    ADD_FAILURE() << "no feature is active";
    return {};
  }

  const ModelFolder folder_;
  const TemporaryFolder scratch_;
  const std::filesystem::path clt_ = scratch_ / "clt", index_ = scratch_ / "clt.index";
  const LoadedModel model_{folder_.name(), "small"};
  std::unique_ptr<FeatureDictionary> dictionary_;
};

TEST_F(FeaturesStudyTest, TheIndexHoldsWhatTheModelSays) {
  const IndexResult result = indexed();
  EXPECT_EQ(result.layers.size(), 2u);
  const FeatureIndex index = FeatureIndex::open(index_);
  EXPECT_EQ(index.facts().tokens, result.facts.tokens);
  double entries = 0;
  for (std::int64_t f = 0; f < kFeaturesOfALayer; ++f)
    entries += static_cast<double>(index.record({1, f}).count);
  EXPECT_NEAR(result.layers[1].l0, entries / static_cast<double>(result.facts.tokens), 1e-9);
  EXPECT_GT(entries, 0);

  // An example computed again from its own window: the same activation.
  const FeatureId feature = active();
  const FeatureExample example = index.record(feature).top.at(0);
  const auto number = static_cast<std::int32_t>(feature.feature);
  const FeatureRows rows = dictionary_->rows(0, std::span(&number, 1));
  const auto T = static_cast<std::int64_t>(example.tokens.size());
  // Those that begin with their window have all that the model saw.
  if (example.position % 16 == static_cast<std::uint64_t>(example.centre)) {
    Taps taps;
    taps.observe(dictionary_->hooks().input_of(0));
    model_.model().forward(Tensor::from_ids({1, T}, example.tokens), {.taps = &taps});
    const Tensor& x = taps.value(dictionary_->hooks().input_of(0));
    double h = rows.encoder_bias.f32()[0];
    for (std::int64_t d = 0; d < 32; ++d)
      h += x.f32()[example.centre * 32 + d] * rows.encoder.f32()[d];
    EXPECT_NEAR(h, example.value, 1e-3 * h);
  }
}

TEST_F(FeaturesStudyTest, APageSaysWhatWeightsAndTextTell) {
  indexed();
  const FeatureId feature = active();
  const FeaturePage page = this->page(feature_name(feature));
  EXPECT_EQ(page.writes.size(), 2u);
  EXPECT_TRUE(page.reads.empty());  // the first layer has nothing before it
  ASSERT_EQ(page.read_by.size(), 10u);
  EXPECT_GT(page.frequency, 0.0);
  EXPECT_THAT(page.words(), HasSubstr("raises \""));

  // The largest partner by the definition.
  const auto number = static_cast<std::int32_t>(feature.feature);
  const FeatureRows rows = dictionary_->rows(0, std::span(&number, 1));
  const auto partner = static_cast<std::int32_t>(page.read_by[0].feature.feature);
  const FeatureRows reader = dictionary_->rows(1, std::span(&partner, 1));
  const NormWeights norm = model_.model().weights().layers[1].mlp_norm;
  double mean = 0, weight = 0;
  for (std::int64_t d = 0; d < 32; ++d) mean += rows.decoder.f32()[d] / 32;
  for (std::int64_t d = 0; d < 32; ++d)
    weight +=
        (rows.decoder.f32()[d] - mean) * norm.weight.value().f32()[d] * reader.encoder.f32()[d];
  EXPECT_EQ(page.read_by[0].feature.layer, 1);
  EXPECT_NEAR(page.read_by[0].weight, weight, 1e-4);
  // And seen from the other side.
  const FeaturePage other = this->page(feature_name(page.read_by[0].feature));
  EXPECT_TRUE(std::any_of(other.reads.begin(), other.reads.end(),
                          [&](const FeaturePartner& p) {
                            return p.feature == feature && std::abs(p.weight - weight) < 1e-4;
                          }) ||
              other.reads.size() == 10);

  // The logit that it raises most, through the final norm and the unembedding.
  const Tensor unembedding = folded_unembedding(model_.model());
  const auto direct = [&](TokenId id) {
    double sum = 0;
    for (std::int64_t d = 0; d < 32; ++d)
      sum += unembedding.f32()[id * 32 + d] * (rows.decoder.f32()[d] + rows.decoder.f32()[32 + d]);
    return sum;
  };
  EXPECT_GE(page.raised[0].effect, page.raised[1].effect);
  EXPECT_NEAR(page.raised[0].effect - page.lowered[0].effect,
              direct(page.raised[0].token) - direct(page.lowered[0].token), 1e-3);

  const std::string html = feature_html(sheet_of(page));
  EXPECT_THAT(html, HasSubstr("<h1>" + feature_name(feature) + "</h1>"));
  EXPECT_THAT(html, HasSubstr("prefers-color-scheme: dark"));
  EXPECT_THAT(html, HasSubstr("Largest activations"));
  EXPECT_THAT(html, Not(HasSubstr("http://")));
  EXPECT_THAT(html, Not(HasSubstr("<b>over")));  // text is text
}

TEST_F(FeaturesStudyTest, WithoutAnIndexThereAreWeightsAlone) {
  const FeaturePage page = this->page("L1F3", false);
  EXPECT_FALSE(page.indexed);
  EXPECT_EQ(page.reads.size(), 10u);
  EXPECT_TRUE(page.read_by.empty());
  EXPECT_THAT(error_of([&] { this->page("L2F0", false); }), HasSubstr("2 layers of 40"));
  const TemporaryFolder other;
  write_random_transcoder(other.path(), {TranscoderKind::kPerLayer, 3, 32, 8, false});
  EXPECT_THAT(error_of([&] { open_features(other.path().string(), model_.model()); }),
              HasSubstr("of 3 layers and width 32; this one has 2 and 32"));
}

std::string inflated(const std::string& packed, bool gzip) {
  std::string text(1 << 20, '\0');
  z_stream stream = {};
  EXPECT_EQ(inflateInit2(&stream, 15 + (gzip ? 16 : 0)), Z_OK);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  stream.next_out = reinterpret_cast<Bytef*>(text.data());
  stream.avail_out = static_cast<uInt>(text.size());
  EXPECT_EQ(inflate(&stream, Z_FINISH), Z_STREAM_END);
  text.resize(stream.total_out);
  inflateEnd(&stream);
  return text;
}

// The files of a folder, under Neuronpedia's schema of a feature.
void expect_valid(const std::filesystem::path& folder) {
  const int status = std::system(
      fmt::format("'{0}/tests/schemas/validate' "
                  "'{0}/../shared/fixtures/neuronpedia/feature-details-schema.json' '{1}'/*.json",
                  FILIGREE_SOURCE_DIR, folder.string())
          .c_str());
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
    GTEST_SKIP() << "no python3 with jsonschema, or no schema beside the repository";
  EXPECT_EQ(status, 0);
}

TEST_F(FeaturesStudyTest, ExportsAreWhatViewersRead) {
  indexed();
  const FeatureId feature = active();
  const Json detail = feature_detail(page(feature_name(feature)));
  FeatureExportRequest request{
      .features = clt_.string(), .index = index_, .folder = scratch_ / "packed"};
  EXPECT_EQ(export_features(request, model_, *dictionary_, {}).features, 2 * kFeaturesOfALayer);
  const auto index = parse_json(inflated(read_file(scratch_ / "packed/index.json.gz"), true), "x");
  const auto& layer = index.at("0");
  EXPECT_EQ(layer.at("offsets").size(), static_cast<std::size_t>(kFeaturesOfALayer) + 1);
  const std::string bytes =
      read_file(scratch_ / "packed" / layer.at("filename").get<std::string>());
  const auto at =
      layer.at("offsets").at(static_cast<std::size_t>(feature.feature)).get<std::size_t>();
  std::uint32_t length = 0;
  std::memcpy(&length, bytes.data() + at, 4);
  EXPECT_EQ(Json::parse(inflated(bytes.substr(at + 4, length), false)), detail);

  request.layout = FeatureLayout::kFiles;
  request.folder = scratch_ / "files";
  const FeatureExport exported = export_features(request, model_, *dictionary_, {});
  const std::filesystem::path file =
      scratch_ / fmt::format("files/{}.json", paired_number(feature.layer, feature.feature));
  EXPECT_EQ(Json::parse(read_file(file)), detail);
  EXPECT_EQ(detail["index"], paired_number(feature.layer, feature.feature));
  EXPECT_EQ(detail["quantile_values"].size(), 100u);
  EXPECT_GT(exported.features, 0);

  expect_valid(scratch_ / "files");
}

TEST_F(FeaturesStudyTest, GraphsComeWithWhatTheirFeaturesAre) {
  indexed();
  std::vector<std::string> said;
  Context context;
  context.note = [&](const std::string& text) { said.push_back(text); };
  TraceRequest request = {.features = {{clt_.string(), {}}},
                          .prompt = "The ferryman rowed 7 people"};
  TraceResult result = study::run(request, model_, {});
  EXPECT_EQ(write_graph_files(result, scratch_ / "plain.json", context).size(), 2u);
  EXPECT_THAT(said.front(), HasSubstr("there is no index"));

  said.clear();
  request.features[0].index = index_;
  result = study::run(request, model_, {});
  const std::vector<std::string> files = write_graph_files(result, scratch_ / "g.json", context);
  ASSERT_EQ(files.size(), 3u);
  const Json graph = Json::parse(read_file(files[0]));
  const std::string scan = graph["metadata"]["scan"];
  EXPECT_EQ(scan, "./features/small-clt");
  std::set<std::int64_t> numbers;
  std::uint64_t bytes = 0;
  for (const char* list : {"nodes", "qk_only_nodes"})
    for (const Json& node : graph[list])
      if (node["feature_type"] == "cross layer transcoder")
        numbers.insert(node["feature"].get<std::int64_t>());
  ASSERT_GT(numbers.size(), 5u);
  for (const std::int64_t number : numbers) {
    const std::string text = read_file(scratch_ / scan / (std::to_string(number) + ".json"));
    bytes += text.size();
    EXPECT_EQ(Json::parse(text)["index"], number);
  }
  const LayerFeature first = unpaired(*numbers.begin());
  EXPECT_EQ(Json::parse(read_file(scratch_ / scan / (std::to_string(*numbers.begin()) + ".json"))),
            feature_detail(page(feature_name({first.layer, first.feature}))));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(files[1]), {}), std::ssize(numbers));
  EXPECT_THAT(said.front(),
              HasSubstr(fmt::format("{} features, {}", numbers.size(), human_bytes(bytes))));
  const GraphFeatures few = features_of_graph(graph, 3);
  EXPECT_EQ(few.features.size(), 3u);
  EXPECT_EQ(few.left_out, std::ssize(numbers) - 3);
  expect_valid(files[1]);
}

TEST_F(FeaturesStudyTest, RunsAndContinuationsAreSteered) {
  RunRequest run{.prompt = "The ferryman rowed"};
  run.steering = parse_steering("L0F3=+9,L1F4@-1=0");
  EXPECT_THAT(error_of([&] { study::run(run, model_, {}); }), HasSubstr("--features"));
  run.features = clt_.string();
  const RunResult result = study::run(run, model_, {});
  ASSERT_TRUE(result.changed);
  EXPECT_GT(result.divergence.back(), 0.0);
  ASSERT_EQ(result.steered.size(), 2u);
  EXPECT_EQ(result.steered[0].activations.size(), result.ids.size());
  EXPECT_EQ(to_json(result)["steering"][0]["feature"], "L0F3");
  run.steering = parse_steering("L0F3@99=1");
  EXPECT_THAT(error_of([&] { study::run(run, model_, {}); }), HasSubstr("no position 99"));

  GenerationRequest generation{.prompt = "The ferryman rowed"};
  generation.options.sampling.temperature = 0;
  generation.options.max_tokens = 8;
  const Generation plain = study::run(generation, model_, {});
  generation.features = clt_.string();
  generation.steering = parse_steering("L0F3=+30");
  const Generation steered = study::run(generation, model_, {});
  EXPECT_NE(plain.continuations[0].ids, steered.continuations[0].ids);
  generation.options.use_cache = false;
  EXPECT_EQ(study::run(generation, model_, {}).continuations[0].ids, steered.continuations[0].ids);
}

}  // namespace
}  // namespace filigree::study
