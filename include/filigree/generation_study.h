// Continuing a prompt token by token.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "filigree/features.h"
#include "filigree/interventions.h"
#include "filigree/knobs.h"
#include "filigree/model.h"
#include "filigree/names.h"
#include "filigree/random.h"
#include "filigree/study.h"
#include "filigree/tokenizer.h"

namespace filigree::study {

// -------------------------------------------------------------------------------------------------
// Chooses the next token from logits.
//
//   p_i = softmax(logits / temperature)_i, over the `top_k` largest logits, then over the fewest of
//   those whose probabilities sum to at least `top_p`; what is left is scaled to sum to 1.
//
// Temperature 0 takes the largest logit. Equal logits are ranked by id, the smaller first, so that
// a choice never depends on sorting. Minus infinity excludes a token.

struct SamplingOptions {
  double temperature = 1.0;  // at least 0
  std::int64_t top_k = 0;    // 0: all
  double top_p = 1.0;        // in (0, 1]
};

class Sampler {
 public:
  // The same seed and stream give the same choices. Throws Error for options out of range.
  Sampler(const SamplingOptions& options, std::uint64_t seed, std::uint64_t stream = 0);

  // Throws Error naming the first logit that is NaN or plus infinity, or when every token is
  // excluded.
  TokenId choose(std::span<const float> logits);

 private:
  struct Candidate {
    float logit;
    TokenId id;
  };
  void keep_most_probable();

  SamplingOptions options_;
  Random random_;
  std::vector<Candidate> candidates_;  // kept between calls for its memory
  std::vector<double> weights_;
};

// -------------------------------------------------------------------------------------------------
// Continues a prompt token by token.
//
// The prompt runs through the model once; each continuation starts from its cached keys and values
// and then computes one position a token.

struct GenerationOptions {
  SamplingOptions sampling{};
  std::int64_t max_tokens = 64;
  std::vector<std::string> stops{};  // texts that end a continuation and are not part of it
  bool use_cache = true;             // without: every position is computed again for every token
};

Knobs knobs_of(GenerationOptions& options);

enum class Finish { kEndOfText, kStopText, kMaxTokens, kContext, kInterrupted };

struct Continuation {
  std::string text;
  std::vector<TokenId> ids;  // without the end-of-text token, with the tokens of a stop text
  Finish finish = Finish::kMaxTokens;
  double seconds = 0.0;
};

class Generator {
 public:
  // Throws Error when the prompt is empty or longer than the model's context. With `interventions`,
  // every pass is changed; positions are those of the text, negative ones from the prompt's end.
  Generator(const Model& model, Tokenizer tokenizer, std::vector<TokenId> prompt,
            GenerationOptions options, AppliedInterventions* interventions = nullptr,
            SteeredFeatures* steering = nullptr);

  // Calls on_text with each piece of the text as soon as it is certain to be part of it; the pieces
  // are whole characters and together are the result's text. Ends early when `stop`, asked after
  // every token, says so.
  Continuation run(std::uint64_t seed, std::uint64_t stream,
                   const std::function<void(std::string_view)>& on_text,
                   const std::function<bool()>& stop = {});

 private:
  std::vector<float> logits_after(const std::vector<TokenId>& ids);

  const Model& model_;
  Tokenizer tokenizer_;
  std::vector<TokenId> prompt_;
  GenerationOptions options_;
  AppliedInterventions* interventions_;
  SteeredFeatures* steering_;
  Taps taps_;
  std::unique_ptr<KeyValueCache> cache_;
  std::vector<TokenId> unknown_to_tokenizer_;  // padding of the embedding, never chosen
  std::vector<float> prompt_logits_;
};

struct GenerationRequest {
  std::string prompt = {};
  bool chat = false;  // the prompt is what a user says to the model (encode_chat)
  GenerationOptions options = {.sampling = {.top_k = 50}};
  std::int64_t count = 1;  // continuations, each with random numbers of its own
  Interventions interventions = {};
  std::string features = {};  // folder of the transcoder whose features are changed
  std::vector<SteeringChange> steering = {};
};

struct Generation {
  std::string model;  // as it was named
  GenerationRequest request;
  std::size_t prompt_tokens = 0;
  std::int64_t context = 0;  // the model's
  std::vector<Continuation> continuations;

  std::size_t tokens() const;  // of all continuations
  double seconds() const;
  bool reached_context() const;
};

// Who reads along. Each may be empty.
struct GenerationReader {
  std::function<void(std::int64_t index)> begin = {};
  std::function<void(std::string_view text)> text = {};  // a piece, as Generator::run gives it
  std::function<void()> end = {};
};

// Throws Error for a prompt that does not fit the model, and Stopped after the continuation in
// which the context asked for an end.
Generation run(const GenerationRequest& request, Models models, const Context& context,
               const GenerationReader& reader = {});

Json to_json(const Generation& generation);

// Watches a stream of text for stop texts and holds back what may turn out to begin one.
class StopWatcher {
 public:
  explicit StopWatcher(std::vector<std::string> stops) : stops_(std::move(stops)) {}

  // The text that can be given out now.
  std::string push(std::string_view text);
  // What was held back, at the end of the stream.
  std::string finish();
  bool found() const { return found_; }

 private:
  std::vector<std::string> stops_;
  std::string held_;
  bool found_ = false;
};

}  // namespace filigree::study

namespace filigree {

template <>
inline constexpr auto kNames<study::Finish> =
    std::to_array<Named<study::Finish>>({{study::Finish::kEndOfText, "end-of-text"},
                                         {study::Finish::kStopText, "stop-text"},
                                         {study::Finish::kMaxTokens, "max-tokens"},
                                         {study::Finish::kContext, "end-of-context"},
                                         {study::Finish::kInterrupted, "interrupted"}});

}  // namespace filigree
