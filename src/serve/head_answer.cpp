#include "serve/head_answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "filigree/error.h"
#include "serve/changed_run.h"
#include "study/head/head_parts.h"
#include "study/not_finite.h"

namespace filigree::serve {
namespace {

// Five decimals are more than a picture shows, and half the bytes.
Json rounded(double value) {
  return std::isfinite(value) ? Json(std::round(value * 1e5) / 1e5) : Json();
}

Json list_json(std::span<const double> values) {
  Json numbers = Json::array();
  for (const double value : values) numbers.push_back(rounded(value));
  return numbers;
}

Json lower_triangle(std::span<const float> map, std::int64_t length) {
  Json cells = Json::array();
  for (std::int64_t i = 0; i < length; ++i)
    for (std::int64_t j = 0; j <= i; ++j)
      cells.push_back(rounded(map[static_cast<std::size_t>(i * length + j)]));
  return cells;
}

struct Sums {
  std::vector<double> given = {}, got = {};  // by query, by key
};

Sums sums_of(const HeadMap& map) {
  const auto T = static_cast<std::size_t>(map.length);
  Sums sums = {std::vector<double>(T), std::vector<double>(T)};
  for (std::size_t i = 0; i < T; ++i)
    for (std::size_t j = 0; j <= i; ++j) {
      const double weight = map.weights[i * T + j];
      sums.given[i] += weight, sums.got[j] += weight;
    }
  return sums;
}

Json numbers_json(const HeadMap& map, const Sums& sums) {
  const std::vector<double> norms(map.value_norms.begin(), map.value_norms.end());
  return {{"weights", lower_triangle(map.weights, map.length)},
          {"scores", lower_triangle(map.scores, map.length)},
          {"gate", map.gate.empty() ? Json() : lower_triangle(map.gate, map.length)},
          {"value_norms", list_json(norms)},
          {"row_sums", list_json(sums.given)},
          {"column_sums", list_json(sums.got)}};
}

// The tokens that get most of the head's attention, each with its share of all of it.
std::vector<std::pair<TokenId, double>> most_read(const std::vector<TokenId>& ids,
                                                  const std::vector<double>& got, std::size_t top) {
  double all = 0;
  std::vector<std::pair<TokenId, double>> tokens;
  for (std::size_t t = 0; t < ids.size(); ++t) {
    all += got[t];
    const auto found = std::find_if(tokens.begin(), tokens.end(),
                                    [&](const auto& one) { return one.first == ids[t]; });
    if (found == tokens.end())
      tokens.emplace_back(ids[t], got[t]);
    else
      found->second += got[t];
  }
  std::stable_sort(tokens.begin(), tokens.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::erase_if(tokens, [](const auto& one) { return one.second <= 0; });
  tokens.resize(std::min(tokens.size(), top));
  for (auto& one : tokens) one.second /= all;
  return tokens;
}

}  // namespace

Json head_json(const study::LoadedModel& model, const HeadQuery& query, const Limits& limits,
               const study::Context& context) {
  const ChangedRun run = run_of(model, query.run);
  const std::vector<TokenId>& ids = run.prompt.ids;
  const auto T = static_cast<std::int64_t>(ids.size());
  check_cells(1, ids.size(), limits.head_cells);
  const std::int64_t at = query.query < 0 ? query.query + T : query.query;
  require(at >= 0 && at < T, "the request: query is {}, the prompt has {} tokens", query.query, T);
  AppliedInterventions changes(model.model(), run.interventions);
  CaptureOptions options;
  options.heads = {query.head};
  options.scores = options.gate = options.value_norms = true;
  options.interventions = &changes;
  Json json = {
      {"model", model.label()}, {"head", head_name(query.head)}, {"tokens", run.prompt.tokens}};
  context.throw_if_stopped();
  Sums sums;
  capture_maps(model.model(), std::span(&run.prompt, 1), options,
               [&](std::span<const HeadMap> maps) {
                 study::require_finite(maps[0].weights, "the attention", model, ids);
                 sums = sums_of(maps[0]);
                 json.update(numbers_json(maps[0], sums));
               });
  const auto text = [&](TokenId id) { return study::shown_token(model.tokenizer(), id); };
  context.throw_if_stopped();
  const auto read = most_read(ids, sums.got, query.top);
  std::vector<TokenId> read_ids;
  for (const auto& [token, share] : read) read_ids.push_back(token);
  const study::HeadInRun found = study::look_at_run(model.model(), query.head, ids, at, query.top,
                                                    read_ids, sums.got, &changes);
  json["reads"] = Json::array();
  for (std::size_t n = 0; n < found.reads.size(); ++n) {
    const WrittenForToken& written = found.reads[n];
    json["reads"].push_back({{"token", text(written.token)},
                             {"share", rounded(read[n].second)},
                             {"raises", text(written.raised)},
                             {"lowers", text(written.lowered)},
                             {"own_effect", rounded(written.own_effect)},
                             {"own_rank", written.own_rank + 1}});
  }
  const auto effects = [&](const std::vector<study::LogitEffect>& list) {
    Json tokens = Json::array();
    for (const study::LogitEffect& one : list)
      tokens.push_back({{"token", text(one.token)}, {"effect", rounded(one.effect)}});
    return tokens;
  };
  json["writes"] = {{"query", at},
                    {"raises", effects(found.direct.raised)},
                    {"lowers", effects(found.direct.lowered)}};
  return json;
}

}  // namespace filigree::serve
