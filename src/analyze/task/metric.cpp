#include <algorithm>
#include <cmath>
#include <map>

#include "analyze/next_token.h"
#include "filigree/error.h"
#include "filigree/ops.h"
#include "filigree/runtime.h"
#include "filigree/tasks.h"
#include "ops/regions/regions.h"

namespace filigree {
namespace {

double mean_of(const float* row, const std::vector<TokenId>& ids) {
  double sum = 0;
  for (const TokenId id : ids) sum += row[id];
  return sum / static_cast<double>(ids.size());
}

double most_of(const float* row, const std::vector<TokenId>& ids) {
  float most = row[ids[0]];
  for (const TokenId id : ids) most = std::max(most, row[id]);
  return most;
}

double probability_of(const float* row, const std::vector<TokenId>& ids, double log_sum) {
  double sum = 0;
  for (const TokenId id : ids) sum += std::exp(row[id] - log_sum);
  return sum;
}

double measure_row(Metric metric, const float* row, std::int64_t V, const TaskPrompt& prompt,
                   const float* clean) {
  switch (metric) {
    case Metric::kLogitDifference: return mean_of(row, prompt.answers) - mean_of(row, prompt.wrong);
    case Metric::kProbabilityDifference: {
      const double log_sum = log_sum_of({row, static_cast<std::size_t>(V)});
      return probability_of(row, prompt.answers, log_sum) -
             probability_of(row, prompt.wrong, log_sum);
    }
    case Metric::kKl: {
      const auto size = static_cast<std::size_t>(V);
      return -divergence({clean, size}, {row, size});
    }
    case Metric::kAccuracy: return most_of(row, prompt.answers) > most_of(row, prompt.wrong);
  }
  return 0;
}

// The answers' numbers of every row of [rows, V] and then the wrong ones', one row after the other,
// on the CPU.
std::vector<float> picked(const Tensor& values, const PromptRefs& prompts) {
  const std::int64_t rows = values.size(0), V = values.size(1);
  const std::int64_t at_once = std::max<std::int64_t>(INT32_MAX / V, 1);  // indices have 32 bits
  std::vector<float> all;
  for (std::int64_t first = 0; first < rows; first += at_once) {
    const std::int64_t end = std::min(first + at_once, rows);
    std::vector<std::int32_t> places;
    for (std::int64_t row = first; row < end; ++row) {
      const TaskPrompt& prompt = *prompts[static_cast<std::size_t>(row) % prompts.size()];
      for (const auto* ids : {&prompt.answers, &prompt.wrong})
        for (const TokenId id : *ids)
          places.push_back(static_cast<std::int32_t>((row - first) * V + id));
    }
    const Tensor column = values.rows(first, end).reshape({(end - first) * V, 1});
    const Tensor ids = Tensor::from_ids({static_cast<std::int64_t>(places.size())}, places);
    const Tensor found = embedding(column, ids).value().on_host();
    all.insert(all.end(), found.values().begin(), found.values().end());
  }
  return all;
}

// measure() for logits [rows, V] on the GPU.
std::vector<double> measure_there(Metric metric, const Tensor& logits, const PromptRefs& prompts,
                                  const Tensor& clean) {
  std::vector<double> values;
  if (metric == Metric::kKl) {
    const Tensor divergences = kl_of_rows(clean, logits).on_host();
    for (const float divergence : divergences.values())
      values.push_back(-static_cast<double>(divergence));
    return values;
  }
  const bool probabilities = metric == Metric::kProbabilityDifference;
  const std::vector<float> numbers =
      picked(probabilities ? softmax(logits).value() : logits, prompts);
  const float* next = numbers.data();
  for (std::int64_t row = 0; row < logits.size(0); ++row) {
    const TaskPrompt& prompt = *prompts[static_cast<std::size_t>(row) % prompts.size()];
    double sum[2], most[2];
    const std::size_t counts[2] = {prompt.answers.size(), prompt.wrong.size()};
    for (int kind = 0; kind < 2; ++kind) {
      sum[kind] = 0, most[kind] = *next;
      for (std::size_t i = 0; i < counts[kind]; ++i, ++next) {
        sum[kind] += static_cast<double>(*next);
        most[kind] = std::max(most[kind], static_cast<double>(*next));
      }
      if (!probabilities) sum[kind] /= static_cast<double>(counts[kind]);
    }
    values.push_back(metric == Metric::kAccuracy ? (most[0] > most[1] ? 1.0 : 0.0)
                                                 : sum[0] - sum[1]);
  }
  return values;
}

// [rows, V] of zeros but for the weights of the answers and of the wrong ones, on a device.
Tensor candidate_weights(const PromptRefs& prompts, std::int64_t V, bool by_count,
                         DeviceKind device) {
  const auto rows = static_cast<std::int64_t>(prompts.size());
  std::vector<float> weights;
  RegionList list;
  for (std::int64_t row = 0; row < rows; ++row) {
    const TaskPrompt& prompt = *prompts[static_cast<std::size_t>(row)];
    std::map<TokenId, float> of_row;
    const auto share = [&](const std::vector<TokenId>& ids) {
      return by_count ? 1.0f / static_cast<float>(ids.size()) : 1.0f;
    };
    for (const TokenId id : prompt.answers) of_row[id] += share(prompt.answers);
    for (const TokenId id : prompt.wrong) of_row[id] -= share(prompt.wrong);
    for (const auto& [id, weight] : of_row) {
      list.begin(row * V + id, 1, 1, 1);
      list.add({0, static_cast<std::int64_t>(weights.size()), 0});
      weights.push_back(weight);
    }
  }
  Tensor all = Tensor::zeros({rows, V}, DType::kF32, device);
  const Shape shape = {static_cast<std::int64_t>(weights.size())};
  write_regions(all, {Tensor::from(shape, weights).to(device)}, list);
  return all;
}

void check_prompts(const PromptRefs& prompts, std::int64_t V) {
  for (const TaskPrompt* prompt : prompts)
    for (const auto* ids : {&prompt->answers, &prompt->wrong}) {
      require(!ids->empty(), "metric: a prompt has no {} answers",
              ids == &prompt->wrong ? "wrong" : "right");
      for (const TokenId id : *ids)
        if (id < 0 || id >= V) fail("metric: token {} is outside the {} logits", id, V);
    }
}

void check_clean(Metric metric, const Tensor& clean_logits, std::int64_t rows, std::int64_t V) {
  require(metric != Metric::kKl || (clean_logits.defined() && clean_logits.elements() == rows * V),
          "metric: kl needs the clean logits, [{}, {}]", rows, V);
}

}  // namespace

std::vector<double> measure(Metric metric, const Tensor& logits, const PromptRefs& prompts,
                            const Tensor& clean_logits) {
  const std::int64_t V = logits.size(-1), rows = logits.elements() / std::max<std::int64_t>(V, 1);
  const auto count = static_cast<std::int64_t>(prompts.size());
  require(count > 0 && rows % count == 0, "metric: {} rows of logits for {} prompts", rows, count);
  check_prompts(prompts, V);
  check_clean(metric, clean_logits, count, V);
  if (logits.on_gpu())
    return measure_there(metric, logits.reshape({rows, V}), prompts,
                         metric == Metric::kKl ? clean_logits.reshape({count, V}) : Tensor());
  std::vector<double> values(static_cast<std::size_t>(rows));
  const float* data = logits.f32();
  const float* clean = metric == Metric::kKl ? clean_logits.f32() : nullptr;
  parallel_for(rows, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const std::int64_t prompt = row % count;
      values[static_cast<std::size_t>(row)] =
          measure_row(metric, data + row * V, V, *prompts[static_cast<std::size_t>(prompt)],
                      clean == nullptr ? nullptr : clean + prompt * V);
    }
  });
  return values;
}

