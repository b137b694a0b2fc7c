// What runs as a job behind the page: circuits of tasks and traces through features.
#pragma once

#include <span>

#include "filigree/serve/answer.h"
#include "filigree/serve/requests.h"

namespace filigree::serve {

// As `filigree circuit --json`, and "figures": [{"title", "svg"}].
Json circuits_json(std::span<const study::LoadedModel> models, const CircuitQuery& query,
                   const study::Context& context);

// Whether transcoders lie beside the model, as those of the bundled pair do.
bool has_features(const study::LoadedModel& model);

// As `filigree trace --json`, of the models that have features, and "figures". Throws Error where
// none has.
Json trace_json(std::span<const study::LoadedModel> models, const TraceQuery& query,
                const study::Context& context);

}  // namespace filigree::serve
