#include "analyze/circuit/clean_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "filigree/tasks.h"

namespace filigree {

std::string residual_tap(std::int64_t place) {
  return fmt::format("blocks.{}.hook_resid_{}", place / 2, place % 2 == 1 ? "mid" : "pre");
}

CleanRun::CleanRun(const Model& model, PromptRefs prompts, bool skip_common,
                   const std::set<std::int64_t>& places, const std::set<std::string>& taps)
    : model_(model), prompts_(std::move(prompts)) {
  length_ = prompts_[0]->length();
  rows_ = static_cast<std::int64_t>(prompts_.size());
  // Where attention is bidirectional every position changes with a later one.
  if (skip_common && !model.config().bidirectional) {
    first_ = length_;
    for (const TaskPrompt* prompt : prompts_) first_ = std::min(first_, prompt->first_difference());
  }
  std::set<std::string> names = taps;
  for (const std::int64_t place : places)
    if (place >= 0 && place != kNowhere) names.insert(residual_tap(place));
  if (first_ > 0) cache_ = model.make_cache(rows_, length_);
  values_ = observed(model, prompts_, false, names, &logits_, cache_.get());
}

std::int64_t CleanRun::bytes(bool inputs_by_head, bool all_experts) const {
  const ModelConfig& config = model_.config();
  const std::int64_t number = sizeof(float);
  // Streams, projections and the MLP of a layer; each head's copies of the stream, as they are,
  // changed and normalised; scores, pattern and mask.
  std::int64_t token = 16 * config.width + 2 * config.hidden_width() + 3 * config.heads * length_;
  if (inputs_by_head) token += 3 * (config.heads + 2 * config.key_heads) * config.width;
  // What each expert adds, one by one, together, changed and replaced.
  if (all_experts) token += 4 * config.experts * config.width;
  // Logits and their softmax; keys and values of the positions that are left out.
  std::int64_t row = 3 * config.vocabulary;
  if (first_ > 0) row += 2 * config.layers * length_ * config.key_heads * config.head_width;
  return number * rows_ * ((length_ - first_) * token + row);
}

Tensor CleanRun::continued(std::int64_t place, std::int64_t times, Taps& taps) {
  const Tensor one = stream_at(place);
  return go_on(place, one.defined() ? repeated(one, times, 0, one.size(1)) : one, times, {}, taps);
}

Tensor CleanRun::stream_at(std::int64_t place) const {
  return place < 0 ? Tensor() : changing(values_.at(residual_tap(place)));
}

Tensor CleanRun::go_on(std::int64_t place, const Tensor& stream, std::int64_t times,
                       std::optional<std::int64_t> end, Taps& taps) {
  ForwardOptions options = analysed_run(taps, prompts_);
  ForwardStart start;
  if (place >= 0) {
    start.layer = place / 2, start.after_attention = place % 2 == 1;
    start.residual = stream;
    options.start = &start;
  }
  options.cache = prefix(times, start.layer, end.value_or(model_.config().layers));
  const Tensor ids = repeated(prompt_ids(prompts_, false), times, first_, length_);
  return (end ? model_.residual_before(*end, ids, options) : model_.forward(ids, options)).value();
}

KeyValueCache* CleanRun::prefix(std::int64_t times, std::int64_t first, std::int64_t end) {
  if (first_ == 0) return nullptr;
  if (prefix_ && prefix_->batch() == times * rows_ && prefix_first_ <= first &&
      prefix_end_ >= end) {
    prefix_->truncate(first_);
    return prefix_.get();
  }
  prefix_.reset();  // its memory serves the next one
  prefix_ = model_.make_cache(times * rows_, length_, first, end);
  prefix_first_ = first, prefix_end_ = end;
  for (std::int64_t layer = first; layer < end; ++layer)
    prefix_->append(layer, repeated(cache_->keys(layer), times, 0, first_),
                    repeated(cache_->values(layer), times, 0, first_));
  prefix_->advance(first_, length_);
  return prefix_.get();
}

std::vector<std::vector<std::size_t>> portions(const std::vector<std::int64_t>& starts,
                                               std::int64_t most) {
  std::map<std::int64_t, std::vector<std::size_t>> by_start;
  for (std::size_t i = 0; i < starts.size(); ++i) by_start[starts[i]].push_back(i);
  std::vector<std::vector<std::size_t>> all;
  for (const auto& [start, members] : by_start) {
    const auto count = static_cast<std::int64_t>(members.size());
    const std::int64_t parts = (count + most - 1) / most;
    for (std::int64_t part = 0; part < parts; ++part)
      all.emplace_back(members.begin() + part * count / parts,
                       members.begin() + (part + 1) * count / parts);
  }
  return all;
}

}  // namespace filigree
