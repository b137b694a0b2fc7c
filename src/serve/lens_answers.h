// How a prediction comes about: the logit lens, what each part adds to a logit, and tasks to try.
#pragma once

#include "serve/answer.h"
#include "serve/requests.h"

namespace filigree::serve {

// One model of `filigree lens --json`.
Json lens_json(const study::LoadedModel& model, const LensQuery& query, const Limits& limits,
               const study::Context& context);

// One model of `filigree logit-attribution --json`.
Json attribution_json(const study::LoadedModel& model, const AttributionQuery& query,
                      const study::Context& context);

// {"task", "description", "prompts": [{"clean", "corrupt", "answer", "wrong"}]}, of those that the
// model takes.
Json task_json(const study::LoadedModel& model, const TaskQuery& query,
               const study::Context& context);

}  // namespace filigree::serve
