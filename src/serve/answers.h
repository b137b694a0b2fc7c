// What models say to requests: studies of the library, as JSON.
#pragma once

#include <span>

#include "filigree/serve/answer.h"
#include "filigree/serve/requests.h"

namespace filigree::serve {

// The models with their heads, the built-in tasks, the colours of pages and the limits.
Json models_json(std::span<const study::LoadedModel> models, const Limits& limits);

// {"prompt", "ids", "tokens"}; the models have one tokenizer.
Json tokens_json(const study::LoadedModel& model, const std::string& prompt);

// As `filigree run --json`.
Json predictions_json(const study::LoadedModel& model, const PredictQuery& query,
                      const study::Context& context);

// {"model", "tokens", "kind", "heads", "maps"}: the maps as the report page has them
// (report/packed_maps.h), one head after the other.
Json maps_json(const study::LoadedModel& model, const MapsQuery& query, const Limits& limits,
               const study::Context& context);

}  // namespace filigree::serve
