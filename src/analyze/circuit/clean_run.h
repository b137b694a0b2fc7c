// The clean run of a batch of prompts, kept so that changed runs start in the middle of it: at a
// layer, at a position, many at once.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "analyze/circuit/replacements.h"

namespace filigree {

// Places to start at are numbered in the order of the computation: -1 the embeddings, 2 l before
// the attention of layer l, 2 l + 1 after it. kNowhere: nothing changes.
inline constexpr std::int64_t kNowhere = INT64_MAX;
std::string residual_tap(std::int64_t place);

class CleanRun {
 public:
  // Runs the prompts, which are equally long, and keeps the residual streams before `places` and
  // the taps. With `skip_common`, changed runs leave out the positions before the first token at
  // which a prompt's clean and corrupt tokens differ.
  CleanRun(const Model& model, PromptRefs prompts, bool skip_common,
           const std::set<std::int64_t>& places, const std::set<std::string>& taps = {});

  const PromptRefs& prompts() const { return prompts_; }
  const Tensor& logits() const { return logits_; }
  TapValues& values() { return values_; }
  std::int64_t rows() const { return rows_; }
  std::int64_t length() const { return length_; }
  std::int64_t first() const { return first_; }  // position at which changed runs begin
  std::int64_t tokens() const { return rows_ * (length_ - first_); }
  // Memory that a changed run needs in a pass, roughly; more where heads read inputs of their own
  // and where all experts of a layer are computed.
  std::int64_t bytes(bool inputs_by_head, bool all_experts = false) const;
  // The values of changed runs: positions from first() on, once.
  Tensor changing(const Tensor& values) const { return repeated(values, 1, first_, length_); }

  // Logits [times rows, 1, V] of the last position when the run goes on from `place`, `times`
  // copies of the prompts side by side, through the taps, which stay on the model's device.
  Tensor continued(std::int64_t place, std::int64_t times, Taps& taps);

  // The same in steps. The residual stream of one copy at a place, undefined at the embeddings; and
  // what becomes of the stream of `times` copies on its way through the taps from `place` to before
  // the layer `end`, or without one to the logits.
  Tensor stream_at(std::int64_t place) const;
  Tensor go_on(std::int64_t place, const Tensor& stream, std::int64_t times,
               std::optional<std::int64_t> end, Taps& taps);

 private:
  // The keys and values of the positions that are left out, for so many copies of the prompts in
  // the layers from `first` to before `end`; null when there are none.
  KeyValueCache* prefix(std::int64_t times, std::int64_t first, std::int64_t end);

  const Model& model_;
  PromptRefs prompts_;
  std::int64_t length_ = 0, rows_ = 0, first_ = 0;
  Tensor logits_;
  TapValues values_;
  std::unique_ptr<KeyValueCache> cache_, prefix_;
  std::int64_t prefix_first_ = 0, prefix_end_ = 0;  // layers
};

// Indices of runs in groups that one forward pass takes: those with the same start, at most `most`
// at once, in even portions.
std::vector<std::vector<std::size_t>> portions(const std::vector<std::int64_t>& starts,
                                               std::int64_t most);

}  // namespace filigree
