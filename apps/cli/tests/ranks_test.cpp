// Commands that several processes run together, under mpirun: what one process gives, to rounding.
#include <fmt/format.h>

#include <cmath>

#include "apps/cli/tests/test_task.h"
#include "apps/cli/training/training_test_support.h"
#include "dist/has_mpi.h"
#include "filigree/model.h"

namespace filigree::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

#define FILIGREE_NEEDS_MPI() \
  if (!kHasMpi) GTEST_SKIP() << "this build has no MPI (libopenmpi-dev puts it in)"

std::size_t occurrences(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++count;
  return count;
}

// A line of the shell in `ranks` processes. Nothing but this machine's memory is needed: no
// network, no remote shell, no room on its cores. Open MPI unloads parts of itself that still hold
// memory, which would fail a run under AddressSanitizer.
ProgramRun run_ranks(int ranks, const std::string& line) {
  return run_shell(
      "export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_plm=isolated "
      "OMPI_MCA_pml=ob1 OMPI_MCA_btl=self,vader OMPI_MCA_btl_vader_single_copy_mechanism=none "
      "OMPI_MCA_btl_base_warn_component_unused=0 OMPI_MCA_mpi_yield_when_idle=1 "
      "ASAN_OPTIONS=\"$ASAN_OPTIONS:detect_leaks=0\"; "
      "mpirun --oversubscribe --bind-to none -n " +
      std::to_string(ranks) + " " + line);
}

ProgramRun run_ranks(int ranks, const Arguments& arguments) {
  std::string line = "\"$FILIGREE\"";
  for (const std::string& argument : arguments) line += " '" + argument + "'";
  return run_ranks(ranks, line);
}

class RanksTest : public TrainingCommandTest {
 protected:
  void SetUp() override {
    FILIGREE_NEEDS_MPI();
    TrainingCommandTest::SetUp();
  }

  Arguments pretrain_in(const std::string& out) const {
    return pretrain(out, "12") + Arguments{"--batch", "6", "--set", "evaluate-every=6", "--json"};
  }
  Arguments sparsify_in(const std::string& out) const {
    return sparsify(out, "12") +
           Arguments{"--batch",      "6",     "--set",        "gate-bias=0.02", "--set",
                     "accumulate=2", "--set", "max-open=0.5", "--json"};
  }

  nlohmann::json expect_success_of(int ranks, const Arguments& arguments) const {
    const ProgramRun run = ranks == 1 ? run_program(arguments) : run_ranks(ranks, arguments);
    // 3: that the dense model had not converged, which is right.
    EXPECT_TRUE(run.code == 0 || (run.code == 3 && arguments[0] == "sparsify")) << run.err;
    const nlohmann::json json = nlohmann::json::parse(run.out, nullptr, false);
    EXPECT_FALSE(json.is_discarded()) << run.out;  // one document, though several processes ran
    return json;
  }

  void expect_same_weights(const std::string& a, const std::string& b) const {
    const auto one = load_model(path(a)), other = load_model(path(b));
    ASSERT_EQ(one->config().gate.bias.size(), other->config().gate.bias.size());
    for (std::size_t i = 0; i < one->config().gate.bias.size(); ++i)
      EXPECT_NEAR(one->config().gate.bias[i], other->config().gate.bias[i], 4e-5);
    ASSERT_EQ(one->parameters().size(), other->parameters().size());
    for (std::size_t p = 0; p < one->parameters().size(); ++p) {
      const Tensor& x = one->parameters()[p].variable.value();
      const Tensor& y = other->parameters()[p].variable.value();
      for (std::int64_t i = 0; i < x.elements(); ++i)
        ASSERT_NEAR(x.f32()[i], y.f32()[i], 4e-5) << one->parameters()[p].name << " " << i;
    }
  }

  std::vector<nlohmann::json> log_of(const std::string& run) const {
    std::ifstream log(path(run) + "/log.jsonl");
    std::vector<nlohmann::json> lines;
    for (std::string line; std::getline(log, line);) lines.push_back(nlohmann::json::parse(line));
    return lines;
  }

  void expect_same_log(const std::string& a, const std::string& b) const {
    const std::vector<nlohmann::json> one = log_of(a), other = log_of(b);
    ASSERT_EQ(one.size(), other.size());
    ASSERT_GE(one.size(), 13u);
    for (std::size_t i = 1; i < one.size(); ++i)
      for (const auto& [name, value] : one[i].items()) {
        if (!value.is_number()) {
          EXPECT_EQ(value, other[i][name]);
          continue;
        }
        const double number = value.get<double>();
        EXPECT_NEAR(number, other[i][name].get<double>(), 1e-4 * (1 + std::abs(number)))
            << name << " in line " << i;
      }
  }
};

