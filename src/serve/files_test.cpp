// Files of what is on the screen, and the long work behind the page whose results they are of.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <thread>

#include "serve/api.h"
#include "support/file_size_limit.h"
#include "support/served_models.h"

namespace filigree::serve {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kPrompt = "The cat sat on the";

class FilesTest : public ::testing::Test {
 protected:
  Answer ask(const std::string& path, const Json& body) {
    return api_.answer({"POST", path, body.dump(), {}});
  }
  Json post(const std::string& path, const Json& body) { return Json::parse(ask(path, body).body); }
  Json get(const std::string& path) { return Json::parse(api_.answer({"GET", path, "", {}}).body); }
  // A job when it is over, and its path.
  std::pair<std::string, Json> run(const Json& body) {
    const Answer started = ask("/api/jobs", body);
    EXPECT_EQ(started.status, 202) << started.body;
    const std::string path =
        "/api/jobs/" + Json::parse(started.body).value("job", std::string("none"));
    Json job = get(path);
    while (job.value("state", "") == "running") job = get(path);
    return {path, job};
  }

  const ModelFolder folder_;
  Api api_{served_models(folder_), {}};
};

TEST_F(FilesTest, WhatIsOnTheScreenIsExported) {
  const Json query = {{"prompt", kPrompt}, {"heads", "L1H2,L0H1"}, {"ablate", {"L0H0"}}};
  const auto file = [&](const char* view, const char* format) {
    Json body = query;
    body["view"] = view, body["format"] = format, body["answer"] = " the";
    const Answer answer = ask("/api/export", body);
    EXPECT_EQ(answer.status, 200) << view << format << answer.body.substr(0, 200);
    EXPECT_EQ(answer.file, std::string("filigree-") + view + "." + format);
    return answer.body;
  };
  const Json numbers = Json::parse(file("maps", "json"));
  EXPECT_EQ(numbers["heads"], Json({"L0H1", "L1H2"}));
  EXPECT_EQ(numbers["models"], Json({"dense", "sparse"}));
  EXPECT_EQ(numbers["series"].size(), 2u);
  const Json head =
      post("/api/head", {{"prompt", kPrompt}, {"ablate", {"L0H0"}}, {"head", "L1H2"}});
  EXPECT_NEAR(numbers["series"][1]["maps"]["L1H2"][2][1].get<double>(),
              head["models"][1]["weights"][4].get<double>(), 1e-5);
  EXPECT_EQ(file("maps", "npz").substr(0, 2), "PK");
  EXPECT_EQ(Json::parse(file("lens", "json"))["models"][0]["model"], "dense");
  EXPECT_EQ(Json::parse(file("attribution", "json"))["models"][1]["model"], "sparse");
  const Json arcs = Json::parse(file("tokens", "json"));
  EXPECT_EQ(arcs["at"], 4) << "the last token";
  EXPECT_EQ(arcs["interventions"].size(), 1u);
  for (const Json& edge : arcs["models"][0]["edges"]) {
    EXPECT_TRUE(edge["query"] == 4 || edge["key"] == 4) << edge;
    EXPECT_GE(edge["weight"].get<double>(), 0.1);
  }
  const Json text = Json::parse(file("generate", "json"));
  EXPECT_EQ(text["models"][1]["tokens"].size(), 5u + 24);
  EXPECT_EQ(text["models"][1]["finish"], "max-tokens");
  for (const char* view : {"maps", "tokens", "lens", "attribution", "generate"}) {
    EXPECT_THAT(file(view, "svg"), HasSubstr("<svg"));
    EXPECT_EQ(file(view, "pdf").substr(0, 4), "%PDF");
    EXPECT_EQ(file(view, "png").substr(1, 3), "PNG");
  }
  Json wrong = query;
  wrong["view"] = "lens", wrong["format"] = "npz";
  EXPECT_EQ(ask("/api/export", wrong).status, 400);
  wrong["format"] = "../x";
  EXPECT_EQ(ask("/api/export", wrong).status, 400);
  wrong = query;
  wrong["view"] = "tokens", wrong["at"] = 5;
  EXPECT_EQ(ask("/api/export", wrong).status, 400);
}

TEST_F(FilesTest, AFullDiskIsToldWithoutAPathOfTheMachine) {
  const std::string folder = std::filesystem::temp_directory_path().string();
  std::vector<const char*> formats = {"npz", "json"};
  formats.insert(formats.end(), {"svg", "pdf", "png"});
  for (const char* format : formats) {
    Answer answer;
    {
      const FileSizeLimit full(0);
      answer = ask("/api/export", {{"prompt", kPrompt}, {"format", format}});
    }
    EXPECT_EQ(answer.status, 507) << format << answer.body.substr(0, 300);
    EXPECT_THAT(answer.body, AllOf(HasSubstr("temporary file"), HasSubstr("TMPDIR"))) << format;
    EXPECT_THAT(answer.body, Not(HasSubstr(folder))) << format;
  }
}

TEST_F(FilesTest, SweepsAreJobsWhoseResultsAreExported) {
  const Json task = post("/api/task", {{"task", "copy"}, {"prompts", 3}});
  const auto sweep = [&](Json body) {
    body["pairs"] = task["prompts"], body["prompts"] = 3;
    const auto over = run(body);
    EXPECT_EQ(over.second["state"], "done") << over.second;
    return over;
  };
  const auto [path, job] = sweep({{"sweep", "z"}, {"by", "layer-head"}});
  EXPECT_EQ(job["request"]["sweep"], "z");
  EXPECT_EQ(job["result"]["models"][0]["model"], "dense");
  const Json numbers = Json::parse(ask(path + "/export", {{"format", "json"}}).body);
  EXPECT_EQ(numbers["models"], job["result"]["models"]);
  EXPECT_FALSE(numbers.contains("figures"));
  const std::size_t figures = job["result"]["figures"].size();
  for (std::size_t n = 0; n < figures; ++n)
    for (const auto& [format, begin] :
         {std::pair("svg", "<?xml"), std::pair("pdf", "%PDF"), std::pair("png", "\x89PNG")}) {
      const Answer file = ask(path + "/export", {{"figure", n}, {"format", format}});
      EXPECT_EQ(file.status, 200) << file.body;
      EXPECT_EQ(file.body.substr(0, std::strlen(begin)), begin);
    }
  EXPECT_EQ(ask(path + "/export", {{"figure", figures}}).status, 404);
  EXPECT_EQ(ask(path + "/export", {{"format", "npz"}}).status, 400);
  EXPECT_EQ(ask("/api/jobs/99/export", {{"format", "json"}}).status, 404);
  EXPECT_EQ(ask("/api/jobs//export", {{"format", "json"}}).status, 404);
  sweep({{"sweep", "resid"}, {"by", "layer-position"}});
  EXPECT_EQ(ask("/api/jobs", {{"sweep", "everything"}, {"task", "copy"}}).status, 400);
  EXPECT_EQ(ask("/api/jobs", {{"sweep", "z"}, {"task", "/etc/passwd"}}).status, 400);
}

TEST_F(FilesTest, TranscodersAreTrainedForTheSessionAndTracedThrough) {
  const std::int64_t loaded = models_loaded();
  const Json job = run({{"train", "dense"}, {"features", 16}, {"tokens", 2048}}).second;
  EXPECT_EQ(models_loaded(), loaded) << "the server's own model is there already";
  ASSERT_EQ(job["state"], "done") << job;
  EXPECT_EQ(job["result"]["model"], "dense");
  EXPECT_EQ(job["result"]["tokens"], 2048);
  EXPECT_GT(job["result"]["held_out"]["nmse"].get<double>(), 0);
  EXPECT_THAT(job.dump(), Not(HasSubstr(std::filesystem::temp_directory_path().string() + "/")));
  const Json traced = run({{"trace", kPrompt}}).second;
  ASSERT_EQ(traced["state"], "done") << traced;
  ASSERT_EQ(traced["result"]["models"].size(), 1u) << "the other has none";
  EXPECT_EQ(traced["result"]["models"][0]["model"], "dense");
  EXPECT_EQ(ask("/api/jobs", {{"train", "other"}}).status, 400);
  EXPECT_EQ(ask("/api/jobs", {{"train", "dense"}, {"tokens", 1e9}}).status, 400);
  EXPECT_EQ(ask("/api/jobs", {{"train", "dense"}, {"features", 1000000}}).status, 400);
}

TEST_F(FilesTest, ATrainingIsCancelled) {
  const Answer started =
      ask("/api/jobs", {{"train", "dense"}, {"features", 64}, {"tokens", 2000000}});
  ASSERT_EQ(started.status, 202) << started.body;
  const std::string path = "/api/jobs/" + Json::parse(started.body)["job"].get<std::string>();
  while (get(path)["progress"]["label"] == "") std::this_thread::yield();
  api_.answer({"DELETE", path, "", {}});
  Json job = get(path);
  while (job["state"] == "running") job = get(path);
  EXPECT_EQ(job["state"], "cancelled") << job;
}

}  // namespace
}  // namespace filigree::serve
