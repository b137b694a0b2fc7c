#include "filigree/error.h"
#include "filigree/feature_study.h"
#include "filigree/study.h"

namespace filigree::study {

Steering::Steering(const std::string& folder, const std::vector<SteeringChange>& changes,
                   const LoadedModel& model) {
  dictionary_ = open_features(features_of_model(folder, model.name()).string(), model.model());
  steered_ = std::make_unique<SteeredFeatures>(*dictionary_, changes);
}

void Steering::check_positions(std::int64_t length) const {
  for (const SteeringChange& change : steered_->changes())
    require(!change.position || (*change.position < length && *change.position >= -length),
            "'{}': there is no position {}; the run has {} tokens, 0 to {}", text_of(change),
            change.position.value_or(0), length, length - 1);
}

Json to_json(const SteeringChange& change) {
  return {{"feature", feature_name(change.feature)},
          {"kind", name_of(change.kind)},
          {"value", change.value},
          {"position", json_or_null(change.position)}};
}

Json to_json(const std::vector<SteeringChange>& changes) {
  Json list = Json::array();
  for (const SteeringChange& change : changes) list.push_back(to_json(change));
  return list;
}

}  // namespace filigree::study
