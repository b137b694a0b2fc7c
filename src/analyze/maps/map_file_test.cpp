#include "analyze/maps/map_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <limits>

#include "analyze/analyze_test_support.h"
#include "io/safetensors.h"
#include "support/npz_reader.h"
#include "support/temporary_folder.h"

namespace filigree {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

MapFileLayout layout(MapKind kind = MapKind::kWeights) {
  MapFileLayout layout;
  layout.kind = kind;
  layout.heads = {{0, 1}, {2, 3}};
  layout.series = {{"model0.prompt0", 2, {{5, 6}, {"a", " \xC3\xA9"}}}, {"model0.mean", 3, {}}};
  layout.about["models"] = {"dense"};
  return layout;
}

std::vector<float> map_of(std::int64_t length, float first, float above) {
  std::vector<float> map;
  for (std::int64_t i = 0; i < length; ++i)
    for (std::int64_t j = 0; j < length; ++j)
      map.push_back(j <= i ? first + 0.1f * static_cast<float>(i * length + j) : above);
  return map;
}

void write(const std::filesystem::path& path, MapKind kind = MapKind::kWeights) {
  const float above = kind == MapKind::kScores ? -kInfinity : 0.0f;
  const auto file = MapFile::create(path, layout(kind));
  for (const float first : {0.0f, 1.0f}) file->add(map_of(2, first, above));
  for (const float first : {2.0f, 3.0f}) file->add(map_of(3, first, above));
  file->commit();
}

std::vector<float> both(std::int64_t length, float a, float b) {
  std::vector<float> all = map_of(length, a, 0.0f);
  const std::vector<float> second = map_of(length, b, 0.0f);
  all.insert(all.end(), second.begin(), second.end());
  return all;
}

TEST(MapFile, NpzHasTheArrays) {
  const TemporaryFolder folder;
  write(folder.path() / "a.npz");
  const auto files = read_zip(folder.path() / "a.npz");
  EXPECT_EQ(files.size(), 5u);
  const NpyArray first = parse_npy(files.at("model0.prompt0.weights.npy"));
  EXPECT_EQ(first.shape, (std::vector<std::int64_t>{2, 2, 2}));
  EXPECT_EQ(first.values<float>(), both(2, 0.0f, 1.0f));
  EXPECT_EQ(parse_npy(files.at("model0.mean.weights.npy")).values<float>(), both(3, 2.0f, 3.0f));
  EXPECT_EQ(parse_npy(files.at("heads.npy")).values<std::int32_t>(),
            (std::vector<std::int32_t>{0, 1, 2, 3}));
  EXPECT_EQ(parse_npy(files.at("model0.prompt0.ids.npy")).values<std::int32_t>(),
            (std::vector<std::int32_t>{5, 6}));
  const auto meta = nlohmann::json::parse(files.at("meta.json"));
  EXPECT_EQ(meta["format"], "filigree attention maps");
  EXPECT_EQ(meta["models"][0], "dense");
  EXPECT_EQ(meta["kind"], "weights");
  EXPECT_EQ(meta["heads"][1], "L2H3");
  EXPECT_EQ(meta["series"][0]["tokens"][1], " \xC3\xA9");
}

TEST(MapFile, SafetensorsHasTheArrays) {
  const TemporaryFolder folder;
  write(folder.path() / "a.safetensors");
  const SafetensorsFile file = SafetensorsFile::open(folder.path() / "a.safetensors");
  EXPECT_EQ(file.tensors().size(), 4u);
  std::vector<float> values(18);
  read_f32(file.at("model0.mean.weights"), values);
  EXPECT_EQ(values, both(3, 2.0f, 3.0f));
  std::vector<std::int32_t> ids(2);
  read_i32(file.at("model0.prompt0.ids"), ids);
  EXPECT_EQ(ids, (std::vector<std::int32_t>{5, 6}));
  EXPECT_EQ(nlohmann::json::parse(file.metadata().at("filigree"))["heads"][0], "L0H1");
}

TEST(MapFile, JsonHasTheCausalCells) {
  const TemporaryFolder folder;
  write(folder.path() / "a.json", MapKind::kScores);
  const auto json = nlohmann::json::parse(std::ifstream(folder.path() / "a.json"));
  EXPECT_EQ(json["kind"], "scores");
  EXPECT_EQ(json["models"][0], "dense");
  ASSERT_EQ(json["series"].size(), 2u);
  EXPECT_EQ(json["series"][0]["tokens"], (nlohmann::json{"a", " \xC3\xA9"}));
  EXPECT_EQ(json["series"][0]["ids"], (nlohmann::json{5, 6}));
  EXPECT_FALSE(json["series"][1].contains("ids"));
  const auto& map = json["series"][1]["maps"]["L2H3"];
  ASSERT_EQ(map.size(), 3u);
  EXPECT_EQ(map[0].size(), 1u);
  EXPECT_EQ(map[2][1].get<float>(), 3.0f + 0.1f * 7);

  // What is not a number is null, and the document stays one.
  const auto file = MapFile::create(folder.path() / "b.json",
                                    {.heads = {{0, 0}}, .series = {{"model0.mean", 1, {}}}});
  file->add(std::vector<float>{kInfinity});
  file->commit();
  EXPECT_TRUE(nlohmann::json::parse(
                  std::ifstream(folder.path() / "b.json"))["series"][0]["maps"]["L0H0"][0][0]
                  .is_null());
}

TEST(MapFile, RefusesWhatDoesNotFit) {
  const TemporaryFolder folder;
  EXPECT_THAT(error_of([&] { MapFile::create(folder.path() / "a.txt", layout()); }),
              HasSubstr("must end in .npz, .safetensors or .json"));
  MapFileLayout large = layout();
  large.series[0].length = 1500;
  EXPECT_THAT(error_of([&] { MapFile::create(folder.path() / "a.json", large); }),
              AllOf(HasSubstr("2,251,512 cells"), HasSubstr("2,000,000"), HasSubstr(".npz")));
  EXPECT_EQ(error_of([&] { MapFile::check(folder.path() / "a.npz", large); }), "no error");
  for (const char* name : {"a.npz", "a.safetensors", "a.json"}) {
    const auto file = MapFile::create(folder.path() / name, layout());
    EXPECT_THAT(error_of([&] { file->add(std::vector<float>(9)); }), HasSubstr("9 cells"));
    file->add(std::vector<float>(4));
    EXPECT_THAT(error_of([&] { file->commit(); }), HasSubstr("'model0.prompt0' is not complete"));
    file->add(std::vector<float>(4));
    file->add(std::vector<float>(9));
    file->add(std::vector<float>(9));
    EXPECT_THAT(error_of([&] { file->add(std::vector<float>(9)); }), HasSubstr("more maps"));
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

}  // namespace
}  // namespace filigree
