// One head on one prompt, in numbers: what the large view shows.
#pragma once

#include "serve/answer.h"
#include "serve/requests.h"

namespace filigree::serve {

// {"model", "head", "tokens", "weights", "scores", "gate", "value_norms", "row_sums",
//  "column_sums", "reads", "writes"}
// Weights, scores and gate are lower triangles row by row. `writes` is what it wrote at the query,
// straight to the logits there; `reads` are the tokens of the prompt that the head attends to most,
// with what their values in this run would write there for a weight of 1: of both the units are
// the same, and so the signs.
Json head_json(const study::LoadedModel& model, const HeadQuery& query, const Limits& limits,
               const study::Context& context);

}  // namespace filigree::serve
