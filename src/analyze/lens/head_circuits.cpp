#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numeric>
#include <span>

#include "analyze/lens/eigenvalues.h"
#include "filigree/error.h"
#include "filigree/lens.h"
#include "filigree/ops.h"
#include "filigree/random.h"
#include "filigree/runtime.h"

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

  // `scores` has one of each of the tokens.
  void add(TokenId from, const float* scores, const std::vector<TokenId>& tokens) {
    if (count_ == 0) return;
    for (std::size_t t = 0; t < tokens.size(); ++t)
      if (pairs_.size() < count_ || scores[t] > least_) insert(from, tokens[t], scores[t]);
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
  void insert(TokenId from, TokenId to, float score) {
    pairs_.push_back({from, to, score});
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

// One side of a circuit: a vector for each of some tokens.
struct Side {
  Tensor rows;  // [tokens, D]
  const std::vector<TokenId>& tokens;
};

// The largest (or smallest) entries of X Y^T in every row that is chosen by `from`; calls body with
// the rows in their order. The smallest are found as the largest of the opposite, and have its
// sign.
void for_rows_of_pairs(const TokenRows& inputs, const Side& x, const Side& y,
                       const PairOptions& options,
                       const std::function<void(std::vector<TokenPair>)>& body) {
  const std::int64_t D = x.rows.size(1);
  const std::vector<TokenId>& from = options.from.empty() ? x.tokens : options.from;
  std::vector<std::int64_t> row;
  for (const TokenId id : from) {
    row.push_back(inputs.row_of(id));
    require(row.back() >= 0, "token pairs: there is no input of token {} ({})", id,
            description_of(inputs.input));
  }
  const auto total = static_cast<std::int64_t>(from.size());
  const float sign = options.lowest ? -1.0f : 1.0f;
  for (std::int64_t begin = 0; begin < total; begin += kTokensAtOnce) {
    const std::int64_t count = std::min(kTokensAtOnce, total - begin);
    Tensor rows = Tensor::empty({count, D});
    for (std::int64_t i = 0; i < count; ++i) {
      const float* one = x.rows.f32() + row[static_cast<std::size_t>(begin + i)] * D;
      std::transform(one, one + D, rows.mutable_f32() + i * D,
                     [sign](float value) { return sign * value; });
    }
    const Tensor scores = product(rows, y.rows, {.transpose_b = true});
    // Each row on its own, then together: the result does not depend on the threads.
    std::vector<std::vector<TokenPair>> of_row(static_cast<std::size_t>(count));
    parallel_for(count, 1, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t i = first; i < last; ++i) {
        Largest largest(options.one_each ? std::min<std::size_t>(options.top, 1) : options.top);
        largest.add(from[static_cast<std::size_t>(begin + i)], scores.f32() + i * y.rows.size(0),
                    y.tokens);
        of_row[static_cast<std::size_t>(i)] = largest.take();
      }
    });
    for (std::vector<TokenPair>& pairs : of_row) body(std::move(pairs));
    if (options.progress) options.progress(begin + count, total);
  }
}

// Of all rows together.
std::vector<TokenPair> top_pairs(const TokenRows& inputs, const Side& x, const Side& y,
                                 const PairOptions& options) {
  Largest all(options.top);
  for_rows_of_pairs(inputs, x, y, options,
                    [&](const std::vector<TokenPair>& pairs) { all.add(pairs); });
  std::vector<TokenPair> pairs = all.take();
  if (options.lowest)
    for (TokenPair& pair : pairs) pair.score = -pair.score;
  return pairs;
}

// What each token asks for, the scale in it, and what each offers.
struct QueriesAndKeys {
  Side queries, keys;
};
QueriesAndKeys queries_and_keys(const Model& model, const TokenRows& inputs,
                                const HeadMatrices& head) {
  const Tensor read = normalised(model, inputs);
  Tensor queries = product(read, head.q);
  float* data = queries.mutable_f32();
  for (std::int64_t i = 0; i < queries.elements(); ++i) data[i] *= head.scale;
  return {{queries, inputs.tokens}, {product(read, head.k), inputs.tokens}};
}

std::vector<TokenId> whole_vocabulary(const Tensor& unembedding) {
  std::vector<TokenId> ids(static_cast<std::size_t>(unembedding.size(0)));
  std::iota(ids.begin(), ids.end(), TokenId{0});
  return ids;
}

// The rows of some tokens, one below the other.
Tensor gathered(const Tensor& rows, const std::vector<TokenId>& tokens) {
  const std::int64_t d = rows.size(1);
  Tensor chosen = Tensor::empty({static_cast<std::int64_t>(tokens.size()), d});
  for (std::size_t i = 0; i < tokens.size(); ++i)
    std::copy_n(rows.f32() + tokens[i] * d, d,
                chosen.mutable_f32() + static_cast<std::int64_t>(i) * d);
  return chosen;
}

double share_of(const Tensor& core) {
  const std::span<const float> values = core.values();
  const auto n = static_cast<std::size_t>(core.size(0));
  return positive_share(eigenvalues(Doubles(values.begin(), values.end()), n));
}

}  // namespace

