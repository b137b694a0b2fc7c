// Statistics of models: groups, means, and the comparison of two.
#include "filigree/statistics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "analyze/analyze_test_support.h"
#include "analyze/statistics/statistics_report.h"
#include "filigree/roles.h"

namespace filigree {
namespace {

using analyze_test::random_prompt;
using analyze_test::small_model;
using ::testing::HasSubstr;

std::vector<Prompt> prompts_of(std::size_t count) {
  std::vector<Prompt> prompts;
  for (std::size_t p = 0; p < count; ++p) prompts.push_back(random_prompt(10 + p % 3, p));
  return prompts;
}

AttentionStatistics measure(const Model& model, const std::vector<Prompt>& prompts,
                            const std::string& heads = "*") {
  CaptureOptions options = CaptureOptions::of(parse_heads(heads, 3, 4), MapKind::kGate);
  options.batch_tokens = 64;
  AttentionStatistics statistics(options.heads, prompts.size());
  capture_maps(model, prompts, options,
               [&](std::span<const HeadMap> maps) { statistics.add(maps); });
  return statistics;
}

TEST(Statistics, GroupsAreTheModelLayersAndHeads) {
  std::string names;
  for (const HeadGroup& group : groups_of(parse_heads("L0H1,L2", 3, 4)))
    names += fmt::format("{}({}+{}) ", group.name(), group.first, group.count);
  EXPECT_EQ(names, "model(0+5) L0(0+1) L2(1+4) L0H1(0+1) L2H0(1+1) L2H1(2+1) L2H2(3+1) L2H3(4+1) ");
}

TEST(Statistics, MeansAreOverPromptsAndHeads) {
  const auto model = small_model(true);
  const std::vector<Prompt> prompts = prompts_of(4);
  const AttentionStatistics statistics = measure(*model, prompts);
  double sum = 0.0, of_layer = 0.0;
  capture_maps(*model, prompts, CaptureOptions::of(all_heads(3, 4), MapKind::kGate),
               [&](std::span<const HeadMap> maps) {
                 for (const HeadMap& head : maps) {
                   const double keys = map_statistics(head.weights, head.gate, head.length)
                                           .all[static_cast<std::size_t>(Statistic::kKeysPerQuery)];
                   sum += keys / 12.0 / 4.0;
                   if (head.head.layer == 1) of_layer += keys / 4.0 / 4.0;
                 }
               });
  EXPECT_NEAR(statistics.mean(statistics.groups()[0], Statistic::kKeysPerQuery), sum, 1e-9);
  EXPECT_NEAR(statistics.mean(statistics.groups()[2], Statistic::kKeysPerQuery), of_layer, 1e-9);
  EXPECT_LT(statistics.mean(statistics.groups()[0], Statistic::kActiveEdges), 1.0);
  EXPECT_EQ(statistics.series(statistics.groups()[0], Statistic::kPeak).size(), 4u);
}

TEST(Statistics, AGateChangesThemAndTheComparisonSaysHowSurely) {
  const auto dense = small_model(false), sparse = small_model(true);
  const std::vector<Prompt> prompts = prompts_of(20);
  const auto rows = compare_statistics(measure(*dense, prompts), measure(*sparse, prompts));
  // Every head of both lives; what heads read of each other was not measured.
  constexpr auto kOfMaps = static_cast<std::size_t>(Statistic::kReadsHeadsQ);
  EXPECT_EQ(rows.size(), (4 * (1u + 3u) + 2 * 12u) * kOfMaps);
  for (const ComparedStatistic& row : rows) {
    EXPECT_EQ(row.prompts, 20u);
    EXPECT_NEAR(row.change, row.second - row.first, 1e-12);
    ASSERT_TRUE(row.interval.has_value());
    EXPECT_LE(row.interval->low, row.change);
    EXPECT_GE(row.interval->high, row.change);
    EXPECT_GT(row.p, 0.0);
    EXPECT_LE(row.p, 1.0);
  }
  const ComparedStatistic& mass = rows[static_cast<std::size_t>(Statistic::kRowMass)];
  EXPECT_NEAR(mass.first, 1.0, 1e-5);
  EXPECT_LT(mass.interval->high, 0.0);
  EXPECT_LT(mass.p, 0.001);
  // A model against itself: no change at all, and no confidence in one.
  for (const ComparedStatistic& row :
       compare_statistics(measure(*dense, prompts), measure(*dense, prompts))) {
    EXPECT_EQ(row.change, 0.0);
    EXPECT_EQ(row.p, 1.0);
  }
  // Nor is there one where weights, and so the maps, differ in their last digits only.
  const auto rounded_model = small_model(false);
  for (const NamedParameter& parameter : rounded_model->parameters())
    for (float& x : std::span(parameter.variable.mutable_value().mutable_f32(),
                              static_cast<std::size_t>(parameter.variable.shape().elements())))
      x = std::nextafter(x, 0.0f);
  std::size_t changed = 0;
  for (const ComparedStatistic& row :
       compare_statistics(measure(*dense, prompts), measure(*rounded_model, prompts))) {
    EXPECT_EQ(row.p, 1.0) << name_of(row.statistic) << " of " << row.group.name();
    if (row.change != 0.0) ++changed;
  }
  EXPECT_GT(changed, 0u);
  EXPECT_THAT(error_of([&] {
                compare_statistics(measure(*dense, prompts), measure(*sparse, prompts, "L0"));
              }),
              HasSubstr("12 heads on 20 prompts and 4 heads"));
}

TEST(Statistics, ReportsHaveEveryGroup) {
  const auto dense = small_model(false), sparse = small_model(true);
  const AttentionStatistics a = measure(*dense, prompts_of(3), "L0H1,L2");
  const AttentionStatistics b = measure(*sparse, prompts_of(3), "L0H1,L2");
  const auto json = statistics_json(b);
  EXPECT_EQ(json["layers"].size(), 2u);
  EXPECT_EQ(json["layers"][1]["layer"], 2);
  EXPECT_EQ(json["heads"].size(), 5u);
  EXPECT_EQ(json["heads"][1]["head"], 0);
  EXPECT_EQ(json["heads"][1]["name"], head_name(b.heads()[1]));
  EXPECT_EQ(json["model"]["peak"], b.mean(b.groups()[0], Statistic::kPeak));
  const auto rows = compare_statistics(a, b);
  const auto connections = compare_connections(a, b);
  const auto compared = comparison_json(rows, connections);
  EXPECT_EQ(compared["heads"].size(), 5u);
  EXPECT_EQ(compared["heads"][4]["attending_rows"]["direct_connections"]["p"], rows.back().p);
  const auto& peak = compared["model"]["peak"];
  EXPECT_NEAR(peak["reduction"].get<double>(),
              1 - peak["second"].get<double>() / peak["first"].get<double>(), 1e-9);
  EXPECT_TRUE(compared["model"]["living_heads_attending_rows"]["peak"]["p"].is_number());
  EXPECT_FALSE(compared["heads"][0].contains("living_heads"));
  EXPECT_EQ(compared["model"]["entropy"]["second"], json["model"]["entropy"]);
  EXPECT_TRUE(compared["model"]["entropy"]["low"].is_number());

  EXPECT_EQ(statistics_csv_heading(),
            "model,scope,layer,head,over,peak,row_mass,entropy,diagonal_dominance,sink_mass,"
            "active_edges,keys_per_query,empty_rows,diagonal_weight,previous_weight,"
            "strong_off_diagonal,discretisation,direct_connections,reads_heads_q,reads_heads_k,"
            "reads_heads_v,cross_layer_q,cross_layer_k,cross_layer_v\n");
  const std::string csv = statistics_csv(a, "my, \"model\"");
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 4 * (1 + 2) + 2 * 5);
  EXPECT_THAT(csv, ::testing::StartsWith("\"my, \"\"model\"\"\",model,,,all,"));
  EXPECT_THAT(csv, HasSubstr("\",head,2,3,attending_rows,"));
  const std::string lines = comparison_csv(rows, connections);
  EXPECT_EQ(static_cast<std::size_t>(std::count(lines.begin(), lines.end(), '\n')),
            1 + rows.size() + connections.size());
  EXPECT_THAT(lines, HasSubstr("\nlayer,2,,all,row_mass,"));
  EXPECT_THAT(lines, HasSubstr("\nmodel,,,all,direct_connections_kept,,"));
  // A single prompt has no interval.
  const auto single = compare_statistics(measure(*dense, prompts_of(1), "L0H1"),
                                         measure(*sparse, prompts_of(1), "L0H1"));
  EXPECT_THAT(comparison_csv(single, {}), HasSubstr(",,,1,"));
  EXPECT_TRUE(comparison_json(single, {})["model"]["peak"].at("low").is_null());
}

// Maps of two heads on two prompts of three tokens, as capture_maps shows them.
AttentionStatistics of_maps(const std::vector<std::vector<float>>& weights, bool gated) {
  const std::vector<HeadId> heads = {{0, 0}, {0, 1}};
  AttentionStatistics statistics(heads, 2);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    std::vector<float> gate;
    for (const float w : weights[i]) gate.push_back(w > 0 ? 1.0f : 0.0f);
    HeadMap map;
    map.prompt = i / 2, map.slot = i % 2, map.head = heads[i % 2], map.length = 3;
    map.weights = weights[i];
    if (gated) map.gate = gate;
    statistics.add(std::span(&map, 1));
  }
  return statistics;
}

