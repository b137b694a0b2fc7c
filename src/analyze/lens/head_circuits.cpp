#include "filigree/analyze/lens/head_circuits.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "filigree/analyze/lens/eigenvalues.h"
#include "filigree/base/error.h"
#include "filigree/base/random.h"
#include "filigree/ops/matmul/matmul.h"
#include "filigree/runtime/threads.h"

namespace filigree {
namespace {

constexpr std::int64_t kTokensAtOnce = 512;
constexpr int kRandomSamples = 16;
constexpr std::uint64_t kRandomSeed = 2021;

using Doubles = std::vector<double>;

Tensor product(const Tensor& a, const Tensor& b, MatmulOptions options = {}) {
  return matmul(a, b, options).value();
}

// W^T W of W [rows, D], or W W^T of W [D, columns].
Doubles gram(const Tensor& w, bool of_rows) {
  const std::int64_t D = w.size(of_rows ? 0 : 1), length = w.size(of_rows ? 1 : 0);
  Doubles result(static_cast<std::size_t>(D * D), 0.0), row(static_cast<std::size_t>(D));
  for (std::int64_t t = 0; t < length; ++t) {
    for (std::int64_t i = 0; i < D; ++i)
      row[static_cast<std::size_t>(i)] = w.f32()[of_rows ? i * length + t : t * D + i];
    for (std::size_t i = 0; i < row.size(); ++i)
      for (std::size_t j = 0; j < row.size(); ++j) result[i * row.size() + j] += row[i] * row[j];
  }
  return result;
}

// L of G = L L^T, [D, D]. Directions that G does not have (dead heads) get zero columns.
Tensor cholesky(const Doubles& g, std::int64_t D) {
  const auto at = [D](std::int64_t i, std::int64_t j) {
    return static_cast<std::size_t>(i * D + j);
  };
  double largest = 0;
  for (std::int64_t i = 0; i < D; ++i) largest = std::max(largest, g[at(i, i)]);
  Doubles l(g.size(), 0.0);
  for (std::int64_t j = 0; j < D; ++j) {
    double pivot = g[at(j, j)];
    for (std::int64_t k = 0; k < j; ++k) pivot -= l[at(j, k)] * l[at(j, k)];
    if (pivot <= 1e-14 * largest) continue;
    const double root = std::sqrt(pivot);
    l[at(j, j)] = root;
    for (std::int64_t i = j + 1; i < D; ++i) {
      double sum = g[at(i, j)];
      for (std::int64_t k = 0; k < j; ++k) sum -= l[at(i, k)] * l[at(j, k)];
      l[at(i, j)] = sum / root;
    }
  }
  Tensor result = Tensor::empty({D, D});
  for (std::size_t i = 0; i < l.size(); ++i) result.mutable_f32()[i] = static_cast<float>(l[i]);
  return result;
}

double norm_of(const Tensor& values) {
  double sum = 0;
  for (const float value : values.values()) sum += static_cast<double>(value) * value;
  return std::sqrt(sum);
}

// A head reduced so that norms of products need D x D cores only. With K = U L^T and orthonormal
// columns of U, ||X K^T|| = ||X L||; likewise for the others.
struct Reduced {
  Tensor writes;                            // [D, d]: L_V^T O, whose norm is that of V O
  std::array<Tensor, kCompositions> reads;  // [d, D]: Q L_K, K L_Q, V L_O
};

Reduced reduced(const HeadMatrices& head) {
  const std::int64_t D = head.q.size(1);
  const auto root = [D](const Tensor& w, bool of_rows) { return cholesky(gram(w, of_rows), D); };
  Reduced result;
  result.writes = product(root(head.v, false), head.o, {.transpose_a = true});
  result.reads[0] = product(head.q, root(head.k, false));
  result.reads[1] = product(head.k, root(head.q, false));
  result.reads[2] = product(head.v, root(head.o, true));
  return result;
}

double ratio(double joint, double a, double b) { return a > 0 && b > 0 ? joint / (a * b) : 0; }

Tensor random_matrix(std::int64_t rows, std::int64_t columns, std::uint64_t stream) {
  Tensor values = Tensor::empty({rows, columns});
  fill_normal({values.mutable_f32(), static_cast<std::size_t>(rows * columns)}, kRandomSeed,
              stream);
  return values;
}

// Keeps the largest of the pairs it is shown.
class Largest {
 public:
  explicit Largest(std::size_t count) : count_(count) {}

  void add(TokenId from, const float* scores, std::int64_t V) {
    if (count_ == 0) return;
    for (std::int64_t t = 0; t < V; ++t)
      if (pairs_.size() < count_ || scores[t] > least_) insert(from, t, scores[t]);
  }
  void add(const std::vector<TokenPair>& pairs) {
    pairs_.insert(pairs_.end(), pairs.begin(), pairs.end());
    trim();
  }
  std::vector<TokenPair> take() {
    trim();
    return std::move(pairs_);
  }

