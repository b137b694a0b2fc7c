#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "features/graph/graph_sweep.h"
#include "filigree/error.h"
#include "filigree/trace.h"

namespace filigree {
namespace {

// The linear maps from a normalised stream to a head's query or key, as the scores read them at a
// position: turned where positions are rotary.
class HeadRows {
 public:
  HeadRows(const FrozenLayer& layer, const AttentionWeights& attention, bool query,
           std::int64_t head, std::int64_t position, const FrozenModel& frozen) {
    const std::int64_t head_width = frozen.head_width;
    const LinearWeight host = on_host(query ? attention.q : attention.k);
    const std::int64_t group = query ? head : head / (attention.heads / attention.key_heads);
    for (std::int64_t d = 0; d < head_width; ++d) {
      rows_.push_back(output_row(host, group * head_width + d));
      biases_.push_back(output_bias(host, group * head_width + d));
    }
    const std::int64_t heads = query ? attention.heads : attention.key_heads;
    const std::int64_t at = position * heads + group;
    if (attention.clip > 0.0f)
      hold_clipped((query ? layer.projected_query : layer.projected_key).f32() + at * head_width,
                   attention.clip);
    const NormWeights& norm = query ? attention.q_norm : attention.k_norm;
    if (norm.has_weights())
      normalise(norm, group, (query ? layer.query_scale : layer.key_scale).f32()[at]);
    if (attention.rotary != nullptr)
      turn(attention.rotary->at(position, 1, DeviceKind::kCpu, frozen.positions));
  }

  // What `direction` . head's vector is of the normalised stream.
  StreamReading reading(const FrozenModel& frozen, std::int64_t layer, std::int64_t position,
                        const std::vector<double>& direction) const {
    std::vector<double> vector(static_cast<std::size_t>(frozen.width));
    double bias = 0.0;
    for (std::size_t d = 0; d < rows_.size(); ++d) {
      if (direction[d] == 0.0) continue;
      for (std::size_t c = 0; c < vector.size(); ++c) vector[c] += direction[d] * rows_[d][c];
      bias += direction[d] * biases_[d];
    }
    StreamReading result = frozen.read_attention(layer, position, vector);
    result.constant += bias;
    return result;
  }

 private:
  // Elements at their bound do not answer to the stream.
  void hold_clipped(const float* values, float bound) {
    for (std::size_t d = 0; d < rows_.size(); ++d) {
      if (std::abs(values[d]) < bound) continue;
      std::fill(rows_[d].begin(), rows_[d].end(), 0.0);
      biases_[d] = static_cast<double>(values[d]);
    }
  }

  // With the denominator held: of the head's own norm, or of that of all heads.
  void normalise(const NormWeights& norm, std::int64_t head, float scale) {
    const Tensor gain = norm.gain().value().on_host();
    const auto D = static_cast<std::int64_t>(rows_.size());
    const float* own = gain.f32() + (gain.elements() == D ? 0 : head * D);
    for (std::size_t d = 0; d < rows_.size(); ++d) {
      const double factor = static_cast<double>(own[d]) * static_cast<double>(scale);
      for (double& x : rows_[d]) x *= factor;
      biases_[d] *= factor;
    }
  }

  void turn(const RotaryTable::Part& part) {
    const auto R = static_cast<std::size_t>(part.cos.elements());
    for (std::size_t i = 0; i < R; ++i) {
      const double c = part.cos.f32()[i], s = part.sin.f32()[i];
      for (std::size_t k = 0; k < rows_[i].size(); ++k) {
        const double x = rows_[i][k], y = rows_[i + R][k];
        rows_[i][k] = x * c - y * s;
        rows_[i + R][k] = y * c + x * s;
      }
      const double x = biases_[i], y = biases_[i + R];
      biases_[i] = x * c - y * s;
      biases_[i + R] = y * c + x * s;
    }
  }

