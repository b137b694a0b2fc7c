// How good and how sparse models are: on a text, or on held-out token shards.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "study/context.h"
#include "study/interventions.h"
#include "study/json.h"
#include "study/loaded_model.h"
#include "text/data_split.h"
#include "text/token_shards.h"
#include "train/evaluation.h"
#include "train/evaluation_windows.h"

namespace filigree::study {

// A text to predict.
struct EvaluationText {
  std::string text;    // <|endoftext|> may separate documents
  std::string source;  // for messages: "'prose.txt'", "standard input"
  bool replace_invalid_utf8 = false;
};

// A split of token shards to predict.
struct EvaluationShards {
  TokenShards shards;
  std::string folder;
  DataSplit split = DataSplit::kHeldOut;
};

// Throws Error for damaged shards, and for a split that there is not or that has nothing to
// predict.
EvaluationShards open_evaluation_shards(const std::string& folder,
                                        DataSplit split = DataSplit::kHeldOut);

// The tokens of a text as a model reads it. Throws Error for a text that is not UTF-8 or of less
// than two tokens.
std::vector<TokenId> evaluation_ids(const LoadedModel& model, const EvaluationText& text);

struct EvaluatedModel {
  std::string model;            // as the user named it
  std::string label;            // for tables
  Interventions interventions;  // what its runs changed
  Evaluation evaluation;
  std::int64_t length = 0;  // tokens a window
  std::int64_t bytes = 0;   // of text that the targets stand for; 0: not known
  double seconds = 0.0;

  // Nothing where the bytes are not known.
  std::optional<double> bits_per_byte() const;
};

// Each shows its progress as `work`, or as the model's label, and throws Stopped between passes.
// Several ranks share the work, and all get the whole result.
//
// Throws Error for a text that is not UTF-8 or of less than two tokens.
EvaluatedModel evaluate_text(const LoadedModel& model, const EvaluationText& text,
                             const WindowOptions& windows, const Context& context,
                             const std::string& work = {}, const Interventions& changes = {});
// Throws Error for shards that were made with another tokenizer than the model's.
EvaluatedModel evaluate_shards(const LoadedModel& model, const EvaluationShards& shards,
                               const WindowOptions& windows, const Context& context,
                               const std::string& work = {}, const Interventions& changes = {});
// The same for a split that is known to fit; `model` and `label` of the result are left empty.
EvaluatedModel evaluate_split(const Model& model, const TokenSplit& split,
                              const WindowOptions& windows, const Context& context,
                              const std::string& work);

// Several models on the same data.
struct EvaluationRequest {
  std::vector<std::string> models;  // folders or names
  std::variant<EvaluationText, EvaluationShards> data;
  WindowOptions windows;  // a stride goes with text only
  // With any, every model is evaluated as it is, and then changed; positions are those of windows.
  Interventions interventions = {};
};

struct EvaluationResult {
  std::vector<EvaluatedModel> models;  // in the order of the request
  // Why the losses must not be compared as they are, if so.
  std::optional<std::string> caution;
};

// Loads one model after the other and holds one at a time. Throws RequestError for windows that
// make no sense.
EvaluationResult run_evaluation(const EvaluationRequest& request, const Context& context);

// From the second model on with the change against the first.
Json to_json(const std::vector<EvaluatedModel>& models);

}  // namespace filigree::study
