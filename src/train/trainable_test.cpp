// A run of something that is no language model: a linear map with files of its own, batches of its
// own kind, and parameters that ranks may split. It learns, resumes bit for bit, and refuses to
// resume with anything else.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "filigree/error.h"
#include "filigree/ops.h"
#include "filigree/random.h"
#include "filigree/train.h"
#include "support/errors.h"
#include "support/temporary_folder.h"
#include "support/thread_ranks.h"

namespace filigree {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kIn = 5, kOut = 8, kRows = 6;

Tensor normals(const Shape& shape, std::uint64_t seed, std::uint64_t stream) {
  Tensor tensor = Tensor::empty(shape);
  fill_normal({tensor.mutable_f32(), static_cast<std::size_t>(tensor.elements())}, seed, stream);
  return tensor;
}

// Columns [begin, end) of a matrix.
Tensor columns(const Tensor& matrix, std::int64_t begin, std::int64_t end) {
  Tensor part = Tensor::empty({matrix.size(0), end - begin});
  for (std::int64_t i = 0; i < part.elements(); ++i)
    part.mutable_f32()[i] =
        matrix.f32()[i / (end - begin) * matrix.size(1) + begin + i % (end - begin)];
  return part;
}

// y = (x + shift) W. All ranks have the shift, each its columns of W.
struct LinearMap : Trainable {
  std::int64_t begin, end;
  std::uint64_t seed;
  Variable shift = Tensor::zeros({kRows, kIn});
  Variable weight;

  explicit LinearMap(int rank = 0, int size = 1, std::uint64_t drawn_from = 1)
      : begin(kOut * rank / size), end(kOut * (rank + 1) / size), seed(drawn_from) {
    weight = Variable(columns(normals({kIn, kOut}, seed, 0), begin, end));
  }

  bool split() const { return end - begin < kOut; }
  std::vector<NamedParameter> parameters() const override {
    std::vector<NamedParameter> all = {{"shift", shift}};
    if (!split()) all.push_back({"weight", weight});
    return all;
  }
  std::vector<NamedParameter> own_parameters() const override {
    if (!split()) return {};
    return {{"weight", weight}};
  }
  Settings settings() const override { return {{"outputs", kOut}, {"map_seed", seed}}; }
  void save(const std::filesystem::path& folder, Communicator& ranks) const override {
    if (ranks.first()) write(folder / "shift.floats", shift);
    write(folder / fmt::format("columns-{}.floats", begin), weight);
  }
  void restore(const std::filesystem::path& folder, Communicator&) override {
    read(folder / "shift.floats", shift);
    read(folder / fmt::format("columns-{}.floats", begin), weight);
  }

  static void write(const std::filesystem::path& file, const Variable& variable) {
    const Tensor& value = variable.value();
    std::ofstream(file, std::ios::binary)
        .write(reinterpret_cast<const char*>(value.raw()),
               static_cast<std::streamsize>(value.bytes()));
  }
  static void read(const std::filesystem::path& file, const Variable& variable) {
    Tensor value = Tensor::empty(variable.shape());
    std::ifstream in(file, std::ios::binary);
    in.read(reinterpret_cast<char*>(value.mutable_f32()),
            static_cast<std::streamsize>(value.bytes()));
    require(in.good(), "cannot read '{}'", file.string());
    variable.mutable_value() = value;
  }
};

// No tokens: vectors, and what the map should make of them.
struct Pairs {
  Tensor inputs, targets;
};

struct PairSource : SourceOf<Pairs> {
  std::uint64_t seed = 7;
  std::uint64_t served = 0;

  Pairs next() override {
    Pairs pairs{normals({kRows, kIn}, seed, ++served), Tensor()};
    const Variable truth = matmul(shift_all(pairs.inputs), Variable(normals({kIn, kOut}, 99, 0)));
    pairs.targets = truth.value();
    return pairs;
  }
  static Variable shift_all(const Tensor& x) { return shift(Variable(x), 0.5f); }
  Settings settings() const override { return {{"pair_seed", seed}}; }
  nlohmann::json state() const override { return {{"served", served}}; }
  void restore(const nlohmann::json& state) override { served = state.at("served"); }
};

struct SquaredError : ObjectiveOn<Pairs> {
  const LinearMap& map;
  float factor = 1.0f;
  explicit SquaredError(const LinearMap& of) : map(of) {}

  Variable loss(const Pairs& batch, std::int64_t, Communicator& ranks, Metrics& metrics) override {
    const Variable made = matmul(add(Variable(batch.inputs), map.shift), map.weight);
    const Variable error = sub(made, Variable(columns(batch.targets, map.begin, map.end)));
    const Variable value = scale(sum_all(square(error)), factor / static_cast<float>(kRows * kOut));
    double all[] = {static_cast<double>(value.value().item())};
    ranks.sum(all);
    metrics = {{"loss", all[0]}};
    return value;
  }
  Settings settings() const override { return {{"factor", decimal(factor)}}; }
};

struct MapRun {
  LinearMap map;
  PairSource source;
  SquaredError objective{map};
  float weight_decay = 0.01f;
  AdamWOptions adam;
  TrainerOptions options;
  std::vector<double> losses;

  explicit MapRun(std::int64_t steps = 40, LinearMap trained = LinearMap())
      : map(std::move(trained)) {
    options.schedule = {3e-2f, 5, steps, 0.1f};
    options.clip = 0.5;  // of the gradients of all ranks together
    options.accumulate = 2;
    options.checkpoint_every = 9;
  }

