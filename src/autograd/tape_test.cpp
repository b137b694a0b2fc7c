#include <gtest/gtest.h>

#include <memory>

#include "filigree/autograd.h"
#include "filigree/error.h"

namespace filigree {
namespace {

// y = factor * x, written by hand: the tape knows nothing of operations.
Variable scaled(const Variable& x, float factor) {
  Tensor y = Tensor::empty(x.shape());
  for (std::int64_t i = 0; i < y.elements(); ++i) y.mutable_f32()[i] = factor * x.value().f32()[i];
  return make_result(std::move(y), {&x}, [x, factor](const Tensor& grad) {
    Tensor dx = Tensor::empty(x.shape());
    for (std::int64_t i = 0; i < dx.elements(); ++i) dx.mutable_f32()[i] = factor * grad.f32()[i];
    x.accumulate_grad(std::move(dx));
  });
}

TEST(Tape, ChainsAndSumsGradients) {
  const Variable x(Tensor::scalar(3.0f), true);
  Tape tape;
  const Variable y = scaled(x, 2.0f);
  const Variable left = scaled(y, 5.0f), right = scaled(y, 7.0f);
  Tensor sum = Tensor::scalar(left.value().item() + right.value().item());
  const Variable total = make_result(sum, {&left, &right}, [left, right](const Tensor& grad) {
    left.accumulate_grad(grad);
    right.accumulate_grad(grad);
  });
  tape.backward(total);
  EXPECT_EQ(x.grad().item(), 24.0f);
}

TEST(Tape, WithoutATapeOrAGradientNothingIsRecorded) {
  const Variable x(Tensor::scalar(3.0f), true), constant(Tensor::scalar(1.0f));
  EXPECT_FALSE(scaled(x, 2.0f).requires_grad());
  Tape tape;
  scaled(constant, 2.0f);
  {
    const NoGrad paused;
    EXPECT_FALSE(scaled(x, 2.0f).requires_grad());
  }
  EXPECT_EQ(tape.size(), 0u);
  EXPECT_TRUE(scaled(x, 2.0f).requires_grad());
  EXPECT_EQ(tape.size(), 1u);
}

TEST(Tape, TheInnermostTapeRecords) {
  const Variable x(Tensor::scalar(3.0f), true);
  Tape outer;
  {
    Tape inner;
    inner.backward(scaled(x, 2.0f));
  }
  EXPECT_EQ(outer.size(), 0u);
  EXPECT_EQ(x.grad().item(), 2.0f);
}

TEST(Tape, ResultsKeepTheirGradientOnlyWhenAsked) {
  const Variable x(Tensor::scalar(3.0f), true);
  Tape tape;
  const Variable kept = scaled(x, 2.0f), dropped = scaled(kept, 3.0f);
  kept.retain_grad();
  tape.backward(scaled(dropped, 5.0f));
  EXPECT_EQ(kept.grad().item(), 15.0f);
  EXPECT_FALSE(dropped.grad().defined());
}

TEST(Tape, AccumulatingNeverChangesATensorSomebodyElseHolds) {
  const Variable x(Tensor::scalar(0.0f), true);
  const Tensor one = Tensor::scalar(1.0f);
  x.accumulate_grad(one);
  x.accumulate_grad(one);
  EXPECT_EQ(x.grad().item(), 2.0f);
  EXPECT_EQ(one.item(), 1.0f);
  EXPECT_THROW(x.accumulate_grad(Tensor::zeros({2})), Error);
}

TEST(Tape, SavedTensorsAreFreedAsTheBackwardPassRuns) {
  const Variable x(Tensor::scalar(1.0f), true);
  auto saved = std::make_shared<int>(1);
  const std::weak_ptr<int> watch = saved;
  Tape tape;
  bool freed_before_first = false;
  const Variable first = make_result(Tensor::scalar(1.0f), {&x}, [&, x](const Tensor& grad) {
    freed_before_first = watch.expired();
    x.accumulate_grad(grad);
  });
  const Variable second = make_result(
      Tensor::scalar(1.0f), {&first},
      [first, saved = std::move(saved)](const Tensor& grad) { first.accumulate_grad(grad); });
  tape.backward(second);
  EXPECT_TRUE(freed_before_first);
}

TEST(Tape, ALeafIsShownOnceItsGradientIsFinal) {
  const Variable early(Tensor::scalar(3.0f), true), late(Tensor::scalar(1.0f), true),
      unused(Tensor::scalar(1.0f), true);
  std::vector<std::pair<const void*, float>> shown;
  Tape tape;
  tape.watch_leaves([&](const Variable& leaf) {
    shown.emplace_back(leaf.id(), leaf.grad().defined() ? leaf.grad().item() : 0.0f);
    // The rest of the backward pass is still to come.
    if (leaf.id() == late.id()) {
      EXPECT_FALSE(early.grad().defined());
    }
  });
  const auto product = [](const Variable& a, const Variable& b) {
    return make_result(Tensor::scalar(a.value().item() * b.value().item()), {&a, &b},
                       [a, b](const Tensor& grad) {
                         a.accumulate_grad(Tensor::scalar(grad.item() * b.value().item()));
                         b.accumulate_grad(Tensor::scalar(grad.item() * a.value().item()));
                       });
  };
  const Variable y = scaled(early, 2.0f);
  scaled(unused, 1.0f);  // recorded, but the result does not depend on it
  const Variable z = product(y, late);
  tape.backward(product(z, late));  // 2 early late^2
  const std::vector<std::pair<const void*, float>> expected = {
      {late.id(), 12.0f}, {unused.id(), 0.0f}, {early.id(), 2.0f}};
  EXPECT_EQ(shown, expected);
  EXPECT_EQ(late.grad().item(), 12.0f);
}

TEST(Tape, RefusesMisuse) {
  const Variable x(Tensor::zeros({2}), true);
  {
    Tape tape;
    EXPECT_THROW(tape.backward(scaled(x, 2.0f)), Error);  // not one number, no seed
  }
  {
    Tape tape;
    EXPECT_THROW(tape.backward(Variable(Tensor::scalar(1.0f))), Error);  // a constant
  }
  Tape tape;
  const Variable y = scaled(x, 2.0f);
  tape.backward(y, Tensor::full({2}, 1.0f));
  EXPECT_THROW(tape.backward(y, Tensor::full({2}, 1.0f)), Error);  // used up
  Tape begun;
  const Variable z = scaled(x, 2.0f);
  EXPECT_THROW(begun.watch_leaves([](const Variable&) {}), Error);  // too late
}

}  // namespace
}  // namespace filigree
