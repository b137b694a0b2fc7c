// What heads can be put in order and chosen by, besides their maps.
#pragma once

#include "serve/answer.h"
#include "serve/requests.h"

namespace filigree::serve {

// The role of every head on prompts of the built-in tasks: {"model", "roles": [{"role",
// "confidence"}]}, layer by layer; roles are null where no task has a prompt that fits the model.
Json roles_json(const study::LoadedModel& model, const study::Context& context);

// By how much the logit of a token would fall without each part, to first order: {"model", "token",
// "parts": {"L3H4": 0.2}}.
Json importance_json(const study::LoadedModel& model, const ImportanceQuery& query,
                     const study::Context& context);

}  // namespace filigree::serve
