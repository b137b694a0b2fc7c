#include "nn/mixture.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "filigree/ops.h"

namespace filigree {
namespace {

// 1 where an expert is among those with the largest weights of its token, else 0. Of equal ones the
// first is chosen.
Variable chosen(const Variable& weights, std::int64_t per_token) {
  const Tensor values = weights.value().on_host();
  const std::int64_t experts = values.size(-1), tokens = values.elements() / experts;
  Tensor mask = Tensor::zeros(values.shape());
  std::vector<std::int64_t> order(static_cast<std::size_t>(experts));
  for (std::int64_t t = 0; t < tokens; ++t) {
    const float* row = values.f32() + t * experts;
    std::iota(order.begin(), order.end(), std::int64_t{0});
    // What is not a number comes last, so that there is an order.
    const auto key = [&](std::int64_t e) {
      return std::isnan(row[e]) ? -std::numeric_limits<float>::infinity() : row[e];
    };
    std::partial_sort(
        order.begin(), order.begin() + per_token, order.end(),
        [&](std::int64_t a, std::int64_t b) { return key(a) != key(b) ? key(a) > key(b) : a < b; });
    for (std::int64_t i = 0; i < per_token; ++i)
      mask.mutable_f32()[t * experts + order[static_cast<std::size_t>(i)]] = 1.0f;
  }
  return placed(mask, weights.value().device(), weights.value().dtype());
}

Variable perceptron(const Variable& x, const ExpertWeights& w, Activation f) {
  return linear(gated_product(linear(x, w.gate), linear(x, w.in), f), w.out);
}

// Rows of a matrix of activations, [..., d] by ids.
Variable rows_of(const Variable& matrix, const Tensor& ids) {
  const Tensor& value = matrix.value();
  return embedding(placed(matrix, value.device(), DType::kF32), ids, value.dtype());
}

// Every expert at every token: [..., experts, width].
Variable all_outputs(const Variable& x, const Variable& gates, const MlpWeights& w) {
  const int last = static_cast<int>(gates.shape().rank()) - 1;
  std::vector<Variable> outputs;
  for (std::size_t e = 0; e < w.experts.size(); ++e) {
    const auto begin = static_cast<std::int64_t>(e);
    const Variable added =
        mul(perceptron(x, w.experts[e], w.activation), slice(gates, last, begin, begin + 1));
    const std::span<const std::int64_t> extents = added.shape().extents();
    std::vector<std::int64_t> by_expert(extents.begin(), extents.end());
    by_expert.insert(by_expert.end() - 1, 1);
    outputs.push_back(reshape(added, Shape(by_expert)));
  }
  return concat(outputs, last);
}

// Each expert at the tokens whose gate for it is not 0, and the sums of what they add.
Variable routed(const Variable& x, const Variable& gates, const MlpWeights& w) {
  const Tensor values = gates.value().on_host();
  const std::int64_t experts = values.size(-1), tokens = values.elements() / experts;
  const std::int64_t width = x.size(-1);
  const Variable inputs = reshape(x, {tokens, width});
  const Variable flat = reshape(gates, {tokens * experts, 1});
  std::vector<Variable> outputs;
  std::vector<std::vector<std::int32_t>> places(static_cast<std::size_t>(tokens));
  std::int32_t next = 0;
  for (std::int64_t e = 0; e < experts; ++e) {
    std::vector<std::int32_t> rows, of_gates;
    for (std::int64_t t = 0; t < tokens; ++t) {
      if (values.f32()[t * experts + e] == 0.0f) continue;
      rows.push_back(static_cast<std::int32_t>(t));
      of_gates.push_back(static_cast<std::int32_t>(t * experts + e));
      places[static_cast<std::size_t>(t)].push_back(next++);
    }
    const ExpertWeights& expert = w.experts[static_cast<std::size_t>(e)];
    if (rows.empty()) {
      if (!expert.out.weight.requires_grad()) continue;
      // A row that nobody reads: what is trained has a gradient, be it zero, in every run.
      rows.push_back(0), of_gates.push_back(static_cast<std::int32_t>(e));
      ++next;
    }
    const auto count = static_cast<std::int64_t>(rows.size());
    const Variable written =
        perceptron(rows_of(inputs, Tensor::from_ids({count}, rows)), expert, w.activation);
    outputs.push_back(mul(written, rows_of(flat, Tensor::from_ids({count}, of_gates))));
  }
  // Tokens that fewer experts add to than to others read a row of zeros in their place.
  std::size_t most = 1;
  for (const std::vector<std::int32_t>& of_token : places) most = std::max(most, of_token.size());
  outputs.push_back(placed(Tensor::zeros({1, width}), x.value().device(), x.value().dtype()));
  std::vector<std::int32_t> ids;
  for (const std::vector<std::int32_t>& of_token : places) {
    ids.insert(ids.end(), of_token.begin(), of_token.end());
    ids.insert(ids.end(), most - of_token.size(), next);
  }
  const Tensor by_token = Tensor::from_ids({tokens, static_cast<std::int64_t>(most)}, ids);
  return reshape(sum(rows_of(concat(outputs, 0), by_token), 1), x.shape());
}

}  // namespace

Variable mixture_of_experts(const Variable& x, const MlpWeights& w, const TapScope& tap) {
  const Variable logits = tap("hook_router_logits", linear(x, w.router));
  const Variable weights = tap("hook_expert_weights", softmax(logits));
  Variable gates = mul(weights, chosen(weights, w.per_token));
  if (w.gates_sum_to_one) gates = div(gates, sum(gates, -1, true));
  gates = tap("hook_expert_gates", gates);
  if (!tap.wants("hook_expert_out") && !tap.needs_graph("hook_expert_gates"))
    return routed(x, gates, w);
  const Variable added = tap("hook_expert_out", all_outputs(x, gates, w));
  return sum(added, -2);
}

}  // namespace filigree