  std::vector<std::vector<double>> rows_;
  std::vector<double> biases_;
};

const AttentionWeights& attention_of(const FrozenModel& frozen, std::int64_t layer) {
  return *frozen.weights.layers[static_cast<std::size_t>(layer)].attention;
}

std::vector<double> head_vector(const Tensor& all, std::int64_t position, std::int64_t head,
                                double factor) {
  const std::int64_t D = all.size(2);
  const float* from = all.f32() + (position * all.size(1) + head) * D;
  std::vector<double> vector(from, from + D);
  for (double& x : vector) x *= factor;
  return vector;
}

void check_cell(const FrozenModel& frozen, const QkCell& cell) {
  require(
      cell.layer >= 0 && cell.layer < frozen.depth() && cell.head >= 0 && cell.head < frozen.heads,
      "trace: there is no head L{}H{}", cell.layer, cell.head);
  require(cell.key >= 0 && cell.key <= cell.query && cell.query < frozen.positions,
          "trace: there is no cell of query {} and key {}", cell.query, cell.key);
}

std::int64_t key_head(const FrozenModel& frozen, std::int64_t head) {
  return head / (frozen.heads / frozen.key_heads);
}

// [readings, sources + 1] -> [sources + 1, readings].
Tensor by_source(const Tensor& effects) {
  const std::int64_t rows = effects.size(0), columns = effects.size(1);
  Tensor turned = Tensor::empty({columns, rows});
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < columns; ++c)
      turned.mutable_f32()[c * rows + r] = effects.f32()[r * columns + c];
  return turned;
}

// a += factor * b, parts and constants.
void add_reading(StreamReading& a, const StreamReading& b) {
  a.parts.insert(a.parts.end(), b.parts.begin(), b.parts.end());
  a.constant += b.constant;
}

}  // namespace

double cell_score(const FrozenModel& frozen, const QkCell& cell) {
  check_cell(frozen, cell);
  const FrozenLayer& layer = frozen.layer(cell.layer);
  const std::vector<double> q =
      head_vector(layer.query, cell.query, cell.head,
                  static_cast<double>(attention_of(frozen, cell.layer).scale));
  const std::vector<double> k = head_vector(layer.key, cell.key, key_head(frozen, cell.head), 1.0);
  return std::inner_product(q.begin(), q.end(), k.begin(), 0.0);
}

double capped_score(const FrozenModel& frozen, double score) {
  const auto cap = static_cast<double>(frozen.score_soft_cap);
  return cap > 0.0 ? cap * std::tanh(score / cap) : score;
}

double QkTerms::term(std::int64_t u, std::int64_t v) const {
  const std::int64_t D = queries.size(1);
  double sum = 0.0;
  for (std::int64_t d = 0; d < D; ++d)
    sum +=
        static_cast<double>(queries.f32()[u * D + d]) * static_cast<double>(keys.f32()[v * D + d]);
  return sum;
}

QkTerms qk_terms(const FrozenModel& frozen, const GraphSources& sources, const QkCell& cell) {
  check_cell(frozen, cell);
  const AttentionWeights& attention = attention_of(frozen, cell.layer);
  const Sweep sweep(frozen, sources);
  const auto rows = [&](bool query) {
    const std::int64_t position = query ? cell.query : cell.key;
    const HeadRows head(frozen.layer(cell.layer), attention, query, cell.head, position, frozen);
    std::vector<StreamReading> readings;
    for (std::int64_t d = 0; d < frozen.head_width; ++d) {
      std::vector<double> unit(static_cast<std::size_t>(frozen.head_width));
      unit[static_cast<std::size_t>(d)] = query ? static_cast<double>(attention.scale) : 1.0;
      readings.push_back(head.reading(frozen, cell.layer, position, unit));
    }
    std::vector<const StreamReading*> pointers;
    for (const StreamReading& reading : readings) pointers.push_back(&reading);
    return by_source(sweep.effects(pointers));
  };
  return {rows(true), rows(false), cell_score(frozen, cell)};
}

