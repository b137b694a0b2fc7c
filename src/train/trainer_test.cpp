// Whole small runs: learning, interruption, resumption, and what is refused.
#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <fstream>
#include <functional>

#include "filigree/random.h"
#include "filigree/sparsification.h"
#include "filigree/train.h"
#include "support/check_op.h"
#include "support/errors.h"
#include "support/temporary_folder.h"
#include "train/train_test_support.h"

namespace filigree {
namespace {

struct SmallRun : SmallTraining {
  explicit SmallRun(bool gated, std::int64_t steps = 40) : SmallTraining(gated, steps) {
    options.checkpoint_every = 7;
    options.header = {{"run", "test"}};
  }

  TrainerResult train(RunFolder& folder, const TrainerCallbacks& callbacks = {}) {
    return filigree::train(*trained, *objective, source, *optimizer, folder, options, callbacks);
  }

  std::vector<float> weights() const {
    std::vector<float> all;
    for (const NamedParameter& p : model->parameters())
      all.insert(all.end(), p.variable.value().values().begin(), p.variable.value().values().end());
    for (const Variable& bias : model->gate_biases())
      all.insert(all.end(), bias.value().values().begin(), bias.value().values().end());
    return all;
  }
};

TEST(Trainer, Learns) {
  const TemporaryFolder temporary;
  RunFolder folder(temporary.path());
  SmallRun run(false, 300);
  run.options.checkpoint_every = 300;
  double first = 0.0;
  const TrainerResult result = run.train(folder, {.progress =
                                                      [&](std::int64_t step, const Metrics& m) {
                                                        if (step == 1) first = metric(m, "loss");
                                                      },
                                                  .evaluate = {},
                                                  .stop_requested = {},
                                                  .warn = {}});
  EXPECT_EQ(result.steps, 300);
  EXPECT_GT(first, 2.5);
  EXPECT_LT(metric(result.last, "loss"), 0.5 * first);
}

TEST(Trainer, MetricsAreTheMeanOfTheStepsBatches) {
  const TemporaryFolder temporary;
  RunFolder folder(temporary.path());
  SmallRun run(false, 1);
  Arithmetic batches;
  double expected = 0.0;
  for (int i = 0; i < 2; ++i) {
    Metrics metrics;
    run.objective->loss(batches.next(), i, *make_single_process(), metrics);
    expected += 0.5 * metric(metrics, "loss");
  }
  EXPECT_NEAR(metric(run.train(folder).last, "loss"), expected, 1e-6);
}

class Resume : public testing::TestWithParam<bool> {};

TEST_P(Resume, InterruptedAnywhereItEndsInTheSameBits) {
  const TemporaryFolder straight_folder;
  RunFolder straight(straight_folder.path());
  SmallRun uninterrupted(GetParam());
  uninterrupted.train(straight);
  for (const std::int64_t stop : {1, 7, 23, 39}) {
    const TemporaryFolder temporary;
    RunFolder folder(temporary.path());
    {
      SmallRun first(GetParam());
      std::int64_t seen = 0;
      TrainerCallbacks callbacks;
      callbacks.progress = [&](std::int64_t step, const Metrics&) { seen = step; };
      callbacks.stop_requested = [&] { return seen == stop; };
      EXPECT_EQ(first.train(folder, callbacks).end, TrainerResult::End::kInterrupted);
    }
    SmallRun second(GetParam());
    second.options.resume = true;
    const TrainerResult result = second.train(folder);
    EXPECT_EQ(result.resumed_from, stop);
    EXPECT_EQ(second.weights(), uninterrupted.weights()) << "stopped at " << stop;
  }
}

INSTANTIATE_TEST_SUITE_P(DenseAndSparse, Resume, testing::Values(false, true));

// A run in a child process, killed without warning after random times, resumed until it is done.
TEST(Trainer, KilledTwentyTimesItEndsInTheSameBits) {
  const std::int64_t steps = 120;
  const TemporaryFolder straight_folder, temporary;
  RunFolder straight(straight_folder.path());
  SmallRun uninterrupted(true, steps);
  set_num_threads(1);  // threads do not survive fork
  uninterrupted.train(straight);
  int kills = 0;
  Random random(17);
  for (int attempt = 0; attempt < 400; ++attempt) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      try {
        RunFolder folder(temporary.path());
        SmallRun run(true, steps);
        run.options.resume = true;
        run.train(folder);
        ::_exit(0);
      } catch (...) {
        ::_exit(1);
      }
    }
    // The first twenty are killed within a few checkpoints' time; then it may finish.
    if (kills < 20) {
      ::usleep(static_cast<useconds_t>(4000 + random.below(30000)));
      ::kill(child, SIGKILL);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    if (WIFEXITED(status)) {
      ASSERT_EQ(WEXITSTATUS(status), 0) << "a resumed run failed";
      if (kills >= 20) break;
      // It finished before the kill; start over until there have been twenty.
      std::filesystem::remove_all(temporary.path());
      std::filesystem::create_directories(temporary.path());
    } else {
      ++kills;
    }
  }
  EXPECT_EQ(kills, 20);
  RunFolder folder(temporary.path());
  SmallRun finished(true, steps);
  restore_training(folder.checkpoints().back(), *finished.trained, *finished.optimizer,
                   *make_single_process());
  EXPECT_EQ(read_training_state(folder.checkpoints().back()).step, steps);
  EXPECT_EQ(finished.weights(), uninterrupted.weights());
}

TEST(Trainer, AChangedSettingIsNamedOnResume) {
  const TemporaryFolder temporary;
  RunFolder folder(temporary.path());
  SmallRun(false).train(folder);
  SmallRun other(false);
  other.options.resume = true;
  other.options.schedule.steps = 99;
  const std::string message = error_of([&] { other.train(folder); });
  EXPECT_NE(message.find("'steps' was 40"), std::string::npos) << message;
  SmallRun again(false);
  EXPECT_NE(error_of([&] { again.train(folder); }).find("holds a run already"), std::string::npos);
}

TEST(Trainer, ALossThatIsNotFiniteStopsWithTheLastCheckpointIntact) {
  const TemporaryFolder temporary;
  RunFolder folder(temporary.path());
  SmallRun run(false);
  TrainerCallbacks callbacks;
  callbacks.progress = [&](std::int64_t step, const Metrics&) {
    if (step == 10) run.model->parameters()[0].variable.mutable_value().mutable_f32()[0] = NAN;
  };
  EXPECT_THROW(run.train(folder, callbacks), Diverged);
  std::ifstream log(folder.log_path());
  const std::string lines((std::istreambuf_iterator<char>(log)), {});
  EXPECT_NE(lines.find("\"stopped\""), std::string::npos) << lines;
  EXPECT_NE(lines.find("not finite at step"), std::string::npos) << lines;
  ASSERT_EQ(folder.checkpoints().size(), 1u);
  SmallRun resumed(false);
  resumed.options.resume = true;
  EXPECT_EQ(resumed.train(folder).resumed_from, 7);
}

// A parameter that the loss does not show, as those of a feature that is never active.
struct WithSilentParameter final : ModelTrainable {
  using ModelTrainable::ModelTrainable;
  std::vector<NamedParameter> own_parameters() const override { return {{"silent", silent}}; }
  Variable silent{Tensor::full({3}, 1.0f)};
};

TEST(Trainer, AParameterThatIsNotFiniteIsNeverSavedNorGoneOnFrom) {
  const TemporaryFolder temporary;
  {
    RunFolder folder(temporary.path());
    SmallRun run(false);
    auto with_silent = std::make_unique<WithSilentParameter>(*run.model);
    Variable silent = with_silent->silent;
    run.trained = std::move(with_silent);
    TrainerCallbacks callbacks;
    callbacks.progress = [&](std::int64_t step, const Metrics&) {
      if (step == 10) silent.mutable_value().mutable_f32()[1] = NAN;
    };
    EXPECT_THAT(error_of([&] { run.train(folder, callbacks); }),
                testing::HasSubstr("the parameter 'silent' is not finite at step 14"));
    ASSERT_EQ(folder.checkpoints().size(), 1u);
  }
  // What was saved before such numbers were looked for.
  SmallRun resumed(false);
  resumed.options.resume = true;
  auto damaged = std::make_unique<WithSilentParameter>(*resumed.model);
  damaged->silent.mutable_value().mutable_f32()[0] = NAN;
  resumed.trained = std::move(damaged);
  RunFolder again(temporary.path());
  try {
    resumed.train(again);
    ADD_FAILURE() << "goes on";
  } catch (const Diverged& diverged) {
    EXPECT_THAT(diverged.what(), testing::AllOf(testing::HasSubstr("'silent' of the checkpoint"),
                                                testing::HasSubstr("step-00000007")));
  }
}

TEST(Trainer, GatesThatAllClosedStopTheRun) {
  const TemporaryFolder temporary;
  RunFolder folder(temporary.path());
  SmallRun run(true);
  SparsificationOptions options;
  options.target = 0.1;
  run.model->set_gate({{-40.0f}});
  Sparsification objective(*run.model, run.teacher.get(), options);
  const TrainerResult result =
      train(*run.trained, objective, run.source, *run.optimizer, folder, run.options);
  EXPECT_EQ(result.end, TrainerResult::End::kStoppedEarly);
  EXPECT_EQ(result.steps, 1);
  EXPECT_NE(result.reason.find("the gates have closed"), std::string::npos) << result.reason;
  // Few edges are fine as long as the loss is what it may be.
  options.target = 9.0;
  Sparsification content(*run.model, run.teacher.get(), options);
  content.after_step({{"gap", -6.0}, {"expected_edges", 1e-9}});
  EXPECT_FALSE(content.stop_reason());
}

TEST(Trainer, AGapThatClimbsWithItsMultiplierIsWarnedOfOnce) {
  SmallRun run(true);
  SparsificationOptions options;
  options.target = 0.1;
  options.multiplier.every = 1;
  // The averaged gap of each step; the step of the first warning, or 0.
  const auto warned_at = [&](const std::function<double(int)>& gap) {
    Sparsification objective(*run.model, run.teacher.get(), options);
    int first = 0;
    for (int step = 1; step <= 200; ++step) {
      objective.after_step({{"gap", gap(step)}, {"expected_edges", 0.5}});
      const auto warning = objective.take_warning();
      if (!warning) continue;
      EXPECT_EQ(first, 0) << "warned twice";
      EXPECT_NE(warning->find("climb together"), std::string::npos) << *warning;
      EXPECT_NE(warning->find("lower learning rate"), std::string::npos) << *warning;
      first = step;
    }
    return first;
  };
  // Lambda grows by e^0.1 a step: it has tripled after eleven.
  const int climbing = warned_at([](int step) { return 0.3 + 0.02 * step; });
  EXPECT_GT(climbing, 10);
  EXPECT_LT(climbing, 40);
  // Where it leaps, lambda need not have tripled.
  EXPECT_LT(warned_at([](int step) { return 0.3 + step; }), 9);
  // A gap that comes down, however high it was, and one that lambda brings down after a while.
  EXPECT_EQ(warned_at([](int step) { return 2.0 / step; }), 0);
  EXPECT_EQ(warned_at([](int step) { return step < 8 ? 0.3 + 0.02 * step : 0.4 - 0.002 * step; }),
            0);
  EXPECT_EQ(warned_at([](int) { return -0.1; }), 0);
}

TEST(Trainer, ADenseRunWhoseLossRunsAwayStops) {
  const TemporaryFolder temporary;
  RunFolder folder(temporary.path());
  SmallRun run(false, 400);
  run.options.checkpoint_every = 400;
  run.options.schedule.peak = 5.0f;  // of AdamW: every weight moves by so much a step
  const TrainerResult result = run.train(folder);
  EXPECT_EQ(result.end, TrainerResult::End::kStoppedEarly);
  EXPECT_LT(result.steps, 200);
  EXPECT_NE(result.reason.find("training diverges"), std::string::npos) << result.reason;
}

TEST(Trainer, AFullDiskLeavesTheLastCheckpointIntact) {
  const TemporaryFolder temporary;
  RunFolder folder(temporary.path());
  SmallRun run(false);
  TrainerCallbacks callbacks;
  rlimit unlimited = {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &unlimited), 0);
  const auto before = std::signal(SIGXFSZ, SIG_IGN);
  callbacks.progress = [&](std::int64_t step, const Metrics&) {
    const rlimit small = {4096, unlimited.rlim_max};
    if (step == 10) ::setrlimit(RLIMIT_FSIZE, &small);
  };
  const std::string message = error_of([&] { run.train(folder, callbacks); });
  ::setrlimit(RLIMIT_FSIZE, &unlimited);
  std::signal(SIGXFSZ, before);
  EXPECT_NE(message.find("cannot"), std::string::npos) << message;
  ASSERT_EQ(folder.checkpoints().size(), 1u);
  EXPECT_EQ(read_training_state(folder.checkpoints()[0]).step, 7);
}

