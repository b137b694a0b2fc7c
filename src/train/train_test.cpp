// The parts of training: schedule, multiplier, optimiser state, sparsification.
#include "filigree/train.h"

#include <cmath>

#include "filigree/error.h"
#include "filigree/sparsification.h"
#include "support/check_op.h"

namespace filigree {
namespace {

TEST(Schedule, WarmsUpThenFallsToItsFraction) {
  const Schedule schedule{1.0f, 10, 110, 0.1f};
  EXPECT_FLOAT_EQ(schedule.at(0), 0.1f);
  EXPECT_FLOAT_EQ(schedule.at(9), 1.0f);
  EXPECT_FLOAT_EQ(schedule.at(10), 1.0f);
  EXPECT_FLOAT_EQ(schedule.at(109), 0.1f);
  for (std::int64_t step = 10; step < 109; ++step)
    EXPECT_GE(schedule.at(step), schedule.at(step + 1));
  EXPECT_FLOAT_EQ((Schedule{1.0f, 0, 1, 0.1f}.at(0)), 0.1f);
  // A last stage of 50 steps is a schedule of its own behind one that ends before it.
  const Schedule staged{1.0f, 10, 100, 0.1f, 50, 0.4f};
  const Schedule before{1.0f, 10, 50, 0.1f}, last{0.4f, 5, 50, 0.1f};
  for (std::int64_t step = 0; step < 50; ++step) {
    EXPECT_EQ(staged.at(step), before.at(step));
    EXPECT_EQ(staged.at(50 + step), last.at(step));
  }
}

TEST(Multiplier, RisesWhileTheGapIsPositiveAndFallsAfter) {
  Multiplier multiplier({.initial = 1.0, .min = 0.01, .max = 50.0});
  for (int i = 0; i < 10; ++i) multiplier.observe(1.0);
  EXPECT_NEAR(multiplier.lambda(), std::exp(0.1), 1e-12);  // one update, clipped to 0.5 * 0.2
  for (int i = 0; i < 2000; ++i) multiplier.observe(1.0);
  EXPECT_NEAR(multiplier.lambda(), 50.0, 1e-9);
  EXPECT_GT(multiplier.state().steps_at_max, 1000);
  // No windup: it leaves the bound as soon as the averaged gap turns.
  for (int i = 0; i < 40; ++i) multiplier.observe(-1.0);
  EXPECT_LT(multiplier.lambda(), 45.0);
  EXPECT_EQ(multiplier.state().steps_at_max, 0);
  for (int i = 0; i < 5000; ++i) multiplier.observe(-1.0);
  EXPECT_NEAR(multiplier.lambda(), 0.01, 1e-9);
}

TEST(Multiplier, AGapThatStillFallsIsNotInVain) {
  Multiplier multiplier({.initial = 1.0, .min = 0.01, .max = 50.0});
  for (int i = 0; i < 2000; ++i) multiplier.observe(1.0);
  for (int i = 0; i < 3000; ++i) {
    multiplier.observe(std::exp(-0.001 * i));  // a twentieth less every 51 steps
    if (i > 100) {
      EXPECT_LT(multiplier.state().steps_at_max, 60) << i;
    }
  }
  EXPECT_NEAR(multiplier.lambda(), 50.0, 1e-9);
  for (int i = 0; i < 500; ++i) multiplier.observe(0.049);
  EXPECT_GT(multiplier.state().steps_at_max, 400);
}

TEST(Multiplier, RestoredItGoesOnAsBefore) {
  Multiplier a({}), b({});
  for (int i = 0; i < 17; ++i) a.observe(0.03 * i);
  b.restore(a.state());
  for (int i = 0; i < 17; ++i) a.observe(-0.01 * i), b.observe(-0.01 * i);
  EXPECT_EQ(a.lambda(), b.lambda());
}

TEST(Multiplier, PressesFirstAndRecoversLater) {
  const MultiplierOptions options{
      .initial = 1.0, .min = 0.5, .max = 10.0, .recovery_from = 1000, .recovery_max = 40.0};
  Multiplier multiplier(options);
  for (int i = 0; i < 999; ++i) multiplier.observe(0.1);
  EXPECT_NEAR(multiplier.lambda(), 10.0, 1e-9);
  EXPECT_EQ(multiplier.state().steps_at_max, 0);  // a higher bound is still to come
  for (int i = 0; i < 1000; ++i) multiplier.observe(0.1);
  EXPECT_NEAR(multiplier.lambda(), 40.0, 1e-9);
  EXPECT_GT(multiplier.state().steps_at_max, 500);

  // A gap that is alarming is answered at once, and with the second bound.
  Multiplier rescues(options), calm(options);
  for (int i = 0; i < 100; ++i) rescues.observe(2.0 * options.rescue_gap), calm.observe(0.2);
  EXPECT_NEAR(rescues.lambda(), 40.0, 1e-9);
  EXPECT_LT(calm.lambda(), 3.0);
  for (int i = 0; i < 50; ++i) rescues.observe(0.1);
  EXPECT_NEAR(rescues.lambda(), 10.0, 1e-9);  // back under the first
}

TEST(Multiplier, MayFallMoreSlowlyThanItRises) {
  Multiplier multiplier({.initial = 10.0, .min = 0.1, .fall = 0.25});
  for (int i = 0; i < 10; ++i) multiplier.observe(-1.0);
  EXPECT_NEAR(multiplier.lambda(), 10.0 * std::exp(-0.2 * 0.5 * 0.25), 1e-9);
}

TEST(Multiplier, RefusesNonsense) {
  EXPECT_THROW(Multiplier({.min = 1.0, .recovery_from = 5, .recovery_max = 0.5}), Error);

  EXPECT_THROW(Multiplier({.initial = 0.0}), Error);
  EXPECT_THROW(Multiplier({.initial = 100.0, .max = 60.0}), Error);
  EXPECT_THROW(Multiplier({.averaging = 1.0}), Error);
  Multiplier multiplier({});
  EXPECT_THROW(multiplier.observe(NAN), Error);
}

TEST(AdamW, ClipsTheGlobalNormAndDecaysOnlyMatrices) {
  const Variable matrix(Tensor::full({2, 2}, 1.0f), true), vector(Tensor::full({2}, 1.0f), true);
  const std::vector<ParameterGroup> groups =
      decay_groups({{"matrix", matrix}, {"vector", vector}}, 0.5f);
  EXPECT_EQ(groups[0].weight_decay, 0.5f);
  EXPECT_EQ(groups[1].weight_decay, 0.0f);
  AdamW optimizer(groups, {});
  matrix.accumulate_grad(Tensor::full({2, 2}, 3.0f));
  vector.accumulate_grad(Tensor::full({2}, 4.0f));
  EXPECT_NEAR(optimizer.step(0.1f, 1.0), std::sqrt(4 * 9.0 + 2 * 16.0), 1e-5);
  // The first step moves by the learning rate, whatever the gradient; decay comes on top.
  EXPECT_NEAR(vector.value().f32()[0], 1.0f - 0.1f, 1e-5);
  EXPECT_NEAR(matrix.value().f32()[0], 1.0f - 0.05f - 0.1f, 1e-5);
}

TEST(AdamW, RefusesAStateThatDoesNotFit) {
  const Variable x(Tensor::full({2}, 1.0f), true);
  AdamW optimizer(decay_groups({{"x", x}}, 0.0f), {});
  EXPECT_THROW(optimizer.restore(1, {{"m.x", Tensor::zeros({2})}}), Error);
  EXPECT_THROW(optimizer.restore(1, {{"m.x", Tensor::zeros({3})}, {"v.x", Tensor::zeros({3})}}),
               Error);
}

nlohmann::json gated_json() {
  return {{"model_type", "gpt2"},   {"n_layer", 2},      {"n_head", 2},
          {"n_embd", 16},           {"n_positions", 12}, {"vocab_size", 20},
          {"gate", {{"bias", 1.0}}}};
}

Batch some_batch() {
  Batch batch{Tensor::empty({2, 10}, DType::kI32), Tensor::empty({2, 10}, DType::kI32)};
  for (int i = 0; i < 20; ++i) {
    batch.ids.mutable_i32()[i] = (i * 7) % 20;
    batch.targets.mutable_i32()[i] = (i * 7 + 7) % 20;
  }
  return batch;
}

TEST(Sparsification, TheLossIsTheWeightedSumOfItsParts) {
  const auto student = make_model(parse_model_config(gated_json(), "test"), 1);
  const auto teacher = make_model(parse_model_config(gated_json(), "test"), 1);
  student->set_requires_grad(true);
  for (const EdgeObjective objective : {EdgeObjective::kLog, EdgeObjective::kLinear}) {
    SparsificationOptions options;
    options.objective = objective;
    options.multiplier.initial = 3.0;
    options.distillation = 0.25;
    Sparsification sparsification(*student, teacher.get(), options);
    Metrics metrics;
    Tape tape;
    const Variable loss = sparsification.loss(some_batch(), 5, *make_single_process(), metrics);
    const double E = metric(metrics, "expected_edges");
    const double task = 0.75 * metric(metrics, "loss") + 0.25 * metric(metrics, "divergence");
    const double edges = objective == EdgeObjective::kLog ? std::log(E) : E;
    EXPECT_NEAR(loss.value().item(), (edges + 3.0 * task) / 4.0, 1e-5);
    EXPECT_NEAR(metric(metrics, "gap"),
                metric(metrics, "loss") - metric(metrics, "teacher_loss") - options.margin, 1e-9);
    EXPECT_GT(E, 0.5);
    EXPECT_LT(E, 1.0);
    tape.backward(loss);
    EXPECT_TRUE(student->parameters()[0].variable.grad().defined());
    EXPECT_FALSE(teacher->parameters()[0].variable.grad().defined());
    student->clear_grads();
  }
}

TEST(Sparsification, WeighsTheEdgesOfASparseHeadMoreWithAHeadPower) {
  // Two heads, of which one is nearly closed: how the loss moves with the bias of each.
  const auto slopes = [](double power) {
    const auto student = make_model(parse_model_config(gated_json(), "test"), 1);
    const auto heads = static_cast<std::size_t>(student->config().layers * student->config().heads);
    std::vector<float> biases(heads, 2.0f);
    biases[0] = -6.0f;
    student->set_gate({biases});
    const auto teacher = make_model(parse_model_config(gated_json(), "test"), 1);
    SparsificationOptions options;
    options.head_power = power;
    options.multiplier.initial = options.multiplier.min = 1e-6;
    Sparsification sparsification(*student, teacher.get(), options);
    const auto value = [&](std::size_t head, float by) {
      std::vector<float> moved = biases;
      moved[head] += by;
      student->set_gate({moved});
      Metrics metrics;
      return static_cast<double>(
          sparsification.loss(some_batch(), 5, *make_single_process(), metrics).value().item());
    };
    const double closed = value(0, 0.5f) - value(0, -0.5f);
    const double open = value(1, 0.5f) - value(1, -0.5f);
    return closed / open;
  };
  // A share of about e^-6 against one of 0.88: with power p its slope is larger by their ratio to
  // the power p - 1.
  const double plain = slopes(1.0);
  EXPECT_NEAR(slopes(0.5) / plain, std::pow(std::exp(-6.0) / 0.88, -0.5), 4.0);
  EXPECT_GT(slopes(0.5) / plain, 10.0);
}

TEST(Sparsification, LowersNoBiasWithoutEndAndSaysSo) {
  const ModelConfig config = parse_model_config(gated_json(), "test");
  const auto student = make_model(config, 1), teacher = make_model(config, 1);
  std::vector<float> biases(static_cast<std::size_t>(config.layers * config.heads), 0.0f);
  biases[1] = -39.99f;
  student->set_gate({biases});
  SparsificationOptions options;
  options.max_open = 1e-30;  // every head is too open
  Sparsification sparsification(*student, teacher.get(), options);
  Metrics metrics;
  sparsification.loss(some_batch(), 0, *make_single_process(), metrics);
  sparsification.after_step(metrics);
  student->store_gate();
  EXPECT_NEAR(student->config().gate.bias[0], -0.02, 1e-6);
  EXPECT_FLOAT_EQ(student->config().gate.bias[1], -39.99f);
  const std::optional<std::string> warning = sparsification.take_warning();
  ASSERT_TRUE(warning);
  EXPECT_NE(warning->find("L0H1 has more than 1e-30 of its edges open"), std::string::npos)
      << *warning;
  EXPECT_FALSE(sparsification.take_warning());

  // A resumed run does not say it again.
  Sparsification resumed(*student, teacher.get(), options);
  resumed.restore(sparsification.state());
  resumed.loss(some_batch(), 1, *make_single_process(), metrics);
  resumed.after_step(metrics);
  EXPECT_FALSE(resumed.take_warning());
}

TEST(Sparsification, SaysOnceThatHardlyAnEdgeIsLeft) {
  const ModelConfig config = parse_model_config(gated_json(), "test");
  const auto teacher = make_model(config, 1), student = make_model(config, 1);
  student->set_gate({{-30.0f}});
  const SparsificationOptions options;
  Sparsification sparsification(*student, teacher.get(), options);
  Metrics metrics;
  sparsification.loss(some_batch(), 0, *make_single_process(), metrics);
  sparsification.after_step(metrics);
  EXPECT_THAT(sparsification.take_warning().value_or(""),
              ::testing::HasSubstr("hardly an edge is left open"));
  EXPECT_FALSE(sparsification.take_warning());
  Sparsification resumed(*student, teacher.get(), options);
  resumed.restore(sparsification.state());
  resumed.loss(some_batch(), 1, *make_single_process(), metrics);
  resumed.after_step(metrics);
  EXPECT_FALSE(resumed.take_warning());
}

// A gap of -0.05 with a margin of 0.01 is a loss of 0.04 below the teacher's.
TEST(Sparsification, SaysOnceThatTheTeacherHadNotConverged) {
  const ModelConfig config = parse_model_config(gated_json(), "test");
  const auto teacher = make_model(config, 1), student = make_model(config, 1);
  const auto warnings = [&](double gap, std::optional<double> target) {
    SparsificationOptions options;
    options.margin = 0.01;
    options.target = target;
    Sparsification sparsification(*student, teacher.get(), options);
    std::string all;
    for (int step = 0; step < 60; ++step) {
      sparsification.after_step({{"gap", gap}, {"expected_edges", 0.5}});
      all += sparsification.take_warning().value_or("");
    }
    return all;
  };
  const std::string warning = warnings(-0.05, {});
  EXPECT_THAT(warning, ::testing::HasSubstr("0.040 nats below the teacher's"));
  EXPECT_EQ(warning.find("had not converged"), warning.rfind("had not converged"));
  // As far below as it may lie above is nothing yet, and a fixed target has no teacher to trust.
  EXPECT_EQ(warnings(-0.02, {}), "");
  EXPECT_EQ(warnings(-0.05, 3.0), "");
}

TEST(Sparsification, LowersTheBiasOfHeadsThatAreTooOpen) {
  nlohmann::json json = gated_json();
  const auto shared = make_model(parse_model_config(json, "test"), 1);
  const auto heads = static_cast<std::size_t>(shared->config().layers * shared->config().heads);
  std::vector<float> biases(heads, 0.0f);
  biases[1] = 12.0f;
  biases[heads - 1] = 15.0f;
  shared->set_gate({biases});
  Model& student = *shared;
  SparsificationOptions options;
  options.max_open = 0.98;
  const auto teacher = make_model(parse_model_config(json, "test"), 1);
  Sparsification sparsification(student, teacher.get(), options);
  const auto stored = [&] {
    student.store_gate();
    return student.config().gate.bias;
  };
  for (int step = 0; step < 3; ++step) {
    Metrics metrics;
    sparsification.loss(some_batch(), step, *make_single_process(), metrics);
    EXPECT_GT(metric(metrics, "widest_head"), 0.9999);
    sparsification.after_step(metrics);
  }
  biases[1] -= 0.06f;
  biases[heads - 1] -= 0.06f;
  const std::vector<float> lowered = stored();
  for (std::size_t h = 0; h < heads; ++h) EXPECT_NEAR(lowered[h], biases[h], 1e-5) << h;

  biases[1] = biases[heads - 1] = 2.0f;  // open, but not too far
  student.set_gate({biases});
  Metrics metrics;
  sparsification.loss(some_batch(), 3, *make_single_process(), metrics);
  EXPECT_LT(metric(metrics, "widest_head"), 0.95);
  EXPECT_GT(metric(metrics, "widest_head"), 0.8);
  sparsification.after_step(metrics);
  EXPECT_EQ(stored(), biases);

  // Of a step of two batches the mean counts: 1 and about 0.88.
  biases[1] = 12.0f;
  student.set_gate({biases});
  Metrics of_two;
  sparsification.loss(some_batch(), 4, *make_single_process(), of_two);
  biases[1] = 2.0f;
  student.set_gate({biases});
  sparsification.loss(some_batch(), 5, *make_single_process(), of_two);
  sparsification.after_step(of_two);
  EXPECT_EQ(stored(), biases);

  student.set_gate({{2.0f}});
  EXPECT_THROW(Sparsification(student, teacher.get(), options), Error);
}

TEST(Sparsification, TrainsWithCertainGatesWhereAsked) {
  const auto student = make_model(parse_model_config(gated_json(), "test"), 1);
  const auto teacher = make_model(parse_model_config(gated_json(), "test"), 2);
  student->set_requires_grad(true);
  const auto open_edges = [&](bool certain, std::int64_t step) {
    SparsificationOptions options;
    options.certain_gates = certain;
    Sparsification sparsification(*student, teacher.get(), options);
    Metrics metrics;
    sparsification.loss(some_batch(), step, *make_single_process(), metrics);
    return std::pair(metric(metrics, "active_edges"), metric(metrics, "loss"));
  };
  EXPECT_NE(open_edges(false, 0), open_edges(false, 1));
  EXPECT_EQ(open_edges(true, 0), open_edges(true, 1));

  std::vector<GateReport> reports;
  student->final_hidden(some_batch().ids, {.gates = GateMode::kHard, .reports = &reports});
  double open = 0.0, gates = 0.0;
  for (const GateReport& report : reports)
    for (const float share : report.active.values()) open += share, ++gates;
  EXPECT_NEAR(open_edges(true, 0).first, open / gates, 1e-6);
}

// The gap that the multiplier answers to is that of held-out text, followed by how the training
// batches change.
TEST(Sparsification, TakesOffTheGapWhatTheTeacherKnowsByHeart) {
  const auto student = make_model(parse_model_config(gated_json(), "test"), 1);
  const auto teacher = make_model(parse_model_config(gated_json(), "test"), 2);
  const auto ranks = make_single_process();
  int measured = 0;
  SparsificationOptions options;
  options.margin = 0.1;
  options.multiplier.recovery_from = 0;
  options.held_out_every = 2;
  options.held_out_gap = [&](Communicator&) { return 0.5 + 0.1 * measured++; };
  Sparsification sparsification(*student, teacher.get(), options);
  Metrics metrics;
  const auto gap = [&](Sparsification& objective) {
    objective.loss(some_batch(), 0, *ranks, metrics);
    return metric(metrics, "gap");
  };
  const auto step = [&] {
    const double now = gap(sparsification);
    sparsification.after_step(metrics);
    return now;
  };
  step();
  EXPECT_EQ(measured, 0);  // there is nothing to compare it with yet
  EXPECT_NEAR(step(), 0.4, 1e-9);
  EXPECT_NEAR(step(), 0.4, 1e-9);
  EXPECT_EQ(measured, 1);
  EXPECT_NEAR(step(), 0.5, 1e-9);
  EXPECT_NEAR(sparsification.state().at("average_gap").get<double>(), 0.5, 1e-9);

  Sparsification again(*student, teacher.get(), options);
  again.restore(sparsification.state());
  EXPECT_NEAR(gap(again), 0.5, 1e-9);
  EXPECT_EQ(measured, 2);
  EXPECT_THROW(Sparsification(*student, nullptr, options), Error);
}

TEST(Sparsification, GivesUpWithAnExplanationWhenTheConstraintCannotBeMet) {
  const auto student = make_model(parse_model_config(gated_json(), "test"), 1);
  SparsificationOptions options;
  options.target = 0.0;  // no model reaches a loss of zero here
  options.distillation = 0.0;
  options.patience = 50;
  options.multiplier.initial = options.multiplier.max = 2.0;
  Sparsification sparsification(*student, nullptr, options);
  const Metrics metrics = {{"gap", 1.0}, {"expected_edges", 0.5}};
  for (int i = 0; i < 49; ++i) sparsification.after_step(metrics);
  EXPECT_FALSE(sparsification.stop_reason());
  sparsification.after_step(metrics);
  ASSERT_TRUE(sparsification.stop_reason());
  EXPECT_NE(sparsification.stop_reason()->find("1.000 nats"), std::string::npos);
}

TEST(Sparsification, RefusesModelsWithoutAGateAndMissingTeachers) {
  nlohmann::json dense = gated_json();
  dense.erase("gate");
  const auto model = make_model(parse_model_config(dense, "test"), 1);
  const auto gated = make_model(parse_model_config(gated_json(), "test"), 1);
  EXPECT_THROW(Sparsification(*model, gated.get(), {}), Error);
  EXPECT_THROW(Sparsification(*gated, nullptr, {}), Error);
}

}  // namespace
}  // namespace filigree
