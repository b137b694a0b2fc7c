// Interventions (analyze/interventions) as studies take them: with the tokens of a model, and as
// JSON.
#pragma once

#include "analyze/interventions/applied_interventions.h"
#include "study/json.h"
#include "study/loaded_model.h"

namespace filigree::study {

// The same with the texts of patches as tokens. Throws Error for a place that the model does not
// have, and for a text that does not fit it.
Interventions for_model(Interventions interventions, const LoadedModel& model);
// And with positions that are named by tokens as numbers, for runs of one text.
Interventions for_text(Interventions interventions, const LoadedModel& model,
                       std::span<const TokenId> ids);

// Throws Error when one is at a position that a run of `length` tokens does not have.
void check_positions(const Interventions& interventions, std::int64_t length);
// The same, and when a patch, whose text must have its tokens, does not fit such a run.
void check_fits(const Interventions& interventions, std::int64_t length);

// A list, empty when nothing is changed.
Json to_json(const Interventions& interventions);

}  // namespace filigree::study