TEST_F(RanksTest, TrainTheWeightsOfOneProcess) {
  expect_success_of(1, pretrain_in("one"));
  expect_success_of(1, sparsify_in("sparse-one"));
  for (const int ranks : {2, 3}) {
    const std::string number = std::to_string(ranks);
    const nlohmann::json result = expect_success_of(ranks, pretrain_in("dense-" + number));
    EXPECT_EQ(result["steps"], 12);
    EXPECT_EQ(log_of("dense-" + number)[0]["processes"], ranks);
    expect_same_weights("one", "dense-" + number);
    expect_same_log("one", "dense-" + number);
    expect_success_of(ranks, sparsify_in("sparse-" + number));
    expect_same_weights("sparse-one", "sparse-" + number);
    expect_same_log("sparse-one", "sparse-" + number);
  }
}

TEST_F(RanksTest, OneProcessGoesOnWithTheRunOfTwo) {
  expect_success_of(1, sparsify_in("one"));
  const Arguments two = sparsify_in("two") + Arguments{"--checkpoint-every", "5"};
  expect_success_of(2, two);
  // As a power cut after step 10 leaves it.
  std::filesystem::remove_all(path("two/checkpoints/step-00000012"));
  std::filesystem::remove(path("two/model.safetensors"));
  const nlohmann::json resumed = expect_success_of(1, two + Arguments{"--resume"});
  EXPECT_EQ(resumed["resumed_from"], 10);
  expect_same_weights("one", "two");
  expect_same_log("one", "two");
}

TEST_F(RanksTest, ShareTheOptimizerAndTrainTheSameBits) {
  const Arguments sharing = {"--set", "shard-optimizer=true", "--checkpoint-every", "5"};
  const auto optimizer = [&](const std::string& run, const char* step) {
    return contents_of(path(run) + "/checkpoints/step-000000" + step + "/optimizer.safetensors");
  };
  for (const int ranks : {2, 3}) {
    for (const bool sparse : {false, true}) {
      const auto command = [&](const std::string& out) {
        return sparse ? sparsify_in(out) : pretrain_in(out);
      };
      const std::string each = fmt::format("each-{}-{}", ranks, sparse), shared = "shared-" + each;
      const auto plain = expect_success_of(ranks, command(each));
      const auto result = expect_success_of(ranks, command(shared) + sharing);
      EXPECT_TRUE(weights(each) == weights(shared));
      EXPECT_TRUE(optimizer(each, "12") == optimizer(shared, "12"));
      EXPECT_NEAR(result["optimizer_memory_bytes"].get<double>() * ranks /
                      plain["optimizer_memory_bytes"].get<double>(),
                  1.0, 0.1);
      // As a power cut after step 10 leaves it; then with each its own, and with another number.
      std::filesystem::remove_all(path(shared + "/checkpoints/step-00000012"));
      std::filesystem::remove(path(shared + "/model.safetensors"));
      const std::string other = shared + "-other";
      std::filesystem::copy(path(shared), path(other), std::filesystem::copy_options::recursive);
      const Arguments resume = {"--resume"};
      EXPECT_EQ(expect_success_of(ranks, command(shared) + resume)["resumed_from"], 10);
      EXPECT_TRUE(weights(each) == weights(shared));
      EXPECT_EQ(expect_success_of(5 - ranks, command(other) + sharing + resume)["resumed_from"],
                10);
      expect_same_weights(each, other);
    }
  }
}

TEST_F(RanksTest, ASignalToOneOfThemSavesAndStopsAll) {
  const Arguments arguments = pretrain("stopped", "100000") + Arguments{"--json"};
  std::string line;
  for (const std::string& argument : arguments) line += " " + argument;
  // The shell becomes the program, so that it knows the number to send the signal to.
  const ProgramRun run = run_ranks(
      2,
      "sh -c 'if [ $OMPI_COMM_WORLD_RANK = 1 ]; then (until [ \"$(wc -l 2>/dev/null <" +
          path("stopped/log.jsonl") +
          ")\" -gt 5 ] 2>/dev/null; do sleep 0.05; done; kill -INT $$) & fi; exec \"$FILIGREE\"" +
          line + "'");
  EXPECT_EQ(run.code, 130) << run.err;
  const std::size_t steps = log_lines("stopped") - 1;
  EXPECT_GE(steps, 5u);
  EXPECT_TRUE(std::filesystem::exists(
      fmt::format("{}/step-{:08}/state.json", path("stopped/checkpoints"), steps)));
  EXPECT_FALSE(std::filesystem::exists(path("stopped/config.json")));
}

