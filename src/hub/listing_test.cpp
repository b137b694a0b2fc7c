#include "hub/listing.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "filigree/names.h"
#include "support/errors.h"

namespace filigree::hub {
namespace {

using Names = std::vector<std::string>;

constexpr const char* kCommit = "0123456789abcdef0123456789abcdef01234567";

std::string listing_text(const Names& names, const std::string& commit = kCommit) {
  std::string files;
  for (const std::string& name : names)
    files += fmt::format("{}{{\"rfilename\":\"{}\"}}", files.empty() ? "" : ",", name);
  return fmt::format(R"({{"sha":"{}","siblings":[{}],"unknown":{{"a":1}}}})", commit, files);
}

Names needed(const Names& names, const std::string& file = "") {
  return needed_files(parse_listing(listing_text(names), "listing"), file, "org/name").files;
}

std::string refused(const std::string& text) {
  return error_of([&] { parse_listing(text, "listing"); });
}

TEST(HubListing, HasCommitAndFiles) {
  const std::string sha256(64, 'a');
  const Listing listing = parse_listing(
      fmt::format(R"({{"sha":"{}","siblings":[{{"rfilename":"b/c.json","size":3,"lfs":null}},
                    {{"rfilename":"a.bin","size":4,"lfs":{{"sha256":"{}","size":4}}}}]}})",
                  kCommit, sha256),
      "listing");
  EXPECT_EQ(listing.commit, kCommit);
  ASSERT_EQ(listing.files.size(), 2u);
  EXPECT_EQ(listing.files[0].name, "a.bin");
  EXPECT_EQ(listing.files[0].sha256, sha256);
  EXPECT_EQ(listing.files[1].bytes, 3u);
  EXPECT_NE(listing.find("b/c.json"), nullptr);
  EXPECT_EQ(listing.find("b"), nullptr);
}

TEST(HubListing, RefusesWhatLeadsOut) {
  for (const char* name : {"../x", "/etc/passwd", "a/../../x", "a//b", "", ".", "..", "a/",
                           "a\\\\b", "a\\u0000b", "a\\nb", "a\\u001bb"}) {
    const std::string message = refused(listing_text({"config.json", name}));
    EXPECT_NE(message.find("which is no name of a file below a folder"), std::string::npos)
        << name << ": " << message;
  }
  EXPECT_NE(refused(listing_text({"a", "a"})).find("twice"), std::string::npos);
  for (const char* commit : {"", "main", "../../x", "0123456789abcdef0123456789abcdef0123456"})
    EXPECT_NE(refused(listing_text({}, commit)).find("should be a commit"), std::string::npos);
  for (const char* text : {"", "[]", "{}", "null", "{\"sha\":1}", "<html>",
                           "{\"sha\":\"0123456789abcdef0123456789abcdef01234567\"}"})
    EXPECT_NE(refused(text), "no error") << text;
}

TEST(HubListing, IsBounded) {
  Names names;
  for (int i = 0; i < 100001; ++i) names.push_back(std::to_string(i));
  EXPECT_NE(refused(listing_text(names)).find("at most 100000"), std::string::npos);
}

TEST(NeededFiles, AreConfigurationTokenizerAndTheBestWeights) {
  const Names beside = {"config.json", "tokenizer.json", "merges.txt"};
  const Names others = {"README.md",       ".gitattributes", "flax_model.msgpack",
                        "onnx/model.onnx", "tf_model.h5",    "training_args.bin"};
  const auto with = [&](const Names& weights) {
    Names all = beside;
    for (const Names& more : {others, weights}) all.insert(all.end(), more.begin(), more.end());
    return needed(all);
  };
  const auto and_beside = [&](const std::string& weights) {
    Names expected = beside;
    expected.push_back(weights);
    return expected;
  };
  EXPECT_EQ(with({"model.safetensors", "pytorch_model.bin", "x.gguf"}),
            and_beside("model.safetensors"));
  EXPECT_EQ(with({"pytorch_model.bin", "x.gguf"}), and_beside("pytorch_model.bin"));
  EXPECT_EQ(with({"model.safetensors.index.json", "model-00001-of-00002.safetensors",
                  "pytorch_model.bin"}),
            and_beside("model.safetensors.index.json"));
  EXPECT_EQ(with({"x.gguf", "other/y.gguf"}), Names{"x.gguf"});
  EXPECT_EQ(needed({"adapter_config.json", "adapter_model.safetensors", "gates.json"}),
            (Names{"adapter_config.json", "adapter_model.safetensors", "gates.json"}));
}

TEST(NeededFiles, AFileThatIsNamedIsTheModel) {
  const Names names = {"a.gguf",     "b.gguf",         "toy/x.pt",
                       "toy/x.json", "toy/vocab.json", "config.json"};
  EXPECT_EQ(needed(names, "b.gguf"), Names{"b.gguf"});
  EXPECT_EQ(needed(names, "toy/x.pt"), (Names{"toy/x.pt", "toy/x.json", "toy/vocab.json"}));
  EXPECT_NE(error_of([&] { needed(names); }).find("as org/name:a.gguf: a.gguf, b.gguf"),
            std::string::npos);
  EXPECT_NE(error_of([&] { needed(names, "c.gguf"); }).find("it has a.gguf, b.gguf, toy/x.pt"),
            std::string::npos);
  EXPECT_NE(error_of([&] { needed(names, "config.json"); }).find("is a model by itself"),
            std::string::npos);
  EXPECT_NE(error_of([&] { needed({"README.md"}); }).find("it has README.md"), std::string::npos);
  EXPECT_NE(error_of([&] { needed({}); }).find("it has no files"), std::string::npos);
}

TEST(NeededFiles, ShardsAreThoseOfTheIndex) {
  const Listing listing =
      parse_listing(listing_text({"a.safetensors", "b.safetensors"}), "listing");
  const auto shards = [&](const std::string& shard) {
    return shards_of_index(
        R"({"weight_map":{"x":"b.safetensors","y":"b.safetensors","z":")" + shard + "\"}}", "index",
        listing);
  };
  EXPECT_EQ(shards("a.safetensors"), (Names{"a.safetensors", "b.safetensors"}));
  EXPECT_NE(error_of([&] { shards("c.safetensors"); }).find("not in the repository"),
            std::string::npos);
  EXPECT_NE(error_of([&] { shards("../a.safetensors"); }).find("plain file name"),
            std::string::npos);
}

}  // namespace
}  // namespace filigree::hub
