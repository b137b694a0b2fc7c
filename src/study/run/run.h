// One prompt through a model: any tap read, anything changed that can be, gradients, and what the
// prediction makes of it beside the unchanged run.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "features/steering.h"
#include "study/interventions.h"
#include "study/json.h"
#include "study/tokens.h"

namespace filigree::study {

struct RunRequest {
  std::string prompt = {};
  std::vector<std::string> taps = {};  // globs over the model's taps, '*' for any characters
  Interventions interventions = {};
  std::string features = {};                  // of the transcoder whose features are changed
  std::vector<SteeringChange> steering = {};  // in the changed run, beside the interventions
  std::string gradient_of = {};               // token whose last logit is differentiated; "": none
  std::vector<std::string> tokens = {};       // listed whatever their rank
  std::size_t top = 10;                       // likeliest next tokens of each run that are listed
};

// One token after the prompt.
struct NextToken {
  TokenId id = 0;
  std::int64_t rank = 0;  // 0: the likeliest
  double logit = 0, probability = 0;
};

// The first-order estimate of what a part does: the sum of its output times the gradient there.
// To set the part to zero takes about so much off the logit.
struct PartGradient {
  Component part = {};
  double value_times_gradient = 0;
};

// A feature that was changed, and what it was before that, by position.
struct SteeredFeature {
  SteeringChange change = {};
  std::vector<float> activations = {};
};

// One of the two runs.
struct RunValues {
  std::vector<NextToken> listed = {};     // in the order of RunResult::listed
  std::vector<NextToken> likeliest = {};  // by position
  Tensor logits = {};                     // [T, V]
  std::vector<Tensor> taps = {};          // without the batch, in the order of RunResult::taps
  std::vector<Tensor> gradients = {};     // likewise, or none
  std::vector<PartGradient> parts = {};   // every head and MLP, or none
};

struct RunResult {
  RunRequest request = {};
  std::string model = {}, label = {};
  std::vector<TokenId> ids = {};
  std::optional<TokenId> gradient_of = {};
  std::vector<std::string> taps = {};
  std::vector<TokenId> listed = {};
  RunValues plain = {};
  std::optional<RunValues> changed = {};  // with interventions
  std::vector<SteeredFeature> steered = {};
  // KL(plain || changed) of the next token in nats, by position; none without interventions.
  std::vector<double> divergence = {};
  ShownTokens shown = {};

  std::vector<std::string> tokens() const;  // of the prompt
};

// The taps of a model that fit a glob, in the model's order. Throws Error with the nearest names
// when there is none.
std::vector<std::string> matching_taps(const Model& model, const std::string& glob);

// Throws Error for taps, places and tokens that the model does not have.
RunResult run_prompt(const RunRequest& request, const LoadedModel& model, const Context& context);

Json to_json(const RunResult& result);

// Of every head and MLP for the last logit of a token, in a run of these tokens.
std::vector<PartGradient> part_gradients(const LoadedModel& model, const std::vector<TokenId>& ids,
                                         TokenId token);

// "plain.TAP" and, where there are changes, "changed.TAP"; "plain.gradient.TAP" with a gradient;
// "ids", "plain.logits" of the last position, and meta.json.
void write_npz(const RunResult& result, const std::filesystem::path& file);

// Root of the mean square; 0 of nothing. Scores of keys after their query, which are minus
// infinity, do not count.
double root_mean_square(std::span<const float> values);

}  // namespace filigree::study
