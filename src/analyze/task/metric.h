// What a task measures at the last position of a prompt. In all of them more is better.
//
//   logit difference        mean logit of the answers - mean logit of the wrong answers
//   probability difference  probability of the answers - probability of the wrong answers
//   kl                      -KL(clean prediction || prediction), 0 for the clean run itself
//   accuracy                1 when the likeliest of the candidates is an answer, else 0
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "analyze/task/prompt.h"
#include "autograd/variable.h"
#include "base/names.h"

namespace filigree {

enum class Metric { kLogitDifference, kProbabilityDifference, kKl, kAccuracy };

template <>
inline constexpr auto kNames<Metric> =
    std::to_array<Named<Metric>>({{Metric::kLogitDifference, "logit-diff"},
                                  {Metric::kProbabilityDifference, "prob-diff"},
                                  {Metric::kKl, "kl"},
                                  {Metric::kAccuracy, "accuracy"}});

using PromptRefs = std::vector<const TaskPrompt*>;

// One number a row: logits [rows, V] or [rows, 1, V], and prompts[row % prompts.size()] is the
// row's, so that a batch may hold the same prompts many times. kKl compares with clean_logits (a
// row a prompt), which the others do not read. Logits may lie on the GPU, both there then: only the
// numbers that the metric is made of are copied. Throws Error for shapes that do not fit.
std::vector<double> measure(Metric metric, const Tensor& logits, const PromptRefs& prompts,
                            const Tensor& clean_logits = {});

// The sum over the rows, to be differentiated; a row a prompt. Throws Error for kAccuracy, which
// has no slope.
Variable metric_sum(Metric metric, const Variable& logits, const PromptRefs& prompts,
                    const Tensor& clean_logits = {});

struct Estimate {
  double mean = 0;
  std::optional<double> error = {};  // standard error of the mean; a single value has none
};
Estimate estimate(std::span<const double> values);

}  // namespace filigree
