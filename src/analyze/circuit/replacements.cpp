#include "analyze/circuit/replacements.h"

#include <algorithm>
#include <cstring>

#include "filigree/error.h"
#include "filigree/tasks.h"
#include "ops/regions/regions.h"

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

Tensor repeated(const Tensor& values, std::int64_t times, std::int64_t begin, std::int64_t end) {
  const Shape& shape = values.shape();
  const std::int64_t B = shape[0], T = shape[1], inner = shape.inner(1);
  std::vector<std::int64_t> extents(shape.extents().begin(), shape.extents().end());
  extents[0] = times * B, extents[1] = end - begin;
  Tensor result = values.like(Shape(extents));
  const std::int64_t width = (end - begin) * inner, step = T * inner;
  if (values.on_gpu()) {
    RegionList copies;
    for (std::int64_t i = 0; i < times; ++i) {
      copies.begin(i * B * width, width, B, width);
      copies.add({0, begin * inner, step});
    }
    write_regions(result, {values}, copies);
    return result;
  }
  const std::size_t size = size_of(values.dtype());
  for (std::int64_t row = 0; row < times * B; ++row)
    std::memcpy(result.mutable_raw() + static_cast<std::size_t>(row * width) * size,
                values.raw() + static_cast<std::size_t>(row % B * step + begin * inner) * size,
                static_cast<std::size_t>(width) * size);
  return result;
}

Tensor chosen_blocks(const Tensor& values, std::int64_t rows,
                     const std::vector<std::int64_t>& blocks) {
  std::vector<std::int64_t> extents(values.shape().extents().begin(),
                                    values.shape().extents().end());
  extents[0] = static_cast<std::int64_t>(blocks.size()) * rows;
  Tensor result = values.like(Shape(extents));
  const std::int64_t width = rows * values.shape().inner(0);
  RegionList copies;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    copies.begin(static_cast<std::int64_t>(i) * width, width, 1, 0);
    copies.add({0, blocks[i] * width, 0});
  }
  write_regions(result, {values}, copies);
  return result;
}

ForwardOptions analysed_run(Taps& taps, const PromptRefs& prompts) {
  taps.stay_on_device();
  ForwardOptions options;
  options.taps = &taps;
  options.last_position_only = true;
  options.position = prompts[0]->position;
  options.logits_on_device = true;
  options.precise_logits = true;
  return options;
}

TapValues observed(const Model& model, const PromptRefs& prompts, bool corrupt,
                   const std::set<std::string>& names, Tensor* last_logits, KeyValueCache* cache) {
  Taps taps;
  for (const std::string& name : names) taps.observe(name);
  ForwardOptions options = analysed_run(taps, prompts);
  options.cache = cache;
  const Tensor logits = model.forward(prompt_ids(prompts, corrupt), options).value();
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
    for (const auto& [name, there] : observed(model, refs, true, taps)) {
      const Tensor values = there.on_host();
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
      by_length_[length][name] = filled(everywhere ? overall[name] : by_length[length][name], shape)
                                     .to(model.placement().device)
                                     .to(model.placement().precision);
    }
}

TapValues Means::for_rows(std::int64_t rows, std::int64_t length) const {
  TapValues values;
  for (const auto& [name, mean] : by_length_.at(length))
    values[name] = repeated(mean, rows, 0, mean.size(1));
  return values;
}

}  // namespace filigree
