// What the views of the page ask for, answered without HTTP.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "filigree/lens_study.h"
#include "serve/api.h"
#include "serve/typed_text.h"
#include "support/looked_at.h"
#include "support/served_models.h"

namespace filigree::serve {
namespace {

using ::testing::HasSubstr;

constexpr const char* kPrompt = "The cat sat on the";

class ViewsTest : public ::testing::Test {
 protected:
  Answer ask(const std::string& path, const Json& body) {
    return api_.answer({"POST", path, body.dump(), {}});
  }
  Json post(const std::string& path, const Json& body) { return Json::parse(ask(path, body).body); }
  Json get(const std::string& path) { return Json::parse(api_.answer({"GET", path, "", {}}).body); }

  const ModelFolder folder_;
  Api api_{served_models(folder_), {}};
};

TEST_F(ViewsTest, OneRunGivesMapsAndPredictions) {
  for (const char* ablate : {"", "L0H1,L1MLP,L0H2.pattern@2<-1"}) {
    Json query = {{"prompt", kPrompt}, {"top", 3}};
    if (*ablate != '\0') query["ablate"] = {ablate};
    const Answer answer = ask("/api/look", query);
    ASSERT_EQ(answer.status, 200) << answer.body;
    EXPECT_EQ(answer.type, "application/octet-stream");
    const ViewedPrompt look = taken_apart(answer.body);
    ASSERT_EQ(look.models.size(), 2u);
    const Json predicted = {run_json(api_.models()[0], query), run_json(api_.models()[1], query)};
    query["head"] = "L1H1";
    const Json of_head = post("/api/head", query)["models"];
    query.erase("head");
    std::size_t cells = 0;
    for (std::size_t m = 0; m < 2; ++m) {
      const Json& found = look.models[m];
      EXPECT_EQ(found["tokens"], predicted[m]["tokens"]);
      EXPECT_EQ(found["first"], cells);
      const Json& wanted = of_head[m]["weights"];
      ASSERT_EQ(found["heads"][5], "L1H1");
      ASSERT_EQ(found["cells"], 8 * wanted.size());
      for (std::size_t c = 0; c < wanted.size(); ++c)
        EXPECT_NEAR(look.cells[cells + 5 * wanted.size() + c], 65535 * wanted[c].get<double>(), 1)
            << c;
      cells += found["cells"].get<std::size_t>();
      const bool changed = *ablate != '\0';
      const Json& next = predicted[m][changed ? "changed" : "plain"]["next"];
      ASSERT_EQ(found["next"].size(), next.size());
      for (const Json& one : found["next"]) {
        const auto same = std::find_if(next.begin(), next.end(),
                                       [&](const Json& other) { return other["id"] == one["id"]; });
        ASSERT_NE(same, next.end());
        EXPECT_NEAR(one["probability"].get<double>(), (*same)["probability"].get<double>(), 1e-6);
        EXPECT_EQ(one["plain_probability"].is_null(), !changed);
      }
      EXPECT_EQ(found["surprise"].size() + 1, found["tokens"].size());
      EXPECT_GT(found["loss"].get<double>(), 0);
      EXPECT_EQ(found["plain_loss"].is_null(), !changed);
      if (changed) {
        EXPECT_NE(found["plain_loss"], found["loss"]);
        EXPECT_NEAR(found["divergence"].get<double>(),
                    predicted[m]["divergence"].back().get<double>(), 1e-6);
      }
    }
    EXPECT_EQ(look.cells.size(), cells);
  }
  const Answer one = ask("/api/look", {{"prompt", "The"}, {"models", {"sparse"}}});
  EXPECT_TRUE(taken_apart(one.body).models[0]["loss"].is_null())
      << "one token has nothing to be surprised by";
}

// What is typed behind a text is computed alone, and gives what the whole gives.
TEST_F(ViewsTest, TypingGoesOnWhereTheTextWasLeft) {
  const study::LoadedModel& model = api_.models()[1];
  TypedText typed(model, 1 << 20);
  std::vector<std::uint16_t> cells, wanted;
  std::vector<TokenId> ids;
  const auto expect_same = [&](std::size_t computed) {
    const std::string before = typed.text();
    const study::Prediction found = typed.run(ids);
    cells = typed.cells();
    EXPECT_EQ(typed.computed(), computed);
    const bool another = before != typed.text() && !before.empty();
    EXPECT_EQ(typed.same_since(before), another          ? ids.size() - computed
                                        : before.empty() ? 0u
                                                         : ids.size());
    EXPECT_EQ(typed.same_since(typed.text()), ids.size());
    TypedText anew(model, 1 << 20);
    const study::Prediction whole = anew.run(ids);
    wanted = anew.cells();
    EXPECT_NE(typed.text(), anew.text());
    const study::Prediction plain = study::predict(model, ids);
    ASSERT_EQ(cells.size(), 8 * ids.size() * (ids.size() + 1) / 2);
    ASSERT_EQ(wanted.size(), cells.size());
    for (std::size_t c = 0; c < cells.size(); ++c) EXPECT_NEAR(cells[c], wanted[c], 1) << c;
    ASSERT_EQ(found.surprise.size(), ids.size() - 1);
    for (std::size_t t = 0; t + 1 < ids.size(); ++t)
      EXPECT_NEAR(found.surprise[t], plain.surprise[t], 1e-4) << t;
    for (std::size_t v = 0; v < plain.logits.size(); ++v)
      EXPECT_NEAR(found.logits[v], plain.logits[v], 1e-4) << v;
  };
  ids = {5, 9, 2, 7};
  expect_same(4);
  ids.push_back(11);
  expect_same(2);  // the last one once more, and the new one
  expect_same(0);
  ids.resize(3);
  expect_same(1);
  ids[1] = 4;  // in the middle
  expect_same(3);
  ids = {8, 8};
  expect_same(2);
  ids = {8};
  expect_same(1);
  EXPECT_FALSE(typed.takes(100)) << "more than the context";
}

// Whoever has the maps of the text before gets the rows that are new.
TEST_F(ViewsTest, MapsOfATextThatGoesOnAreTheirNewRows) {
  const auto view_prompt = [&](const std::string& prompt, const Json& after,
                               Json more = Json::object()) {
    more["prompt"] = prompt, more["models"] = {"sparse"};
    if (after.is_string()) more["after"] = after;
    const ViewedPrompt found = taken_apart(ask("/api/look", more).body);
    return std::pair(found.models[0], found.cells);
  };
  // As a page puts them together: of each map the rows before, then what came.
  const auto put_together = [](const auto& before, const auto& now) {
    const auto triangle = [](std::size_t rows) { return rows * (rows + 1) / 2; };
    const std::size_t rows = now.first["rows"], heads = now.first["heads"].size(),
                      old_each = triangle(before.first["tokens"].size()),
                      each = triangle(now.first["tokens"].size()), came = each - triangle(rows);
    std::vector<std::uint16_t> cells;
    for (std::size_t head = 0; head < heads; ++head) {
      const auto old = before.second.begin() + static_cast<std::ptrdiff_t>(head * old_each);
      cells.insert(cells.end(), old, old + static_cast<std::ptrdiff_t>(triangle(rows)));
      const auto fresh = now.second.begin() + static_cast<std::ptrdiff_t>(head * came);
      cells.insert(cells.end(), fresh, fresh + static_cast<std::ptrdiff_t>(came));
    }
    return cells;
  };
  const auto first = view_prompt("The cat sat", nullptr);
  ASSERT_TRUE(first.first["text"].is_string());
  EXPECT_EQ(first.first["rows"], 0);
  for (const char* next : {"The cat sat on the", "The cat", "The cat sat"}) {
    const auto before = view_prompt("The cat sat", nullptr);
    const auto now = view_prompt(next, before.first["text"]);
    EXPECT_GT(now.first["rows"], 0) << next;
    const auto whole = view_prompt(next, nullptr);
    EXPECT_LT(now.second.size(), whole.second.size());
    EXPECT_EQ(whole.first["rows"], 0);
    EXPECT_EQ(put_together(before, now), whole.second) << next;
  }
  // Of another text, or one that somebody else has typed since, all rows come.
  const auto mine = view_prompt("The cat sat", nullptr);
  view_prompt("A dog ran", nullptr);
  EXPECT_EQ(view_prompt("The cat sat on", mine.first["text"]).first["rows"], 0);
  EXPECT_EQ(view_prompt("The cat sat", "no such text").first["rows"], 0);
  // An answer that never came, of a text in between, does not matter.
  const auto had = view_prompt("The cat sat", nullptr);
  view_prompt("The cat sat on", had.first["text"]);
  const auto later = view_prompt("The cat sat on the", had.first["text"]);
  EXPECT_GT(later.first["rows"], 0);
  EXPECT_EQ(put_together(had, later), view_prompt("The cat sat on the", nullptr).second);
  // So they do of runs that nothing is remembered of.
  const auto again = view_prompt("The cat sat", nullptr);
  const auto changed = view_prompt("The cat sat", again.first["text"], {{"ablate", {"L0H1"}}});
  EXPECT_EQ(changed.first["rows"], 0);
  EXPECT_TRUE(changed.first["text"].is_null());
}

TEST_F(ViewsTest, SaysWhatAHeadReadsAndWrites) {
  const Json query = {{"prompt", kPrompt}, {"head", "L1H1"}, {"query", 2}, {"top", 3}};
  const Json dense = post("/api/head", query)["models"][0];
  EXPECT_EQ(dense["writes"]["query"], 2);
  ASSERT_EQ(dense["writes"]["raises"].size(), 3u);
  EXPECT_GT(dense["writes"]["raises"][0]["effect"], dense["writes"]["lowers"][0]["effect"]);
  ASSERT_FALSE(dense["reads"].empty());
  double share = 0;
  for (const Json& read : dense["reads"]) share += read["share"].get<double>();
  EXPECT_GT(share, 0);
  EXPECT_LT(share, 1.0001);
  Json off = query;
  off["ablate"] = {"L1H1"};
  const Json without = post("/api/head", off)["models"][0];  // lives as long as the loop
  ASSERT_FALSE(without["writes"]["raises"].empty());
  for (const Json& raised : without["writes"]["raises"])
    EXPECT_EQ(raised["effect"], 0) << "a head that is off writes nothing";
  off["query"] = 99;
  EXPECT_EQ(ask("/api/head", off).status, 400);
}

TEST_F(ViewsTest, OrdersHeadsByRoleAndImportance) {
  const Json roles = get("/api/roles");
  EXPECT_THAT(roles["names"].dump(), HasSubstr("induction"));
  ASSERT_EQ(roles["models"].size(), 2u);
  EXPECT_EQ(roles["models"][1]["roles"].size(), 8u);
  EXPECT_EQ(get("/api/roles"), roles);
  const Json found = post("/api/importance", {{"prompt", kPrompt}})["models"];
  study::RunRequest request = {.prompt = kPrompt, .gradient_of = found[0]["token"], .top = 1};
  const Json wanted = to_json(study::run(request, api_.models()[0], {}));
  EXPECT_EQ(wanted["plain"]["next"][0]["rank"], 1) << "of the likeliest token";
  ASSERT_EQ(found[0]["parts"].size(), 10u) << "eight heads and two MLPs";
  for (const Json& part : wanted["plain"]["gradients"])
    EXPECT_EQ(found[0]["parts"][part["part"].get<std::string>()], part["value_times_gradient"]);
}

TEST_F(ViewsTest, ATextGrowsTokenByToken) {
  const Json query = {{"prompt", kPrompt}, {"models", {"sparse"}}, {"tokens", 4}, {"least", 0.01}};
  const Answer answer = ask("/api/generate", query);
  ASSERT_EQ(answer.status, 200) << answer.body;
  std::vector<Json> lines;
  answer.stream([&](std::string_view piece) {
    lines.push_back(Json::parse(piece));
    return true;
  });
  ASSERT_EQ(lines.size(), 5u);
  EXPECT_EQ(lines.back(), Json({{"finish", "max-tokens"}}));
  std::string text = kPrompt;
  for (std::size_t n = 0; n < 4; ++n) {
    const Json predicted = run_json(api_.models()[1], {{"prompt", text}});
    EXPECT_EQ(lines[n]["id"], predicted["plain"]["next"][0]["id"]) << text;
    EXPECT_FALSE(lines[n]["edges"].empty());
    text += lines[n]["text"].get<std::string>();
  }
  std::size_t read = 0;
  answer.stream([&](std::string_view) { return ++read < 2; });
  EXPECT_LE(read, 2u) << "goes on though nobody reads";
  EXPECT_EQ(ask("/api/generate", {{"prompt", kPrompt}}).status, 400) << "of two models";
  EXPECT_EQ(
      ask("/api/generate", {{"prompt", kPrompt}, {"models", {"dense"}}, {"tokens", 100000}}).status,
      400);
}

TEST_F(ViewsTest, LensAndAttributionAgreeWithThePrediction) {
  const Json plain = run_json(api_.models()[0], {{"prompt", kPrompt}});
  const Json next = plain["plain"]["next"][0];
  const Json lens = post("/api/lens", {{"prompt", kPrompt}})["models"];
  ASSERT_EQ(lens.size(), 2u);
  EXPECT_EQ(lens[0]["model"], "dense");
  EXPECT_EQ(lens[0]["points"].size(), 3u);
  EXPECT_EQ(lens[0]["points"][2]["positions"].back()["top"][0]["id"], next["id"]);
  const Json found = post("/api/attribution", {{"prompt", kPrompt}, {"answer", next["token"]}});
  EXPECT_NEAR(found["models"][0]["total"]["mean"].get<double>(), next["logit"].get<double>(), 1e-3);
  EXPECT_EQ(found["models"][1]["model"], "sparse");
  const Json& tokens = plain["tokens"];
  const std::string before = tokens[0].get<std::string>() + tokens[1].get<std::string>();
  const Json own = post("/api/attribution", {{"prompt", kPrompt}, {"at", 2}});
  const Json prefix = post("/api/attribution", {{"prompt", before}, {"answer", tokens[2]}});
  ASSERT_EQ(own["models"][0]["parts"].size(), prefix["models"][0]["parts"].size());
  for (std::size_t p = 0; p < own["models"][0]["parts"].size(); ++p)
    EXPECT_NEAR(own["models"][0]["parts"][p]["contribution"].get<double>(),
                prefix["models"][0]["parts"][p]["contribution"].get<double>(), 1e-4);
  // Of a run with changes, it is that run that is explained.
  const Json changed = {
      {"prompt", kPrompt}, {"ablate", {"L0H1"}}, {"patch", {"L1MLP=A dog ran up a"}}};
  const Json predicted = run_json(api_.models()[0], changed)["changed"]["next"][0];
  Json asked = changed;
  asked["answer"] = predicted["token"];
  const Json of_changed = post("/api/attribution", asked)["models"][0];
  EXPECT_NEAR(of_changed["total"]["mean"].get<double>(), predicted["logit"].get<double>(), 1e-3);
  for (const Json& part : of_changed["parts"])
    if (part["part"] == "L0H1") {
      EXPECT_EQ(part["contribution"], 0);
    }
  EXPECT_EQ(ask("/api/attribution", {{"prompt", kPrompt}, {"at", 99}}).status, 400);
  EXPECT_EQ(ask("/api/attribution", {{"prompt", kPrompt}, {"answer", "no single token"}}).status,
            400);
}

TEST_F(ViewsTest, TasksHavePromptsAndMayBeOnesOwn) {
  const Json task = post("/api/task", {{"task", "copy"}, {"prompts", 3}});
  ASSERT_EQ(task["prompts"].size(), 3u) << task;
  EXPECT_FALSE(task["prompts"][0]["clean"].get<std::string>().empty());
  EXPECT_EQ(ask("/api/task", {{"task", "/etc/passwd"}}).status, 400);
  const Answer started =
      ask("/api/jobs", {{"pairs", task["prompts"]}, {"models", {"dense"}}, {"prompts", 3}});
  ASSERT_EQ(started.status, 202) << started.body;
  const std::string path = "/api/jobs/" + Json::parse(started.body)["job"].get<std::string>();
  Json job = get(path);
  while (job["state"] == "running") job = get(path);
  EXPECT_EQ(job["state"], "done") << job;
  EXPECT_EQ(job["result"]["task"], "own prompts");
  EXPECT_TRUE(job["result"].contains("figures"));
  if (!job["result"]["models"][0]["curve"].is_null()) {
    // The points that came while it was measured are those of the result.
    EXPECT_EQ(job["curves"]["dense"].size(), job["result"]["models"][0]["curve"].size());
  }
  EXPECT_EQ(ask("/api/jobs", {{"pairs", Json::array()}}).status, 400);
}

TEST_F(ViewsTest, TracesNeedTranscoders) {
  EXPECT_EQ(get("/api/models")["models"][0]["features"], false);
  const Answer started = ask("/api/jobs", {{"trace", kPrompt}});
  ASSERT_EQ(started.status, 202) << started.body;
  const std::string path = "/api/jobs/" + Json::parse(started.body)["job"].get<std::string>();
  Json job = get(path);
  while (job["state"] == "running") job = get(path);
  EXPECT_EQ(job["state"], "failed");
  EXPECT_THAT(job["error"].get<std::string>(), HasSubstr("features train"));
}

TEST_F(ViewsTest, TracesThroughTheFeaturesBesideAModel) {
  const TemporaryFolder beside;
  Api api(model_with_features(folder_, beside.path()), {});
  const auto get_json = [&](const std::string& path) {
    return Json::parse(api.answer({"GET", path, "", {}}).body);
  };
  EXPECT_EQ(get_json("/api/models")["models"][0]["features"], true);
  const Json body = {{"trace", kPrompt}, {"target", " mat"}};
  EXPECT_EQ(api.answer({"POST", "/api/jobs", body.dump(), {}}).status, 202);
  Json job = get_json("/api/jobs/1");
  while (job["state"] == "running") job = get_json("/api/jobs/1");
  ASSERT_EQ(job["state"], "done") << job;
  const Json& traced = job["result"]["models"][0];
  EXPECT_EQ(traced["model"], "dense");
  EXPECT_EQ(traced["targets"][0]["name"], "' mat'");
  EXPECT_FALSE(traced["nodes"].empty());
  EXPECT_FALSE(traced["edges"].empty());
  EXPECT_THAT(job.dump(), ::testing::Not(HasSubstr(beside.path().string())))
      << "no answer holds a path";
}

}  // namespace
}  // namespace filigree::serve
