// A hub on this machine with one model, a cache for it, and what tests of downloads expect of both.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "hub/cache.h"
#include "hub/download/fetch.h"
#include "support/errors.h"
#include "support/fake_hub.h"
#include "support/files.h"
#include "support/temporary_folder.h"

namespace filigree::hub {

namespace fs = std::filesystem;

// Bytes that differ from place to place, so that none can stand for another.
inline std::string numbers(std::size_t bytes, int seed = 0) {
  std::string text;
  for (std::size_t i = 0; text.size() < bytes; ++i) text += std::to_string(i * 7919 + seed) + ",";
  text.resize(bytes);
  return text;
}

class FetchTest : public ::testing::Test {
 protected:
  static constexpr std::size_t kLarge = 300000;
  static constexpr const char* kWeights = "model.safetensors";

  FetchTest() : server_("org/name") {
    server_.set_file("config.json", R"({"model_type": "gpt2"})");
    server_.set_file("tokenizer.json", "{}");
    server_.set_file("README.md", "not needed");
    server_.set_file(kWeights, numbers(kLarge), true);
  }

  HubSettings settings(const std::string& token = "") const {
    HubSettings settings;
    settings.endpoint = server_.endpoint();
    settings.token = token;
    settings.first_wait = 0.001;
    settings.attempts = 3;
    settings.max_text_seconds = 20.0;
    return settings;
  }
  Fetched fetch_it(const std::string& name = "org/name", const std::string& token = "") {
    FetchWatcher watcher;
    watcher.note = [this](const std::string& note) { notes_.push_back(note); };
    return fetch(parse_hub_name(name), cache_.path(), settings(token), watcher);
  }
  std::string refusal(const std::string& name = "org/name") {
    return error_of([&] { fetch_it(name); });
  }
  fs::path repository() const { return cache_ / "models--org--name"; }
  fs::path snapshot() const { return repository() / "snapshots" / FakeHub::kCommit; }
  fs::path blob(const std::string& name) const {
    return repository() / "blobs" / server_.etag_of(name);
  }
  fs::path incomplete(const std::string& name) const { return blob(name).string() + ".incomplete"; }

  void expect_whole() {
    for (const char* name : {"config.json", "tokenizer.json", kWeights}) {
      EXPECT_EQ(read_file(snapshot() / name), server_.content_of(name)) << name;
      EXPECT_TRUE(fs::is_symlink(snapshot() / name));
      EXPECT_FALSE(fs::exists(incomplete(name)));
    }
    EXPECT_EQ(read_file(repository() / "refs" / "main"), FakeHub::kCommit);
    EXPECT_EQ(find_in_cache(cache_.path(), parse_hub_name("org/name")), snapshot());
  }
  // Nothing that a program takes for the file or the model.
  void expect_nothing_whole(const std::string& name = kWeights) {
    EXPECT_FALSE(fs::exists(blob(name)));
    EXPECT_FALSE(fs::exists(snapshot() / name));
    EXPECT_FALSE(fs::exists(repository() / "refs" / "main"));
    EXPECT_FALSE(find_in_cache(cache_.path(), parse_hub_name("org/name")));
  }
  // Amends the replies to GETs of a file, where its content comes from.
  void amend_content(const std::string& file, std::function<void(ServerReply&)> amend) {
    server_.set_amend([=](const SeenRequest& request, const std::string& name, ServerReply& reply) {
      if (request.method == "GET" && name == file && reply.status != 302) amend(reply);
    });
  }
  void amend_all(const std::string& method, const std::string& file,
                 std::function<void(ServerReply&)> amend) {
    server_.set_amend([=](const SeenRequest& request, const std::string& name, ServerReply& reply) {
      if (request.method == method && name == file) amend(reply);
    });
  }

  FakeHub server_;
  const TemporaryFolder cache_;
  std::vector<std::string> notes_;
};

}  // namespace filigree::hub
