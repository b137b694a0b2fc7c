// Attention and gated attention in double precision as filigree/ops.h defines
// them, with every gradient, for tests.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "ops/attention/attention_kernels.h"

namespace filigree {

enum class ReferenceGate { kNone, kHard, kSampled };

struct AttentionReference {
  AttentionShape shape;
  ReferenceGate gate = ReferenceGate::kNone;
  GateNoise noise = {};
  double edge_weight = 0.0;  // dL/d(expected share) of every example and head

  std::vector<double> z, dq, dk, dv;
  std::vector<double> expected, active, dbias;  // [B, H]: shares, and the gradient of the bias
  // How near a gate came to its threshold, relative to it: below about 1e-5 the rounding of f32
  // decides it.
  double margin = std::numeric_limits<double>::infinity();

  // q, dz [B, Tq, H, D], k, v [B, Tk, G, D], bias [H]; L = sum dz z + edge_weight sum expected.
  void run(const std::vector<double>& q, const std::vector<double>& k, const std::vector<double>& v,
           const std::vector<double>& bias, const std::vector<double>& dz) {
    const AttentionShape& s = shape;
    pairs_ = seen_pairs(s);
    z.assign(q.size(), 0.0), dq.assign(q.size(), 0.0);
    dk.assign(k.size(), 0.0), dv.assign(k.size(), 0.0);
    const auto heads = static_cast<std::size_t>(s.B * s.H);
    expected.assign(heads, 0.0), active.assign(heads, 0.0), dbias.assign(heads, 0.0);
    for (std::int64_t b = 0; b < s.B; ++b)
      for (std::int64_t h = 0; h < s.H; ++h)
        for (std::int64_t i = 0; i < s.Tq; ++i)
          row(b, h, i, q, k, v, bias[static_cast<std::size_t>(h)], dz);
  }

 private:
  struct Edge {
    double capped, weight, open, relaxed, expected;
  };

  Edge edge_of(double product, double bias, std::int64_t b, std::int64_t h, std::int64_t position,
               std::int64_t j) {
    const auto cap = static_cast<double>(shape.soft_cap);
    double score = product * static_cast<double>(shape.scale);
    if (cap > 0.0) score = cap * std::tanh(score / cap);
    Edge edge = {score, 0.0, 1.0, 0.0, 0.0};
    if (gate == ReferenceGate::kNone) return edge;
    const auto row = static_cast<std::uint32_t>((noise.first_batch + b) * shape.H + h);
    const double u = gate == ReferenceGate::kSampled
                         ? static_cast<double>(gate_uniform(gate_noise_key(noise), noise.layer, row,
                                                            static_cast<std::uint32_t>(position),
                                                            static_cast<std::uint32_t>(j)))
                         : 0.5;
    const double E = std::exp(-(score + bias)), closing = E * (1.0 - u);
    edge.open = u > closing ? 1.0 : 0.0;
    edge.relaxed = u / (u + closing);
    edge.expected = 1.0 / (1.0 + E);
    margin = std::min(margin, std::abs(u - closing) / u);
    return edge;
  }

  void row(std::int64_t b, std::int64_t h, std::int64_t i, const std::vector<double>& q,
           const std::vector<double>& k, const std::vector<double>& v, double bias,
           const std::vector<double>& dz) {
    const AttentionShape& s = shape;
    const auto at = [](std::int64_t index) { return static_cast<std::size_t>(index); };
    const std::int64_t position = s.Tk - s.Tq + i, first = first_key(s, position);
    const std::int64_t end = end_key(s, position);
    const std::int64_t query = ((b * s.Tq + i) * s.H + h) * s.D;
    const auto key = [&](std::int64_t j) { return ((b * s.Tk + j) * s.G + h / (s.H / s.G)) * s.D; };
    std::vector<Edge> edges;
    double largest = -std::numeric_limits<double>::infinity(), sum = 0.0;
    for (std::int64_t j = first; j < end; ++j) {
      double product = 0.0;
      for (std::int64_t d = 0; d < s.D; ++d) product += q[at(query + d)] * k[at(key(j) + d)];
      edges.push_back(edge_of(product, bias, b, h, position, j));
      largest = std::max(largest, edges.back().capped);
    }
    for (Edge& edge : edges) sum += edge.weight = std::exp(edge.capped - largest);
    std::vector<double> slopes;  // dz . v
    double total = 0.0;          // dz . z
    const std::size_t head = at(b * s.H + h);
    for (std::int64_t j = first; j < end; ++j) {
      Edge& edge = edges[at(j - first)];
      edge.weight /= sum;
      double slope = 0.0;
      for (std::int64_t d = 0; d < s.D; ++d) {
        slope += dz[at(query + d)] * v[at(key(j) + d)];
        z[at(query + d)] += edge.weight * edge.open * v[at(key(j) + d)];
        dv[at(key(j) + d)] += edge.weight * edge.open * dz[at(query + d)];
      }
      slopes.push_back(slope);
      total += edge.weight * edge.open * slope;
      expected[head] += edge.expected / pairs_;
      active[head] += edge.open / pairs_;
    }
    for (std::int64_t j = first; j < end; ++j) {
      const Edge& edge = edges[at(j - first)];
      const double slope = slopes[at(j - first)];
      double logit = 0.0;
      if (gate != ReferenceGate::kNone)
        logit = edge.weight * edge.relaxed * (1.0 - edge.relaxed) * slope +
                edge_weight / pairs_ * edge.expected * (1.0 - edge.expected);
      dbias[head] += logit;
      double score = edge.weight * (edge.open * slope - total) + logit;
      if (s.soft_cap > 0.0f) {
        const double t = edge.capped / static_cast<double>(s.soft_cap);
        score *= 1.0 - t * t;
      }
      score *= static_cast<double>(s.scale);
      for (std::int64_t d = 0; d < s.D; ++d) {
        dq[at(query + d)] += score * k[at(key(j) + d)];
        dk[at(key(j) + d)] += score * q[at(query + d)];
      }
    }
  }

  double pairs_ = 1.0;
};

}  // namespace filigree
