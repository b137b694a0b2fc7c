#include "filigree/analyze/statistics/statistics_report.h"

#include <fmt/format.h>

#include "filigree/base/csv.h"

namespace filigree {
namespace {

using Json = nlohmann::ordered_json;
using Scope = HeadGroup::Scope;

// The place for a group's numbers, with its layer and head set.
Json& place_of(Json& result, const HeadGroup& group) {
  if (group.scope == Scope::kModel) return result["model"];
  Json& list = result[group.scope == Scope::kLayer ? "layers" : "heads"];
  Json entry = {{"layer", group.layer}};
  if (group.scope == Scope::kHead)
    entry = {{"name", group.name()}, {"layer", group.layer}, {"head", group.head}};
  const auto same = [&](const Json& other) {
    return other["layer"] == group.layer &&
           (group.scope == Scope::kLayer || other["head"] == group.head);
  };
  if (list.empty() || !same(list.back())) list.push_back(std::move(entry));
  return list.back();
}

std::string group_columns(const HeadGroup& group) {
  switch (group.scope) {
    case Scope::kModel: return "model,,";
    case Scope::kLayer: return fmt::format("layer,{},", group.layer);
    default: return fmt::format("head,{},{}", group.layer, group.head);
  }
}

}  // namespace

Json statistics_json(const AttentionStatistics& statistics) {
  Json result = Json::object();
  for (const HeadGroup& group : statistics.groups()) {
    Json& place = place_of(result, group);
    for (std::size_t s = 0; s < kStatistics; ++s) {
      const auto statistic = static_cast<Statistic>(s);
      place[std::string(name_of(statistic))] = statistics.mean(group, statistic);
    }
  }
  return result;
}

Json comparison_json(const std::vector<ComparedStatistic>& rows) {
  Json result = Json::object();
  for (const ComparedStatistic& row : rows) {
    place_of(result, row.group)[std::string(name_of(row.statistic))] = {
        {"first", row.first},
        {"second", row.second},
        {"change", row.change},
        {"low", row.interval ? Json(row.interval->low) : Json()},
        {"high", row.interval ? Json(row.interval->high) : Json()},
        {"p", row.p},
        {"least_p", row.least_p}};
  }
  return result;
}

std::string statistics_csv_heading() {
  std::string text = "model,scope,layer,head";
  for (std::size_t s = 0; s < kStatistics; ++s)
    text += fmt::format(",{}", name_of(static_cast<Statistic>(s)));
  return text + "\n";
}

std::string statistics_csv(const AttentionStatistics& statistics, const std::string& model) {
  std::string text;
  for (const HeadGroup& group : statistics.groups()) {
    text += fmt::format("{},{}", csv_field(model), group_columns(group));
    for (std::size_t s = 0; s < kStatistics; ++s)
      text += "," + csv_number(statistics.mean(group, static_cast<Statistic>(s)));
    text += "\n";
  }
  return text;
}

std::string comparison_csv(const std::vector<ComparedStatistic>& rows) {
  std::string text = "scope,layer,head,statistic,first,second,change,low,high,p\n";
  for (const ComparedStatistic& row : rows) {
    const std::string interval =
        row.interval ? csv_number(row.interval->low) + "," + csv_number(row.interval->high) : ",";
    text += fmt::format("{},{},{},{},{},{},{}\n", group_columns(row.group), name_of(row.statistic),
                        csv_number(row.first), csv_number(row.second), csv_number(row.change),
                        interval, csv_number(row.p));
  }
  return text;
}

}  // namespace filigree
