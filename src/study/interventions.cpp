#include "filigree/study/interventions.h"

#include "filigree/base/error.h"
#include "filigree/study/tokens.h"

namespace filigree::study {

Interventions for_model(Interventions interventions, const LoadedModel& model) {
  for (Change& change : interventions.changes) {
    check_tap_place(change.place, model.model());
    if (change.kind == ChangeKind::kPatch) change.ids = prompt_tokens(model, change.prompt);
  }
  return interventions;
}

void check_positions(const Interventions& interventions, std::int64_t length) {
  for (const Change& change : interventions.changes)
    for (const std::optional<std::int64_t>& position : {change.place.position, change.place.key})
      require(!position || (*position < length && *position >= -length),
              "'{}': there is no position {}; a run has {} tokens, 0 to {}", change.place.text,
              position.value_or(0), length, length - 1);
}

Json to_json(const Interventions& interventions) {
  Json list = Json::array();
  for (const Change& change : interventions.changes)
    list.push_back({{"kind", name_of(change.kind)},
                    {"place", change.place.text},
                    {"tap", change.place.tap},
                    {"factor", change.kind == ChangeKind::kPatch ? Json() : Json(change.factor)},
                    {"prompt", change.kind == ChangeKind::kPatch ? Json(change.prompt) : Json()}});
  return list;
}

}  // namespace filigree::study
