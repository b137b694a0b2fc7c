// Gated attention against PyTorch in double precision, forward and every gradient, with the noise
// given; and ordinary attention where the goldens have all gates open.
#include <nlohmann/json.hpp>

#include "filigree/ops.h"
#include "json/json.h"
#include "support/check_op.h"
#include "support/golden.h"

namespace filigree {
namespace {

class AttentionGolden : public testing::TestWithParam<int> {
 protected:
  AttentionGolden()
      : file_(SafetensorsFile::open(golden_folder() / "gated_attention.safetensors")),
        parameters_(read_json(golden_folder() /
                              "gated_attention.json")[static_cast<std::size_t>(GetParam())]) {}

  Tensor load(const std::string& name) const {
    return golden_tensor(file_, std::to_string(GetParam()) + "." + name);
  }
  // Stored as [B, H, T, D]; the operations take [B, T, H, D].
  Tensor by_position(const std::string& name) const { return transpose(load(name), 1, 2).value(); }

  SafetensorsFile file_;
  nlohmann::json parameters_;
};

TEST_P(AttentionGolden, GatedForwardAndEveryGradient) {
  const EveryLevel levels;
  for (SimdLevel level : EveryLevel::available()) {
    set_simd_level(level);
    SCOPED_TRACE(name_of(level));
    const Variable q(by_position("q"), true), k(by_position("k"), true), v(by_position("v"), true);
    GatedAttentionOptions options;
    options.gate.bias = Tensor::full({1}, parameters_["bias"].get<float>());
    options.gate.sample = parameters_["sample"].get<bool>();
    if (options.gate.sample) options.gate.uniform = load("u");
    Tensor mask;
    options.mask = &mask;
    Tape tape;
    const GatedAttention result = gated_attention(q, k, v, options);
    EXPECT_LT(relative_error(result.z.value().values(), to_doubles(by_position("y"))), 1e-5);
    EXPECT_LT(relative_error(result.expected.value().values(), to_doubles(load("p"))), 1e-5);
    // The stored gates are those of the causal edges.
    const Tensor gate = load("gate");
    const std::int64_t T = gate.size(3);
    for (std::int64_t i = 0; i < gate.elements(); ++i)
      if (i % T <= i / T % T) {
        ASSERT_EQ(mask.f32()[i], gate.f32()[i]) << "edge " << i;
      }
    // One number whose gradient is the stored pair of upstream gradients.
    const Variable objective = add(sum_all(mul(result.z, by_position("grad_y"))),
                                   sum_all(mul(result.expected, load("grad_p"))));
    tape.backward(objective);
    EXPECT_LT(relative_error(q.grad().values(), to_doubles(by_position("grad_q"))), 5e-5);
    EXPECT_LT(relative_error(k.grad().values(), to_doubles(by_position("grad_k"))), 5e-5);
    EXPECT_LT(relative_error(v.grad().values(), to_doubles(by_position("grad_v"))), 5e-5);
  }
}

// The row log-sum-exp is over all causal keys, and a row whose gates are all open has the output of
// ordinary attention.
TEST_P(AttentionGolden, OrdinaryAttentionWhereTheGatesAreOpen) {
  Tensor lse;
  const Tensor z =
      attention(by_position("q"), by_position("k"), by_position("v"), {.log_sum_exp = &lse})
          .value();
  EXPECT_LT(relative_error(lse.values(), to_doubles(load("lse"))), 1e-5);
  const Tensor gate = load("gate"), y = by_position("y");
  const std::int64_t B = z.size(0), T = z.size(1), H = z.size(2), D = z.size(3);
  for (std::int64_t b = 0; b < B; ++b)
    for (std::int64_t h = 0; h < H; ++h)
      for (std::int64_t t = 0; t < T; ++t) {
        bool open = true;
        for (std::int64_t j = 0; j <= t; ++j)
          open = open && gate.f32()[((b * H + h) * T + t) * T + j] == 1.0f;
        if (!open) continue;
        for (std::int64_t d = 0; d < D; ++d) {
          const std::int64_t at = ((b * T + t) * H + h) * D + d;
          EXPECT_NEAR(z.f32()[at], y.f32()[at], 2e-5) << "row " << t;
        }
      }
}

INSTANTIATE_TEST_SUITE_P(Cases, AttentionGolden, testing::Range(0, 5));

}  // namespace
}  // namespace filigree
