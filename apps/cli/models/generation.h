// Continues a prompt token by token.
//
// The prompt runs through the model once; each continuation starts from its cached keys and values
// and then computes one position a token.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "apps/cli/models/sampler.h"
#include "filigree/model/model.h"
#include "filigree/text/tokenizer.h"

namespace filigree::cli {

struct GenerationOptions {
  SamplingOptions sampling{};
  std::int64_t max_tokens = 64;
  std::vector<std::string> stops{};  // texts that end a continuation and are not part of it
  bool use_cache = true;             // without: every position is computed again for every token
};

enum class Finish { kEndOfText, kStopText, kMaxTokens, kContext, kInterrupted };

// "end of text", "stop text", "max tokens", "end of context", "interrupted".
const char* name_of(Finish finish);

struct Continuation {
  std::string text;
  std::vector<TokenId> ids;  // without the end-of-text token, with the tokens of a stop text
  Finish finish = Finish::kMaxTokens;
  double seconds = 0.0;
};

class Generator {
 public:
  // Throws Error when the prompt is empty or longer than the model's context.
  Generator(const Model& model, Tokenizer tokenizer, std::vector<TokenId> prompt,
            GenerationOptions options);

  // Calls on_text with each piece of the text as soon as it is certain to be part of it; the pieces
  // are whole characters and together are the result's text. Ends early when interrupted.
  Continuation run(std::uint64_t seed, std::uint64_t stream,
                   const std::function<void(std::string_view)>& on_text);

  double prompt_seconds() const { return prompt_seconds_; }

 private:
  std::vector<float> logits_after(const std::vector<TokenId>& ids);

  const Model& model_;
  Tokenizer tokenizer_;
  std::vector<TokenId> prompt_;
  GenerationOptions options_;
  std::unique_ptr<KeyValueCache> cache_;
  std::vector<TokenId> unknown_to_tokenizer_;  // padding of the embedding, never chosen
  std::vector<float> prompt_logits_;
  double prompt_seconds_ = 0.0;
};

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

}  // namespace filigree::cli