std::vector<HeadCircuitScores> head_circuit_scores(const Model& model, const TokenInputs& inputs,
                                                   const std::vector<HeadMatrices>& heads,
                                                   const std::vector<std::size_t>& chosen) {
  const Tensor unembedding = folded_unembedding(model);
  const auto per_layer = static_cast<std::size_t>(model.config().heads);
  const TokenRows* known = nullptr;
  Tensor through_output, among_tokens;  // [d, d]
  std::vector<HeadCircuitScores> scores(chosen.size());
  for (std::size_t begin = 0, end = 0; begin < chosen.size(); begin = end) {
    const std::size_t layer = chosen[begin] / per_layer;
    while (end < chosen.size() && chosen[end] / per_layer == layer) ++end;
    const TokenRows& rows = inputs.of_layer(static_cast<std::int64_t>(layer));
    if (&rows != known) {
      // E V O U has the eigenvalues of O (U E) V, and E Q K^T E^T those of K^T (E^T E) Q.
      const bool all = static_cast<std::int64_t>(rows.tokens.size()) == unembedding.size(0);
      through_output = product(all ? unembedding : gathered(unembedding, rows.tokens), rows.stream,
                               {.transpose_a = true});
      among_tokens = product(rows.stream, rows.stream, {.transpose_a = true});
      known = &rows;
    }
    parallel_for(
        static_cast<std::int64_t>(end - begin), 1, [&](std::int64_t first, std::int64_t last) {
          for (std::int64_t i = first; i < last; ++i) {
            const std::size_t at = begin + static_cast<std::size_t>(i);
            const HeadMatrices& head = heads[chosen[at]];
            scores[at].copying = share_of(product(product(head.o, through_output), head.v));
            scores[at].matching =
                share_of(product(product(head.k, among_tokens, {.transpose_a = true}), head.q));
          }
        });
  }
  return scores;
}

std::vector<TokenPair> top_ov_pairs(const Model& model, const TokenRows& inputs,
                                    const HeadMatrices& head, const PairOptions& options) {
  const Tensor unembedding = folded_unembedding(model);
  const std::vector<TokenId> vocabulary = whole_vocabulary(unembedding);
  return top_pairs(inputs, {product(normalised(model, inputs), head.v), inputs.tokens},
                   {product(unembedding, head.o, {.transpose_b = true}), vocabulary}, options);
}

std::vector<TokenPair> top_qk_pairs(const Model& model, const TokenRows& inputs,
                                    const HeadMatrices& head, const PairOptions& options) {
  const QueriesAndKeys both = queries_and_keys(model, inputs, head);
  return top_pairs(inputs, both.queries, both.keys, options);
}

std::vector<std::vector<TokenPair>> top_keys_of(const Model& model, const TokenRows& inputs,
                                                const HeadMatrices& head,
                                                const PairOptions& options) {
  require(!options.lowest && !options.one_each,
          "token pairs: by tokens there are only the top ones");
  std::vector<std::vector<TokenPair>> keys;
  if (options.from.empty()) return keys;
  const QueriesAndKeys both = queries_and_keys(model, inputs, head);
  for_rows_of_pairs(inputs, both.queries, both.keys, options,
                    [&](std::vector<TokenPair> pairs) { keys.push_back(std::move(pairs)); });
  return keys;
}

std::vector<WrittenForToken> written_for(const Model& model, const TokenRows& inputs,
                                         const HeadMatrices& head,
                                         const std::vector<TokenId>& tokens) {
  const std::int64_t d = inputs.stream.size(1);
  TokenRows chosen = {inputs.input, {}, {}};
  std::vector<float> stream;
  for (const TokenId token : tokens) {
    const std::int64_t row = inputs.row_of(token);
    if (row < 0) continue;
    chosen.tokens.push_back(token);
    stream.insert(stream.end(), inputs.stream.f32() + row * d, inputs.stream.f32() + (row + 1) * d);
  }
  if (chosen.tokens.empty()) return {};
  chosen.stream = Tensor::from({static_cast<std::int64_t>(chosen.tokens.size()), d}, stream);
  return written_for_values(model, product(normalised(model, chosen), head.v), head.o,
                            chosen.tokens);
}

std::vector<WrittenForToken> written_for_values(const Model& model, const Tensor& values,
                                                const Tensor& o,
                                                const std::vector<TokenId>& tokens) {
  const Tensor unembedding = folded_unembedding(model);
  const std::int64_t V = unembedding.size(0), n = values.size(0);
  const Tensor logits = product(product(values, o), unembedding, {.transpose_b = true});  // [n, V]
  std::vector<WrittenForToken> written(static_cast<std::size_t>(n));
  parallel_for(n, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::span<const float> row(logits.f32() + i * V, static_cast<std::size_t>(V));
      WrittenForToken& one = written[static_cast<std::size_t>(i)];
      one.token = tokens[static_cast<std::size_t>(i)];
      const float own = row[static_cast<std::size_t>(one.token)];
      const double mean = std::accumulate(row.begin(), row.end(), 0.0) / static_cast<double>(V);
      one.own_effect = static_cast<double>(own) - mean;
      one.own_rank = std::count_if(row.begin(), row.end(), [&](float x) { return x > own; });
      one.own_rank_below = std::count_if(row.begin(), row.end(), [&](float x) { return x < own; });
      one.raised = static_cast<TokenId>(std::max_element(row.begin(), row.end()) - row.begin());
      one.lowered = static_cast<TokenId>(std::min_element(row.begin(), row.end()) - row.begin());
    }
  });
  return written;
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
