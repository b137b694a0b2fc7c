// Several ranks train what one process trains.
#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <cmath>

#include "filigree/autograd.h"
#include "filigree/evaluation.h"
#include "filigree/ops.h"
#include "support/check_op.h"
#include "support/errors.h"
#include "support/files.h"
#include "support/temporary_folder.h"
#include "support/thread_ranks.h"
#include "train/gradient_sum.h"
#include "train/train_test_support.h"

namespace filigree {
namespace {

// A rank's rows of Arithmetic's batches; parts need not be equal.
class OwnRows : public BatchSource {
 public:
  OwnRows(std::int64_t rank, std::int64_t size) : rank_(rank), size_(size) {}
  Batch next() override {
    const Batch all = whole_.next();
    const std::int64_t rows = all.ids.size(0);
    const std::int64_t begin = rows * rank_ / size_, end = rows * (rank_ + 1) / size_;
    return {all.ids.rows(begin, end), all.targets.rows(begin, end), begin};
  }
  Settings settings() const override { return whole_.settings(); }
  nlohmann::json state() const override { return whole_.state(); }
  void restore(const nlohmann::json& state) override { whole_.restore(state); }

 private:
  Arithmetic whole_;
  std::int64_t rank_, size_;
};

std::vector<float> weights_of(const Model& model) {
  std::vector<float> all;
  const auto add = [&](const Variable& variable) {
    all.insert(all.end(), variable.value().values().begin(), variable.value().values().end());
  };
  for (const NamedParameter& parameter : model.parameters()) add(parameter.variable);
  for (const Variable& bias : model.gate_biases()) add(bias);
  return all;
}

struct RunResult {
  std::vector<std::vector<float>> weights;  // of each rank
  std::vector<std::uint64_t> moments;       // bytes of each rank
  std::vector<Metrics> steps;               // of rank 0
};

struct Ranks {
  int size = 1;
  bool sharing = false;  // the moments
};

// Each rank has its own model and its own part of the data; they share the folder.
RunResult run(const Ranks& of, bool gated, const std::filesystem::path& path,
              std::int64_t stop_at = -1, bool resume = false) {
  RunResult result;
  result.weights.resize(static_cast<std::size_t>(of.size));
  result.moments.resize(static_cast<std::size_t>(of.size));
  const auto body = [&](Communicator& ranks) {
    SmallTraining training(gated, 30);
    if (of.sharing)
      training.optimizer =
          std::make_unique<AdamW>(decay_groups(*training.trained, 0.1f), AdamWOptions{}, &ranks);
    training.options.ranks = &ranks;
    training.options.resume = resume;
    training.options.log_every = 1;
    training.options.clip = 0.1;  // less than the gradient's norm
    OwnRows source(ranks.rank(), ranks.size());
    RunFolder folder(path);
    std::int64_t done = 0;
    TrainerCallbacks callbacks;
    callbacks.progress = [&](std::int64_t step, const Metrics& metrics) {
      done = step;
      if (ranks.first()) result.steps.push_back(metrics);
    };
    // The last rank alone hears of it.
    callbacks.stop_requested = [&] { return done == stop_at && ranks.rank() == ranks.size() - 1; };
    const TrainerResult end = train(*training.trained, *training.objective, source,
                                    *training.optimizer, folder, training.options, callbacks);
    EXPECT_EQ(end.steps, stop_at > 0 ? stop_at : 30);
    result.weights[static_cast<std::size_t>(ranks.rank())] = weights_of(*training.model);
    result.moments[static_cast<std::size_t>(ranks.rank())] = training.optimizer->bytes();
  };
  if (of.size == 1)
    body(*make_single_process());
  else
    run_ranks(of.size, body);
  return result;
}

void expect_close(const RunResult& a, const RunResult& b) {
  ASSERT_EQ(a.weights[0].size(), b.weights[0].size());
  // Some gradients are nothing but rounding (those of key biases, to which softmax is blind), and
  // AdamW divides them by their own size.
  for (std::size_t i = 0; i < a.weights[0].size(); ++i)
    ASSERT_NEAR(a.weights[0][i], b.weights[0][i], 4e-5) << i;
  ASSERT_EQ(a.steps.size(), b.steps.size());
  for (std::size_t step = 0; step < a.steps.size(); ++step)
    for (const auto& [name, value] : a.steps[step])
      EXPECT_NEAR(value, metric(b.steps[step], name), 1e-5 * (1 + std::abs(value)))
          << name << " of step " << step + 1;
}

class DataParallel : public testing::TestWithParam<bool> {};

TEST_P(DataParallel, RanksTrainWhatOneProcessTrains) {
  const TemporaryFolder alone_folder;
  const RunResult alone = run({1}, GetParam(), alone_folder.path());
  for (const int size : {2, 3, 4}) {  // of 4 rows: parts of 2 and 2, of 1, 1 and 2, of 1 each
    const TemporaryFolder folder;
    const RunResult ranks = run({size}, GetParam(), folder.path());
    expect_close(alone, ranks);
    for (const std::vector<float>& weights : ranks.weights) EXPECT_EQ(weights, ranks.weights[0]);
  }
}

TEST_P(DataParallel, ARunGoesOnWithAnotherNumberOfRanks) {
  const TemporaryFolder alone_folder, folder;
  const RunResult alone = run({1}, GetParam(), alone_folder.path());
  RunResult begun = run({2}, GetParam(), folder.path(), 11);
  RunResult ended = run({1}, GetParam(), folder.path(), -1, true);
  ended.steps.insert(ended.steps.begin(), begun.steps.begin(), begun.steps.end());
  expect_close(alone, ended);
}

std::string moments_file(const TemporaryFolder& run, const char* checkpoint) {
  return read_file(run.path() / "checkpoints" / checkpoint / "optimizer.safetensors");
}

TEST_P(DataParallel, RanksThatShareTheMomentsTrainTheSameBits) {
  for (const int size : {1, 2, 3}) {
    const TemporaryFolder folder, sharing_folder;
    const RunResult each = run({size}, GetParam(), folder.path());
    const RunResult sharing = run({size, true}, GetParam(), sharing_folder.path());
    EXPECT_EQ(sharing.weights, each.weights);
    EXPECT_EQ(sharing.steps, each.steps);
    // Where steps are clipped, by the norm of all gradients.
    EXPECT_GT(metric(each.steps[0], "gradient_norm"), 0.1);
    EXPECT_TRUE(moments_file(sharing_folder, "step-00000030") ==
                moments_file(folder, "step-00000030"));
    std::uint64_t together = 0;
    for (const std::uint64_t bytes : sharing.moments) {
      together += bytes;
      EXPECT_NEAR(static_cast<double>(bytes) * size / static_cast<double>(each.moments[0]), 1.0,
                  0.1);
    }
    EXPECT_EQ(together, each.moments[0]);
  }
}

TEST_P(DataParallel, ARunGoesOnWhoeverHasTheMoments) {
  const TemporaryFolder whole_folder;
  const RunResult whole = run({2}, GetParam(), whole_folder.path());
  struct Change {
    Ranks first, then;
  };
  for (const auto& [first, then] :
       {Change{{2, true}, {2, true}}, Change{{2, true}, {2}}, Change{{2}, {2, true}},
        Change{{3, true}, {2, true}}, Change{{1, true}, {3, true}}, Change{{2, true}, {1}}}) {
    const TemporaryFolder folder;
    const RunResult begun = run(first, GetParam(), folder.path(), 11);
    RunResult ended = run(then, GetParam(), folder.path(), -1, true);
    if (first.size == 2 && then.size == 2) {
      EXPECT_EQ(ended.weights, whole.weights);
    }
    ended.steps.insert(ended.steps.begin(), begun.steps.begin(), begun.steps.end());
    expect_close(whole, ended);
  }
}

INSTANTIATE_TEST_SUITE_P(, DataParallel, testing::Bool(),
                         [](const auto& test) { return test.param ? "Sparse" : "Dense"; });

TEST(DataParallelParts, RanksThatStartFromOtherWeightsAreRefused) {
  const TemporaryFolder temporary;
  const auto different = [&](Communicator& ranks) {
    SmallTraining training(false, 2);
    if (ranks.rank() == 1)
      training.model->parameters()[0].variable.mutable_value().mutable_f32()[0] += 1.0f;
    training.options.ranks = &ranks;
    RunFolder folder(temporary.path());
    OwnRows source(ranks.rank(), ranks.size());
    train(*training.trained, *training.objective, source, *training.optimizer, folder,
          training.options);
  };
  EXPECT_THAT(error_of([&] { run_ranks(2, different); }),
              ::testing::HasSubstr("rank 1 starts from other weights"));
}

// Targets that are ignored on one rank more than on the other weigh as in the whole batch.
TEST(DataParallelParts, UnequalTargetsWeighAsInOneBatch) {
  Batch whole = Arithmetic().next();
  for (int i = 0; i < 11; ++i) whole.targets.mutable_i32()[i] = kIgnoredTarget;
  const auto gradient = [&](Communicator& ranks, bool gated, double& loss) {
    SmallTraining training(gated, 1);
    const std::int64_t rows = whole.ids.size(0) / ranks.size(), begin = rows * ranks.rank();
    const Batch own{whole.ids.rows(begin, begin + rows), whole.targets.rows(begin, begin + rows),
                    begin};
    GradientSum sum(ranks);
    Tape tape;
    sum.watch(tape);
    Metrics metrics;
    tape.backward(training.objective->loss(own, 0, ranks, metrics));
    sum.finish();
    loss = metric(metrics, "loss");
    std::vector<float> all;
    for (const NamedParameter& parameter : training.model->parameters()) {
      const Tensor& grad = parameter.variable.grad();
      all.insert(all.end(), grad.values().begin(), grad.values().end());
    }
    return all;
  };
  for (const bool gated : {false, true}) {
    double loss_alone = 0.0;
    const std::vector<float> alone = gradient(*make_single_process(), gated, loss_alone);
    std::vector<float> together;
    double loss_together = 0.0;
    run_ranks(2, [&](Communicator& ranks) {
      double loss = 0.0;
      std::vector<float> found = gradient(ranks, gated, loss);
      if (ranks.first()) together = std::move(found), loss_together = loss;
    });
    EXPECT_NEAR(loss_together, loss_alone, 1e-6);
    ASSERT_EQ(together.size(), alone.size());
    for (std::size_t i = 0; i < alone.size(); ++i) ASSERT_NEAR(together[i], alone[i], 2e-7) << i;
  }
}

// One of two ranks; keeps what it is given to sum instead of summing it.
class Recorder : public Communicator {
 public:
  struct Started {
    std::vector<std::span<float>> arrays;
    std::vector<std::vector<float>> values;
    bool early = false;  // while the backward pass still ran
  };