// A dead head and empty rows count in means over all, and in no others.
TEST(Statistics, LivingHeadsAndRowsThatAttendAreCountedByThemselves) {
  const std::vector<float> nothing(9, 0.0f);
  const auto a = of_maps({{1, 0, 0, 0.5f, 0.5f, 0, 0.2f, 0.2f, 0.6f},
                          {1, 0, 0, 0.9f, 0.1f, 0, 0.8f, 0.1f, 0.1f},
                          {1, 0, 0, 0.3f, 0.7f, 0, 0.1f, 0.1f, 0.8f},
                          {1, 0, 0, 0.9f, 0.1f, 0, 0.8f, 0.1f, 0.1f}},
                         false);
  const auto b = of_maps(
      {{0, 0, 0, 0, 0, 0, 0, 0, 0.6f}, nothing, {0, 0, 0, 0.3f, 0, 0, 0, 0, 0.8f}, nothing}, true);
  const HeadGroup& model = b.groups()[0];
  EXPECT_EQ(b.living(), (std::vector<bool>{true, false}));
  EXPECT_EQ(b.living_heads().living.size(), 1u);
  EXPECT_DOUBLE_EQ(b.living_heads().living[0].keys_per_query, 3.0 / 6.0);
  // Prompt 0: rows 1 and 2 of head 0 have peaks 0 and 0.6; prompt 1: 0.3 and 0.8.
  EXPECT_NEAR(b.mean(model, Statistic::kPeak), (0.3 / 2 + 0.55 / 2) / 2, 1e-6);
  EXPECT_NEAR(b.mean(model, Statistic::kPeak, Over::kLivingHeads), (0.3 + 0.55) / 2, 1e-6);
  EXPECT_NEAR(b.mean(model, Statistic::kPeak, Over::kAttendingRows), (0.6 + 0.55) / 2, 1e-6);
  EXPECT_NEAR(b.mean(model, Statistic::kPeak, Over::kLivingHeadsAttendingRows), (0.6 + 0.55) / 2,
              1e-6);
  // The dead head has no row that attends, and so no value.
  EXPECT_TRUE(std::isnan(b.mean(b.groups()[3], Statistic::kPeak, Over::kAttendingRows)));
  const auto rows = compare_statistics(a, b);
  const auto row = [&](const std::string& group, Over over) {
    const auto found = std::find_if(rows.begin(), rows.end(), [&](const ComparedStatistic& one) {
      return one.group.name() == group && one.over == over && one.statistic == Statistic::kPeak;
    });
    return found == rows.end() ? std::nullopt : std::optional(*found);
  };
  // Of the first model too the head that lives in both.
  EXPECT_NEAR(row("model", Over::kLivingHeads)->first, (0.55 + 0.75) / 2, 1e-6);
  EXPECT_FALSE(row("L0H1", Over::kAttendingRows).has_value());
  EXPECT_FALSE(row("L0H0", Over::kLivingHeads).has_value());
  // Connections of head 0 in a: (1,0), (2,0), (2,1) on prompt 0, and on prompt 1 (1,0), (2,0),
  // (2,1); b keeps (1,0) of prompt 1.
  const auto kept = compare_connections(a, b);
  EXPECT_EQ(kept[2].group.name(), "L0H0");
  EXPECT_EQ(kept[2].connections, 6);
  EXPECT_DOUBLE_EQ(kept[2].kept, 1.0 / 6.0);
  EXPECT_DOUBLE_EQ(kept[3].kept, 0.0);
  ASSERT_TRUE(kept[2].interval.has_value());
  EXPECT_LE(kept[2].interval->low, 1.0 / 6.0);
  EXPECT_GE(kept[2].interval->high, 1.0 / 6.0);
  // Named are heads that live in both models, though one that died changed more.
  const auto changed = most_changed(rows, Statistic::kPeak, 2);
  ASSERT_EQ(changed.size(), 1u);
  EXPECT_EQ(changed[0].head, (HeadId{0, 0}));
}

