// One run of a model seen whole: the maps of its heads, what it predicts next and how well it knew
// the prompt, beside the run that nothing changes. What the page asks for at every key.
//
// The answer is bytes, since text of so many numbers would take longer than the run:
//
//   u32     bytes of the JSON, little-endian, a multiple of 4: spaces fill it up
//   JSON    {"models": [{"model", "tokens", "kind", "heads", "first", "cells", "text", "rows",
//           "cut", "next", "loss", "plain_loss", "surprise", "divergence"}]}
//   u16...  cells of all maps, little-endian: those of a model begin at its "first"
//
// A map is its lower triangle row by row in 65535ths; what is not zero is at least one of them, and
// what is beyond 0 and 1 (only where a run scales its attention) is taken to the nearer end.
//
// "cut" are the edges that carry nothing in this run whatever their weights (cut_edges.h), each
// {"head", "query", "key"} with null for any.
//
// "text" names the text where the server remembers it (typed_text.h), else it is null. Whoever asks
// for one that goes on behind it and says so with "after" gets the rows from "rows" on alone: those
// before are as they were. Without that "rows" is 0.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "filigree/lens_study.h"
#include "serve/answer.h"
#include "serve/requests.h"
#include "serve/typed_text.h"

namespace filigree::serve {

// Runs that nothing changed, kept for changed runs of the same text: the last few. Any number of
// threads may ask.
class PlainRuns {
 public:
  std::shared_ptr<const study::Prediction> find(const study::LoadedModel& model,
                                                const std::vector<TokenId>& ids) const;
  void keep(const study::LoadedModel& model, const std::vector<TokenId>& ids,
            std::shared_ptr<const study::Prediction> prediction);

 private:
  struct Kept {
    const study::LoadedModel* model;
    std::vector<TokenId> ids;
    std::shared_ptr<const study::Prediction> prediction;
  };
  mutable std::mutex mutex_;
  std::vector<Kept> kept_;  // the oldest first
};

struct PromptView {
  Json json = {};
  std::vector<std::uint16_t> cells = {};
};

// `typed` is the model's, and nobody else uses it meanwhile.
PromptView view_prompt(const study::LoadedModel& model, const PromptViewQuery& query,
                       PlainRuns& plain, TypedText& typed, const Limits& limits,
                       const study::Context& context);

// The bytes of several.
Answer prompt_views_answer(std::span<PromptView> models);

}  // namespace filigree::serve
