// A small report for tests: two models of four layers with five heads, maps of known weights.
#pragma once

#include <nlohmann/json.hpp>

#include <cmath>
#include <limits>
#include <string>

#include "filigree/report.h"
#include "report/packed_maps.h"

namespace filigree {

// Weight of key j for query i of a head: dense heads fade with the distance, sparse ones look at
// one key alone.
inline float test_weight(bool sparse, std::size_t head, std::int64_t i, std::int64_t j) {
  const auto offset = static_cast<std::int64_t>(head % 4);
  if (sparse) return j == i - offset ? 0.5f : 0.0f;
  return 1.0f / static_cast<float>((i + 1) * (1 + (head % 3)));
}

// What else is known of the prompt of the test report, as study/comparison stores it: two models of
// 4 layers of 5 heads on 4 tokens.
inline std::string test_stored_prompt() {
  using Json = nlohmann::json;
  Json stored = {{"looks", Json::array()},
                 {"lens", Json::array()},
                 {"attribution", Json::array()},
                 {"importance", Json::array()},
                 {"changes", Json::array()}};
  const auto look = [](double likeliest, const Json& plain) {
    return Json{{"next",
                 {{{"token", " It"},
                   {"rank", likeliest >= 0.5 ? 1 : 2},
                   {"probability", likeliest},
                   {"plain_rank", plain.is_null() ? Json() : Json(1)},
                   {"plain_probability", plain}},
                  {{"token", " He"},
                   {"rank", likeliest >= 0.5 ? 2 : 1},
                   {"probability", 1 - likeliest},
                   {"plain_rank", plain.is_null() ? Json() : Json(2)},
                   {"plain_probability", plain}}}},
                {"loss", 2.5},
                {"plain_loss", plain.is_null() ? Json() : Json(2.25)},
                {"surprise", Json::array()},
                {"divergence", plain.is_null() ? Json() : Json(0.125)}};
  };
  Json change = {{"ablate", "L3H4"},
                 {"layer", 3},
                 {"looks", Json::array()},
                 {"lens", Json::array()},
                 {"maps", true}};
  Json early = change;  // maps and lens behind it are others
  early["ablate"] = "L1H0", early["layer"] = 1;
  for (const double model : {0.0, 1.0}) {
    stored["looks"].push_back(look(0.75, nullptr));
    change["looks"].push_back(look(0.5 + 0.125 * model, 0.75));
    early["looks"].push_back(look(0.25, 0.75));
    Json points = Json::array(), parts = Json::array(), tokens = Json::array(),
         importance = Json::object();
    for (int point = 0; point < 5; ++point) {
      Json positions = Json::array();
      for (int t = 0; t < 4; ++t)
        positions.push_back({{"top", Json::array({Json{{"token", "t" + std::to_string(t)},
                                                       {"probability", 0.5}}})}});
      points.push_back(
          {{"point", point == 0 ? "L0 resid_pre" : "L" + std::to_string(point - 1) + " resid_post"},
           {"positions", positions}});
    }
    for (int layer = 0; layer < 4; ++layer)
      for (int head = 0; head < 5; ++head) {
        const std::string name = "L" + std::to_string(layer) + "H" + std::to_string(head);
        parts.push_back({{"part", name}, {"kind", "head"}, {"layer", layer}, {"head", head}});
        importance[name] = layer == 2 ? 1.0 : 0.0;
      }
    for (int t = 0; t < 4; ++t) {
      Json row = Json::array();
      for (int part = 0; part < 20; ++part) row.push_back(100 * part);
      tokens.push_back({{"total", 1000 * (t + 1)}, {"contributions", row}});
    }
    stored["lens"].push_back({{"points", points}});
    change["lens"].push_back({{"points", Json::array({points[4]})}});
    Json moved = {points[2], points[3], points[4]};
    for (Json& point : moved)
      for (Json& position : point["positions"]) position["top"][0]["token"] = "moved";
    early["lens"].push_back({{"points", moved}});
    stored["attribution"].push_back({{"parts", parts}, {"tokens", tokens}});
    stored["importance"].push_back(importance);
  }
  stored["changes"] = {change, early};
  return stored.dump();
}

// Of the second change, two models of ten heads behind it on 4 tokens: head L2H1 of the sparse
// model lets go of the token before and looks at the first ('e' is 101: a whole, in hundredths, and
// one), all else is as it was.
inline std::string test_changed_maps() {
  std::string maps(2 * 10 * 10, '\0');
  for (int i = 0, cell = 0; i < 4; ++i)
    for (int j = 0; j <= i; ++j, ++cell)
      maps[static_cast<std::size_t>(11 * 10 + cell)] = j == 0 ? 'e' : '\1';
  return maps;
}

inline std::string test_stored_circuits() {
  using Json = nlohmann::json;
  const auto run = [](const char* name, double answer) {
    return Json{{"name", name},
                {"next", Json::array({Json{{"token", " Mary"}, {"probability", answer}}})},
                {"answer", answer},
                {"wrong", 0.25}};
  };
  return Json{{"prompt", "John and Mary, John gave it to"},
              {"corrupt", "John and Mary, Tom gave it to"},
              {"answer", {" Mary"}},
              {"wrong", {" John"}},
              {"models",
               {{{"model", "dense"},
                 {"heads", 2},
                 {"runs", {run("whole", 0.5), run("rest-off", 0.125), run("rest-corrupt", 0.4)}}},
                {{"model", "sparse"}, {"heads", 0}, {"runs", Json::array({run("whole", 0.375)})}}}}}
      .dump();
}

inline Report test_report() {
  Report report;
  report.title = "dense and sparse";
  report.story = {
      "sparse reads prose with 1 % of the edges.",
      {{"1.0 %", "of the edges"}, {"+0.018", "nats"}, {"1.28", "keys"}, {"26 x", "fewer"}}};
  report.prompts.push_back({"The cat sat.",
                            {"The", " cat", " sat", "."},
                            {},
                            test_stored_prompt(),
                            test_changed_maps()});
  for (const bool sparse : {false, true}) {
    ReportModel model;
    model.name = sparse ? "sparse" : "dense";
    model.layers = 4, model.heads = 5;
    model.facts = {{"loss", "3.93"}};
    ReportPairs pairs{"Pearson"};
    PackedMaps packed;
    for (std::size_t head = 0; head < 20; ++head) {
      model.by_head.push_back({head % 2 == 0 ? "previous" : "sink+current", 0.75, {}});
      model.by_head.back().statistics["peak"] = 0.5;
      std::vector<float> map(16);
      for (std::int64_t i = 0; i < 4; ++i)
        for (std::int64_t j = 0; j <= i; ++j)
          map[static_cast<std::size_t>(4 * i + j)] = test_weight(sparse, head, i, j);
      packed.add(map, 4);
      std::vector<double> row(20, 0.25);
      row[head] = 1.0;
      if (head == 0) row[1] = std::numeric_limits<double>::quiet_NaN();
      pairs.matrix.push_back(row);
      pairs.order.push_back(19 - head);
    }
    model.pairs.push_back(pairs);
    report.models.push_back(model);
    report.prompts[0].maps.push_back(packed.finish());
  }
  ReportStatistic peak{"peak", "mean peak weight"};
  peak.values = {0.5, 0.25};
  peak.change = -0.25, peak.low = -0.3, peak.high = -0.2, peak.p = 0.001;
  report.statistics.push_back(peak);
  report.tasks.push_back(circuit_section(
      {.task = "ioi",
       .description = "who was given something",
       .models = {"dense", "sparse"},
       .sizes = {{"heads", {61, 9}, {144, 144}},
                 {"edges", {4110, std::nullopt}, {32491, 32491}},
                 {"attention edges", {2000, std::nullopt}, {30240, 0}}},
       .heads = {{"L0H1", "L3H4"}, {"L3H4"}},
       .facts = {{"metric", "logit-diff"}},
       .figures = {{"Curves", "explained effect",
                    "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"30\" height=\"20\"/>"},
                   {"Edges of the circuits", "and the parts they connect",
                    "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"3000\" height=\"800\" "
                    "viewBox=\"0 0 3000 800\"><rect width=\"3000\" height=\"800\"/></svg>"}}}));
  report.tasks[0].stored = test_stored_circuits();
  report.roles = {"sink", "current", "previous"};
  report.made = {{"command", "filigree compare dense sparse"}};
  return report;
}

}  // namespace filigree