TEST(RepeatedText, RepeatsRandomTokens) {
  std::vector<TokenId> ids;
  for (TokenId id = 10; id < 90; ++id) ids.push_back(id);
  const RepeatedText text =
      make_repeated_text(ids, 64, {.period = 25, .samples = 3, .seed = 4, .first = 7});
  EXPECT_EQ(text.start, 1);
  EXPECT_EQ(text.period, 25);
  ASSERT_EQ(text.prompts.size(), 3u);
  EXPECT_NE(text.prompts[0].ids, text.prompts[1].ids);
  for (const Prompt& prompt : text.prompts) {
    ASSERT_EQ(prompt.ids.size(), 51u);
    EXPECT_EQ(prompt.ids[0], 7);
    EXPECT_TRUE(
        std::equal(prompt.ids.begin() + 1, prompt.ids.begin() + 26, prompt.ids.begin() + 26));
    const std::set<TokenId> different(prompt.ids.begin() + 1, prompt.ids.end());
    EXPECT_EQ(different.size(), 25u);
    EXPECT_GE(*different.begin(), 10);
  }
  EXPECT_EQ(make_repeated_text(ids, 64, {.period = 25, .samples = 3, .seed = 4, .first = 7})
                .prompts[2]
                .ids,
            text.prompts[2].ids);
  // Shorter where the context is, none where it is too short, doubles where tokens are few.
  EXPECT_EQ(make_repeated_text(ids, 21, {}).period, 10);
  EXPECT_TRUE(make_repeated_text(ids, 3, {}).prompts.empty());
  EXPECT_EQ(make_repeated_text(std::vector<TokenId>{5}, 64, {.period = 3}).prompts[0].ids,
            std::vector<TokenId>(6, 5));
  EXPECT_THAT(error_of([] { make_repeated_text({}, 64, {}); }), HasSubstr("no tokens"));
}

