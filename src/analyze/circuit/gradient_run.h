// The gradient of a metric at taps of the clean run, or of runs between clean and corrupt: what all
// attributions share.
#pragma once

#include "filigree/circuit.h"

namespace filigree {

// Throws Error for steps, metrics and replacements of which no attribution can be made: there must
// be prompts and 0 to 1000 steps, and the metric must have a slope.
void check_attribution(const std::vector<TaskPrompt>& prompts, int steps,
                       const PatchOptions& options);

// Runs the clean prompts forwards and backwards from the sum of their metrics, through the taps,
// which stay on the model's device.
// `embedding` replaces the token embeddings when it is defined. The gates of a sparse model stay as
// the run sets them: their slope is 0 wherever it exists.
void run_gradient(const Model& model, const PromptRefs& prompts, Taps& taps, Metric metric,
                  const Tensor& clean_logits, const Tensor& embedding);

// a (1 - share) + b share.
Tensor between(const Tensor& a, const Tensor& b, double share);

}  // namespace filigree
