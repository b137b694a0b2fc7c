#include "analyze/circuit/clean_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "analyze/task/check.h"

namespace filigree {

std::string residual_tap(std::int64_t place) {
  return fmt::format("blocks.{}.hook_resid_{}", place / 2, place % 2 == 1 ? "mid" : "pre");
}

Tensor repeated(const Tensor& values, std::int64_t times, std::int64_t first) {
  const Shape& shape = values.shape();
  const std::int64_t B = shape[0], T = shape[1], inner = shape.inner(1);
  std::vector<std::int64_t> extents(shape.extents().begin(), shape.extents().end());
  extents[0] = times * B, extents[1] = T - first;
  Tensor result = Tensor::empty(Shape(extents), values.dtype());
  const auto width = static_cast<std::size_t>((T - first) * inner) * size_of(values.dtype());
  const std::size_t step = static_cast<std::size_t>(T * inner) * size_of(values.dtype());
  const std::size_t skip = step - width;
  for (std::int64_t row = 0; row < times * B; ++row)
    std::memcpy(result.mutable_raw() + static_cast<std::size_t>(row) * width,
                values.raw() + static_cast<std::size_t>(row % B) * step + skip, width);
  return result;
}

CleanRun::CleanRun(const Model& model, PromptRefs prompts, bool skip_common,
                   const std::set<std::int64_t>& places, const std::set<std::string>& taps)
    : model_(model), prompts_(std::move(prompts)) {
  length_ = prompts_[0]->length();
  rows_ = static_cast<std::int64_t>(prompts_.size());
  if (skip_common) {
    first_ = length_;
    for (const TaskPrompt* prompt : prompts_) first_ = std::min(first_, prompt->first_difference());
  }
  std::set<std::string> names = taps;
  for (const std::int64_t place : places)
    if (place >= 0 && place != kNowhere) names.insert(residual_tap(place));
  if (first_ > 0) cache_ = model.make_cache(rows_, length_);
  values_ = observed(model, prompts_, false, names, &logits_, cache_.get());
}

Tensor CleanRun::continued(std::int64_t place, std::int64_t times, Taps& taps) {
  ForwardStart start;
  if (place >= 0) {
    start.layer = place / 2, start.after_attention = place % 2 == 1;
    start.residual = repeated(values_.at(residual_tap(place)), times, first_);
  }
  const Tensor ids = repeated(prompt_ids(prompts_, false), times, first_);
  return model_
      .forward(ids, {.taps = &taps,
                     .start = place >= 0 ? &start : nullptr,
                     .cache = prefix(times),
                     .last_position_only = true})
      .value();
}

KeyValueCache* CleanRun::prefix(std::int64_t times) {
  if (first_ == 0) return nullptr;
  if (prefix_ && prefix_->batch() == times * rows_) {
    prefix_->truncate(first_);
    return prefix_.get();
  }
  prefix_ = model_.make_cache(times * rows_, length_);
  for (std::int64_t layer = 0; layer < model_.config().layers; ++layer) {
    const auto begin = [&](const Tensor& all) {  // [B, length, G, D] -> [times B, first, G, D]
      const Shape& shape = all.shape();
      Tensor part = Tensor::empty({times * rows_, first_, shape[2], shape[3]});
      const std::int64_t width = first_ * shape[2] * shape[3];
      for (std::int64_t row = 0; row < times * rows_; ++row)
        std::copy_n(all.f32() + (row % rows_) * shape.inner(0), width,
                    part.mutable_f32() + row * width);
      return part;
    };
    prefix_->append(layer, begin(cache_->keys(layer).on_host()),
                    begin(cache_->values(layer).on_host()));
  }
  prefix_->advance(first_);
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
