// What heads read of earlier heads, against runs with one head's output taken out of the stream.
#include "analyze/statistics/cross_layer.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "analyze/circuit/circuit_test_support.h"
#include "filigree/lens.h"
#include "filigree/maps.h"

namespace filigree {
namespace {

class CrossLayer : public testing::TestWithParam<SmallKind> {};

// The parts of the stream before layer 2, read along each matrix, sum to what is read; and the
// share of a head is that of its part.
TEST_P(CrossLayer, SharesAreThoseOfThePartsOfTheStream) {
  const auto model = small_model(GetParam());
  const std::int64_t d = model->config().width, H = model->config().heads;
  const std::vector<Prompt> prompts = {{{3, 17, 5, 30, 8}}, {{1, 2, 3}}};
  const std::vector<HeadId> heads = {{0, 1}, {2, 1}};
  std::vector<ReadsOfHeads> found;
  find_cross_layer_reads(
      *model, prompts, heads, nullptr,
      [&](std::size_t, std::size_t, const ReadsOfHeads& reads) { found.push_back(reads); });
  ASSERT_EQ(found.size(), 4u);
  EXPECT_TRUE(found[0].shares[0].empty());  // a head of layer 0
  EXPECT_EQ(found[0].whole()[1], 0.0);
  const std::vector<HeadMatrices> matrices = all_head_matrices(*model);
  for (std::size_t p = 0; p < prompts.size(); ++p) {
    const auto T = static_cast<std::int64_t>(prompts[p].ids.size());
    Taps taps;
    taps.observe("blocks.2.hook_resid_pre");
    const bool normed = model->weights().layers[2].norm.on();
    if (normed) taps.observe("blocks.2.ln1.hook_scale");
    for (int l : {0, 1}) {
      taps.observe(fmt::format("blocks.{}.attn.hook_result", l));
      if (normed_behind(GetParam())) taps.observe(fmt::format("blocks.{}.ln1_post.hook_scale", l));
    }
    model->forward(Tensor::from_ids({1, T}, prompts[p].ids), {.taps = &taps});
    const Tensor stream = taps.value("blocks.2.hook_resid_pre");
    const HeadMatrices& head = matrices[static_cast<std::size_t>(2 * H + 1)];
    for (std::size_t kind = 0; kind < 3; ++kind) {
      const Tensor& w = *std::array{&head.q, &head.k, &head.v}[kind];
      const std::vector<double>& shares = found[p * 2 + 1].shares[kind];
      ASSERT_EQ(shares.size(), static_cast<std::size_t>(2 * H));
      for (std::int64_t a = 0; a < 2 * H; ++a) {
        double part = 0, whole = 0;
        for (std::int64_t t = 0; t < T; ++t) {
          const double scale =
              normed ? static_cast<double>(taps.value("blocks.2.ln1.hook_scale").f32()[t]) : 1.0;
          const float* written =
              taps.value(fmt::format("blocks.{}.attn.hook_result", a / H)).f32() +
              (t * H + a % H) * d;
          for (std::int64_t i = 0; i < w.size(1); ++i) {
            double own = 0, all = 0;
            for (std::int64_t c = 0; c < d; ++c) {
              double value = written[c];
              if (normed_behind(GetParam())) {
                const auto layer = static_cast<std::size_t>(a / H);
                value *= static_cast<double>(model->weights()
                                                 .layers[layer]
                                                 .attention_post_norm.gain()
                                                 .value()
                                                 .f32()[c]) /
                         taps.value(fmt::format("blocks.{}.ln1_post.hook_scale", a / H)).f32()[t];
              }
              own += value * w.f32()[c * w.size(1) + i];
              all += static_cast<double>(stream.f32()[t * d + c]) * w.f32()[c * w.size(1) + i];
            }
            part += own * all / scale / scale, whole += all * all / scale / scale;
          }
        }
        EXPECT_NEAR(shares[static_cast<std::size_t>(a)], part / whole, 1e-3) << a << " " << kind;
      }
    }
  }
}

TEST(ReadsOfHeads, PairsAreThoseFromTheThresholdOn) {
  ReadsOfHeads reads;
  reads.shares[0] = {0.04, 0.05, -0.3, 0.0};
  EXPECT_EQ(reads.pairs()[0], 2.0);
  EXPECT_NEAR(reads.whole()[0], -0.21, 1e-12);
  EXPECT_EQ(reads.pairs()[1], 0.0);
}

INSTANTIATE_TEST_SUITE_P(All, CrossLayer,
                         testing::Values(SmallKind::kDense, SmallKind::kGated, SmallKind::kLlama,
                                         SmallKind::kOlmo2, SmallKind::kGemma2),
                         [](const auto& one) { return text_of(one.param); });

}  // namespace
}  // namespace filigree
