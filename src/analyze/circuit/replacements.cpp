#include "analyze/circuit/replacements.h"

#include <algorithm>
#include <cstring>

#include "analyze/task/check.h"
#include "base/error.h"

namespace filigree {
namespace {

struct Sum {
  std::vector<double> total;
  double count = 0;
};

bool is_pattern(const std::string& tap) { return tap.ends_with("hook_pattern"); }

// Adds the rows of length `width` of a tensor.
void add_rows(const Tensor& values, std::int64_t width, Sum& sum) {
  sum.total.resize(static_cast<std::size_t>(width), 0.0);
  const std::int64_t rows = values.elements() / width;
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t i = 0; i < width; ++i)
      sum.total[static_cast<std::size_t>(i)] += static_cast<double>(values.f32()[row * width + i]);
  sum.count += static_cast<double>(rows);
}

// [1, ...] filled with the mean again and again.
Tensor filled(const Sum& sum, const Shape& shape) {
  std::vector<std::int64_t> extents(shape.extents().begin(), shape.extents().end());
  extents[0] = 1;
  Tensor result = Tensor::empty(Shape(extents));
  const std::size_t width = sum.total.size();
  for (std::int64_t i = 0; i < result.elements(); ++i)
    result.mutable_f32()[i] =
        static_cast<float>(sum.total[static_cast<std::size_t>(i) % width] / sum.count);
  return result;
}

}  // namespace

TapValues observed(const Model& model, const PromptRefs& prompts, bool corrupt,
                   const std::set<std::string>& names, Tensor* last_logits, KeyValueCache* cache) {
  Taps taps;
  for (const std::string& name : names) taps.observe(name);
  const Tensor logits = model
                            .forward(prompt_ids(prompts, corrupt),
                                     {.taps = &taps, .cache = cache, .last_position_only = true})
                            .value();
  if (last_logits != nullptr) *last_logits = logits;
  TapValues values;
  for (const std::string& name : names) values[name] = taps.value(name);
  return values;
}

Means::Means(const Model& model, const std::vector<TaskPrompt>& prompts,
             const std::set<std::string>& taps, Replacement kind, std::int64_t tokens_at_once) {
  std::map<std::int64_t, std::map<std::string, Sum>> by_length;
  std::map<std::string, Sum> overall;
  std::map<std::int64_t, std::map<std::string, Shape>> shapes;
  for (const std::vector<std::size_t>& batch : batches_of(prompts, tokens_at_once)) {
    PromptRefs refs;
    for (const std::size_t i : batch) refs.push_back(&prompts[i]);
    const std::int64_t length = refs[0]->length();
    for (const auto& [name, values] : observed(model, refs, true, taps)) {
      shapes[length][name] = values.shape();
      if (kind == Replacement::kMean && !is_pattern(name))
        add_rows(values, values.shape().inner(1), overall[name]);
      else
        add_rows(values, values.shape().inner(0), by_length[length][name]);
    }
  }
  for (const auto& [length, taps_of_length] : shapes)
    for (const auto& [name, shape] : taps_of_length) {
      const bool everywhere = kind == Replacement::kMean && !is_pattern(name);
      by_length_[length][name] =
          filled(everywhere ? overall[name] : by_length[length][name], shape);
    }
}

TapValues Means::repeated(std::int64_t rows, std::int64_t length) const {
  TapValues values;
  for (const auto& [name, mean] : by_length_.at(length)) {
    std::vector<std::int64_t> extents(mean.shape().extents().begin(), mean.shape().extents().end());
    extents[0] = rows;
    Tensor all = Tensor::empty(Shape(extents));
    for (std::int64_t row = 0; row < rows; ++row)
      std::memcpy(all.mutable_f32() + row * mean.elements(), mean.f32(), mean.bytes());
    values[name] = all;
  }
  return values;
}

}  // namespace filigree
