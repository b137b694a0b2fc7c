// What a graph explains: logits, their differences, features.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "filigree/error.h"
#include "filigree/trace.h"

namespace filigree {
namespace {

// Every output's row and bias, summed and divided by their number.
struct MeanOutput {
  std::vector<double> row;
  double bias = 0.0;
};

MeanOutput mean_output(const LinearWeight& output) {
  const Tensor weight = output.weight.value().on_host();
  const std::int64_t inputs = output.inputs(), outputs = output.outputs();
  MeanOutput mean{std::vector<double>(static_cast<std::size_t>(inputs)), 0.0};
  for (std::int64_t i = 0; i < weight.elements(); ++i)
    mean.row[static_cast<std::size_t>(output.out_in ? i % inputs : i / outputs)] +=
        static_cast<double>(weight.f32()[i]);
  for (double& x : mean.row) x /= static_cast<double>(outputs);
  for (std::int64_t o = 0; o < outputs; ++o)
    mean.bias += output_bias(output, o) / static_cast<double>(outputs);
  return mean;
}

// As the model gives them: of the logits with their soft cap.
std::vector<double> probabilities(const FrozenModel& frozen) {
  const auto values = frozen.logits.values();
  std::vector<double> result(values.begin(), values.end());
  const auto cap = static_cast<double>(frozen.logit_soft_cap);
  if (cap > 0.0)
    for (double& x : result) x = cap * std::tanh(x / cap);
  const double most = *std::max_element(result.begin(), result.end());
  double sum = 0.0;
  for (double& x : result) sum += x = std::exp(x - most);
  for (double& x : result) x /= sum;
  return result;
}

void check_token(const FrozenModel& frozen, std::int64_t token) {
  require(token >= 0 && token < frozen.logits.elements(),
          "trace: there is no token {}, only 0 to {}", token, frozen.logits.elements() - 1);
}

GraphTarget logit(const FrozenModel& frozen, std::int64_t token, const std::vector<double>& p,
                  const MeanOutput& mean) {
  check_token(frozen, token);
  GraphTarget target;
  target.node = {NodeKind::kTarget, frozen.depth(), frozen.positions - 1, token, 0.0};
  std::vector<double> vector = output_row(frozen.weights.output, token);
  for (std::size_t c = 0; c < vector.size(); ++c) vector[c] -= mean.row[c];
  target.reading = frozen.read_final(frozen.positions - 1, vector);
  target.reading.constant += output_bias(frozen.weights.output, token) - mean.bias;
  const auto logits = frozen.logits.values();
  target.value =
      static_cast<double>(frozen.logits.f32()[token]) -
      std::accumulate(logits.begin(), logits.end(), 0.0) / static_cast<double>(logits.size());
  target.weight = target.probability = p[static_cast<std::size_t>(token)];
  return target;
}

}  // namespace

std::vector<GraphTarget> likeliest_logits(const FrozenModel& frozen, double probability,
                                          std::int64_t most) {
  const std::vector<double> p = probabilities(frozen);
  std::vector<std::int64_t> order(p.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
    return p[static_cast<std::size_t>(a)] > p[static_cast<std::size_t>(b)];
  });
  const MeanOutput mean = mean_output(frozen.weights.output);
  std::vector<GraphTarget> targets;
  double together = 0.0;
  for (const std::int64_t token : order) {
    if (std::ssize(targets) >= most || together >= probability) break;
    targets.push_back(logit(frozen, token, p, mean));
    together += targets.back().probability;
  }
  return targets;
}

GraphTarget logit_target(const FrozenModel& frozen, std::int64_t token) {
  GraphTarget target =
      logit(frozen, token, probabilities(frozen), mean_output(frozen.weights.output));
  target.weight = 1.0;
  return target;
}

GraphTarget logit_difference(const FrozenModel& frozen, std::int64_t token, std::int64_t against) {
  const std::vector<double> p = probabilities(frozen);
  const MeanOutput none{std::vector<double>(static_cast<std::size_t>(frozen.width)), 0.0};
  GraphTarget target = logit(frozen, token, p, none);
  const GraphTarget other = logit(frozen, against, p, none);
  for (std::size_t c = 0; c < other.reading.parts[0].vector.size(); ++c)
    target.reading.parts[0].vector[c] -= other.reading.parts[0].vector[c];
  target.reading.constant -= other.reading.constant;
  target.value -= other.value;
  target.weight = 1.0;
  target.against = against;
  return target;
}

GraphTarget feature_target(const FrozenModel& frozen, const FeatureDictionary& features,
                           std::int64_t layer, std::int64_t position, std::int32_t feature) {
  require(layer >= 0 && layer < frozen.depth(), "trace: there is no layer {}, only 0 to {}", layer,
          frozen.depth() - 1);
  require(position >= 0 && position < frozen.positions,
          "trace: there is no position {}, only 0 to {}", position, frozen.positions - 1);
  const FeatureReading read = feature_reading(frozen, features, layer, position, feature);
  GraphTarget target;
  target.node = {NodeKind::kTarget, layer, position, feature, read.value};
  target.reading = read.reading;
  target.value = read.value;
  target.of_layer = layer;
  return target;
}

}  // namespace filigree
