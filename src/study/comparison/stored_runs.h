// What the page of a comparison can show of a prompt besides its maps, stored so that the views of
// the live page work without a server (web/src/stored.ts reads it): predictions, the logit lens,
// what each part adds to the logit of each token, how much parts matter, and what becomes of
// predictions, maps and lens when the strongest of them are switched off.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "filigree/circuit_study.h"
#include "filigree/study.h"

namespace filigree::study {

// Of each model and prompt, those by value times gradient whose absence is shown.
inline constexpr std::size_t kStoredHeads = 4, kStoredMlps = 1;

struct StoredPrompt {
  // {"looks": [...], "lens": [...], "attribution": [...], "importance": [...], "changes": [...]},
  // everything but the changes one a model. A model whose logits are no sum of its parts has null
  // for its attribution. A change is {"ablate", "layer", "looks", "lens", "maps"}: lists of one a
  // model, of the lens the points that can differ, and whether its maps are there.
  Json json = {};
  // ChangedRun::maps of each change that has them, model by model.
  std::string changed_maps = {};
};
StoredPrompt stored_prompt(Models models, const std::vector<TokenId>& ids, const Context& context);

// Circuits of heads at work on the first prompt of their task, each in its own model: the run as it
// is, with all other heads off, and with all others as they are on the corrupt prompt.
//   {"prompt", "corrupt", "answer", "wrong", "models": [{"model", "heads", "runs": [{"name",
//   "next",
//    "answer", "wrong"}]}]}
// where "answer" and "wrong" of a run are probabilities. A model without a circuit has the first
// run alone. Null where the task has no prompt.
Json stored_circuits(const CircuitsOfKind& heads, Models models, const Context& context);

}  // namespace filigree::study
