#include "ops/output_loss/output_loss.h"

#include <cmath>

#include "filigree/error.h"
#include "filigree/ops.h"
#include "ops/cross_entropy/cross_entropy_test_support.h"
#include "support/check_op.h"

namespace filigree {
namespace {

constexpr std::int64_t kRows = 9, kWidth = 5;

// Row r of x W, W being [width, V] or [V, width].
Doubles logits_of(const Doubles& x, const Doubles& w, std::size_t r, std::size_t V, bool out_in) {
  const std::size_t width = kWidth;
  Doubles logits(V, 0.0);
  for (std::size_t c = 0; c < V; ++c)
    for (std::size_t k = 0; k < width; ++k)
      logits[c] += x[r * width + k] * w[out_in ? c * width + k : k * V + c];
  return logits;
}

double log_sum_exp(const Doubles& logits) {
  double total = 0.0;
  for (const double x : logits) total += std::exp(x);
  return std::log(total);
}

TEST(OutputLoss, ValuesAndGradients) {
  for (const bool out_in : {true, false})
    for (const std::int64_t V : {7, 33})
      for (const float kd : {0.0f, 0.3f, 1.0f})
        for (const std::int64_t chunk : {0, 2, 4}) {
          const Tensor targets = targets_with_ignored(kRows, V);
          const Shape shape = out_in ? Shape{V, kWidth} : Shape{kWidth, V};
          Teacher teacher;
          teacher.x = random_tensor({kRows, kWidth}, 5, -2, 2);
          teacher.output = {random_tensor(shape, 6), Variable(), out_in};
          const auto columns = static_cast<std::size_t>(V);
          check_op(
              {.name = fmt::format("V {}, distillation {}, {} rows at a time", V, kd, chunk),
               .inputs = {random_tensor({kRows, kWidth}, 1, -2, 2), random_tensor(shape, 2)},
               .op =
                   [=](const std::vector<Variable>& in) {
                     OutputLossOptions options;
                     options.teacher = kd > 0.0f ? &teacher : nullptr;
                     options.distillation = kd;
                     options.chunk_rows = chunk;
                     return output_loss(in[0], {in[1], Variable(), out_in}, targets, options).loss;
                   },
               .reference =
                   [=](const std::vector<Doubles>& in) {
                     double loss = 0.0, counted = 0.0;
                     const Doubles tx = to_doubles(teacher.x),
                                   tw = to_doubles(teacher.output.weight.value());
                     for (std::size_t r = 0; r < kRows; ++r) {
                       const std::int32_t target = targets.i32()[r];
                       if (target < 0) continue;
                       counted += 1.0;
                       const Doubles s = logits_of(in[0], in[1], r, columns, out_in);
                       const double ls = log_sum_exp(s);
                       loss += (1.0 - static_cast<double>(kd)) *
                               (ls - s[static_cast<std::size_t>(target)]);
                       const Doubles t = logits_of(tx, tw, r, columns, out_in);
                       const double lt = log_sum_exp(t);
                       for (std::size_t c = 0; c < columns; ++c)
                         loss += static_cast<double>(kd) * std::exp(t[c] - lt) *
                                 ((t[c] - lt) - (s[c] - ls));
                     }
                     return Doubles{loss / counted};
                   },
               .tolerance = 5e-6,
               .gradient_tolerance = 5e-5});
        }
}

TEST(OutputLoss, BiasesOfModelAndTeacher) {
  const std::int64_t V = 33;
  const Tensor targets = targets_with_ignored(kRows, V);
  Teacher teacher;
  teacher.x = random_tensor({kRows, kWidth}, 5, -2, 2);
  teacher.output = {random_tensor({V, kWidth}, 6), random_tensor({V}, 7, -2, 2), true};
  const auto shifted = [](Doubles logits, const Doubles& bias) {
    for (std::size_t c = 0; c < logits.size(); ++c) logits[c] += bias[c];
    return logits;
  };
  for (const std::int64_t chunk : {0, 4})
    check_op({.name = fmt::format("biases, {} rows at a time", chunk),
              .inputs = {random_tensor({kRows, kWidth}, 1, -2, 2), random_tensor({V, kWidth}, 2),
                         random_tensor({V}, 3, -2, 2)},
              .op =
                  [=](const std::vector<Variable>& in) {
                    OutputLossOptions options;
                    options.teacher = &teacher, options.distillation = 0.3f;
                    options.chunk_rows = chunk;
                    return output_loss(in[0], {in[1], in[2], true}, targets, options).loss;
                  },
              .reference =
                  [=](const std::vector<Doubles>& in) {
                    double loss = 0.0, counted = 0.0;
                    for (std::size_t r = 0; r < kRows; ++r) {
                      const std::int32_t target = targets.i32()[r];
                      if (target < 0) continue;
                      counted += 1.0;
                      const Doubles s = shifted(logits_of(in[0], in[1], r, V, true), in[2]);
                      const Doubles t =
                          shifted(logits_of(to_doubles(teacher.x),
                                            to_doubles(teacher.output.weight.value()), r, V, true),
                                  to_doubles(teacher.output.bias.value()));
                      const double ls = log_sum_exp(s), lt = log_sum_exp(t);
                      const auto kd = static_cast<double>(0.3f);
                      loss += (1.0 - kd) * (ls - s[static_cast<std::size_t>(target)]);
                      for (std::size_t c = 0; c < t.size(); ++c)
                        loss += kd * std::exp(t[c] - lt) * ((t[c] - lt) - (s[c] - ls));
                    }
                    return Doubles{loss / counted};
                  },
              .tolerance = 5e-6,
              .gradient_tolerance = 5e-5});
}

TEST(OutputLoss, CapsTheLogitsOfModelAndTeacher) {
  const std::int64_t V = 33;
  const Tensor targets = targets_with_ignored(kRows, V);
  Teacher teacher;
  teacher.x = random_tensor({kRows, kWidth}, 5, -3, 3);
  teacher.output = {random_tensor({V, kWidth}, 6), Variable(), true};
  teacher.soft_cap = 1.5f;
  const auto capped = [](Doubles logits, double cap) {
    for (double& x : logits) x = cap * std::tanh(x / cap);
    return logits;
  };
  for (const std::int64_t chunk : {0, 4})
    check_op({.name = fmt::format("soft caps, {} rows at a time", chunk),
              .inputs = {random_tensor({kRows, kWidth}, 1, -3, 3), random_tensor({V, kWidth}, 2)},
              .op =
                  [=](const std::vector<Variable>& in) {
                    return output_loss(in[0], {in[1], Variable(), true}, targets,
                                       {.teacher = &teacher,
                                        .soft_cap = 2.0f,
                                        .distillation = 0.3f,
                                        .chunk_rows = chunk})
                        .loss;
                  },
              .reference =
                  [=](const std::vector<Doubles>& in) {
                    double loss = 0.0, counted = 0.0;
                    for (std::size_t r = 0; r < kRows; ++r) {
                      const std::int32_t target = targets.i32()[r];
                      if (target < 0) continue;
                      counted += 1.0;
                      const Doubles s = capped(logits_of(in[0], in[1], r, V, true), 2.0);
                      const Doubles t =
                          capped(logits_of(to_doubles(teacher.x),
                                           to_doubles(teacher.output.weight.value()), r, V, true),
                                 1.5);
                      const double ls = log_sum_exp(s), lt = log_sum_exp(t);
                      const auto kd = static_cast<double>(0.3f);
                      loss += (1.0 - kd) * (ls - s[static_cast<std::size_t>(target)]);
                      for (std::size_t c = 0; c < t.size(); ++c)
                        loss += kd * std::exp(t[c] - lt) * ((t[c] - lt) - (s[c] - ls));
                    }
                    return Doubles{loss / counted};
                  },
              .tolerance = 5e-6,
              .gradient_tolerance = 5e-5});
}

TEST(OutputLoss, ReportsWhatTheSeparateLossesGive) {
  const std::int64_t V = 40;
  const Tensor targets = targets_with_ignored(kRows, V);
  const Variable x(random_tensor({kRows, kWidth}, 1)), w(random_tensor({V, kWidth}, 2));
  Teacher teacher;
  teacher.x = random_tensor({kRows, kWidth}, 5);
  teacher.output = {random_tensor({V, kWidth}, 6), Variable(), true};
  OutputLossOptions options;
  options.teacher = &teacher;
  options.chunk_rows = 4;
  const OutputLoss fused = output_loss(x, {w, Variable(), true}, targets, options);
  const Variable student = linear(x, {w, Variable(), true});
  const Variable taught = linear(Variable(teacher.x), teacher.output);
  EXPECT_NEAR(fused.cross_entropy.item(), cross_entropy(student, targets).value().item(), 1e-6);
  EXPECT_NEAR(fused.teacher_cross_entropy.item(), cross_entropy(taught, targets).value().item(),
              1e-6);
  EXPECT_NEAR(fused.divergence.item(),
              kl_divergence(taught.value(), student, targets).value().item(), 1e-6);
  EXPECT_EQ(fused.loss.value().item(), fused.cross_entropy.item());  // without distillation
}

TEST(OutputLoss, TheFactorOfTheBackwardPassReachesBothGradients) {
  const std::int64_t V = 12;
  const Tensor targets = targets_with_ignored(kRows, V);
  const auto gradients = [&](float factor) {
    const Variable x(random_tensor({kRows, kWidth}, 1), true),
        w(random_tensor({V, kWidth}, 2), true);
    Tape tape;
    const Variable loss = output_loss(x, {w, Variable(), true}, targets).loss;
    tape.backward(scale(loss, factor));
    return std::pair(x.grad(), w.grad());
  };
  const auto [dx, dw] = gradients(1.0f);
  const auto [dx3, dw3] = gradients(3.0f);
  for (std::int64_t i = 0; i < dx.elements(); ++i)
    EXPECT_NEAR(3.0f * dx.f32()[i], dx3.f32()[i], 1e-6);
  for (std::int64_t i = 0; i < dw.elements(); ++i)
    EXPECT_NEAR(3.0f * dw.f32()[i], dw3.f32()[i], 1e-6);
}

TEST(OutputLoss, RefusesWhatDoesNotFit) {
  const Variable x(Tensor::zeros({3, 4})), w(Tensor::zeros({6, 4}));
  const std::vector<std::int32_t> fine = {0, 1, 2}, high = {0, 1, 6}, few = {0};
  const LinearWeight layer = {w, Variable(), true};
  EXPECT_NO_THROW(output_loss(x, layer, Tensor::from_ids({3}, fine)));
  EXPECT_THROW(output_loss(x, layer, Tensor::from_ids({3}, high)), Error);
  EXPECT_THROW(output_loss(x, layer, Tensor::from_ids({1}, few)), Error);
  EXPECT_THROW(output_loss(x, {w, Variable(), false}, Tensor::from_ids({3}, fine)), Error);
  EXPECT_THROW(output_loss(x, {w, Variable(Tensor::zeros({5})), true}, Tensor::from_ids({3}, fine)),
               Error);
  OutputLossOptions options;
  options.distillation = 0.5f;
  EXPECT_THROW(output_loss(x, layer, Tensor::from_ids({3}, fine), options), Error);
  Teacher teacher;
  teacher.x = Tensor::zeros({2, 4});
  teacher.output = layer;
  options.teacher = &teacher;
  EXPECT_THROW(output_loss(x, layer, Tensor::from_ids({3}, fine), options), Error);
}

}  // namespace
}  // namespace filigree
