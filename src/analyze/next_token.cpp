#include "analyze/next_token.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace filigree {

double log_sum_of(std::span<const float> logits) {
  const double most = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - most);
  return most + std::log(sum);
}

std::vector<TokenId> likeliest_tokens(std::span<const float> logits, std::size_t count) {
  std::vector<TokenId> order(logits.size());
  std::iota(order.begin(), order.end(), TokenId{0});
  count = std::min(count, order.size());
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count), order.end(),
                    [&](TokenId a, TokenId b) {
                      const float x = logits[static_cast<std::size_t>(a)],
                                  y = logits[static_cast<std::size_t>(b)];
                      return x != y ? x > y : a < b;
                    });
  order.resize(count);
  return order;
}

std::int64_t rank_of(std::span<const float> logits, TokenId id) {
  const float own = logits[static_cast<std::size_t>(id)];
  std::int64_t rank = 0;
  for (std::size_t i = 0; i < logits.size(); ++i)
    if (logits[i] > own || (logits[i] == own && static_cast<TokenId>(i) < id)) ++rank;
  return rank;
}

double divergence(std::span<const float> p, std::span<const float> q) {
  const double p_sum = log_sum_of(p), q_sum = log_sum_of(q);
  double sum = 0;
  for (std::size_t i = 0; i < p.size(); ++i) {
    const double log_p = static_cast<double>(p[i]) - p_sum;
    sum += std::exp(log_p) * (log_p - (static_cast<double>(q[i]) - q_sum));
  }
  return sum;
}

}  // namespace filigree
