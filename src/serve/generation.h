// A text that grows while it is read: a line of JSON a token.
//
//   {"token", "id", "text", "probability", "edges": [["L3H4", key, weight], ...]}
//   ...
//   {"finish": "max-tokens"}     or {"error", "remedy"}
//
// Each token takes a turn of its own with the model, so that others are not kept waiting.
#pragma once

#include "serve/answer.h"
#include "serve/model_queue.h"
#include "serve/requests.h"

namespace filigree::serve {

// Runs the prompt at once, and throws what is wrong with it; the tokens come as the answer is read.
// `model` and `turns` must outlive it.
Answer generation_answer(const study::LoadedModel& model, const GenerateQuery& query,
                         ModelQueue& turns, std::function<bool()> gone);

}  // namespace filigree::serve
