// What a run says of its text: the next token, how well it knew the prompt, and both beside the run
// that nothing changes. The live page and the report page show it.
#pragma once

#include <vector>

#include "analyze/interventions/applied_interventions.h"
#include "study/json.h"
#include "study/loaded_model.h"

namespace filigree::study {

struct Prediction {
  std::vector<float> logits = {};     // after the last token
  std::vector<double> surprise = {};  // nats of each token after the first
  double loss() const;                // their mean; not a number for a single token
};

// From the logits [B, T, V] of runs of which number `run` is of `ids`. Throws Error where they are
// not finite.
Prediction prediction_of(const Tensor& logits, const LoadedModel& model,
                         const std::vector<TokenId>& ids, std::size_t run = 0);
// From a run of its own, with `changes` (null: none).
Prediction predict(const LoadedModel& model, const std::vector<TokenId>& ids,
                   AppliedInterventions* changes = nullptr);

// {"next", "loss", "plain_loss", "surprise", "divergence"}: of the `top` likeliest tokens of both
// runs, by the run at hand, their ranks (from 1) and probabilities in each. `plain` is null where
// nothing is changed.
Json to_json(const Prediction& now, const Prediction* plain, const LoadedModel& model,
             std::size_t top);

}  // namespace filigree::study
