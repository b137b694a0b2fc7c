// Runs with changes as the page asks for them: which changes fit a prompt, the edges that carry
// nothing, and what became of the prediction.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "analyze/next_token.h"
#include "serve/api.h"
#include "support/served_models.h"

namespace filigree::serve {
namespace {

using ::testing::HasSubstr;

constexpr const char* kPrompt = "The cat sat on the";

class ChangedRuns : public ::testing::Test {
 protected:
  Answer ask(const std::string& path, const Json& body) {
    return api_.answer({"POST", path, body.dump(), {}});
  }
  Json post(const std::string& path, const Json& body) {
    const Answer answer = ask(path, body);
    EXPECT_EQ(answer.status, 200) << answer.body;
    return Json::parse(answer.body);
  }
  // What /api/look says of the first model.
  Json view_prompt(const Json& body) {
    const std::string bytes = ask("/api/look", body).body;
    std::uint32_t length = 0;
    std::memcpy(&length, bytes.data(), sizeof length);
    return Json::parse(bytes.substr(sizeof length, length)).at("models").at(0);
  }

  const ModelFolder folder_;
  Api api_{served_models(folder_), {}};
};

TEST_F(ChangedRuns, SaysWhichChangesDoNotFitThePromptAndWhy) {
  const Json found = post("/api/changes", {{"prompt", kPrompt},
                                           {"ablate", {"L0H1", "L99H1", "?", "L0H1@' dog'"}},
                                           {"scale", {"L1MLP=2", "L1MLP=much", "L0H0@77=2"}},
                                           {"patch", {"L1H0@0=A dog", "L1H0=A dog", "L1H0@4=A"}}});
  EXPECT_TRUE(found["whole"].is_null());
  const auto expect = [&](std::size_t n, const char* kind, const char* text, const char* error,
                          bool elsewhere) {
    const Json& one = found["unfit"].at(n);
    EXPECT_EQ(one["kind"], kind);
    EXPECT_EQ(one["text"], text);
    EXPECT_THAT(one["error"].get<std::string>(), HasSubstr(error));
    EXPECT_EQ(one["elsewhere"], elsewhere) << text;
  };
  ASSERT_EQ(found["unfit"].size(), 7u) << found;
  expect(0, "ablate", "L99H1", "no layer 99", false);
  expect(1, "ablate", "?", "no place in a model", false);
  expect(2, "ablate", "L0H1@' dog'", "no token", true);
  expect(3, "scale", "L1MLP=much", "no factor", false);
  expect(4, "scale", "L0H0@77=2", "no position 77", true);
  expect(5, "patch", "L1H0=A dog", "say at which position", true);
  expect(6, "patch", "L1H0@4=A", "has no position 4", true);
  // A run makes what is said to fit, and refuses what is not.
  EXPECT_EQ(ask("/api/look", {{"prompt", kPrompt},
                              {"ablate", {"L0H1"}},
                              {"scale", {"L1MLP=2"}},
                              {"patch", {"L1H0@0=A dog"}}})
                .status,
            200);
  for (const Json& one : found["unfit"])
    EXPECT_EQ(
        ask("/api/look", {{"prompt", kPrompt}, {one["kind"].get<std::string>(), {one["text"]}}})
            .status,
        400)
        << one;
}

TEST_F(ChangedRuns, SaysWhereChangesAreTooManyAndWhereItIsThePrompt) {
  const Json many = post("/api/changes",
                         {{"prompt", kPrompt}, {"ablate", std::vector<std::string>(600, "L0H1")}});
  EXPECT_THAT(many["whole"]["error"].get<std::string>(), HasSubstr("600 interventions"));
  EXPECT_EQ(ask("/api/changes", {{"prompt", ""}, {"ablate", {"L99H1"}}}).status, 400);
  std::string words;
  for (int n = 0; n < 90; ++n) words += " cat";
  const Answer longer = ask("/api/changes", {{"prompt", words}, {"ablate", {"L0H1"}}});
  EXPECT_EQ(longer.status, 400);
  EXPECT_THAT(longer.body, HasSubstr("90 tokens, more than the context of 64"));
}

TEST_F(ChangedRuns, AHeadThatIsOffHasNoArcs) {
  EXPECT_EQ(view_prompt({{"prompt", kPrompt}})["cut"], Json::array());
  EXPECT_EQ(view_prompt({{"prompt", kPrompt}, {"ablate", {"L1H*@-1"}}})["cut"].at(3),
            Json({{"head", "L1H3"}, {"query", 4}, {"key", nullptr}}));
  const auto heads_of_arcs = [&](const Json& changes) {
    Json query = {{"prompt", kPrompt}, {"view", "tokens"}, {"format", "json"}, {"least", 0.01}};
    query.update(changes);
    std::vector<std::string> heads;
    const Json arcs = post("/api/export", query);  // lives as long as the loop
    for (const Json& edge : arcs["models"][0]["edges"]) heads.push_back(edge["head"]);
    return heads;
  };
  const auto there = [](const std::vector<std::string>& heads, const std::string& head) {
    return std::find(heads.begin(), heads.end(), head) != heads.end();
  };
  ASSERT_TRUE(there(heads_of_arcs(Json::object()), "L1H2"));
  for (const char* off : {"L1H2", "L1", "L*H2", "L1.attn-out", "L1H2@-1"}) {
    const std::vector<std::string> heads = heads_of_arcs({{"ablate", {off}}});
    EXPECT_FALSE(there(heads, "L1H2")) << off;
    EXPECT_TRUE(there(heads, "L0H0")) << off;
  }
}

TEST_F(ChangedRuns, ThePredictionOfBeforeIsListedWithBothRanks) {
  const Json before = view_prompt({{"prompt", kPrompt}})["next"];
  EXPECT_EQ(before[0]["rank"], 1);
  EXPECT_TRUE(before[0]["plain_rank"].is_null());
  // Without any head and MLP it is another token's turn.
  const Json now =
      view_prompt({{"prompt", kPrompt}, {"top", 1}, {"ablate", {"L0", "L1", "L*MLP"}}});
  ASSERT_EQ(now["next"].size(), 2u) << now["next"];
  EXPECT_EQ(now["next"][0]["rank"], 1);
  EXPECT_GT(now["next"][0]["plain_rank"], 1);
  EXPECT_EQ(now["next"][1]["token"], before[0]["token"]);
  EXPECT_EQ(now["next"][1]["plain_rank"], 1);
  EXPECT_GT(now["next"][1]["rank"], 1);
}

}  // namespace
}  // namespace filigree::serve
