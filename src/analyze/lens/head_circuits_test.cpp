// Heads' circuits against d x d and V x V matrices in double precision.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "analyze/circuit/circuit_test_support.h"
#include "analyze/lens/eigenvalues.h"
#include "filigree/error.h"
#include "filigree/lens.h"
#include "support/errors.h"

namespace filigree {
namespace {

// A matrix in double precision, the plain way.
struct Matrix {
  std::size_t rows = 0, columns = 0;
  std::vector<double> values = {};

  double& at(std::size_t i, std::size_t j) { return values[i * columns + j]; }
  double at(std::size_t i, std::size_t j) const { return values[i * columns + j]; }
};

Matrix matrix(const Tensor& tensor) {
  const auto values = tensor.values();
  return {static_cast<std::size_t>(tensor.size(0)),
          static_cast<std::size_t>(tensor.size(1)),
          {values.begin(), values.end()}};
}

Matrix operator*(const Matrix& a, const Matrix& b) {
  EXPECT_EQ(a.columns, b.rows);
  Matrix c = {a.rows, b.columns, std::vector<double>(a.rows * b.columns)};
  for (std::size_t i = 0; i < a.rows; ++i)
    for (std::size_t k = 0; k < a.columns; ++k)
      for (std::size_t j = 0; j < b.columns; ++j) c.at(i, j) += a.at(i, k) * b.at(k, j);
  return c;
}

Matrix transposed(const Matrix& a) {
  Matrix t = {a.columns, a.rows, std::vector<double>(a.values.size())};
  for (std::size_t i = 0; i < a.rows; ++i)
    for (std::size_t j = 0; j < a.columns; ++j) t.at(j, i) = a.at(i, j);
  return t;
}

double norm(const Matrix& a) {
  return std::sqrt(std::inner_product(a.values.begin(), a.values.end(), a.values.begin(), 0.0));
}

Matrix random_matrix(std::size_t rows, std::size_t columns, std::uint64_t seed) {
  Random random(seed);
  Matrix m = {rows, columns, {}};
  for (std::size_t i = 0; i < rows * columns; ++i) m.values.push_back(random.normal());
  return m;
}

Tensor tensor(const Matrix& m) {
  return Tensor::from({static_cast<std::int64_t>(m.rows), static_cast<std::int64_t>(m.columns)},
                      std::vector<float>(m.values.begin(), m.values.end()));
}

// Takes the mean off a row vector, then multiplies by the gain: what a layer norm does up to scale.
Matrix norm_matrix(const std::vector<float>& gain) {
  const std::size_t d = gain.size();
  Matrix m = {d, d, std::vector<double>(d * d)};
  for (std::size_t i = 0; i < d; ++i)
    for (std::size_t j = 0; j < d; ++j)
      m.at(i, j) = ((i == j ? 1.0 : 0.0) - 1.0 / static_cast<double>(d)) * gain[j];
  return m;
}

std::vector<float> gains(std::size_t d, std::uint64_t seed) {
  Random random(seed);
  std::vector<float> gain;
  for (std::size_t i = 0; i < d; ++i)
    gain.push_back(1 + 0.4f * static_cast<float>(random.normal()));
  return gain;
}

void expect_near(const Matrix& actual, const Matrix& expected, double tolerance) {
  ASSERT_EQ(actual.values.size(), expected.values.size());
  for (std::size_t i = 0; i < actual.values.size(); ++i)
    ASSERT_NEAR(actual.values[i], expected.values[i], tolerance) << i;
}

std::unique_ptr<Model> model_with_gains() {
  auto model = small_model(false, 3);
  std::uint64_t seed = 50;
  for (const NamedParameter& named : model->parameters())
    if (named.name.find("ln_") != std::string::npos && named.name.ends_with("weight")) {
      const std::vector<float> gain = gains(24, ++seed);
      std::copy(gain.begin(), gain.end(), named.variable.mutable_value().mutable_f32());
    }
  return model;
}

TEST(Eigenvalues, OfMatricesThatAreKnown) {
  const auto sorted = [](std::vector<std::complex<double>> values) {
    std::sort(values.begin(), values.end(), [](const auto& a, const auto& b) {
      return std::abs(a.real() - b.real()) > 1e-9 ? a.real() < b.real() : a.imag() < b.imag();
    });
    return values;
  };
  EXPECT_TRUE(eigenvalues({}, 0).empty());
  EXPECT_EQ(eigenvalues(std::vector<double>{3}, 1)[0], 3.0);
  // A rotation by 30 degrees times 2.
  const double c = std::sqrt(3.0), s = 1;
  auto values = sorted(eigenvalues(std::vector<double>{c, -s, s, c}, 2));
  EXPECT_NEAR(std::abs(values[0] - std::complex<double>(c, -s)), 0, 1e-12);
  EXPECT_NEAR(std::abs(values[1] - std::complex<double>(c, s)), 0, 1e-12);
  // The companion matrix of (x - 1)(x - 2)(x + 3)(x^2 + 4).
  const std::vector<double> companion = {0, 0,  0, 0, -24, 1, 0, 0, 0, 28, 0, 1, 0,
                                         0, -6, 0, 0, 1,   0, 3, 0, 0, 0,  1, 0};
  values = sorted(eigenvalues(companion, 5));
  const std::vector<std::complex<double>> roots = {-3.0, {0, -2}, {0, 2}, 1.0, 2.0};
  for (std::size_t i = 0; i < roots.size(); ++i)
    EXPECT_NEAR(std::abs(values[i] - roots[i]), 0, 1e-9) << i;
  // A permutation that a shift by its own corner would not move.
  values = eigenvalues(std::vector<double>{0, 0, 1, 1, 0, 0, 0, 1, 0}, 3);
  for (const auto& value : values) EXPECT_NEAR(std::abs(value * value * value - 1.0), 0, 1e-9);
  EXPECT_EQ(eigenvalues(std::vector<double>(9, 0.0), 3).size(), 3u);
  EXPECT_THROW(eigenvalues(std::vector<double>{std::nan("")}, 1), Error);
}

// The sums of the powers of all eigenvalues are the traces of the powers of the matrix.
TEST(Eigenvalues, OfLargeMatricesHaveTheirTraces) {
  const Matrix m = random_matrix(64, 64, 5);
  const auto values = eigenvalues(m.values, 64);
  ASSERT_EQ(values.size(), 64u);
  std::complex<double> sum = 0, squares = 0, cubes = 0;
  for (const auto& value : values)
    sum += value, squares += value * value, cubes += value * value * value;
  const auto trace = [](const Matrix& a) {
    double t = 0;
    for (std::size_t i = 0; i < a.rows; ++i) t += a.at(i, i);
    return t;
  };
  EXPECT_NEAR(std::abs(sum - trace(m)), 0, 1e-9);
  EXPECT_NEAR(std::abs(squares - trace(m * m)), 0, 1e-7);
  EXPECT_NEAR(std::abs(cubes - trace(m * m * m)), 0, 1e-5);
}

// Rows and columns of very different size hide the eigenvalues unless they are balanced first.
TEST(Eigenvalues, OfBadlyScaledMatricesAreTheSame) {
  constexpr std::size_t n = 48;
  const Matrix m = random_matrix(n, n, 9);
  Matrix scaled = m;
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n; ++j)
      scaled.at(i, j) *=
          std::ldexp(1.0, static_cast<int>(i * 7 % 31) - static_cast<int>(j * 7 % 31));
  const auto expected = eigenvalues(m.values, n);
  for (const std::complex<double>& value : eigenvalues(scaled.values, n)) {
    double nearest = std::numeric_limits<double>::infinity();
    for (const auto& other : expected) nearest = std::min(nearest, std::abs(other - value));
    EXPECT_LT(nearest, 1e-9) << value.real() << " + " << value.imag() << "i";
  }
}

TEST(Eigenvalues, PositiveShare) {
  const std::vector<std::complex<double>> values = {2.0, -1.0, {0, 1}, {0, -1}};
  EXPECT_NEAR(positive_share(values), 0.2, 1e-12);
  EXPECT_EQ(positive_share({}), 0);
  EXPECT_EQ(positive_share(std::vector<std::complex<double>>(2, 0.0)), 0);
}

// Six query heads on two key-value heads, matrices stored either way round, no biases, an adapter.
TEST(HeadMatrices, FoldTheNormAndKnowSharedKeyHeads) {
  constexpr std::int64_t d = 10, D = 3;
  const Matrix q = random_matrix(d, 6 * D, 1), k = random_matrix(d, 2 * D, 2),
               v = random_matrix(d, 2 * D, 3), o = random_matrix(6 * D, d, 4);
  AttentionWeights w;
  w.q = {tensor(q), {}};
  w.k = {tensor(transposed(k)), {}, true};
  w.v = {tensor(v), {}};
  w.o = {tensor(transposed(o)), {}, true};
  w.heads = 6, w.key_heads = 2, w.head_width = D;
  const Matrix down = random_matrix(d, 2, 5), up = random_matrix(2, 6 * D, 6);
  w.lora.q = {tensor(down), tensor(up), 0.5f};
  const std::vector<float> gain = gains(d, 9);
  const NormWeights norm_weights = {Tensor::from({d}, gain), {}};
  const auto columns = [&](const Matrix& m, std::size_t first) {
    Matrix part = {m.rows, D, {}};
    for (std::size_t i = 0; i < m.rows; ++i)
      for (std::size_t j = 0; j < D; ++j) part.values.push_back(m.at(i, first + j));
    return part;
  };
  Matrix adapted = q;
  const Matrix added = down * up;
  for (std::size_t i = 0; i < adapted.values.size(); ++i)
    adapted.values[i] += 0.5 * added.values[i];
  for (const std::int64_t head : {0, 2, 3, 5}) {
    SCOPED_TRACE(head);
    const HeadMatrices m = head_matrices(norm_weights, w, head);
    const auto h = static_cast<std::size_t>(head);
    expect_near(matrix(m.q), norm_matrix(gain) * columns(adapted, h * D), 1e-5);
    expect_near(matrix(m.k), norm_matrix(gain) * columns(k, h / 3 * D), 1e-5);
    expect_near(matrix(m.v), norm_matrix(gain) * columns(v, h / 3 * D), 1e-5);
    expect_near(matrix(m.o), transposed(columns(transposed(o), h * D)), 1e-5);
    EXPECT_NEAR(m.scale, 1 / std::sqrt(3.0), 1e-6);
  }
  EXPECT_THROW(head_matrices(norm_weights, w, 6), Error);
}

// What a head reads and writes in a run is what its folded matrices give for the stream, up to the
// norm's scale and the biases, which are zero here.
TEST(HeadMatrices, AgreeWithTaps) {
  const auto model = model_with_gains();
  const std::vector<HeadMatrices> heads = all_head_matrices(*model);
  ASSERT_EQ(heads.size(), 9u);
  const std::vector<TokenId> ids = {4, 11, 29, 7};
  Taps taps;
  for (const char* name :
       {"blocks.1.hook_resid_pre", "blocks.1.ln1.hook_scale", "blocks.1.attn.hook_q",
        "blocks.1.attn.hook_z", "blocks.1.attn.hook_result"})
    taps.observe(name);
  model->forward(Tensor::from_ids({1, 4}, ids), {.taps = &taps});
  const Matrix stream = matrix(taps.value("blocks.1.hook_resid_pre").reshape({4, 24}));
  for (std::size_t h = 0; h < 3; ++h) {
    const HeadMatrices& head = heads[3 + h];
    const Matrix q = stream * matrix(head.q);
    Matrix z = {4, 8, {}};
    for (std::size_t t = 0; t < 4; ++t)
      for (std::size_t i = 0; i < 8; ++i) {
        const std::size_t at = (t * 3 + h) * 8 + i;
        const double scale = taps.value("blocks.1.ln1.hook_scale").f32()[t];
        EXPECT_NEAR(q.at(t, i) / scale, taps.value("blocks.1.attn.hook_q").f32()[at], 1e-4);
        z.values.push_back(taps.value("blocks.1.attn.hook_z").f32()[at]);
      }
    const Matrix written = z * matrix(head.o);
    for (std::size_t t = 0; t < 4; ++t)
      for (std::size_t i = 0; i < 24; ++i)
        EXPECT_NEAR(written.at(t, i),
                    taps.value("blocks.1.attn.hook_result").f32()[(t * 3 + h) * 24 + i], 1e-4);
  }
}

// Of every head, with bare embeddings.
std::vector<HeadCircuitScores> scores_of(const Model& model,
                                         const std::vector<HeadMatrices>& heads) {
  std::vector<std::size_t> all(heads.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  return head_circuit_scores(model, TokenInputs(model, TokenInput::kEmbedding), heads, all);
}

TEST(HeadCircuits, ScoresAreThoseOfTheWholeMatrices) {
  const auto model = model_with_gains();
  const std::vector<HeadMatrices> heads = all_head_matrices(*model);
  const std::vector<HeadCircuitScores> scores = scores_of(*model, heads);
  const Matrix E = matrix(model->weights().token_embedding.value());
  const Matrix U = matrix(folded_unembedding(*model));
  const std::vector<float> gain = [&] {
    const auto values = model->weights().final_norm.weight.value().values();
    return std::vector<float>(values.begin(), values.end());
  }();
  expect_near(U, transposed(norm_matrix(gain) * transposed(E)), 1e-5);
  for (std::size_t h = 0; h < heads.size(); ++h) {
    const Matrix q = matrix(heads[h].q), k = matrix(heads[h].k), v = matrix(heads[h].v),
                 o = matrix(heads[h].o);
    // V x V, of rank D: the other eigenvalues are zero but for rounding.
    const Matrix ov = E * v * o * transposed(U), qk = E * q * transposed(k) * transposed(E);
    EXPECT_NEAR(scores[h].copying, positive_share(eigenvalues(ov.values, ov.rows)), 1e-3) << h;
    EXPECT_NEAR(scores[h].matching, positive_share(eigenvalues(qk.values, qk.rows)), 1e-3) << h;
  }
}

// The same with what the MLP of layer 0 makes of embeddings, of some heads, and over the tokens
// that have an input alone.
TEST(HeadCircuits, ScoresAreOverTheInputsOfTheHeadsOwnLayer) {
  const auto model = model_with_gains();
  const std::vector<HeadMatrices> heads = all_head_matrices(*model);
  const std::vector<TokenId> some = {3, 8, 21, 22, 30};
  const Matrix all_u = matrix(folded_unembedding(*model));
  for (const bool whole : {true, false}) {
    const TokenInputs inputs(*model, TokenInput::kFirstMlp, whole ? std::vector<TokenId>() : some);
    const auto scores = head_circuit_scores(*model, inputs, heads, {1, 5, 8});
    ASSERT_EQ(scores.size(), 3u);
    for (std::size_t i = 0; i < 3; ++i) {
      const std::size_t h = std::array{1, 5, 8}[i];
      const TokenRows& rows = inputs.of_layer(static_cast<std::int64_t>(h / 3));
      EXPECT_EQ(rows.input, h < 3 ? TokenInput::kEmbedding : TokenInput::kFirstMlp);
      const Matrix E = matrix(rows.stream);
      Matrix U = {rows.tokens.size(), all_u.columns, {}};
      for (const TokenId t : rows.tokens)
        for (std::size_t c = 0; c < U.columns; ++c)
          U.values.push_back(all_u.at(static_cast<std::size_t>(t), c));
      const Matrix ov = E * matrix(heads[h].v) * matrix(heads[h].o) * transposed(U),
                   qk = E * matrix(heads[h].q) * transposed(matrix(heads[h].k)) * transposed(E);
      EXPECT_NEAR(scores[i].copying, positive_share(eigenvalues(ov.values, ov.rows)), 1e-3) << h;
      EXPECT_NEAR(scores[i].matching, positive_share(eigenvalues(qk.values, qk.rows)), 1e-3) << h;
    }
  }
}

// A head that writes back what it reads raises the tokens it reads.
TEST(HeadCircuits, ACopyingHeadHasTheScoreOne) {
  const auto model = small_model(false, 1);
  std::vector<HeadMatrices> heads = all_head_matrices(*model);
  const Matrix o = matrix(heads[0].o);
  // V = S^T O^T with S = U E makes O S V = (O S)(O S)^T, which has positive eigenvalues only.
  const Matrix S = transposed(matrix(folded_unembedding(*model))) *
                   matrix(model->weights().token_embedding.value());
  heads[0].v = tensor(transposed(S) * transposed(o));
  EXPECT_NEAR(scores_of(*model, heads)[0].copying, 1, 1e-5);
  for (float& value :
       std::span(heads[0].v.mutable_f32(), static_cast<std::size_t>(heads[0].v.elements())))
    value = -value;
  EXPECT_NEAR(scores_of(*model, heads)[0].copying, -1, 1e-5);
}

TEST(HeadCircuits, TopPairsAreTheLargestOfAll) {
  const auto model = model_with_gains();
  const HeadMatrices head = all_head_matrices(*model)[4];
  const TokenInputs token_inputs(*model, TokenInput::kEmbedding);
  const TokenRows& inputs = token_inputs.of_layer(1);
  const Matrix E = matrix(normalised(*model, inputs));
  const Matrix U = matrix(folded_unembedding(*model));
  for (const bool ov : {true, false}) {
    Matrix full = ov ? E * matrix(head.v) * matrix(head.o) * transposed(U)
                     : E * matrix(head.q) * transposed(matrix(head.k)) * transposed(E);
    if (!ov)
      for (double& value : full.values) value *= head.scale;
    for (const auto& [from, lowest] : {std::pair<std::vector<TokenId>, bool>{{}, false},
                                       {{7, 3}, false},
                                       {{}, true},
                                       {{7, 3}, true}}) {
      PairOptions options;
      options.top = 9, options.from = from, options.lowest = lowest;
      const std::vector<TokenPair> pairs = ov ? top_ov_pairs(*model, inputs, head, options)
                                              : top_qk_pairs(*model, inputs, head, options);
      std::vector<double> expected;
      for (std::size_t i = 0; i < full.rows; ++i)
        if (from.empty() || std::count(from.begin(), from.end(), static_cast<TokenId>(i)) > 0)
          for (std::size_t j = 0; j < full.columns; ++j) expected.push_back(full.at(i, j));
      std::sort(expected.begin(), expected.end(), std::greater<>());
      if (lowest) std::reverse(expected.begin(), expected.end());
      ASSERT_EQ(pairs.size(), 9u);
      for (std::size_t i = 0; i < pairs.size(); ++i) {
        EXPECT_NEAR(pairs[i].score, expected[i], 1e-4);
        EXPECT_NEAR(
            pairs[i].score,
            full.at(static_cast<std::size_t>(pairs[i].from), static_cast<std::size_t>(pairs[i].to)),
            1e-4);
      }
    }
  }
  // One of each token, and by tokens.
  const Matrix ov = E * matrix(head.v) * matrix(head.o) * transposed(U);
  std::vector<double> best, worst;
  for (std::size_t i = 0; i < ov.rows; ++i) {
    std::vector<double> row;
    for (std::size_t j = 0; j < ov.columns; ++j) row.push_back(ov.at(i, j));
    best.push_back(*std::max_element(row.begin(), row.end()));
    worst.push_back(*std::min_element(row.begin(), row.end()));
  }
  std::sort(best.begin(), best.end(), std::greater<>());
  std::sort(worst.begin(), worst.end());
  for (const bool lowest : {false, true}) {
    const std::vector<TokenPair> pairs =
        top_ov_pairs(*model, inputs, head, {.top = 5, .lowest = lowest, .one_each = true});
    ASSERT_EQ(pairs.size(), 5u);
    for (std::size_t i = 0; i < 5; ++i)
      EXPECT_NEAR(pairs[i].score, (lowest ? worst : best)[i], 1e-4);
  }
  const auto keys = top_keys_of(*model, inputs, head, {.top = 2, .from = {5, 1}});
  ASSERT_EQ(keys.size(), 2u);
  for (std::size_t i = 0; i < 2; ++i) {
    const std::vector<TokenPair> alone =
        top_qk_pairs(*model, inputs, head, {.top = 2, .from = {i == 0 ? 5 : 1}});
    ASSERT_EQ(keys[i].size(), 2u);
    EXPECT_EQ(keys[i][1].to, alone[1].to);
    EXPECT_NEAR(keys[i][1].score, alone[1].score, 1e-5);
  }
  EXPECT_TRUE(top_keys_of(*model, inputs, head, {}).empty());
  PairOptions options;
  options.from = {kTestVocabulary};
  EXPECT_THROW(top_ov_pairs(*model, inputs, head, options), Error);
  const TokenInputs few(*model, TokenInput::kEmbedding, {1, 2});
  options.from = {3};
  EXPECT_THAT(error_of([&] { top_qk_pairs(*model, few.of_layer(0), head, options); }),
              ::testing::HasSubstr("no input of token 3 (token embeddings)"));
  options.from = {1}, options.top = 0;
  EXPECT_TRUE(top_ov_pairs(*model, inputs, head, options).empty());
}

TEST(HeadCircuits, WhatIsWrittenForATokenIsItsRowOfTheMatrix) {
  const auto model = model_with_gains();
  const HeadMatrices head = all_head_matrices(*model)[4];
  const TokenInputs token_inputs(*model, TokenInput::kFirstMlp);
  const TokenRows& inputs = token_inputs.of_layer(1);
  const Matrix full = matrix(normalised(*model, inputs)) * matrix(head.v) * matrix(head.o) *
                      transposed(matrix(folded_unembedding(*model)));
  const auto written = written_for(*model, inputs, head, {9, 2, 17});
  ASSERT_EQ(written.size(), 3u);
  for (const WrittenForToken& one : written) {
    const auto row = static_cast<std::size_t>(one.token);
    double mean = 0;
    std::size_t above = 0, below = 0, most = 0, least = 0;
    const double own = full.at(row, row);
    for (std::size_t v = 0; v < full.columns; ++v) {
      mean += full.at(row, v) / static_cast<double>(full.columns);
      above += full.at(row, v) > own ? 1 : 0, below += full.at(row, v) < own ? 1 : 0;
      if (full.at(row, v) > full.at(row, most)) most = v;
      if (full.at(row, v) < full.at(row, least)) least = v;
    }
    EXPECT_NEAR(one.own_effect, own - mean, 1e-4);
    EXPECT_EQ(static_cast<std::size_t>(one.own_rank), above);
    EXPECT_EQ(static_cast<std::size_t>(one.own_rank_below), below);
    EXPECT_EQ(static_cast<std::size_t>(one.raised), most);
    EXPECT_EQ(static_cast<std::size_t>(one.lowered), least);
  }
  EXPECT_EQ(written[0].token, 9);
  EXPECT_TRUE(written_for(*model, inputs, head, {}).empty());
}

TEST(Composition, ScoresAreThoseOfWholeMatrices) {
  const auto model = model_with_gains();
  std::vector<HeadMatrices> heads = all_head_matrices(*model);
  // A dead head composes with nothing; one whose keys are of lower rank is no trouble.
  heads[1].o = Tensor::zeros(heads[1].o.shape());
  for (std::int64_t i = 0; i < 24; ++i) heads[5].k.mutable_f32()[i * 8] = 0;
  const CompositionScores scores = composition_scores(*model, heads);
  const auto at = [&](std::size_t h) {
    struct Whole {
      Matrix ov, qk;
    };
    return Whole{matrix(heads[h].v) * matrix(heads[h].o),
                 matrix(heads[h].q) * transposed(matrix(heads[h].k))};
  };
  for (std::size_t a = 0; a < 9; ++a)
    for (std::size_t b = 0; b < 9; ++b) {
      const auto earlier = at(a), later = at(b);
      for (std::size_t c = 0; c < kCompositions; ++c) {
        const Matrix& read = c == 2 ? later.ov : later.qk;
        const Matrix joint = earlier.ov * (c == 1 ? transposed(read) : read);
        const bool possible = a / 3 < b / 3 && norm(earlier.ov) > 0 && norm(read) > 0;
        const double expected = possible ? norm(joint) / norm(earlier.ov) / norm(read) : 0.0;
        EXPECT_NEAR(scores.at(static_cast<Composition>(c), static_cast<std::int64_t>(a),
                              static_cast<std::int64_t>(b)),
                    expected, 1e-5)
            << a << " " << b << " " << c;
      }
    }
}

// For large ranks the expectation is 1 / sqrt(d); for rank 1 it is that of the cosine of two random
// directions, sqrt(2 / (pi d)).
TEST(Composition, KnowsWhatRandomMatricesGive) {
  EXPECT_NEAR(random_composition(256, 32), 1.0 / 16, 0.002);
  EXPECT_NEAR(random_composition(100, 1), std::sqrt(2 / (3.14159265 * 100)), 0.04);
  EXPECT_EQ(random_composition(64, 8), random_composition(64, 8));
}

}  // namespace
}  // namespace filigree
