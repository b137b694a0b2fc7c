// A small report for tests: two models of four layers with five heads, maps of known weights.
#pragma once

#include <cmath>
#include <limits>

#include "filigree/report/circuit_section.h"
#include "filigree/report/packed_maps.h"
#include "filigree/report/report.h"

namespace filigree {

// Weight of key j for query i of a head: dense heads fade with the distance, sparse ones look at
// one key alone.
inline float test_weight(bool sparse, std::size_t head, std::int64_t i, std::int64_t j) {
  const auto offset = static_cast<std::int64_t>(head % 4);
  if (sparse) return j == i - offset ? 0.5f : 0.0f;
  return 1.0f / static_cast<float>((i + 1) * (1 + (head % 3)));
}

inline Report test_report() {
  Report report;
  report.title = "dense and sparse";
  report.story = {
      "sparse reads prose with 1 % of the edges.",
      {{"1.0 %", "of the edges"}, {"+0.018", "nats"}, {"1.28", "keys"}, {"26 x", "fewer"}}};
  report.prompts.push_back({"The cat sat.", {"The", " cat", " sat", "."}, {}});
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
  report.roles = {"sink", "current", "previous"};
  report.made = {{"command", "filigree compare dense sparse"}};
  return report;
}

}  // namespace filigree