 private:
  static bool before(const TokenPair& a, const TokenPair& b) {
    if (a.score != b.score) return a.score > b.score;
    return a.from != b.from ? a.from < b.from : a.to < b.to;
  }
  void insert(TokenId from, std::int64_t to, float score) {
    pairs_.push_back({from, static_cast<TokenId>(to), score});
    // Trimming only now and then makes an insertion cheap.
    if (pairs_.size() >= 2 * count_ + 256) trim();
  }
  void trim() {
    std::sort(pairs_.begin(), pairs_.end(), before);
    if (pairs_.size() > count_) pairs_.resize(count_);
    if (pairs_.size() == count_ && count_ > 0) least_ = static_cast<float>(pairs_.back().score);
  }

  std::size_t count_;
  std::vector<TokenPair> pairs_;
  float least_ = -INFINITY;
};

// The largest (or smallest) entries of X Y^T in every row that is chosen by `from`, X [tokens, D]
// and Y [V, D]; calls body with the rows in their order. The smallest are found as the largest of
// the opposite, and have its sign.
void for_rows_of_pairs(const Tensor& x, const Tensor& y, const PairOptions& options,
                       const std::function<void(std::vector<TokenPair>)>& body) {
  const std::int64_t V = y.size(0), D = x.size(1);
  std::vector<TokenId> from = options.from;
  if (from.empty())
    for (std::int64_t t = 0; t < x.size(0); ++t) from.push_back(static_cast<TokenId>(t));
  for (const TokenId id : from)
    require(id >= 0 && id < x.size(0), "token pairs: token {} is outside the vocabulary of {}", id,
            x.size(0));
  const auto total = static_cast<std::int64_t>(from.size());
  const float sign = options.lowest ? -1.0f : 1.0f;
  for (std::int64_t begin = 0; begin < total; begin += kTokensAtOnce) {
    const std::int64_t count = std::min(kTokensAtOnce, total - begin);
    Tensor rows = Tensor::empty({count, D});
    for (std::int64_t i = 0; i < count; ++i) {
      const float* row = x.f32() + from[static_cast<std::size_t>(begin + i)] * D;
      std::transform(row, row + D, rows.mutable_f32() + i * D,
                     [sign](float value) { return sign * value; });
    }
    const Tensor scores = product(rows, y, {.transpose_b = true});
    // Each row on its own, then together: the result does not depend on the threads.
    std::vector<std::vector<TokenPair>> of_row(static_cast<std::size_t>(count));
    parallel_for(count, 1, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t i = first; i < last; ++i) {
        Largest row(options.one_each ? std::min<std::size_t>(options.top, 1) : options.top);
        row.add(from[static_cast<std::size_t>(begin + i)], scores.f32() + i * V, V);
        of_row[static_cast<std::size_t>(i)] = row.take();
      }
    });
    for (std::vector<TokenPair>& pairs : of_row) body(std::move(pairs));
    if (options.progress) options.progress(begin + count, total);
  }
}

// Of all rows together.
std::vector<TokenPair> top_pairs(const Tensor& x, const Tensor& y, const PairOptions& options) {
  Largest all(options.top);
  for_rows_of_pairs(x, y, options, [&](const std::vector<TokenPair>& pairs) { all.add(pairs); });
  std::vector<TokenPair> pairs = all.take();
  if (options.lowest)
    for (TokenPair& pair : pairs) pair.score = -pair.score;
  return pairs;
}

// What each token asks for, the scale in it, and what each offers: [V, D] both.
struct QueriesAndKeys {
  Tensor queries, keys;
};
QueriesAndKeys queries_and_keys(const Model& model, const HeadMatrices& head) {
  const Tensor embedding = normalised_embeddings(model);
  Tensor queries = product(embedding, head.q);
  float* data = queries.mutable_f32();
  for (std::int64_t i = 0; i < queries.elements(); ++i) data[i] *= head.scale;
  return {queries, product(embedding, head.k)};
}

double share_of(const Tensor& core) {
  const std::span<const float> values = core.values();
  const auto n = static_cast<std::size_t>(core.size(0));
  return positive_share(eigenvalues(Doubles(values.begin(), values.end()), n));
}

}  // namespace

std::vector<HeadCircuitScores> head_circuit_scores(const Model& model,
                                                   const std::vector<HeadMatrices>& heads) {
  const Tensor embedding = model.weights().token_embedding.value();
  // E V O U has the eigenvalues of O (U E) V, and E Q K^T E^T those of K^T (E^T E) Q.
  const Tensor through_output =
      product(folded_unembedding(model), embedding, {.transpose_a = true});  // [d, d]
  const Tensor among_tokens = product(embedding, embedding, {.transpose_a = true});
  std::vector<HeadCircuitScores> scores(heads.size());
  parallel_for(
      static_cast<std::int64_t>(heads.size()), 1, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
          const HeadMatrices& head = heads[static_cast<std::size_t>(i)];
          HeadCircuitScores& score = scores[static_cast<std::size_t>(i)];
          score.copying = share_of(product(product(head.o, through_output), head.v));
          score.matching =
              share_of(product(product(head.k, among_tokens, {.transpose_a = true}), head.q));
        }
      });
  return scores;
}

