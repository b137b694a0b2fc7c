// A head's page as JSON.
#include "filigree/lens_study.h"

namespace filigree::study {
namespace {

Json edges_json(const HeadPage& page, const std::vector<TokenEdge>& edges) {
  Json list = Json::array();
  for (const TokenEdge& edge : edges)
    list.push_back({{"query", page.shown[edge.query]},
                    {"key", page.shown[edge.key]},
                    {"query_id", edge.query},
                    {"key_id", edge.key},
                    {"times", edge.count},
                    {"mean_weight", edge.mean},
                    {"share", edge.share},
                    {"strongest",
                     {{"prompt", edge.prompt},
                      {"query_position", edge.query_position},
                      {"key_position", edge.key_position},
                      {"weight", edge.weight}}}});
  return list;
}

Json reads_json(const HeadPage& page, const HeadFacts& facts) {
  Json list = Json::array();
  for (const ReadToken& read : facts.reads)
    list.push_back({{"token", page.shown[read.written.token]},
                    {"id", read.written.token},
                    {"share", read.share},
                    {"own_effect", read.written.own_effect},
                    {"own_rank", read.written.own_rank + 1},
                    {"raised", page.shown[read.written.raised]},
                    {"lowered", page.shown[read.written.lowered]}});
  return list;
}

Json matched_json(const HeadPage& page, const std::vector<MatchedToken>& tokens) {
  Json list = Json::array();
  for (const MatchedToken& matched : tokens) {
    Json partners = Json::array();
    for (const TokenPair& pair : matched.partners)
      partners.push_back({{"token", page.shown[pair.to]}, {"id", pair.to}, {"score", pair.score}});
    list.push_back({{"token", page.shown[matched.token]},
                    {"id", matched.token},
                    {"share", matched.share},
                    {"partners", partners}});
  }
  return list;
}

Json composed_json(const std::vector<ComposedHead> (&lists)[kCompositions]) {
  Json json = Json::object();
  for (std::size_t kind = 0; kind < kCompositions; ++kind) {
    Json list = Json::array();
    for (const ComposedHead& composed : lists[kind])
      list.push_back({{"name", head_name(composed.head)}, {"score", composed.score}});
    json[std::string(name_of(static_cast<Composition>(kind)))] = list;
  }
  return json;
}

Json example_json(const std::optional<HeadExample>& example) {
  if (!example) return {};
  return {{"task", example->task.empty() ? Json() : Json(example->task)},
          {"prompt", example->prompt},
          {"query_position", example->query},
          {"key_position", example->key},
          {"weight", example->weight}};
}

Json direct_json(const HeadPage& page, const HeadFacts& facts) {
  const auto effects = [&](const std::vector<LogitEffect>& list) {
    Json json = Json::array();
    for (const LogitEffect& effect : list)
      json.push_back(
          {{"token", page.shown[effect.token]}, {"id", effect.token}, {"effect", effect.effect}});
    return json;
  };
  return {{"raised", effects(facts.direct.raised)}, {"lowered", effects(facts.direct.lowered)}};
}

Json tasks_json(const HeadFacts& facts) {
  Json list = Json::array();
  for (const TaskEffect& effect : facts.tasks)
    list.push_back({{"task", effect.task},
                    {"prompts", effect.prompts},
                    {"metric", name_of(effect.metric)},
                    {"able", is_able(effect.check)},
                    {"clean", to_json(effect.check.clean)},
                    {"corrupt", to_json(effect.check.corrupt)},
                    {"ablated", to_json(effect.ablated)},
                    {"drop", to_json(effect.drop)},
                    {"drop_share", effect.share},
                    {"direct", to_json(effect.direct)},
                    {"direct_rank", effect.direct_rank + 1},
                    {"open_rows", effect.open_rows},
                    {"last_token", example_json(effect.last)}});
  return list;
}

Json facts_json(const HeadPage& page, const HeadFacts& facts) {
  return {{"model", facts.model},
          {"label", facts.label},
          {"name", head_name(facts.head)},
          {"layer", facts.head.layer},
          {"head", facts.head.head},
          {"role", role_json(facts.role, facts.role_scores)},
          {"rows", facts.rows},
          {"open_rows", facts.open_rows},
          {"mean_mass", facts.mean_mass},
          {"edges", edges_json(page, facts.edges)},
          {"example", example_json(facts.example)},
          {"direct_effect", direct_json(page, facts)},
          {"input", name_of(facts.input)},
          {"copying", facts.circuit.copying},
          {"matching", facts.circuit.matching},
          {"copied_share", facts.copied_share},
          {"suppressed_share", facts.suppressed_share},
          {"reads", reads_json(page, facts)},
          {"raises", pairs_json(facts.raises, page.shown)},
          {"lowers", pairs_json(facts.lowers, page.shown)},
          {"queries", matched_json(page, facts.queries)},
          {"keys", matched_json(page, facts.keys)},
          {"reads_heads", composed_json(facts.reads_heads)},
          {"read_by", composed_json(facts.read_by)},
          {"random_composition", facts.random_composition},
          {"tasks", tasks_json(facts)}};
}

}  // namespace

Json to_json(const HeadPage& page) {
  Json twin;
  if (page.twin)
    twin = {{"correlation", page.twin->correlation},
            {"same_place_correlation", json_or_null(page.twin->same_correlation)},
            {"facts", facts_json(page, page.twin->facts)}};
  return {{"prompts", to_json(page.prompts)},
          {"replacement", name_of(page.request.replacement)},
          {"skipped_tasks", page.skipped_tasks},
          {"facts", facts_json(page, page.facts)},
          {"twin", twin}};
}

}  // namespace filigree::study
