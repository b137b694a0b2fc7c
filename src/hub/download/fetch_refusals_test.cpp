// What a hub should not do, and what is said of it: wrong contents, other hosts, refusals, answers
// that do not end. Nothing of it may look whole.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <string>
#include <vector>

#include "hub/download/fetch.h"
#include "hub/download/fetch_test_support.h"
#include "support/file_size_limit.h"

namespace filigree::hub {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST_F(FetchTest, AnotherPartThanAskedForIsRefused) {
  int pieces = 0;
  amend_content(kWeights, [&](ServerReply& reply) {
    if (pieces++ == 0)
      reply.cut_after = 100000;
    else
      reply.headers.back() = "Content-Range: bytes 50000-299999/300000";
  });
  EXPECT_THAT(refusal(), HasSubstr("asked for the bytes from 100000 on"));
  expect_nothing_whole();
}

TEST_F(FetchTest, AWrongChecksumLeavesNothing) {
  for (const char* file : {"config.json", kWeights}) {
    amend_content(file, [](ServerReply& reply) { reply.body[0] ^= 1; });
    EXPECT_THAT(refusal(), AllOf(HasSubstr("should have " + server_.etag_of(file)),
                                 HasSubstr("nothing of it was kept")));
    expect_nothing_whole(file);
    EXPECT_FALSE(fs::exists(incomplete(file)));
  }
  server_.set_amend({});
  fetch_it();
  expect_whole();
}

TEST_F(FetchTest, TheListingsChecksumCountsToo) {
  amend_all("HEAD", kWeights,
            [](ServerReply& reply) { reply.headers[1] = "X-Linked-Etag: \"another-name\""; });
  EXPECT_THAT(refusal(), HasSubstr("was changed on the server"));
  server_.set_amend([](const SeenRequest&, const std::string& name, ServerReply& reply) {
    if (name == kWeights && reply.status == 302)
      reply.headers[1] = "X-Linked-Etag: \"another-name\"";
  });
  EXPECT_EQ(fetch_it().files[2].checksum, "sha256");
  EXPECT_EQ(read_file(repository() / "blobs" / "another-name"), numbers(kLarge));
}

TEST_F(FetchTest, AWrongSizeIsRefused) {
  amend_content(kWeights, [](ServerReply& reply) {
    reply.body += "more";
    reply.declared_length = "none";
  });
  EXPECT_THAT(refusal(), HasSubstr("has more than the 300000 bytes"));
  expect_nothing_whole();
  EXPECT_FALSE(fs::exists(incomplete(kWeights)));
  amend_content(kWeights, [](ServerReply& reply) {
    reply.body = reply.body.substr(0, 1000);
    reply.declared_length = "none";
  });
  // Each attempt brings something.
  fetch_it();
  expect_whole();
}

TEST_F(FetchTest, TheListingAndTheHeadMustAgree) {
  amend_all("HEAD", kWeights,
            [](ServerReply& reply) { reply.headers[2] = "X-Linked-Size: 299999"; });
  EXPECT_THAT(refusal(), HasSubstr("the listing has 300000 bytes, the file's head 299999"));
  amend_all("HEAD", "config.json", [](ServerReply& reply) {
    reply.headers.back() = "X-Repo-Commit: 1111111111111111111111111111111111111111";
  });
  EXPECT_THAT(refusal(), HasSubstr("the server answers for the commit '1111"));
  amend_all("HEAD", "config.json", [](ServerReply& reply) { reply.headers.clear(); });
  EXPECT_THAT(refusal(), HasSubstr("gives no ETag"));
  amend_all("HEAD", "config.json",
            [](ServerReply& reply) { reply.headers[0] = "ETag: \"../../../x\""; });
  EXPECT_THAT(refusal(), HasSubstr("is none that a file can be called by"));
}

TEST_F(FetchTest, AFileThatChangesMeanwhileIsAnError) {
  server_.set_amend([](const SeenRequest& request, const std::string& name, ServerReply& reply) {
    if (request.method == "GET" && name == kWeights && reply.status == 302)
      reply.headers[1] = "X-Linked-Etag: \"" + std::string(64, 'a') + "\"";
  });
  EXPECT_THAT(refusal(), HasSubstr("was changed on the server while it was fetched"));
  expect_nothing_whole();
}

// The port is part of the host: the store is another one.
TEST_F(FetchTest, TheTokenGoesToTheEndpointAlone) {
  fetch_it("org/name", " hf_secret\n");
  EXPECT_GT(server_.hub().requests().size(), 3u);
  for (const SeenRequest& request : server_.hub().requests())
    EXPECT_EQ(request.header("authorization"), "Bearer hf_secret") << request.path;
  const std::vector<SeenRequest> elsewhere = server_.store().requests();
  ASSERT_EQ(elsewhere.size(), 1u);
  for (const auto& [name, value] : elsewhere[0].headers)
    EXPECT_THAT(value, Not(HasSubstr("hf_secret"))) << name;
  EXPECT_EQ(elsewhere[0].header("authorization"), "");
}

TEST_F(FetchTest, ARedirectAtTheEndpointKeepsTheToken) {
  server_.set_amend([](const SeenRequest& request, const std::string&, ServerReply& reply) {
    if (!request.path.starts_with("/renamed/") && request.path.find("/api/") == std::string::npos)
      return;
    if (request.path.starts_with("/api/")) {
      reply.status = 307;
      reply.headers = {"Location: /renamed/listing"};
    } else {
      reply.status = 200;
      reply.body = R"({"sha":"0123456789abcdef0123456789abcdef01234567","siblings":[]})";
    }
  });
  EXPECT_THAT(error_of([&] { fetch_it("org/name", "hf_secret"); }), HasSubstr("it has no files"));
  ASSERT_EQ(server_.hub().requests().size(), 2u);
  EXPECT_EQ(server_.hub().requests()[1].header("authorization"), "Bearer hf_secret");
}

TEST_F(FetchTest, ATokenIsOneAndOnlyForPrivateWays) {
  EXPECT_THAT(error_of([&] { fetch_it("org/name", "a\r\nX: y"); }),
              HasSubstr("HF_TOKEN is no token"));
  EXPECT_EQ(server_.hub().requests().size(), 0u);
  HubSettings open = settings("hf_secret");
  open.endpoint = "http://hub.example.org";
  std::string told;
  HubClient client(
      open, [] {}, [&](const std::string& note) { told = note; });
  EXPECT_THAT(told, HasSubstr("HF_TOKEN is not sent to 'http://hub.example.org"));
}

TEST_F(FetchTest, RedirectsThatNeverEndDo) {
  server_.set_amend([](const SeenRequest&, const std::string&, ServerReply& reply) {
    reply.status = 302;
    reply.headers = {"Location: /again"};
  });
  EXPECT_THAT(refusal(), HasSubstr("more than 10 redirects"));
  server_.set_amend([](const SeenRequest&, const std::string&, ServerReply& reply) {
    reply.status = 302;
    reply.headers = {"Location: file:///etc/passwd"};
  });
  EXPECT_THAT(refusal(), HasSubstr("has another scheme"));
  server_.set_amend([](const SeenRequest&, const std::string&, ServerReply& reply) {
    reply.status = 302;
    reply.headers = {"Location: http://store.example.org/x"};
  });
  EXPECT_THAT(refusal(), HasSubstr("where it can be changed on the way"));
}

TEST_F(FetchTest, RefusalsSayWhatHelps) {
  const auto refused_with = [&](int status, const std::string& code, const std::string& file) {
    server_.set_amend([=](const SeenRequest&, const std::string& name, ServerReply& reply) {
      if (name != file) return;
      reply = {};
      reply.status = status;
      if (!code.empty()) reply.headers = {"X-Error-Code: " + code};
    });
    return refusal();
  };
  EXPECT_THAT(refused_with(403, "GatedRepo", "config.json"),
              AllOf(HasSubstr("'org/name:config.json' is gated"), HasSubstr("accept its terms at "),
                    HasSubstr("/org/name, and set HF_TOKEN")));
  EXPECT_THAT(refused_with(401, "GatedRepo", "config.json"), HasSubstr("is gated"));
  EXPECT_THAT(refused_with(401, "RepoNotFound", ""),
              AllOf(HasSubstr("no such model, or it is private or gated"), HasSubstr("HF_TOKEN")));
  EXPECT_THAT(refused_with(404, "RepoNotFound", ""), HasSubstr("has no such model"));
  EXPECT_THAT(refused_with(404, "RevisionNotFound", ""), HasSubstr("has no revision 'main'"));
  EXPECT_THAT(refused_with(404, "EntryNotFound", "config.json"), HasSubstr("has no such file"));
  EXPECT_THAT(refused_with(418, "", ""), HasSubstr("answers 418"));
  expect_nothing_whole();
}

TEST_F(FetchTest, ABusyServerIsAskedAgain) {
  for (const int status : {408, 429, 500, 502, 503, 504}) {
    std::atomic<int> refused = 0;
    server_.set_amend([&](const SeenRequest&, const std::string& name, ServerReply& reply) {
      if (name.empty() && refused++ < 2) reply = {.status = status, .headers = {"Retry-After: 0"}};
    });
    notes_.clear();
    fetch_it();
    EXPECT_EQ(refused, 3);
    EXPECT_EQ(notes_.size(), 2u);
  }
  server_.set_amend(
      [&](const SeenRequest&, const std::string&, ServerReply& reply) { reply = {.status = 503}; });
  EXPECT_THAT(refusal(), HasSubstr("answers 503 to 'org/name'; gave up after 3 attempts"));
  server_.set_amend([&](const SeenRequest&, const std::string&, ServerReply& reply) {
    reply = {.status = 429, .headers = {"Retry-After: 3600"}};
  });
  EXPECT_THAT(refusal(), HasSubstr("asks to wait 3600 seconds; try again later"));
}

TEST_F(FetchTest, NobodyThereIsAnError) {
  HubSettings nobody = settings();
  {
    const HttpServer gone([](const SeenRequest&) { return ServerReply(); });
    nobody.endpoint = gone.address();
  }
  EXPECT_THAT(error_of([&] { fetch(parse_hub_name("org/name"), cache_.path(), nobody); }),
              HasSubstr("http://127.0.0.1: Failed to connect"));
}

TEST_F(FetchTest, HostileListingsWriteNothing) {
  for (const char* name : {"../../evil", "/tmp/evil", "a/../../evil"}) {
    server_.set_file(name, "x");
    EXPECT_THAT(refusal(), HasSubstr("which is no name of a file below a folder"));
    EXPECT_EQ(cache_.file_count(), 0u);
  }
}

TEST_F(FetchTest, AnAnswerThatNeverEndsDoes) {
  amend_all("GET", "", [](ServerReply& reply) {
    reply.declared_length = "none";
    reply.body = "[";
    reply.repeated = std::string(1 << 20, ' ');
  });
  EXPECT_THAT(refusal(), HasSubstr("answers with more than"));
  amend_content(kWeights, [](ServerReply& reply) {
    reply.declared_length = "none";
    reply.repeated = std::string(1 << 16, 'x');
  });
  EXPECT_THAT(refusal(), HasSubstr("has more than the 300000 bytes"));
  amend_all("HEAD", "config.json", [](ServerReply& reply) {
    for (int i = 0; i < 80; ++i)
      reply.headers.push_back("X-" + std::to_string(i) + ": " + std::string(1000, 'x'));
  });
  EXPECT_THAT(refusal(), HasSubstr("of headers"));
  expect_nothing_whole();
}

TEST_F(FetchTest, AFullDiskIsAnErrorAndLeavesWhatIsThere) {
  {
    const FileSizeLimit full(100000);
    EXPECT_THAT(refusal(), HasSubstr("cannot write"));
  }
  expect_nothing_whole();
  EXPECT_EQ(fs::file_size(incomplete(kWeights)), 100000u);
  EXPECT_EQ(fetch_it().received, kLarge - 100000);
  expect_whole();
}

TEST_F(FetchTest, WritesThroughNoLinkInTheCache) {
  const TemporaryFolder elsewhere;
  fs::create_directory_symlink(elsewhere.path(), repository());
  EXPECT_THAT(refusal(), HasSubstr("is a symbolic link"));
  fs::remove(repository());
  fs::create_directories(repository());
  fs::create_directory_symlink(elsewhere.path(), repository() / "blobs");
  EXPECT_THAT(refusal(), HasSubstr("is a symbolic link"));
  fs::remove(repository() / "blobs");
  fs::create_directories(snapshot());
  fs::create_symlink(elsewhere / "x", snapshot() / "config.json");
  fetch_it();
  EXPECT_EQ(elsewhere.file_count(), 0u);
  expect_whole();
}

}  // namespace
}  // namespace filigree::hub