std::vector<TokenPair> top_ov_pairs(const Model& model, const HeadMatrices& head,
                                    const PairOptions& options) {
  return top_pairs(product(normalised_embeddings(model), head.v),
                   product(folded_unembedding(model), head.o, {.transpose_b = true}), options);
}

std::vector<TokenPair> top_qk_pairs(const Model& model, const HeadMatrices& head,
                                    const PairOptions& options) {
  const QueriesAndKeys both = queries_and_keys(model, head);
  return top_pairs(both.queries, both.keys, options);
}

std::vector<std::vector<TokenPair>> top_keys_of(const Model& model, const HeadMatrices& head,
                                                const PairOptions& options) {
  require(!options.lowest && !options.one_each,
          "token pairs: by tokens there are only the top ones");
  std::vector<std::vector<TokenPair>> keys;
  if (options.from.empty()) return keys;
  const QueriesAndKeys both = queries_and_keys(model, head);
  for_rows_of_pairs(both.queries, both.keys, options,
                    [&](std::vector<TokenPair> pairs) { keys.push_back(std::move(pairs)); });
  return keys;
}

double random_composition(std::int64_t d, std::int64_t D) {
  double sum = 0;
  for (int sample = 0; sample < kRandomSamples; ++sample) {
    const auto stream = static_cast<std::uint64_t>(4 * sample);
    HeadMatrices a, b;
    a.v = a.q = a.k = random_matrix(d, D, stream);
    a.o = random_matrix(D, d, stream + 1);
    b.q = random_matrix(d, D, stream + 2);
    b.k = random_matrix(d, D, stream + 3);
    b.v = b.q, b.o = a.o;
    const Reduced earlier = reduced(a), later = reduced(b);
    sum += ratio(norm_of(product(earlier.writes, later.reads[0])), norm_of(earlier.writes),
                 norm_of(later.reads[0]));
  }
  return sum / kRandomSamples;
}

CompositionScores composition_scores(const Model& model, const std::vector<HeadMatrices>& heads) {
  const std::int64_t L = model.config().layers, H = model.config().heads, all = L * H;
  require(static_cast<std::int64_t>(heads.size()) == all, "composition: {} heads of {}",
          heads.size(), all);
  const std::int64_t d = heads[0].q.size(0), D = heads[0].q.size(1);
  std::vector<Reduced> small(heads.size());
  parallel_for(all, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      small[static_cast<std::size_t>(i)] = reduced(heads[static_cast<std::size_t>(i)]);
  });
  // All that is written, head below head.
  Tensor writes = Tensor::empty({all * D, d});
  std::vector<double> write_norm;
  for (std::int64_t i = 0; i < all; ++i) {
    const Tensor& one = small[static_cast<std::size_t>(i)].writes;
    std::copy_n(one.f32(), D * d, writes.mutable_f32() + i * D * d);
    write_norm.push_back(norm_of(one));
  }
  CompositionScores result;
  result.layers = L, result.heads = H;
  result.random = random_composition(d, D);
  result.scores.assign(kCompositions, std::vector<float>(static_cast<std::size_t>(all * all)));
  for (std::int64_t layer = 1; layer < L; ++layer) {
    for (std::size_t c = 0; c < kCompositions; ++c) {
      // What the layer's heads read, side by side: [d, H D].
      Tensor reads = Tensor::empty({d, H * D});
      std::vector<double> read_norm;
      for (std::int64_t h = 0; h < H; ++h) {
        const Tensor& one = small[static_cast<std::size_t>(layer * H + h)].reads[c];
        for (std::int64_t i = 0; i < d; ++i)
          std::copy_n(one.f32() + i * D, D, reads.mutable_f32() + (i * H + h) * D);
        read_norm.push_back(norm_of(one));
      }
      const std::int64_t earlier = layer * H;
      const Tensor cores = product(writes.rows(0, earlier * D), reads);  // [earlier D, H D]
      parallel_for(earlier, 1, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t a = begin; a < end; ++a)
          for (std::int64_t h = 0; h < H; ++h) {
            double sum = 0;
            for (std::int64_t i = 0; i < D; ++i) {
              const float* row = cores.f32() + ((a * D + i) * H + h) * D;
              for (std::int64_t j = 0; j < D; ++j) sum += static_cast<double>(row[j]) * row[j];
            }
            result.scores[c][static_cast<std::size_t>(a * all + layer * H + h)] =
                static_cast<float>(ratio(std::sqrt(sum), write_norm[static_cast<std::size_t>(a)],
                                         read_norm[static_cast<std::size_t>(h)]));
          }
      });
    }
  }
  return result;
}

}  // namespace filigree
