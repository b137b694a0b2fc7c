// What the page of a comparison can show of a prompt besides its maps, stored so that the views of
// the live page work without a server (web/src/stored.ts reads it): predictions, the logit lens,
// what each part adds to the logit of each token, how much parts matter, and what becomes of the
// prediction when the strongest of them are switched off.
#pragma once

#include <span>
#include <vector>

#include "filigree/study/circuits/model_circuits.h"
#include "filigree/study/json.h"
#include "filigree/study/loaded_model.h"

namespace filigree::study {

// Of each model and prompt, those by value times gradient whose absence is shown.
inline constexpr std::size_t kStoredHeads = 4, kStoredMlps = 1;

// {"looks": [...], "lens": [...], "attribution": [...], "importance": [...], "changes": [...]},
// everything but the changes one a model. A model whose logits are no sum of its parts has null for
// its attribution.
Json stored_prompt(std::span<const LoadedModel> models, const std::vector<TokenId>& ids,
                   const Context& context);

// Circuits of heads at work on the first prompt of their task, each in its own model: the run as it
// is, with all other heads off, and with all others as they are on the corrupt prompt.
//   {"prompt", "corrupt", "answer", "wrong", "models": [{"model", "heads", "runs": [{"name",
//   "next",
//    "answer", "wrong"}]}]}
// where "answer" and "wrong" of a run are probabilities. A model without a circuit has the first
// run alone. Null where the task has no prompt.
Json stored_circuits(const CircuitsOfKind& heads, std::span<const LoadedModel> models,
                     const Context& context);

}  // namespace filigree::study