TEST(Trainer, KeepsTheLastAndTheBestCheckpoint) {
  const TemporaryFolder temporary;
  RunFolder folder(temporary.path());
  SmallRun run(false);
  run.options.evaluate_every = 5;
  int evaluations = 0;
  TrainerCallbacks callbacks;
  // The second evaluation, at step 10, is the best.
  callbacks.evaluate = [&] {
    return Metrics{{"loss", ++evaluations == 2 ? 0.5 : 1.0 + evaluations}};
  };
  run.train(folder, callbacks);
  std::vector<std::string> names;
  for (const auto& path : folder.checkpoints()) names.push_back(path.filename().string());
  EXPECT_EQ(names, (std::vector<std::string>{"step-00000010", "step-00000035", "step-00000040"}));
}

TEST(Trainer, TheLogHoldsEveryStepOnceAlsoAfterResuming) {
  const TemporaryFolder temporary;
  RunFolder folder(temporary.path());
  for (const std::int64_t stop : {13, 26, 1000}) {
    SmallRun run(false);
    run.options.resume = true;
    run.options.log_every = 1;
    std::int64_t seen = 0;
    TrainerCallbacks callbacks;
    callbacks.progress = [&](std::int64_t step, const Metrics&) { seen = step; };
    callbacks.stop_requested = [&] { return seen == stop; };
    run.train(folder, callbacks);
    // What a kill in the middle of a line leaves behind.
    std::ofstream(folder.log_path(), std::ios::app) << "{\"step\": 39, \"lo";
    if (stop < 1000) std::ofstream(folder.log_path(), std::ios::app) << "\n";
  }
  std::ifstream in(folder.log_path());
  std::string line;
  std::int64_t expected = 0;
  std::getline(in, line);
  EXPECT_EQ(nlohmann::json::parse(line)["run"], "test");
  while (std::getline(in, line)) {
    const nlohmann::json json = nlohmann::json::parse(line, nullptr, false);
    if (json.is_object()) {
      EXPECT_EQ(json["step"].get<std::int64_t>(), ++expected);
    }
  }
  EXPECT_EQ(expected, 40);
}

}  // namespace
}  // namespace filigree
