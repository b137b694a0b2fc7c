// Loss, sparsity and living heads of a model.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "filigree/data.h"
#include "filigree/evaluation.h"
#include "filigree/study.h"

namespace filigree::study {

// -------------------------------------------------------------------------------------------------
// How good and how sparse models are: on a text, or on held-out token shards.

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

// Throws RequestError for windows that make no sense.
EvaluationResult run(const EvaluationRequest& request, Models models, const Context& context);

// From the second model on with the change against the first.
Json to_json(const std::vector<EvaluatedModel>& models);

// One row a model; from the second on with the change against the first. "±" is one standard error.
std::string evaluation_table(const std::vector<EvaluatedModel>& models);
// Active edges and keys per query: one row a layer.
std::string layer_table(const std::vector<EvaluatedModel>& models);
// Active edges: for each model one row a layer and one column a head.
std::string head_tables(const std::vector<EvaluatedModel>& models);

// -------------------------------------------------------------------------------------------------
// Which heads of a gated model ever open, on a text that is named or on a sample of our own.

struct HeadsAlive {
  LivingHeads heads = {};
  std::string source = {};  // the text: "held-out.txt and sentences of the tasks"
};

// Nothing for a model without gates, all of whose heads attend to everything, and for one without a
// tokenizer, which cannot read a text.
std::optional<HeadsAlive> find_living_heads(const LoadedModel& model,
                                            const std::filesystem::path& file,
                                            const Context& context);

Json to_json(const LivingHeads& found);
Json to_json(const HeadsAlive& found);

// "23 of 144", and of those "median 1.03, largest 36.6 (L9H6)"; "-" where none lives.
std::string count_text(const LivingHeads& found);
std::string keys_text(const LivingHeads& found);

}  // namespace filigree::study
