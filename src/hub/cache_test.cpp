#include "hub/cache.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <map>

#include "support/errors.h"
#include "support/files.h"
#include "support/temporary_folder.h"

namespace filigree::hub {
namespace {

namespace fs = std::filesystem;

constexpr const char* kCommit = "0123456789abcdef0123456789abcdef01234567";

// Sets variables, or with nullptr unsets them, and puts them back.
class Environment {
 public:
  ~Environment() {
    for (const auto& [name, value] : before_) put(name, value ? value->c_str() : nullptr);
  }
  void set(const std::string& name, const char* value) {
    const char* const before = std::getenv(name.c_str());
    before_.emplace(name, before == nullptr ? std::nullopt : std::optional<std::string>(before));
    put(name, value);
  }

 private:
  static void put(const std::string& name, const char* value) {
    if (value == nullptr)
      ::unsetenv(name.c_str());
    else
      ::setenv(name.c_str(), value, 1);
  }
  std::map<std::string, std::optional<std::string>> before_;
};

class CacheTest : public ::testing::Test {
 protected:
  fs::path repository() const { return cache_ / "models--org--name"; }
  fs::path snapshot() const { return repository() / "snapshots" / kCommit; }

  void add(const std::string& name, const std::string& content = "x") {
    fs::create_directories(repository() / "blobs");
    fs::create_directories((snapshot() / name).parent_path());
    const std::string blob = "blob" + std::to_string(blobs_++);
    write_file(repository() / "blobs" / blob, content);
    fs::create_symlink(blob_link(name, blob), snapshot() / name);
  }
  void add_ref(const std::string& revision, const std::string& text = kCommit) {
    fs::create_directories((repository() / "refs" / revision).parent_path());
    write_file(repository() / "refs" / revision, text);
  }
  std::optional<fs::path> find(const std::string& name) const {
    return find_in_cache(cache_.path(), parse_hub_name(name));
  }

  const TemporaryFolder cache_;
  int blobs_ = 0;
};

TEST_F(CacheTest, LiesWhereHuggingfaceHubHasIt) {
  Environment environment;
  for (const char* name : {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME"})
    environment.set(name, nullptr);
  environment.set("HOME", "/home/x");
  EXPECT_EQ(cache_folder(), "/home/x/.cache/huggingface/hub");
  environment.set("XDG_CACHE_HOME", "/caches");
  EXPECT_EQ(cache_folder(), "/caches/huggingface/hub");
  environment.set("HF_HOME", "~/hf");
  EXPECT_EQ(cache_folder(), "/home/x/hf/hub");
  environment.set("HUGGINGFACE_HUB_CACHE", "/older");
  EXPECT_EQ(cache_folder(), "/older");
  environment.set("HF_HUB_CACHE", "/newer");
  EXPECT_EQ(cache_folder(), "/newer");
  environment.set("HF_HUB_CACHE", "");
  EXPECT_EQ(cache_folder(), "/older");
  for (const char* name : {"HUGGINGFACE_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME", "HOME"})
    environment.set(name, nullptr);
  EXPECT_FALSE(cache_folder_if_any());
  EXPECT_FALSE(find_in_cache("org/name"));
  EXPECT_NE(error_of([] { cache_folder(); }).find("HF_HUB_CACHE"), std::string::npos);
}

TEST_F(CacheTest, FindsModelsByRevisionAndCommit) {
  add("config.json");
  add("model.safetensors");
  EXPECT_FALSE(find("org/name"));
  add_ref("main", std::string(kCommit) + "\n");
  add_ref("refs/pr/1");
  EXPECT_EQ(find("org/name"), snapshot());
  EXPECT_EQ(find("org/name@refs/pr/1"), snapshot());
  EXPECT_EQ(find(std::string("org/name@") + kCommit), snapshot());
  for (const char* name : {"org/other", "name", "org/name@v2", "org/name:a.gguf",
                           "org/name@1111111111111111111111111111111111111111"})
    EXPECT_FALSE(find(name)) << name;
  EXPECT_EQ(cached_revisions(cache_.path(), "org/name"),
            (std::vector<std::string>{"main", "refs/pr/1"}));
}

TEST_F(CacheTest, OpensTheOnlyGgufFile) {
  add_ref("main");
  add("config.json");
  add("a.gguf");
  EXPECT_EQ(find("org/name"), snapshot() / "a.gguf");
  add("q8/b.gguf");
  EXPECT_EQ(find("org/name"), snapshot() / "a.gguf");
  EXPECT_EQ(find("org/name:q8/b.gguf"), snapshot() / "q8/b.gguf");
  EXPECT_EQ(read_file(*find("org/name:q8/b.gguf")), "x");
  add("c.gguf");
  const std::string message = error_of([&] { find("org/name"); });
  EXPECT_NE(message.find("as org/name:a.gguf: a.gguf, c.gguf"), std::string::npos) << message;
  EXPECT_EQ(find("org/name:c.gguf"), snapshot() / "c.gguf");
  add("model.safetensors");
  EXPECT_EQ(find("org/name"), snapshot());
}

TEST_F(CacheTest, ASnapshotWithoutWeightsIsGivenForItsTokenizer) {
  add_ref("main");
  add("tokenizer.json");
  EXPECT_EQ(find("org/name"), snapshot());
  EXPECT_FALSE(has_weights(snapshot()));
}

TEST_F(CacheTest, DamageIsNoAbsence) {
  for (const std::string& text :
       {std::string(""), std::string("../../../etc"), std::string(300, '1'), std::string("main")}) {
    add_ref("main", text);
    EXPECT_NE(error_of([&] { find("org/name"); }).find("should hold a commit"), std::string::npos)
        << text;
  }
}

TEST_F(CacheTest, LinksLeadUpFromEveryFolder) {
  EXPECT_EQ(blob_link("config.json", "e"), "../../blobs/e");
  EXPECT_EQ(blob_link("a/b/c.gguf", "e"), "../../../../blobs/e");
  EXPECT_EQ(folder_of_repository("org/name"), "models--org--name");
  EXPECT_EQ(folder_of_repository("gpt2"), "models--gpt2");
}

}  // namespace
}  // namespace filigree::hub