TEST(HeadRoles, OfAModelAreThoseOfItsMaps) {
  const auto model = small_model(true);
  const std::vector<Prompt> prompts = prompts_of(3);
  const std::vector<HeadId> heads = all_heads(3, 4);
  std::vector<TokenId> ids(97);
  std::iota(ids.begin(), ids.end(), 0);
  const RepeatedText text = make_repeated_text(ids, 64, {.period = 8, .samples = 2});
  HeadRoles roles(heads.size());
  const CaptureOptions options = CaptureOptions::of(heads, MapKind::kWeights);
  capture_maps(*model, prompts, options, [&](std::span<const HeadMap> maps) { roles.add(maps); });
  roles.add_repeated(*model, text, heads);
  const std::vector<RoleScores> scores = roles.scores();
  ASSERT_EQ(scores.size(), heads.size());
  RoleAccumulator one;
  const CaptureOptions only = CaptureOptions::of({{1, 2}}, MapKind::kWeights);
  capture_maps(*model, prompts, only,
               [&](std::span<const HeadMap> maps) { one.add(maps[0].weights, maps[0].length); });
  capture_maps(*model, text.prompts, only, [&](std::span<const HeadMap> maps) {
    one.add_repeated(maps[0].weights, maps[0].length, 0, 8);
  });
  for (std::size_t p = 0; p < kPatterns; ++p)
    EXPECT_NEAR(scores[6].score[p], one.scores().score[p], 1e-5);
  EXPECT_EQ(scores[6].rows, 8 + 9 + 10);
  EXPECT_EQ(scores[6].repeated_rows, 2 * 7);
}

}  // namespace
}  // namespace filigree