  Recorder() : Communicator({0, 2, 0, 2}) {}
  void sum(std::span<double>) override {}
  std::unique_ptr<PendingSum> start_sum(std::vector<std::span<float>> arrays, DeviceKind) override {
    Started& started = all.emplace_back();
    started.early = in_backward();
    for (const std::span<float> array : arrays)
      started.values.emplace_back(array.begin(), array.end());
    started.arrays = std::move(arrays);
    return make_single_process()->start_sum({}, DeviceKind::kCpu);
  }
  void all_gather(const std::vector<std::vector<std::span<float>>>&, DeviceKind) override {}
  void broadcast(std::span<std::byte>) override {}
  bool all_failed(std::chrono::milliseconds) override { return false; }
  void abort(int) override { fail("aborted"); }

  std::function<bool()> in_backward;
  std::vector<Started> all;
};

TEST(GradientSum, BucketsStartDuringBackwardWithFinalGradientsEachOnce) {
  for (const bool gated : {false, true}) {
    SmallTraining training(gated, 1);
    Recorder recorder;
    const Variable& embedding = training.model->parameters()[0].variable;
    ASSERT_EQ(training.model->parameters()[0].name, "transformer.wte.weight");
    // What comes last in the backward pass has no whole gradient before its end.
    bool ended = false;
    recorder.in_backward = [&] { return !ended; };
    GradientSum sum(recorder, 1000);
    Tape tape;
    sum.watch(tape);
    Metrics metrics;
    tape.backward(training.objective->loss(Arithmetic().next(), 0, recorder, metrics));
    ended = true;
    sum.finish();
    std::vector<const float*> summed;
    std::size_t early = 0;
    for (const Recorder::Started& started : recorder.all) {
      early += started.early ? 1 : 0;
      std::size_t bytes = 0;
      for (std::size_t i = 0; i < started.arrays.size(); ++i) {
        const std::span<float> now = started.arrays[i];
        EXPECT_TRUE(std::equal(now.begin(), now.end(), started.values[i].begin()))
            << "a gradient changed after its sum had started";
        summed.push_back(now.data());
        bytes += now.size_bytes();
      }
      EXPECT_TRUE(bytes <= 1000 || started.arrays.size() == 1) << bytes;
    }
    EXPECT_GT(early, 10u);
    EXPECT_TRUE(summed.back() == embedding.grad().f32());  // used first, so final last
    std::vector<const float*> expected;
    for (const NamedParameter& parameter : training.model->parameters())
      expected.push_back(parameter.variable.grad().f32());
    for (const Variable& bias : training.model->gate_biases())
      expected.push_back(bias.grad().f32());
    std::sort(summed.begin(), summed.end());
    std::sort(expected.begin(), expected.end());
    EXPECT_EQ(summed, expected);
  }
}

TEST(DataParallelParts, AnEvaluationOfSeveralRanksIsThatOfOne) {
  for (const bool gated : {false, true}) {
    const auto model = make_model(tiny_config(gated), 5);
    std::vector<TokenId> ids(131);
    for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<TokenId>(i * 7 % 20);
    const WindowOptions options{.length = 12, .stride = 5, .batch = 2};
    const auto windows = [&] { return text_windows(ids, options, model->config()); };
    const Evaluation alone = evaluate(*model, windows());
    for (const int size : {2, 3})
      run_ranks(size, [&](Communicator& ranks) {
        const Evaluation together = evaluate(*model, windows(), {}, &ranks);
        EXPECT_EQ(together.loss(), alone.loss());
        EXPECT_EQ(together.loss_error(), alone.loss_error());
        EXPECT_EQ(together.total.tokens, alone.total.tokens);
        EXPECT_EQ(together.open_edges, alone.open_edges);
        EXPECT_EQ(together.connectivity().keys_per_query, alone.connectivity().keys_per_query);
        EXPECT_EQ(together.windows.size(), alone.windows.size());
      });
  }
}

}  // namespace
}  // namespace filigree
