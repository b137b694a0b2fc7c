#include "filigree/error.h"
#include "filigree/ops.h"
#include "ops/matmul/gemm.h"
#include "support/check_op.h"

namespace filigree {
namespace {

struct Extents {
  std::int64_t M, N, K;
};

// Every path of the kernel (few rows, few rows transposed, one row, packed), whole and partial
// tiles, one and several slices of K.
const Extents kExtents[] = {{1, 1, 1},     {1, 50, 33},    {3, 7, 5},      {8, 48, 32},
                            {8, 100, 70},  {7, 131, 600},  {16, 200, 65},  {48, 192, 17},
                            {49, 195, 31}, {65, 97, 1025}, {130, 47, 520}, {2049, 9, 8}};

Doubles product(const Doubles& a, const Doubles& b, Extents e, bool ta, bool tb) {
  Doubles c(static_cast<std::size_t>(e.M * e.N));
  for (std::int64_t m = 0; m < e.M; ++m)
    for (std::int64_t n = 0; n < e.N; ++n) {
      double total = 0.0;
      for (std::int64_t k = 0; k < e.K; ++k)
        total += a[static_cast<std::size_t>(ta ? k * e.M + m : m * e.K + k)] *
                 b[static_cast<std::size_t>(tb ? n * e.K + k : k * e.N + n)];
      c[static_cast<std::size_t>(m * e.N + n)] = total;
    }
  return c;
}

TEST(Gemm, AgreesWithDoublePrecisionForEveryLayoutAndPath) {
  const EveryLevel levels;
  for (SimdLevel level : EveryLevel::available())
    for (const Extents& e : kExtents)
      for (const bool ta : {false, true})
        for (const bool tb : {false, true}) {
          set_simd_level(level);
          const Tensor a = random_tensor({e.M * e.K}, 1), b = random_tensor({e.K * e.N}, 2);
          Tensor c = Tensor::full({e.M * e.N}, 0.5f);
          const Tensor bias = random_tensor({e.N}, 3);
          GemmArgs args;
          args.M = e.M, args.N = e.N, args.K = e.K;
          args.A = a.f32(), args.a_row = ta ? 1 : e.K, args.a_col = ta ? e.M : 1;
          args.B = b.f32(), args.b_row = tb ? 1 : e.N, args.b_col = tb ? e.K : 1;
          args.C = c.mutable_f32(), args.c_row = e.N;
          args.accumulate = true;
          args.bias = bias.f32();
          cpu::gemm(args);
          Doubles expected = product(to_doubles(a), to_doubles(b), e, ta, tb);
          for (std::size_t i = 0; i < expected.size(); ++i)
            expected[i] += 0.5 + static_cast<double>(bias.f32()[i % static_cast<std::size_t>(e.N)]);
          EXPECT_LT(relative_error(c.values(), expected), 3e-6)
              << name_of(level) << " " << e.M << "x" << e.N << "x" << e.K << " " << ta << tb;
        }
}

// Texts that are typed are computed token by token: the paths for a row or a few must sum up in the
// order of those for more.
TEST(Gemm, FewRowsHaveTheBitsOfMore) {
  const EveryLevel levels;
  for (SimdLevel level : EveryLevel::available())
    for (const bool transposed : {false, true})
      for (const auto& [N, K] :
           {std::pair<std::int64_t, std::int64_t>{96, 64}, {384, 150}, {1600, 384}, {104, 71}}) {
        set_simd_level(level);
        constexpr std::int64_t kRows = 8;
        const Tensor a = random_tensor({kRows, K}, 1), b = random_tensor({K, N}, 2),
                     bias = random_tensor({N}, 3);
        const auto first_rows = [&, N = N, K = K](std::int64_t M) {
          Tensor c = Tensor::full({M, N}, 0.25f);
          GemmArgs args;
          args.M = M, args.N = N, args.K = K;
          args.A = a.f32(), args.a_row = K;
          args.B = b.f32(), args.b_row = transposed ? 1 : N, args.b_col = transposed ? K : 1;
          args.C = c.mutable_f32(), args.c_row = N;
          args.accumulate = true;
          args.bias = bias.f32();
          args.epilogue = GemmEpilogue::kActivation;
          args.activation = Activation::kGeluNew;
          cpu::gemm(args);
          return std::vector<float>(c.values().begin(), c.values().begin() + N);
        };
        const std::vector<float> wanted = first_rows(kRows);
        for (const std::int64_t M : {1, 2, 3, 4}) {
          if (transposed && M == 1) continue;  // a dot product, with several sums
          EXPECT_EQ(first_rows(M), wanted) << name_of(level) << " " << M << " " << N << "x" << K;
        }
      }
}

TEST(Gemm, WritesOnlyItsOwnColumnsOfAWiderMatrix) {
  for (const std::int64_t M : {1, 5, 60}) {
    const Tensor a = random_tensor({M, 10}, 1), b = random_tensor({10, 50}, 2);
    Tensor c = Tensor::full({M, 70}, -7.0f);
    GemmArgs args;
    args.M = M, args.N = 50, args.K = 10;
    args.A = a.f32(), args.a_row = 10;
    args.B = b.f32(), args.b_row = 50;
    args.C = c.mutable_f32() + 10, args.c_row = 70;
    cpu::gemm(args);
    const Doubles expected = product(to_doubles(a), to_doubles(b), {M, 50, 10}, false, false);
    for (std::int64_t m = 0; m < M; ++m)
      for (std::int64_t n = 0; n < 70; ++n) {
        const double value =
            n < 10 || n >= 60 ? -7.0 : expected[static_cast<std::size_t>(m * 50 + n - 10)];
        EXPECT_NEAR(static_cast<double>(c.f32()[m * 70 + n]), value, 1e-5) << m << " " << n;
      }
  }
}

TEST(Gemm, SmallProductsInsideParallelWorkStayCorrect) {
  // Each job multiplies on its own thread while others do the same.
  std::vector<Tensor> results(64);
  const Tensor a = random_tensor({33, 40}, 1), b = random_tensor({40, 70}, 2);
  parallel_for(64, 1, [&](std::int64_t i, std::int64_t) {
    results[static_cast<std::size_t>(i)] = matmul(a, b).value();
  });
  const Doubles expected = product(to_doubles(a), to_doubles(b), {33, 70, 40}, false, false);
  for (const Tensor& result : results) EXPECT_LT(relative_error(result.values(), expected), 2e-6);
}

TEST(Matmul, ValuesAndGradients) {
  for (const Extents& e : {Extents{3, 7, 5}, Extents{17, 50, 33}, Extents{70, 9, 20}})
    for (const bool ta : {false, true})
      for (const bool tb : {false, true})
        check_op(
            {.name = fmt::format("matmul {}x{}x{} {}{}", e.M, e.N, e.K, ta, tb),
             .inputs = {random_tensor(ta ? Shape{e.K, e.M} : Shape{e.M, e.K}, 1),
                        random_tensor(tb ? Shape{e.N, e.K} : Shape{e.K, e.N}, 2)},
             .op =
                 [=](const std::vector<Variable>& x) {
                   return matmul(x[0], x[1], {ta, tb});
                 },
             .reference =
                 [=](const std::vector<Doubles>& x) { return product(x[0], x[1], e, ta, tb); }});
}

TEST(Matmul, BatchesAndASharedFactor) {
  const Extents e{4, 6, 5};
  const auto batched = [=](const std::vector<Doubles>& x, bool shared) {
    Doubles all;
    for (std::ptrdiff_t i = 0; i < 6; ++i) {
      const Doubles a(x[0].begin() + i * 20, x[0].begin() + (i + 1) * 20);
      const std::ptrdiff_t j = shared ? 0 : i;
      const Doubles b(x[1].begin() + j * 30, x[1].begin() + (j + 1) * 30);
      const Doubles c = product(a, b, e, false, false);
      all.insert(all.end(), c.begin(), c.end());
    }
    return all;
  };
  check_op({.name = "batched matmul",
            .inputs = {random_tensor({2, 3, 4, 5}, 1), random_tensor({2, 3, 5, 6}, 2)},
            .op = [](const std::vector<Variable>& x) { return matmul(x[0], x[1]); },
            .reference = [=](const std::vector<Doubles>& x) { return batched(x, false); }});
  check_op({.name = "matmul with a shared factor",
            .inputs = {random_tensor({2, 3, 4, 5}, 1), random_tensor({5, 6}, 2)},
            .op = [](const std::vector<Variable>& x) { return matmul(x[0], x[1]); },
            .reference = [=](const std::vector<Doubles>& x) { return batched(x, true); }});
}

TEST(Matmul, RefusesShapesThatDoNotFit) {
  EXPECT_THROW(matmul(Tensor::zeros({2, 3}), Tensor::zeros({4, 5})), Error);
  EXPECT_THROW(matmul(Tensor::zeros({3}), Tensor::zeros({3, 5})), Error);
  EXPECT_THROW(matmul(Tensor::zeros({2, 2, 3}), Tensor::zeros({3, 3, 5})), Error);
}

}  // namespace
}  // namespace filigree
