#include <algorithm>
#include <cmath>
#include <numeric>

#include "analyze/circuit/gradient_run.h"
#include "analyze/circuit/pass_limits.h"
#include "analyze/circuit/replacements.h"
#include "filigree/circuit.h"
#include "filigree/ops.h"

namespace filigree {
namespace {

using Gradients = std::map<std::string, Tensor>;  // f32, on the model's device

// Adds `share` times the gradient at every tap of the sum of the metrics. `embedding` replaces the
// token embeddings when it is defined.
void add_gradients(const Model& model, const PromptRefs& prompts,
                   const std::set<std::string>& names, Metric metric, const Tensor& clean_logits,
                   const Tensor& embedding, double share, Gradients& gradients) {
  Taps taps;
  for (const std::string& name : names) taps.observe_gradient(name);
  run_gradient(model, prompts, taps, metric, clean_logits, embedding);
  for (const std::string& name : names) {
    const Tensor part =
        scale(taps.gradient(name).to(DType::kF32), static_cast<float>(share)).value();
    Tensor& sum = gradients[name];
    sum = sum.defined() ? add(sum, part).value() : part;
  }
}

// (x_clean - x_corrupt) * gradient at a tap, on the CPU: element by element for a pattern, else
// summed over the last axis, since targets are whole vectors.
Tensor products(const std::string& tap, const Tensor& clean, const Tensor* corrupt,
                const Tensor& gradient) {
  Variable difference = clean.to(DType::kF32);
  if (corrupt != nullptr) difference = sub(difference, corrupt->to(DType::kF32));
  const Variable product = mul(difference, gradient);
  return (tap.ends_with("hook_pattern") ? product : sum(product, -1, true)).value().on_host();
}

// The sum over a target, for one row of the batch.
double sum_over(const PatchTarget& target, std::int64_t row, const Tensor& products) {
  double sum = 0;
  for_ranges(target, products.shape(), row, row, 0,
             [&](std::int64_t offset, std::int64_t, std::int64_t count) {
               for (std::int64_t i = offset; i < offset + count; ++i)
                 sum += static_cast<double>(products.f32()[i]);
             });
  return sum;
}

void attribute_batch(const Model& model, const std::vector<std::size_t>& batch,
                     const PromptRefs& refs, int steps, const PatchOptions& options,
                     Importance& result) {
  std::set<std::string> names;
  for (const PatchTarget& target : result.targets) {
    check_target(target, model.config(), refs[0]->length());
    names.insert(tap_name(target));
  }
  std::set<std::string> with_embedding = names;
  with_embedding.insert("hook_embed");
  Tensor clean_logits, corrupt_logits;
  const TapValues clean = observed(model, refs, false, with_embedding, &clean_logits);
  const TapValues corrupt = observed(model, refs, true, with_embedding, &corrupt_logits);
  Gradients gradients;
  for (int step = 0; step < std::max(steps, 1); ++step) {
    Tensor embedding;
    if (steps > 0)
      embedding = between(clean.at("hook_embed"), corrupt.at("hook_embed"), (step + 0.5) / steps);
    add_gradients(model, refs, names, options.metric, clean_logits, embedding,
                  1.0 / std::max(steps, 1), gradients);
  }
  const std::vector<double> clean_metric =
      measure(options.metric, clean_logits, refs, clean_logits);
  const std::vector<double> corrupt_metric =
      measure(options.metric, corrupt_logits, refs, clean_logits);
  TapValues of_taps;
  for (const std::string& name : names)
    of_taps[name] =
        products(name, clean.at(name),
                 options.replacement == Replacement::kZero ? nullptr : &corrupt.at(name),
                 gradients.at(name));
  for (std::size_t i = 0; i < batch.size(); ++i) {
    result.clean[batch[i]] = clean_metric[i];
    result.corrupt[batch[i]] = corrupt_metric[i];
    for (std::size_t t = 0; t < result.targets.size(); ++t)
      result.drops[t][batch[i]] = sum_over(result.targets[t], static_cast<std::int64_t>(i),
                                           of_taps.at(tap_name(result.targets[t])));
  }
}

}  // namespace

std::vector<std::size_t> Importance::order() const {
  std::vector<double> size;
  for (std::size_t i = 0; i < targets.size(); ++i) size.push_back(std::abs(of(i).mean));
  std::vector<std::size_t> order(targets.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return size[a] > size[b]; });
  return order;
}

Importance exact_importance(const Model& model, const std::vector<TaskPrompt>& prompts,
                            const std::vector<PatchTarget>& targets, const PatchOptions& options) {
  std::vector<PatchSet> sets;
  for (const PatchTarget& target : targets) sets.push_back({target});
  PatchedRuns runs = run_patched(model, prompts, sets, options);
  Importance result;
  result.targets = targets;
  for (std::vector<double>& patched : runs.patched) {
    for (std::size_t i = 0; i < patched.size(); ++i) patched[i] = runs.clean[i] - patched[i];
    result.drops.push_back(std::move(patched));
  }
  result.clean = std::move(runs.clean);
  result.corrupt = std::move(runs.corrupt);
  return result;
}

Importance attributed_importance(const Model& model, const std::vector<TaskPrompt>& prompts,
                                 const std::vector<PatchTarget>& targets, int steps,
                                 const PatchOptions& options) {
  check_attribution(prompts, steps, options);
  Importance result;
  result.targets = targets;
  result.clean.resize(prompts.size());
  result.corrupt.resize(prompts.size());
  result.drops.assign(targets.size(), std::vector<double>(prompts.size()));
  const auto total = static_cast<std::int64_t>(prompts.size());
  std::int64_t done = 0;
  const bool experts = std::any_of(targets.begin(), targets.end(), [](const PatchTarget& target) {
    return target.site == Site::kExpertOut;
  });
  const std::int64_t at_once =
      gradient_tokens(options, device_memory(model), model.config(), false, experts);
  for (const std::vector<std::size_t>& batch : batches_of(prompts, at_once)) {
    PromptRefs refs;
    for (const std::size_t i : batch) refs.push_back(&prompts[i]);
    attribute_batch(model, batch, refs, steps, options, result);
    done += static_cast<std::int64_t>(batch.size());
    if (options.progress) options.progress(done, total);
  }
  return result;
}

}  // namespace filigree