  TrainerResult train(const std::filesystem::path& path, std::int64_t stop_at = -1,
                      Communicator* ranks = nullptr) {
    options.ranks = ranks;
    RunFolder folder(path);
    map.set_requires_grad(true);
    AdamW optimizer(decay_groups(map, weight_decay), adam);
    std::int64_t done = 0;
    TrainerCallbacks callbacks;
    callbacks.progress = [&](std::int64_t step, const Metrics& metrics) {
      done = step;
      losses.push_back(metric(metrics, "loss"));
    };
    callbacks.stop_requested = [&] { return done == stop_at; };
    return filigree::train(map, objective, source, optimizer, folder, options, callbacks);
  }

  std::vector<float> values() const {
    std::vector<float> all;
    for (const Variable& variable : {map.shift, map.weight})
      all.insert(all.end(), variable.value().values().begin(), variable.value().values().end());
    return all;
  }
};

TEST(TrainALinearMap, Learns) {
  const TemporaryFolder folder;
  MapRun run(400);
  EXPECT_EQ(run.train(folder.path()).end, RunEnd::kFinished);
  EXPECT_LT(run.losses.back(), 1e-2 * run.losses.front());
}

TEST(TrainALinearMap, InterruptedAnywhereItEndsInTheSameBits) {
  const TemporaryFolder straight;
  MapRun uninterrupted;
  uninterrupted.train(straight.path());
  for (const std::int64_t stop : {1, 9, 23, 39}) {
    const TemporaryFolder folder;
    EXPECT_EQ(MapRun().train(folder.path(), stop).end, RunEnd::kInterrupted);
    MapRun second;
    second.options.resume = true;
    EXPECT_EQ(second.train(folder.path()).resumed_from, stop);
    EXPECT_EQ(second.values(), uninterrupted.values()) << "stopped at " << stop;
  }
}

TEST(TrainALinearMap, WhateverDecidesTheResultIsNamedWhenItChanges) {
  const TemporaryFolder folder;
  MapRun().train(folder.path(), 9);
  const auto refusal = [&](const std::function<void(MapRun&)>& change,
                           LinearMap map = LinearMap()) -> std::string {
    MapRun run(40, std::move(map));
    run.options.resume = true;
    if (change) change(run);
    return error_of([&] { run.train(folder.path(), 9); });
  };
  EXPECT_THAT(refusal([](MapRun& run) { run.options.schedule.peak = 0.01f; }),
              HasSubstr("'learning_rate' was 0.03 when the run was started and is 0.01 now"));
  EXPECT_THAT(refusal([](MapRun& run) { run.options.clip = 2; }), HasSubstr("'clip' was 0.5"));
  EXPECT_THAT(refusal([](MapRun& run) { run.adam.beta2 = 0.9f; }), HasSubstr("'beta2' was 0.95"));
  EXPECT_THAT(refusal([](MapRun& run) { run.weight_decay = 0.0f; }),
              HasSubstr("'weight_decay' was 0.01"));
  EXPECT_THAT(refusal([](MapRun& run) { run.source.seed = 8; }), HasSubstr("'pair_seed' was 7"));
  EXPECT_THAT(refusal([](MapRun& run) { run.objective.factor = 2; }), HasSubstr("'factor' was 1"));
  EXPECT_THAT(refusal({}, LinearMap(0, 1, 2)), HasSubstr("'map_seed' was 1"));
  EXPECT_EQ(refusal([](MapRun& run) {
              run.options.log_every = run.options.checkpoint_every = 3;
              run.options.keep = 1;
            }),
            "no error");
}

// What each of the ranks has of W, side by side.
std::vector<std::vector<float>> train_split(const std::filesystem::path& path, int size,
                                            std::int64_t stop_at = -1, bool resume = false) {
  std::vector<std::vector<float>> values(static_cast<std::size_t>(size));
  run_ranks(size, [&](Communicator& ranks) {
    MapRun run(40, LinearMap(ranks.rank(), ranks.size()));
    run.options.resume = resume;
    run.train(path, stop_at, &ranks);
    values[static_cast<std::size_t>(ranks.rank())] = run.values();
  });
  return values;
}

TEST(TrainALinearMap, SplitOverRanksItLearnsTheSame) {
  const TemporaryFolder alone_folder, folder;
  MapRun alone;
  alone.train(alone_folder.path());
  const auto split = train_split(folder.path(), 2);
  const std::size_t shift = static_cast<std::size_t>(kRows * kIn);
  for (std::size_t i = 0; i < shift; ++i) {
    EXPECT_EQ(split[0][i], split[1][i]);
    EXPECT_NEAR(split[0][i], alone.values()[i], 1e-5);
  }
  for (std::size_t row = 0; row < kIn; ++row)
    for (std::size_t column = 0; column < kOut; ++column)
      EXPECT_NEAR(split[column / 4][shift + row * 4 + column % 4],
                  alone.values()[shift + row * kOut + column], 1e-5);
}

TEST(TrainALinearMap, SplitOverRanksItResumesBitForBit) {
  const TemporaryFolder straight, folder;
  const auto uninterrupted = train_split(straight.path(), 2);
  train_split(folder.path(), 2, 23);
  EXPECT_EQ(train_split(folder.path(), 2, -1, true), uninterrupted);
}

}  // namespace
}  // namespace filigree