// One of three is killed in the middle of the work: the launcher ends the others at once, and the
// run goes on with any number of ranks, each number giving the same bits every time.
TEST_F(RanksTest, ARankThatIsKilledEndsTheOthersAndTheRunGoesOnWithAnyNumber) {
  const Arguments arguments =
      pretrain("killed", "60") +
      Arguments{"--batch", "12", "--checkpoint-every", "5", "--set", "keep=2"};
  std::string line;
  for (const std::string& argument : arguments) line += " " + argument;
  const ProgramRun run = run_ranks(
      3,
      "sh -c 'if [ $OMPI_COMM_WORLD_RANK = 1 ]; then (until [ \"$(wc -l 2>/dev/null <" +
          path("killed/log.jsonl") +
          ")\" -gt 8 ] 2>/dev/null; do sleep 0.01; done; kill -KILL $$) & fi; exec \"$FILIGREE\"" +
          line + "'");
  if (run.code == 0) GTEST_SKIP() << "the run ended before the kill";
  EXPECT_THAT(run.err, HasSubstr("signal 9"));
  EXPECT_FALSE(std::filesystem::exists(path("killed/config.json")));
  for (const int ranks : {1, 2, 4}) {
    std::vector<std::string> results;
    for (const char* attempt : {"a", "b"}) {
      const std::string name = fmt::format("resumed-{}-{}", ranks, attempt);
      std::filesystem::copy(path("killed"), path(name), std::filesystem::copy_options::recursive);
      Arguments again = pretrain(name, "60") +
                        Arguments{"--batch", "12", "--resume", "--checkpoint-every", "5", "--json"};
      EXPECT_GE(expect_success_of(ranks, again)["resumed_from"], 5);
      results.push_back(weights(name));
    }
    EXPECT_TRUE(results[0] == results[1]) << ranks << " ranks";
  }
}

TEST_F(RanksTest, FailTogetherWithOneMessage) {
  // All of them see what is wrong.
  const ProgramRun odd = run_ranks(2, pretrain("odd", "2") + Arguments{"--batch", "3"});
  EXPECT_EQ(odd.code, 1);
  EXPECT_EQ(occurrences(odd.err, "a batch of 3 windows cannot be shared by 2 processes"), 1u)
      << odd.err;
  const ProgramRun wrong = run_ranks(2, Arguments{"pretrain", "--stepps", "2"});
  EXPECT_EQ(wrong.code, 2);
  EXPECT_EQ(occurrences(wrong.err, "unknown option '--stepps'"), 1u) << wrong.err;
  const ProgramRun single = run_ranks(2, Arguments{"info", path("dense")});
  EXPECT_EQ(single.code, 2);
  EXPECT_EQ(occurrences(single.err, "'info' is the work of one"), 1u) << single.err;
  EXPECT_EQ(single.out, "");

  // One of them alone fails; the other would wait for it.
  std::string line;
  for (const std::string& argument : pretrain("alone", "50")) line += " " + argument;
  const ProgramRun alone =
      run_ranks(2,
                "sh -c 'if [ $OMPI_COMM_WORLD_RANK = 1 ]; then cd /; exec \"$FILIGREE\" pretrain "
                "/no/shards --out /no/where; fi; exec \"$FILIGREE\"" +
                    line + "'");
  EXPECT_NE(alone.code, 0);
  EXPECT_THAT(alone.err, AllOf(HasSubstr("filigree: on rank 1 of 2"), HasSubstr("/no/shards")));
}

// Without what differs from run to run.
nlohmann::json lasting(nlohmann::json json) {
  json.erase("threads");
  for (nlohmann::json& model : json["models"]) {
    model.erase("seconds");
    model.erase("tokens_per_second");
  }
  return json;
}

TEST_F(RanksTest, SweepsAndEvaluationsAreThoseOfOneProcess) {
  const ModelFolder model;
  const std::string task = path("task.jsonl");
  ASSERT_NO_FATAL_FAILURE(write_own_task(model, task, 12));
  const std::vector<Arguments> commands = {
      {"circuit", model.path().string(), "--task", task, "--json", "--quiet"},
      {"circuit", model.path().string(), "--task", task, "--parts", "edges", "--method", "exact",
       "--json", "--quiet"},
      {"patch", model.path().string(), "--task", task, "--site", "z,resid", "--json", "--quiet"},
      {"eval", path("dense"), "--data", shards_, "--json", "--quiet"}};
  for (const Arguments& command : commands) {
    const ProgramRun one = run_program(command), two = run_ranks(2, command);
    EXPECT_EQ(two.code, one.code) << two.err;
    EXPECT_EQ(lasting(nlohmann::json::parse(two.out)), lasting(nlohmann::json::parse(one.out)))
        << command[0];
  }
  // Rank 0 writes the files, with the state of the work too.
  const Arguments files = commands[0] + Arguments{"--out", path("files"), "--state", path("state")};
  EXPECT_EQ(run_ranks(2, files).code, run_program(commands[0]).code);
  EXPECT_TRUE(std::filesystem::exists(path("state")));
  EXPECT_FALSE(std::filesystem::is_empty(path("files")));
}

}  // namespace
}  // namespace filigree::cli
