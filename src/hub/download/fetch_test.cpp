// Downloads from a hub on this machine: what is brought, kept, continued and shared.
#include "hub/download/fetch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/named_lock.h"
#include "hub/download/fetch_test_support.h"

namespace filigree::hub {
namespace {

using ::testing::HasSubstr;

TEST_F(FetchTest, BringsWhatAModelNeedsIntoTheCache) {
  const Fetched fetched = fetch_it();
  expect_whole();
  EXPECT_EQ(fetched.commit, FakeHub::kCommit);
  EXPECT_EQ(fetched.folder, snapshot());
  ASSERT_EQ(fetched.files.size(), 3u);
  EXPECT_EQ(fetched.files[0].name, "config.json");
  EXPECT_EQ(fetched.files[0].checksum, "git");
  EXPECT_EQ(fetched.files[2].name, kWeights);
  EXPECT_EQ(fetched.files[2].checksum, "sha256");
  EXPECT_EQ(fetched.files[2].bytes, kLarge);
  EXPECT_TRUE(fetched.files[2].downloaded);
  EXPECT_FALSE(fs::exists(snapshot() / "README.md"));
  EXPECT_EQ(fs::read_symlink(snapshot() / kWeights), "../../blobs/" + server_.etag_of(kWeights));
  EXPECT_TRUE(
      fs::exists(cache_ / ".locks" / "models--org--name" / (server_.etag_of(kWeights) + ".lock")));
  EXPECT_THAT(notes_, ::testing::IsEmpty());
}

TEST_F(FetchTest, KeepsWhatIsThere) {
  fetch_it();
  server_.hub().forget();
  server_.store().forget();
  const Fetched again = fetch_it();
  EXPECT_EQ(again.received, 0u);
  for (const FetchedFile& file : again.files) EXPECT_FALSE(file.downloaded) << file.name;
  EXPECT_EQ(again.files[2].bytes, kLarge);
  EXPECT_EQ(server_.hub().count("GET", "/resolve/"), 0u);
  EXPECT_EQ(server_.store().requests().size(), 0u);
  expect_whole();
}

TEST_F(FetchTest, ABlobOfAnotherSizeIsFetchedAgain) {
  fetch_it();
  write_file(blob(kWeights), "cut");
  EXPECT_TRUE(fetch_it().files[2].downloaded);
  expect_whole();
}

TEST_F(FetchTest, ARevisionIsAskedForByName) {
  fetch_it("org/name@refs/pr/1");
  EXPECT_EQ(server_.hub().count("GET", "/revision/refs%2Fpr%2F1?"), 1u);
  EXPECT_EQ(read_file(repository() / "refs" / "refs" / "pr" / "1"), FakeHub::kCommit);
  EXPECT_TRUE(find_in_cache(cache_.path(), parse_hub_name("org/name@refs/pr/1")));
  EXPECT_FALSE(find_in_cache(cache_.path(), parse_hub_name("org/name")));
  fetch_it(std::string("org/name@") + FakeHub::kCommit);
  EXPECT_FALSE(fs::exists(repository() / "refs" / FakeHub::kCommit));
}

TEST_F(FetchTest, ShardsAndFilesInFolders) {
  server_.set_file("sub/a.gguf", numbers(5000), true);
  const Fetched one = fetch_it("org/name:sub/a.gguf");
  ASSERT_EQ(one.files.size(), 1u);
  EXPECT_EQ(fs::read_symlink(snapshot() / "sub" / "a.gguf"),
            "../../../blobs/" + server_.etag_of("sub/a.gguf"));
  EXPECT_EQ(read_file(snapshot() / "sub" / "a.gguf"), numbers(5000));

  FakeHub sharded("org/sharded");
  sharded.set_file("config.json", "{}");
  sharded.set_file("model.safetensors.index.json",
                   R"({"weight_map": {"a": "model-1.safetensors", "b": "model-2.safetensors"}})");
  sharded.set_file("model-1.safetensors", numbers(1000, 1), true);
  sharded.set_file("model-2.safetensors", numbers(1000, 2), true);
  sharded.set_file("model-3.safetensors", numbers(1000, 3), true);
  HubSettings elsewhere = settings();
  elsewhere.endpoint = sharded.endpoint();
  const Fetched two = fetch(parse_hub_name("org/sharded"), cache_.path(), elsewhere);
  EXPECT_EQ(two.files.size(), 4u);
  EXPECT_EQ(read_file(two.folder / "model-2.safetensors"), numbers(1000, 2));
  EXPECT_FALSE(fs::exists(two.folder / "model-3.safetensors"));
}

// A connection that ends early is made again, and what was received is not asked for twice.
TEST_F(FetchTest, GoesOnAfterACut) {
  amend_content(kWeights, [](ServerReply& reply) { reply.cut_after = 100000; });
  const Fetched fetched = fetch_it();
  expect_whole();
  EXPECT_EQ(server_.store().requests().size(), 3u);
  EXPECT_EQ(server_.store().requests()[1].header("range"), "bytes=100000-");
  EXPECT_EQ(server_.store().requests()[2].header("range"), "bytes=200000-");
  EXPECT_EQ(fetched.files[2].checksum, "sha256");
  EXPECT_EQ(notes_.size(), 2u);
}

TEST_F(FetchTest, GoesOnInTheNextRun) {
  int pieces = 0;
  amend_content(kWeights,
                [&](ServerReply& reply) { reply.cut_after = pieces++ == 0 ? 100000 : 0; });
  EXPECT_THAT(refusal(), HasSubstr("gave up after 3 attempts"));
  expect_nothing_whole();
  EXPECT_EQ(fs::file_size(incomplete(kWeights)), 100000u);
  server_.set_amend({});
  server_.store().forget();
  const Fetched fetched = fetch_it();
  expect_whole();
  EXPECT_EQ(fetched.received, kLarge - 100000);
  ASSERT_EQ(server_.store().requests().size(), 1u);
  EXPECT_EQ(server_.store().requests()[0].header("range"), "bytes=100000-");
}

TEST_F(FetchTest, AnInterruptLeavesWhatWasReceived) {
  struct Stop {};
  FetchWatcher watcher;
  watcher.at = [](std::uint64_t bytes, const std::string& file) {
    if (file == kWeights && bytes > 100000) throw Stop();
  };
  EXPECT_THROW(fetch(parse_hub_name("org/name"), cache_.path(), settings(), watcher), Stop);
  expect_nothing_whole();
  EXPECT_GT(fs::file_size(incomplete(kWeights)), 0u);
  EXPECT_LT(fetch_it().received, kLarge);
  expect_whole();
}

// While it waits for a server that says nothing, too.
TEST_F(FetchTest, AnInterruptIsHeardWhileNothingComes) {
  struct Stop {};
  std::atomic<bool> asked = false;
  server_.set_amend([&](const SeenRequest&, const std::string&, ServerReply& reply) {
    asked = true;
    reply.status = 503;
    reply.headers.push_back("Retry-After: 50");
  });
  FetchWatcher watcher;
  watcher.look_up = [&] {
    if (asked) throw Stop();
  };
  EXPECT_THROW(fetch(parse_hub_name("org/name"), cache_.path(), settings(), watcher), Stop);
}

TEST_F(FetchTest, AServerWithoutRangesStartsAgain) {
  int pieces = 0;
  amend_content(kWeights, [&](ServerReply& reply) {
    if (pieces++ == 0)
      reply.cut_after = 100000;
    else
      reply = {.body = numbers(kLarge)};
  });
  fetch_it();
  expect_whole();
}

TEST_F(FetchTest, WhatIsWrongFromAnEarlierRunIsFetchedAgain) {
  fs::create_directories(repository() / "blobs");
  write_file(incomplete(kWeights), std::string(1000, 'x'));
  const Fetched fetched = fetch_it();
  expect_whole();
  const std::uint64_t others = fetched.files[0].bytes + fetched.files[1].bytes;
  EXPECT_EQ(fetched.received, 2 * kLarge - 1000 + others);
}

TEST_F(FetchTest, AWholeOneThatWasNotRenamedIsKept) {
  fs::create_directories(repository() / "blobs");
  write_file(incomplete(kWeights), numbers(kLarge));
  fetch_it();
  expect_whole();
  EXPECT_EQ(server_.store().requests().size(), 0u);
}

// What was begun of another content is never continued.
TEST_F(FetchTest, AChangedFileIsAnotherOne) {
  int pieces = 0;
  amend_content(kWeights,
                [&](ServerReply& reply) { reply.cut_after = pieces++ == 0 ? 100000 : 0; });
  EXPECT_THAT(refusal(), HasSubstr("gave up"));
  const fs::path begun = incomplete(kWeights);
  server_.set_amend({});
  server_.set_file(kWeights, numbers(kLarge, 5), true);
  server_.store().forget();
  EXPECT_EQ(fetch_it().received, kLarge);
  EXPECT_EQ(server_.store().requests()[0].header("range"), "");
  EXPECT_EQ(fs::file_size(begun), 100000u);
  expect_whole();
}

TEST_F(FetchTest, TwoAtOnceFetchEachFileOnce) {
  std::vector<std::thread> threads;
  std::atomic<int> done = 0;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      const Fetched fetched = fetch(parse_hub_name("org/name"), cache_.path(), settings());
      done += fetched.files.size() == 3 ? 1 : 0;
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(done, 4);
  EXPECT_EQ(server_.store().requests().size(), 1u);
  EXPECT_EQ(server_.hub().count("GET", "config.json"), 1u);
  expect_whole();
}

TEST_F(FetchTest, WaitsForAnotherProgramsLock) {
  fs::create_directories(cache_ / ".locks" / "models--org--name");
  const OpenFolder locks(cache_ / ".locks" / "models--org--name");
  std::optional<NamedLock> theirs =
      NamedLock::try_to_take(locks, server_.etag_of("config.json") + ".lock");
  ASSERT_TRUE(theirs);
  FetchWatcher watcher;
  std::string told;
  // Whoever waits says so first, and looks up while it does.
  watcher.note = [&](const std::string& note) { told = note; };
  watcher.look_up = [&] {
    if (!told.empty()) theirs.reset();
  };
  fetch(parse_hub_name("org/name"), cache_.path(), settings(), watcher);
  EXPECT_THAT(told, HasSubstr("'config.json' is being fetched by another program"));
  expect_whole();
}

TEST_F(FetchTest, TellsHowFarItIs) {
  std::uint64_t all = 0, there = 1, last = 0;
  FetchWatcher watcher;
  watcher.begin = [&](std::uint64_t bytes, std::uint64_t begun) {
    all = bytes;
    there = begun;
  };
  watcher.at = [&](std::uint64_t bytes, const std::string&) { last = bytes; };
  fetch(parse_hub_name("org/name"), cache_.path(), settings(), watcher);
  const std::uint64_t expected = kLarge + server_.content_of("config.json").size() + 2;
  EXPECT_EQ(all, expected);
  EXPECT_EQ(there, 0u);
  EXPECT_EQ(last, expected);
  fetch(parse_hub_name("org/name"), cache_.path(), settings(), watcher);
  EXPECT_EQ(there, expected);
}

}  // namespace
}  // namespace filigree::hub