Variable metric_sum(Metric metric, const Variable& logits, const PromptRefs& prompts,
                    const Tensor& clean_logits) {
  require(metric != Metric::kAccuracy,
          "metric: accuracy has no gradient; attribute logit-diff, prob-diff or kl instead");
  const std::int64_t V = logits.size(-1);
  const auto rows = static_cast<std::int64_t>(prompts.size());
  require(rows > 0 && logits.shape().elements() == rows * V,
          "metric: logits {} for {} prompts; they must be [prompts, V]", logits.shape().to_string(),
          rows);
  check_prompts(prompts, V);
  check_clean(metric, clean_logits, rows, V);
  const Variable flat = reshape(logits, {rows, V});
  if (metric == Metric::kKl)
    return scale(kl_divergence(clean_logits.reshape({rows, V}), flat), -static_cast<float>(rows));
  const bool probabilities = metric == Metric::kProbabilityDifference;
  const Tensor weights = candidate_weights(prompts, V, !probabilities, logits.value().device());
  return sum_all(mul(probabilities ? softmax(flat) : flat, weights));
}

Estimate estimate(std::span<const double> values) {
  Estimate result;
  if (values.empty()) return result;
  const auto n = static_cast<double>(values.size());
  for (const double value : values) result.mean += value;
  result.mean /= n;
  if (values.size() < 2) return result;
  double squares = 0;
  for (const double value : values) squares += (value - result.mean) * (value - result.mean);
  result.error = std::sqrt(squares / (n - 1) / n);
  return result;
}

}  // namespace filigree
