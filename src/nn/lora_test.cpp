#include <cmath>

#include "filigree/layers.h"
#include "support/check_op.h"
#include "support/errors.h"

namespace filigree {
namespace {

// Both layouts, whole and as part of a fused matrix.
struct Layout {
  bool out_in;
  std::int64_t all, begin, count;
};
const Layout kLayouts[] = {
    {false, 9, 0, -1}, {false, 24, 8, 9}, {true, 9, 0, -1}, {true, 24, 8, 9}};

constexpr std::int64_t kIn = 12, kOut = 9, kRank = 4;
const LoraOptions kOptions = {.rank = kRank, .alpha = 6.0};

LinearWeight layer(const Layout& layout, std::uint64_t seed = 2) {
  const Shape shape = layout.out_in ? Shape{layout.all, kIn} : Shape{kIn, layout.all};
  return {random_tensor(shape, seed), random_tensor({layout.all}, 3), layout.out_in, layout.begin,
          layout.count};
}

TEST(Lora, AtTheStartTheLayerIsExactlyTheSame) {
  const Tensor x = random_tensor({5, 7, kIn}, 1, -2, 2);
  for (const Layout& layout : kLayouts) {
    const LinearWeight w = layer(layout);
    const LoraAdapter adapter = make_lora(w, kOptions, 1, 2);
    const Tensor plain = linear(x, w).value(), adapted = linear(x, w, adapter).value();
    EXPECT_EQ(adapted.shape(), Shape({5, 7, kOut}));
    EXPECT_TRUE(std::equal(plain.values().begin(), plain.values().end(), adapted.values().begin()));
  }
}

TEST(Lora, StartsAsTheAuthorsDid) {
  const LinearWeight w{Tensor::zeros({400, 60}), Variable()};
  const LoraAdapter adapter = make_lora(w, {.rank = 50, .alpha = 25.0}, 1, 2);
  EXPECT_EQ(adapter.scale, 0.5f);
  EXPECT_EQ(adapter.down.shape(), Shape({400, 50}));
  EXPECT_EQ(adapter.up.shape(), Shape({50, 60}));
  for (const float value : adapter.up.value().values()) ASSERT_EQ(value, 0.0f);
  double mean = 0.0, variance = 0.0;
  for (const float value : adapter.down.value().values()) {
    ASSERT_LE(std::abs(value), 0.05f);  // 1 / sqrt(400)
    mean += static_cast<double>(value) / 20000.0;
    variance += static_cast<double>(value * value) / 20000.0;
  }
  EXPECT_NEAR(mean, 0.0, 1e-3);
  EXPECT_NEAR(variance, 0.05 * 0.05 / 3.0, 2e-5);

  const auto down = [&](std::uint64_t seed, std::uint64_t stream) {
    return to_doubles(make_lora(w, {.rank = 50}, seed, stream).down.value());
  };
  EXPECT_EQ(down(1, 2), to_doubles(adapter.down.value()));
  EXPECT_NE(down(1, 3), to_doubles(adapter.down.value()));
  EXPECT_NE(down(2, 2), to_doubles(adapter.down.value()));
}

TEST(Lora, ValuesAndGradients) {
  const auto at = [](const Doubles& values, std::int64_t i) {
    return values[static_cast<std::size_t>(i)];
  };
  const std::int64_t rows = 11;
  for (const Layout& layout : kLayouts)
    check_op(
        {.name = fmt::format("lora, out_in {}, outputs from {}", layout.out_in, layout.begin),
         .inputs = {random_tensor({rows, kIn}, 1, -2, 2), layer(layout).weight.value(),
                    random_tensor({kIn, kRank}, 4), random_tensor({kRank, kOut}, 5)},
         .op =
             [&](const std::vector<Variable>& x) {
               const LinearWeight w{x[1], Variable(), layout.out_in, layout.begin, layout.count};
               return linear(x[0], w, LoraAdapter{x[2], x[3], 1.5f});
             },
         .reference =
             [&](const std::vector<Doubles>& x) {
               Doubles y;
               for (std::int64_t r = 0; r < rows; ++r)
                 for (std::int64_t o = 0; o < kOut; ++o) {
                   const std::int64_t column = layout.begin + o;
                   double total = 0.0;
                   for (std::int64_t i = 0; i < kIn; ++i) {
                     double weight =
                         at(x[1], layout.out_in ? column * kIn + i : i * layout.all + column);
                     for (std::int64_t k = 0; k < kRank; ++k)
                       weight += 1.5 * at(x[2], i * kRank + k) * at(x[3], k * kOut + o);
                     total += at(x[0], r * kIn + i) * weight;
                   }
                   y.push_back(total);
                 }
               return y;
             },
         .tolerance = 3e-6});
}

TEST(Lora, MergedTheLayerComputesTheSameAndItsNeighboursAreUntouched) {
  const Tensor x = random_tensor({30, kIn}, 1, -2, 2);
  for (const Layout& layout : kLayouts) {
    LinearWeight w = layer(layout);
    const Tensor before = w.weight.value().clone();
    // As it lies in a mapped file.
    auto owner = std::make_shared<Tensor>(before.clone());
    w.weight.mutable_value() =
        Tensor::borrow(before.shape(), DType::kF32, owner, std::as_const(*owner).raw());
    LoraAdapter adapter = make_lora(w, kOptions, 1, 2);
    adapter.up.mutable_value() = random_tensor({kRank, kOut}, 6);
    const Tensor adapted = linear(x, w, adapter).value();
    EXPECT_GT(relative_error(linear(x, w).value().values(), to_doubles(adapted)), 1e-2);
    merge_lora(w, adapter);
    EXPECT_LT(relative_error(linear(x, w).value().values(), to_doubles(adapted)), 2e-6);
    EXPECT_EQ(to_doubles(*owner), to_doubles(before));
    std::int64_t changed = 0;
    for (std::int64_t i = 0; i < before.elements(); ++i) {
      if (before.f32()[i] == w.weight.value().f32()[i]) continue;
      ++changed;
      const std::int64_t column = layout.out_in ? i / kIn : i % layout.all;
      EXPECT_TRUE(column >= layout.begin && column < layout.begin + kOut) << column;
    }
    EXPECT_GT(changed, kIn * kOut * 9 / 10);
  }
}

TEST(Lora, MergingLeavesTensorsThatShareTheMemoryAlone) {
  const LinearWeight w = layer(kLayouts[0]);
  const Tensor shared = w.weight.value();
  const Doubles before = to_doubles(shared);
  LoraAdapter adapter = make_lora(w, kOptions, 1, 2);
  adapter.up.mutable_value() = random_tensor({kRank, kOut}, 6);
  merge_lora(w, adapter);
  EXPECT_EQ(to_doubles(shared), before);
  EXPECT_NE(to_doubles(w.weight.value()), before);
}

TEST(Lora, RefusesOptionsThatMakeNoSense) {
  const auto message = [](const LoraOptions& options) {
    return error_of([&] { make_lora(layer(kLayouts[1]), options, 1, 2); });
  };
  const auto has = [](const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
  };
  EXPECT_TRUE(has(message({.rank = 0}), "rank 0"));
  EXPECT_TRUE(has(message({.rank = -3}), "rank -3"));
  EXPECT_TRUE(has(message({.rank = 10}), "rank 10 is above 9")) << message({.rank = 10});
  EXPECT_EQ(message({.rank = 9}), "no error");
  for (const double alpha : {0.0, -1.0, std::nan(""), static_cast<double>(INFINITY)})
    EXPECT_TRUE(has(message({.rank = 2, .alpha = alpha}), "alpha")) << alpha;
}

}  // namespace
}  // namespace filigree
