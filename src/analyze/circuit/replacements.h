// The values that patched runs put in the place of clean ones.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "filigree/circuit.h"

namespace filigree {

// Values of taps by name: [B, T, ...] or, of patterns, [B, H, T, T].
using TapValues = std::map<std::string, Tensor>;

// Positions [begin, end) of every row, `times` times over: [B, T, ...] -> [times B, end - begin,
// ...], where the values lie.
Tensor repeated(const Tensor& values, std::int64_t times, std::int64_t begin, std::int64_t end);

// Blocks of `rows` rows of [B, ...], in this order and as often as they are named.
Tensor chosen_blocks(const Tensor& values, std::int64_t rows,
                     const std::vector<std::int64_t>& blocks);

// How all runs of circuit analyses end: with the logits of the position that the prompts are read
// at, where the model computes.
ForwardOptions analysed_run(Taps& taps, const PromptRefs& prompts);

// Runs the prompts, which are equally long, and keeps the taps of these names and the logits, all
// on the model's device.
TapValues observed(const Model& model, const PromptRefs& prompts, bool corrupt,
                   const std::set<std::string>& names, Tensor* last_logits = nullptr,
                   KeyValueCache* cache = nullptr);

// Means over the corrupt prompts, in the shape of one prompt's taps, by length.
class Means {
 public:
  // Runs all corrupt prompts once.
  Means(const Model& model, const std::vector<TaskPrompt>& prompts,
        const std::set<std::string>& taps, Replacement kind, std::int64_t tokens_at_once);

  // For a batch of `rows` prompts of `length` tokens: the taps' means, repeated.
  TapValues for_rows(std::int64_t rows, std::int64_t length) const;

 private:
  std::map<std::int64_t, TapValues> by_length_;  // [1, T, ...], on the model's device
};

}  // namespace filigree
