// What each head and MLP of models adds directly to a logit or a difference of logits: on a task,
// or on one prompt.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/lens/logit_attribution.h"
#include "study/circuits/task_selection.h"
#include "study/figures.h"
#include "study/interventions.h"

namespace filigree::study {

// Either a task, or a prompt with the tokens whose logits count.
struct AttributionRequest {
  TaskSelection task = {};  // without a name: the prompt
  std::string prompt = {};
  std::vector<std::string> answers = {}, wrong = {};  // each one token; of a prompt
  // Of a prompt, in the place of answers: its own token at this position, after those before it.
  std::optional<std::int64_t> at = {};
  Interventions interventions = {};  // of a prompt's run
};

// Throws RequestError for a request that is neither, or both, and Error for a task that there is
// not; for callers that want to fail before long work.
void check_request(const AttributionRequest& request);

// "logit of ' cold' less that of ' warm'".
std::string measured_text(const AttributionRequest& request);

struct AttributedModel {
  std::string model = {}, label = {};
  std::optional<LoadedTask> task = {};
  std::optional<TaskCheck> check = {};  // with a task
  LogitAttribution found = {};
};

struct AttributionResult {
  AttributionRequest request = {};
  std::vector<AttributedModel> models = {};
};

AttributionResult attribute_models(const AttributionRequest& request,
                                   std::span<const LoadedModel> models, const Context& context);

// Sums over all parts of a kind: "embedding", "positions", "heads", "mlps", "biases", "rest".
struct KindSum {
  std::string_view name;
  Estimate sum;
};
std::vector<KindSum> kind_sums(const LogitAttribution& found);

Json to_json(const AttributionResult& result);

// Layers and heads with the MLPs beside them, a panel a model.
figure::LabelledMaps figure_of(const AttributionResult& result);

}  // namespace filigree::study
