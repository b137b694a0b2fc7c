// A continuation one token at a time, each with the edges of attention that its heads have from it:
// for readers who watch a text come about.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analyze/interventions/cut_edges.h"
#include "filigree/generation_study.h"
#include "filigree/names.h"

namespace filigree::study {

// What a head takes from an earlier token for the new one; a head that is off takes nothing.
struct OpenEdge {
  HeadId head = {};
  std::int64_t key = 0;  // position
  float weight = 0;
};

struct GeneratedToken {
  TokenId id = 0;
  std::string text = {};  // that it completes; may be empty inside a character
  double probability = 0;
  std::vector<OpenEdge> edges = {};  // the strongest first
};

struct StepOptions {
  SamplingOptions sampling = {.temperature = 0};
  std::uint64_t seed = 0;
  std::int64_t max_tokens = 32;
  float least_weight = 0.1f;     // of an edge that is given
  std::size_t most_edges = 256;  // of a token
};

class TokenSteps {
 public:
  // Runs the prompt. Throws Error when it is empty or fills the model's context. `interventions`
  // (null: none) must outlive this.
  TokenSteps(const LoadedModel& model, std::vector<TokenId> prompt, StepOptions options,
             AppliedInterventions* interventions = nullptr);
  TokenSteps(const TokenSteps&) = delete;
  TokenSteps& operator=(const TokenSteps&) = delete;

  // The next token, after a run of it; nothing when the text is over (finish() says why).
  std::optional<GeneratedToken> next();
  Finish finish() const { return finish_; }

 private:
  void run(std::size_t known);
  void see(std::int64_t layer, const Tensor& pattern);

  const LoadedModel& model_;
  StepOptions options_;
  AppliedInterventions* interventions_;
  std::vector<CutEdges> cut_;
  std::vector<TokenId> ids_;
  std::size_t prompt_;
  Sampler sampler_;
  StreamingDecoder decoder_;
  Taps taps_;
  std::unique_ptr<KeyValueCache> cache_;
  std::vector<float> logits_;  // after the last of ids_
  std::vector<OpenEdge> edges_;
  Finish finish_ = Finish::kMaxTokens;
};

}  // namespace filigree::study
