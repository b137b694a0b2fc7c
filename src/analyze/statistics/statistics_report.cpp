#include "analyze/statistics/statistics_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/csv.h"

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
  const auto found = std::find_if(list.rbegin(), list.rend(), same);
  if (found != list.rend()) return *found;
  list.push_back(std::move(entry));
  return list.back();
}

std::string group_columns(const HeadGroup& group) {
  switch (group.scope) {
    case Scope::kModel: return "model,,";
    case Scope::kLayer: return fmt::format("layer,{},", group.layer);
    default: return fmt::format("head,{},{}", group.layer, group.head);
  }
}

// A head alone is alive or not.
bool has_over(const HeadGroup& group, Over over) {
  return !of_living_heads(over) || group.scope != Scope::kHead;
}

// Statistics over all heads and rows stand in the place itself, the others in objects there.
void put(Json& place, Over over, Json values) {
  Json& target = over == Over::kAll ? place : place[std::string(name_of(over))];
  target.update(values);
}

Json number_json(double value) { return std::isnan(value) ? Json() : Json(value); }

}  // namespace

Json statistics_json(const AttentionStatistics& statistics) {
  Json result = Json::object();
  for (const HeadGroup& group : statistics.groups()) {
    Json& place = place_of(result, group);
    for (const Named<Over>& over : kNames<Over>) {
      if (!has_over(group, over.value)) continue;
      Json values = Json::object();
      for (std::size_t s = 0; s < kStatistics; ++s) {
        const auto statistic = static_cast<Statistic>(s);
        values[std::string(name_of(statistic))] =
            number_json(statistics.mean(group, statistic, over.value));
      }
      put(place, over.value, std::move(values));
    }
  }
  return result;
}

Json comparison_json(const std::vector<ComparedStatistic>& rows,
                     const std::vector<KeptConnections>& connections) {
  Json result = Json::object();
  for (const ComparedStatistic& row : rows) {
    Json values = Json::object();
    values[std::string(name_of(row.statistic))] = {
        {"first", row.first},
        {"second", row.second},
        {"change", row.change},
        {"reduction", row.first != 0.0 ? Json(-row.change / row.first) : Json()},
        {"low", row.interval ? Json(row.interval->low) : Json()},
        {"high", row.interval ? Json(row.interval->high) : Json()},
        {"p", row.p},
        {"least_p", row.least_p},
        {"prompts", row.prompts}};
    put(place_of(result, row.group), row.over, std::move(values));
  }
  for (const KeptConnections& row : connections)
    place_of(result, row.group)["direct_connections_kept"] = {
        {"share", row.kept},
        {"low", row.interval ? Json(row.interval->low) : Json()},
        {"high", row.interval ? Json(row.interval->high) : Json()},
        {"of", row.connections}};
  return result;
}

std::string statistics_csv_heading() {
  std::string text = "model,scope,layer,head,over";
  for (std::size_t s = 0; s < kStatistics; ++s)
    text += fmt::format(",{}", name_of(static_cast<Statistic>(s)));
  return text + "\n";
}

std::string statistics_csv(const AttentionStatistics& statistics, const std::string& model) {
  std::string text;
  for (const HeadGroup& group : statistics.groups())
    for (const Named<Over>& over : kNames<Over>) {
      if (!has_over(group, over.value)) continue;
      text += fmt::format("{},{},{}", csv_field(model), group_columns(group), over.name);
      for (std::size_t s = 0; s < kStatistics; ++s)
        text += "," + csv_number(statistics.mean(group, static_cast<Statistic>(s), over.value));
      text += "\n";
    }
  return text;
}

std::string comparison_csv(const std::vector<ComparedStatistic>& rows,
                           const std::vector<KeptConnections>& connections) {
  std::string text =
      "scope,layer,head,over,statistic,first,second,change,low,high,p,reduction,prompts\n";
  const auto ends = [](const std::optional<Interval>& interval) {
    return interval ? csv_number(interval->low) + "," + csv_number(interval->high) : ",";
  };
  for (const ComparedStatistic& row : rows)
    text +=
        fmt::format("{},{},{},{},{},{},{},{},{},{}\n", group_columns(row.group), name_of(row.over),
                    name_of(row.statistic), csv_number(row.first), csv_number(row.second),
                    csv_number(row.change), ends(row.interval), csv_number(row.p),
                    row.first != 0.0 ? csv_number(-row.change / row.first) : "", row.prompts);
  for (const KeptConnections& row : connections)
    text += fmt::format("{},all,direct_connections_kept,,{},,{},,,\n", group_columns(row.group),
                        csv_number(row.kept), ends(row.interval));
  return text;
}

}  // namespace filigree
