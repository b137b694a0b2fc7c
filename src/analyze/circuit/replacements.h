// The values that patched runs put in the place of clean ones.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "analyze/circuit/patched_runs.h"

namespace filigree {

// Values of taps by name: [B, T, ...] or, of patterns, [B, H, T, T].
using TapValues = std::map<std::string, Tensor>;

// Runs the prompts, which are equally long, and keeps the taps.
TapValues observed(const Model& model, const PromptRefs& prompts, bool corrupt,
                   const std::set<std::string>& taps, Tensor* last_logits = nullptr,
                   KeyValueCache* cache = nullptr);

// Means over the corrupt prompts, in the shape of one prompt's taps, by length.
class Means {
 public:
  // Runs all corrupt prompts once.
  Means(const Model& model, const std::vector<TaskPrompt>& prompts,
        const std::set<std::string>& taps, Replacement kind, std::int64_t tokens_at_once);

  // For a batch of `rows` prompts of `length` tokens: the taps' means, repeated.
  TapValues repeated(std::int64_t rows, std::int64_t length) const;

 private:
  std::map<std::int64_t, TapValues> by_length_;  // [1, T, ...]
};

}  // namespace filigree