std::vector<QkMarginals> qk_marginals(const FrozenModel& frozen, const GraphSources& sources,
                                      const std::vector<QkCell>& cells) {
  std::vector<QkMarginals> marginals;
  std::vector<StreamReading> readings;  // query, key, relative query, relative key of each cell
  for (const QkCell& cell : cells) {
    check_cell(frozen, cell);
    const FrozenLayer& layer = frozen.layer(cell.layer);
    const AttentionWeights& attention = attention_of(frozen, cell.layer);
    const auto scale = static_cast<double>(attention.scale);
    const std::int64_t group = key_head(frozen, cell.head), n = frozen.positions;
    const std::vector<double> q = head_vector(layer.query, cell.query, cell.head, scale);
    const std::vector<double> k = head_vector(layer.key, cell.key, group, scale);
    const HeadRows query(layer, attention, true, cell.head, cell.query, frozen);
    const HeadRows key(layer, attention, false, cell.head, cell.key, frozen);
    readings.push_back(query.reading(frozen, cell.layer, cell.query, k));
    readings.push_back(key.reading(frozen, cell.layer, cell.key, q));

    QkMarginals cell_marginals;
    cell_marginals.score = cell_marginals.relative_score = cell_score(frozen, cell);
    std::vector<double> other_keys = k;
    StreamReading relative = readings.back();
    const float* weights = layer.weights.f32() + (cell.head * n + cell.query) * n;
    for (std::int64_t j = 0; j <= cell.query; ++j) {
      const auto weight = static_cast<double>(weights[j]);
      if (weight == 0.0) continue;
      cell_marginals.relative_score -=
          weight * cell_score(frozen, {cell.layer, cell.head, cell.query, j});
      const std::vector<double> other = head_vector(layer.key, j, group, scale);
      std::vector<double> against = q;
      for (std::size_t d = 0; d < against.size(); ++d) {
        other_keys[d] -= weight * other[d];
        against[d] *= -weight;
      }
      const HeadRows other_key(layer, attention, false, cell.head, j, frozen);
      add_reading(relative, other_key.reading(frozen, cell.layer, j, against));
    }
    readings.push_back(query.reading(frozen, cell.layer, cell.query, other_keys));
    readings.push_back(std::move(relative));
    marginals.push_back(std::move(cell_marginals));
  }
  constexpr std::size_t kBatch = 256;
  const std::int64_t columns = sources.count() + 1;
  const Sweep sweep(frozen, sources);
  for (std::size_t from = 0; from < readings.size(); from += kBatch) {
    std::vector<const StreamReading*> batch;
    for (std::size_t r = from; r < std::min(readings.size(), from + kBatch); ++r)
      batch.push_back(&readings[r]);
    const Tensor effects = sweep.effects(batch);
    for (std::size_t b = 0; b < batch.size(); ++b) {
      QkMarginals& to = marginals[(from + b) / 4];
      const float* row = effects.f32() + static_cast<std::int64_t>(b) * columns;
      std::vector<float>* const parts[] = {&to.query, &to.key, &to.relative_query,
                                           &to.relative_key};
      parts[(from + b) % 4]->assign(row, row + columns);
    }
  }
  return marginals;
}

std::vector<Modulation> modulated_by(const GraphSources& sources,
                                     const std::vector<double>& weights, double share) {
  std::vector<std::size_t> order(static_cast<std::size_t>(sources.count()));
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return weights[a] > weights[b]; });
  double all = 0.0, sum = 0.0;
  for (const std::size_t s : order) all += weights[s];
  std::map<std::int64_t, Modulation> tokens;
  for (const std::size_t s : order) {
    if (sum >= share * all) break;
    sum += weights[s];
    const GraphNode& node = sources.nodes[s];
    const std::int64_t layer = std::max<std::int64_t>(0, node.layer);
    Modulation& token =
        tokens.try_emplace(node.position, Modulation{node.position, layer, layer, 0.0, 0})
            .first->second;
    token.first_layer = std::min(token.first_layer, layer);
    token.last_layer = std::max(token.last_layer, layer);
    token.share += weights[s] / all;
    ++token.sources;
  }
  std::vector<Modulation> result;
  for (const auto& [position, token] : tokens) result.push_back(token);
  std::stable_sort(result.begin(), result.end(),
                   [](const Modulation& a, const Modulation& b) { return a.share > b.share; });
  return result;
}

}  // namespace filigree
