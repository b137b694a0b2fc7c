// Changes of features (features/steering.h) as studies take them: with the folder of a transcoder,
// and as JSON.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "features/steering.h"
#include "study/json.h"
#include "study/loaded_model.h"

namespace filigree::study {

class Steering {
 public:
  // Without a folder, of the features that lie beside the model. Throws RequestError when there are
  // none, and Error for features that do not fit the model.
  Steering(const std::string& folder, const std::vector<SteeringChange>& changes,
           const LoadedModel& model);

  SteeredFeatures& features() { return *steered_; }
  // Throws Error when a change is at a position that a run of `length` tokens does not have.
  void check_positions(std::int64_t length) const;

 private:
  std::unique_ptr<FeatureDictionary> dictionary_;
  std::unique_ptr<SteeredFeatures> steered_;
};

Json to_json(const SteeringChange& change);
Json to_json(const std::vector<SteeringChange>& changes);

}  // namespace filigree::study
