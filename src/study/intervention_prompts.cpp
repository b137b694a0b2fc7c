#include "filigree/lens_study.h"
#include "filigree/study.h"

namespace filigree::study {

Interventions for_model(Interventions interventions, const LoadedModel& model) {
  for (Change& change : interventions.changes) {
    check_tap_place(change.place, model.model());
    if (change.kind == ChangeKind::kPatch) change.ids = prompt_tokens(model, change.prompt);
  }
  return interventions;
}

Interventions for_text(Interventions interventions, const LoadedModel& model,
                       std::span<const TokenId> ids) {
  std::vector<std::string> tokens;
  for (const TokenId id : ids) tokens.push_back(shown_token(model.tokenizer(), id));
  interventions.resolve_positions(tokens);
  return for_model(std::move(interventions), model);
}

void check_positions(const Interventions& interventions, std::int64_t length) {
  for (const Change& change : interventions.changes)
    filigree::check_positions(change.place, length);
}

void check_fits(const Interventions& interventions, std::int64_t length) {
  for (const Change& change : interventions.changes) check_fit(change, length);
}

namespace {

// A number, or the token that stands for it.
Json position_json(const std::optional<std::int64_t>& position, const std::string& token) {
  return token.empty() ? json_or_null(position) : Json(token);
}

}  // namespace

Json to_json(const Interventions& interventions) {
  Json list = Json::array();
  for (const Change& change : interventions.changes)
    list.push_back({{"kind", name_of(change.kind)},
                    {"place", change.place.text},
                    {"tap", change.place.tap},
                    {"position", position_json(change.place.position, change.place.position_token)},
                    {"key", position_json(change.place.key, change.place.key_token)},
                    {"factor", change.kind == ChangeKind::kPatch ? Json() : Json(change.factor)},
                    {"prompt", change.kind == ChangeKind::kPatch ? Json(shown_prompt(change.prompt))
                                                                 : Json()}});
  return list;
}

std::string changed_text(const Interventions& interventions) {
  return changed_text(interventions, {});
}

std::string changed_text(const Interventions& interventions,
                         const std::vector<SteeringChange>& steering) {
  std::string text = filigree::text_of(interventions);
  if (!steering.empty()) text += (text.empty() ? "" : ", ") + filigree::text_of(steering);
  return text.empty() ? "" : "changed: " + text + "\n";
}

}  // namespace filigree::study
