// pretrain and sparsify as a user runs them: what they leave behind, interruption, resumption, and
// what they refuse.
#include <fmt/format.h>

#include <csignal>

#include "apps/cli/training/training_test_support.h"
#include "filigree/model.h"
#include "filigree/study_figures.h"

namespace filigree::cli {
namespace {

namespace fs = std::filesystem;

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST_F(TrainingCommandTest, FromTextToASparseModelThatGenerates) {
  const nlohmann::json sparse =
      json_of_trained(sparsify("sparse", "20") + Arguments{"--set", "gate-bias=0.02"});
  EXPECT_EQ(sparse["end"], "finished");
  EXPECT_EQ(sparse["steps"], 20);
  ASSERT_EQ(sparse["held_out"].size(), 2u);
  EXPECT_EQ(sparse["held_out"][0]["label"], "dense");
  EXPECT_EQ(sparse["held_out"][0]["active_edges"], 1.0);
  const double edges = sparse["held_out"][1]["active_edges"].get<double>();
  EXPECT_GT(edges, 0.0);
  EXPECT_LT(edges, 1.0);
  EXPECT_EQ(load_model(path("sparse"))->config().gate.bias.size(), 4u);
  EXPECT_THAT(run_program({"info", path("sparse")}).out, HasSubstr("a bias for each of 4 heads"));

  // eval finds what the run reported.
  const nlohmann::json eval = json_of({"eval", path("dense"), path("sparse"), "--data", shards_});
  for (const char* key : {"loss", "active_edges", "keys_per_query", "layers"})
    EXPECT_EQ(eval["models"][1][key], sparse["held_out"][1][key]) << key;
  EXPECT_THAT(expect_success({"generate", path("sparse"), "--prompt", "The capital", "--max-tokens",
                              "4", "--quiet"})
                  .out,
              ::testing::StartsWith("The capital"));
  const auto stored = nlohmann::json::parse(contents_of(path("sparse/result.json")));
  EXPECT_EQ(stored["held_out"][1]["loss"], sparse["held_out"][1]["loss"]);
}

TEST_F(TrainingCommandTest, TheLogSaysWhatWasRun) {
  std::ifstream log(path("dense/log.jsonl"));
  std::string line;
  std::getline(log, line);
  const nlohmann::json header = nlohmann::json::parse(line);
  EXPECT_EQ(header["run"], "pretrain");
  EXPECT_EQ(header["settings"]["learning_rate"], 3e-3);
  EXPECT_EQ(header["settings"]["warmup"], 1);
  EXPECT_EQ(header["seed"], 0);
  EXPECT_EQ(header["start_weights"].get<std::string>().size(), 16u);
  EXPECT_EQ(header["data"]["train"].get<std::string>().size(), 16u);
  std::int64_t steps = 0;
  for (; std::getline(log, line); ++steps) {
    EXPECT_EQ(nlohmann::json::parse(line)["step"], steps + 1);
  }
  EXPECT_EQ(steps, 20);
}

// Interrupted by a signal and resumed, a run ends in the same bits as one that never was.
class Interruption : public TrainingCommandTest {
 protected:
  void check(const Arguments& straight, const std::string& straight_name,
             const std::function<Arguments(const std::string&)>& command, int signal) {
    expect_trained(straight);
    // The run may end before the signal arrives, on a busy machine; then it is tried again.
    for (int attempt = 0; attempt < 10; ++attempt) {
      const std::string name = fmt::format("run{}-{}", signal, attempt);
      Arguments loud = command(name);
      std::erase(loud, "--quiet");
      const ProgramRun stopped = run_and_signal(loud, signal, [&] { return log_lines(name) >= 4; });
      if (stopped.code == 0 || stopped.code == 3) continue;
      ASSERT_EQ(stopped.code, 128 + signal) << stopped.err;
      EXPECT_EQ(stopped.out, "");
      EXPECT_THAT(stopped.err, AllOf(HasSubstr(": stopped after step "),
                                     HasSubstr("the same command with --resume goes on")));
      EXPECT_FALSE(fs::exists(path(name + "/model.safetensors")));
      const nlohmann::json result = json_of_trained(command(name) + Arguments{"--resume"});
      EXPECT_GE(result["resumed_from"], 3);
      EXPECT_EQ(result["steps"], 150);
      EXPECT_TRUE(weights(name) == weights(straight_name));
      EXPECT_EQ(contents_of(path(name + "/config.json")),
                contents_of(path(straight_name + "/config.json")));
      EXPECT_EQ(contents_of(path(name + "/log.jsonl")),
                contents_of(path(straight_name + "/log.jsonl")));
      return;
    }
    FAIL() << "no attempt was interrupted";
  }
};

TEST_F(Interruption, PretrainResumesBitForBitAfterCtrlC) {
  check(
      pretrain("straight", "150"), "straight",
      [&](const std::string& name) { return pretrain(name, "150"); }, SIGINT);
}

TEST_F(Interruption, SparsifyResumesBitForBitAfterTermination) {
  const Arguments more = {"--set", "accumulate=2", "--set", "dual-every=3"};
  check(
      sparsify("straight", "150") + more, "straight",
      [&](const std::string& name) { return sparsify(name, "150") + more; }, SIGTERM);
}

// What batch systems and closed terminals send.
TEST_F(Interruption, OtherSignalsThatEndAProcessSaveACheckpointToo) {
  for (const int signal : {SIGHUP, SIGUSR1, SIGXCPU}) {
    const std::string straight = fmt::format("straight{}", signal);
    check(
        pretrain(straight, "150"), straight,
        [&](const std::string& name) { return pretrain(name, "150"); }, signal);
  }
}

TEST_F(Interruption, TheControlIsResumedToo) {
  const auto command = [&](const std::string& name) {
    return sparsify(name, "100") + Arguments{"--control", "--json"};
  };
  expect_trained(command("straight"));
  for (int attempt = 0; attempt < 10; ++attempt) {
    const std::string name = "run" + std::to_string(attempt);
    const ProgramRun stopped =
        run_and_signal(command(name), SIGINT, [&] { return log_lines(name + "/control") >= 4; });
    if (stopped.code == 0 || stopped.code == 3) continue;
    ASSERT_EQ(stopped.code, 130) << stopped.err;
    EXPECT_EQ(nlohmann::json::parse(stopped.out)["end"], "interrupted");
    EXPECT_FALSE(fs::exists(path(name + "/control/model.safetensors")));
    expect_trained(command(name) + Arguments{"--resume"});
    EXPECT_TRUE(weights(name) == weights("straight"));
    EXPECT_TRUE(weights(name + "/control") == weights("straight/control"));
    return;
  }
  FAIL() << "no attempt was interrupted";
}

TEST_F(TrainingCommandTest, TheControlSeesTheSameStepsAndData) {
  const nlohmann::json json = json_of_trained(sparsify("sparse", "20") + Arguments{"--control"});
  ASSERT_EQ(json["held_out"].size(), 3u);
  EXPECT_EQ(json["held_out"][2]["label"], "control");
  EXPECT_EQ(json["held_out"][2]["active_edges"], 1.0);
  EXPECT_LT(json["held_out"][2]["change"], 0.0);
  EXPECT_FALSE(load_model(path("sparse/control"))->config().gate.on());
  expect_success(
      {"generate", path("sparse/control"), "--prompt", "The", "--max-tokens", "2", "--quiet"});
  EXPECT_EQ(log_lines("sparse/control"), 21u);  // a header, and a line a step

  // Asked for later, it is the same.
  expect_trained(sparsify("later", "20"));
  EXPECT_FALSE(fs::exists(path("later/control")));
  expect_trained(sparsify("later", "20") + Arguments{"--control", "--resume"});
  EXPECT_TRUE(weights("later") == weights("sparse"));
  EXPECT_TRUE(weights("later/control") == weights("sparse/control"));
}

TEST_F(TrainingCommandTest, AnUnconvergedDenseModelEndsWithThreeAndSaysSo) {
  const ProgramRun run = run_program(sparsify("sparse", "60") + Arguments{"--control"});
  EXPECT_EQ(run.code, 3);
  EXPECT_THAT(run.err, AllOf(HasSubstr("filigree: the dense model had not converged"),
                             HasSubstr("hold the budget against the control")));
  const auto verdict = nlohmann::json::parse(contents_of(path("sparse/result.json")))["verdict"];
  EXPECT_EQ(verdict["holds"], false);
  EXPECT_EQ(verdict["against"], "dense");
  EXPECT_LT(verdict["control"]["change"], -0.01);
  EXPECT_EQ(verdict["found"].back()["finding"], "unconverged-dense");
}

TEST_F(TrainingCommandTest, AllGatesClosedEndWithThreeAndSaySo) {
  const ProgramRun run = run_program(
      sparsify("sparse", "2") + Arguments{"--set", "gate-bias=-900", "--set", "keep-gates=true"});
  EXPECT_EQ(run.code, 3);
  EXPECT_THAT(run.err, HasSubstr("no edge of the sparse model is open"));
  const auto result = nlohmann::json::parse(contents_of(path("sparse/result.json")));
  EXPECT_EQ(result["verdict"]["active_edges"], 0.0);
  EXPECT_EQ(result["verdict"]["found"][0]["finding"], "no-open-edges");
}

// Of the same control whose loss a plain run compares with at its end.
TEST_F(TrainingCommandTest, TheBudgetMayBeCountedFromTheControl) {
  const Arguments fair = {"--budget-from", "control", "--loss-budget", "0.05"};
  const nlohmann::json json = json_of_trained(sparsify("fair", "60") + fair);
  const nlohmann::json& verdict = json["verdict"];
  EXPECT_EQ(verdict["against"], "control");
  ASSERT_EQ(json["held_out"].size(), 3u);
  EXPECT_EQ(json["held_out"][2]["label"], "control");
  EXPECT_NEAR(verdict["gap"]["change"].get<double>(),
              json["held_out"][1]["loss"].get<double>() - json["held_out"][2]["loss"].get<double>(),
              1e-9);
  for (const nlohmann::json& found : verdict["found"]) {
    EXPECT_NE(found["finding"], "unconverged-dense");
    EXPECT_NE(found["finding"], "below-dense");
  }
  // The control's loss is what the gates were set against, and far below the dense model's.
  EXPECT_LT(json["gates"]["loss_asked"].get<double>(), json["held_out"][0]["loss"].get<double>());
  expect_trained(sparsify("plain", "60") + Arguments{"--control"});
  EXPECT_TRUE(weights("fair/control") == weights("plain/control"));
  const std::size_t lines = log_lines("fair");
  expect_trained(sparsify("fair", "60") + fair + Arguments{"--resume"});
  EXPECT_EQ(log_lines("fair"), lines);

  expect_failure(sparsify("no", "3") +
                     Arguments{"--budget-from", "control", "--set", "target=3", "--distill", "0"},
                 "leave one of the two out", 2);
  expect_success(pretrain("other", "2"));
  expect_failure(
      sparsify("no", "3") + Arguments{"--budget-from", "control", "--teacher", path("other")},
      "the control is the teacher");
}

TEST_F(TrainingCommandTest, HeldOutLossIsLoggedAndTheBestIsKept) {
  const Arguments often = {
      "--set", "evaluate-every=4", "--set", "held-out-tokens=100", "--held-out", shards_};
  expect_success(pretrain("run", "12") + often);
  const std::string log = contents_of(path("run/log.jsonl"));
  std::size_t evaluations = 0;
  for (std::size_t at = 0; (at = log.find("held_out_loss", at)) != std::string::npos; ++at)
    ++evaluations;
  EXPECT_EQ(evaluations, 3u);
  const auto result = nlohmann::json::parse(contents_of(path("run/result.json")));
  EXPECT_EQ(result["held_out"][0]["tokens"], 128);  // whole windows
  EXPECT_TRUE(fs::exists(path("run/checkpoints/step-00000012/state.json")));
}

TEST_F(TrainingCommandTest, AnUnreachableAimStopsEarlyAndSaysWhy) {
  const Arguments hopeless = {"--set", "margin=-9",     "--set", "lambda0=60",
                              "--set", "lambda-max=60", "--set", "patience=5",
                              "--set", "recovery=0"};
  const ProgramRun run = run_program(sparsify("sparse", "200") + hopeless + Arguments{"--control"});
  EXPECT_EQ(run.code, 3);
  EXPECT_THAT(run.err, AllOf(HasSubstr("the constraint cannot be met"), HasSubstr("margin")));
  EXPECT_THAT(run.out, HasSubstr("stopped early after 5 steps"));
  EXPECT_TRUE(load_model(path("sparse"))->config().gate.on());
  EXPECT_FALSE(fs::exists(path("sparse/control")));
  const nlohmann::json json = json_of(sparsify("again", "200") + hopeless, 3);
  EXPECT_EQ(json["end"], "stopped-early");
  EXPECT_THAT(json["reason"].get<std::string>(), HasSubstr("cannot be met"));
}

TEST_F(TrainingCommandTest, HeadsLearnTheirBiasUnlessItIsFixed) {
  expect_trained(sparsify("fixed", "3") +
                 Arguments{"--set", "fixed-bias=true", "--set", "keep-gates=true"});
  EXPECT_EQ(load_model(path("fixed"))->config().gate.bias, std::vector<float>{2.0f});
  expect_trained(sparsify("learnt", "3"));
  EXPECT_EQ(load_model(path("learnt"))->config().gate.bias.size(), 4u);
}

// Only the attention projections move, and the result is an ordinary model.
TEST_F(TrainingCommandTest, AdaptersAreMergedAtTheEnd) {
  const Arguments adapters = {"--lora-rank", "2", "--set", "lora-alpha=4", "--control"};
  expect_trained(sparsify("sparse", "6") + adapters);
  const auto dense = load_model(path("dense"));
  for (const char* name : {"sparse", "sparse/control"}) {
    const auto adapted = load_model(path(name));
    EXPECT_FALSE(adapted->lora().has_value()) << name;
    for (std::size_t i = 0; i < dense->parameters().size(); ++i) {
      const NamedParameter& before = dense->parameters()[i];
      const auto left = before.variable.value().values();
      const auto right = adapted->parameters()[i].variable.value().values();
      const bool projection = before.name.find("attn.c_") != std::string::npos &&
                              before.name.find("weight") != std::string::npos;
      EXPECT_EQ(std::equal(left.begin(), left.end(), right.begin()), !projection)
          << name << " " << before.name;
    }
  }
  const ProgramRun other =
      run_program(sparsify("sparse", "6") + Arguments{"--lora-rank", "3", "--resume"});
  EXPECT_EQ(other.code, 1);
  EXPECT_THAT(other.err, HasSubstr("lora_rank"));
}

// So that a model of 8 bits can be trained on and has the same 8 bits afterwards.
TEST_F(TrainingCommandTest, VectorsAreTrainedAloneWhereAsked) {
  const Arguments alone = {"--set", "vectors-only=true", "--set", "certain-gates=true",
                           "--control"};
  expect_trained(sparsify("sparse", "6") + alone);
  const auto dense = load_model(path("dense"));
  for (const char* name : {"sparse", "sparse/control"}) {
    const auto trained = load_model(path(name));
    for (std::size_t i = 0; i < dense->parameters().size(); ++i) {
      const NamedParameter& before = dense->parameters()[i];
      const auto left = before.variable.value().values();
      const auto right = trained->parameters()[i].variable.value().values();
      EXPECT_EQ(std::equal(left.begin(), left.end(), right.begin()),
                before.variable.shape().rank() > 1)
          << name << " " << before.name;
    }
  }
  const ProgramRun other = run_program(sparsify("sparse", "6") + Arguments{"--resume"});
  EXPECT_EQ(other.code, 1);
  EXPECT_THAT(other.err, HasSubstr("start a new run"));
  const ProgramRun both =
      run_program(sparsify("both", "6") + alone + Arguments{"--lora-rank", "2"});
  EXPECT_EQ(both.code, 2) << both.err;
  EXPECT_THAT(both.err, HasSubstr("adapters of rank 2"));
}

TEST_F(TrainingCommandTest, GoesOnFromASparseModelWithItsGates) {
  json_of_trained(sparsify("sparse", "8") + Arguments{"--set", "gate-bias=0.02"});
  const std::vector<float> biases = load_model(path("sparse"))->config().gate.bias;
  Arguments further =
      sparsify("further", "1") +
      Arguments{"--teacher", path("dense"),     "--lr",  "1e-9",           "--control",
                "--set",     "fixed-bias=true", "--set", "keep-gates=true"};
  further[1] = path("sparse");
  const nlohmann::json json = json_of(further);
  // The model and its gates are where it started, so the held-out edges are the same; the dense
  // model beside it is the teacher, and so is the control's start.
  const nlohmann::json eval = json_of({"eval", path("dense"), path("sparse"), "--data", shards_});
  ASSERT_EQ(json["held_out"].size(), 3u);
  EXPECT_EQ(json["held_out"][0]["loss"], eval["models"][0]["loss"]);
  EXPECT_NEAR(json["held_out"][1]["loss"].get<double>(), eval["models"][1]["loss"], 1e-5);
  EXPECT_EQ(json["held_out"][1]["active_edges"], eval["models"][1]["active_edges"]);
  EXPECT_NEAR(json["held_out"][2]["loss"].get<double>(), eval["models"][0]["loss"], 1e-5);
  EXPECT_EQ(load_model(path("further"))->config().gate.bias, biases);
  // The teacher counts: its loss is the dense model's, not that of the sparse one's open gates.
  EXPECT_NE(json["last_step"]["teacher_loss"], json["last_step"]["loss"]);
  std::ifstream log(path("further/log.jsonl"));
  std::string line;
  std::getline(log, line);
  const nlohmann::json settings = nlohmann::json::parse(line)["settings"];
  EXPECT_TRUE(settings["gate_bias"].is_null());
  EXPECT_NE(settings["teacher"], settings["weights"]);

  expect_failure(further + Arguments{"--set", "gate-bias=1", "--out", path("other")},
                 "has its biases");
}

TEST_F(TrainingCommandTest, ADenseModelMayHaveAnotherTeacher) {
  expect_success(pretrain("larger", "20") + Arguments{"--width", "32"});
  const Arguments taught = sparsify("sparse", "2") + Arguments{"--teacher", path("larger")};
  const nlohmann::json dry = json_of(taught + Arguments{"--dry-run"});
  EXPECT_GT(
      dry["memory_bytes"]["teacher"],
      json_of_trained(sparsify("sparse", "2") + Arguments{"--dry-run"})["memory_bytes"]["teacher"]);
  const nlohmann::json json = json_of_trained(taught);
  const nlohmann::json eval = json_of({"eval", path("dense"), path("larger"), "--data", shards_});
  ASSERT_EQ(json["held_out"].size(), 3u);
  for (std::size_t m = 0; m < 2; ++m)
    EXPECT_EQ(json["held_out"][m]["loss"], eval["models"][m]["loss"]);
  EXPECT_EQ(json["held_out"][1]["label"], "teacher");
}

TEST_F(TrainingCommandTest, RefusesTeachersAndLimitsThatCannotBe) {
  json_of_trained(sparsify("sparse", "1"));
  const std::string other = make_shards("other", "2");
  Arguments alien = pretrain("alien", "1");
  alien[1] = other;
  expect_success(alien);
  const Arguments start = sparsify("run", "1");
  expect_failure(start + Arguments{"--teacher", path("sparse")}, "is sparse; a dense model");
  expect_failure(start + Arguments{"--teacher", path("alien")}, "another tokenizer");
  expect_failure(
      start + Arguments{"--teacher", path("dense"), "--set", "target=3", "--distill", "0"},
      "nothing to teach");
  expect_failure(start + Arguments{"--set", "max-open=0.9", "--set", "fixed-bias=true"},
                 "every head needs its own bias", 2);
  expect_success(pretrain("short", "1") + Arguments{"--context", "16"});
  expect_failure(start + Arguments{"--teacher", path("short")}, "the teacher's context of 16");

  // Learned biases that are to stay as they are, with --fixed-bias, are worth a note.
  Arguments further = {"sparsify",    path("sparse"), shards_,     "--teacher",
                       path("dense"), "--out",        path("run"), "--steps",
                       "1",           "--batch",      "2",         "--dry-run"};
  EXPECT_THAT(expect_success(further + Arguments{"--set", "fixed-bias=true"}).err,
              HasSubstr("they are trained on"));
  EXPECT_THAT(expect_success(further).err, Not(HasSubstr("they are trained on")));
}

TEST_F(TrainingCommandTest, SetsTheGatesToTheLossBudgetAndCountsTokensAsSteps) {
  // 2 windows of 32 tokens a step.
  Arguments by_tokens = sparsify("run", "20");
  const auto steps = std::find(by_tokens.begin(), by_tokens.end(), "--steps");
  *steps = "--set";
  *(steps + 1) = "tokens=500";
  const nlohmann::json json = json_of(by_tokens + Arguments{"--loss-budget", "0.5"});
  EXPECT_EQ(json["of"], (500 + 63) / 64);
  const nlohmann::json& gates = json["gates"];
  ASSERT_TRUE(gates.is_object());
  EXPECT_EQ(gates["tried"][0]["scale"], 0.0);
  EXPECT_EQ(gates["reached"], gates["chosen"]["loss"] <= gates["loss_asked"]);
  EXPECT_EQ(load_model(path("run"))->config().gate.bias.size(), 4u);

  EXPECT_TRUE(
      json_of_trained(sparsify("kept", "3") + Arguments{"--set", "keep-gates=true"})["gates"]
          .is_null());
  expect_failure(sparsify("no", "3") + Arguments{"--loss-budget", "0"}, "give its gain", 2);
}

TEST_F(TrainingCommandTest, AFixedTargetNeedsNoTeacher) {
  const nlohmann::json json =
      json_of_trained(sparsify("sparse", "5") + Arguments{"--set", "target=9", "--distill", "0"});
  EXPECT_EQ(json["last_step"]["teacher_loss"], 0.0);
  EXPECT_LT(json["last_step"]["gap"], 0.0);
}

TEST_F(TrainingCommandTest, AChangedSettingIsNamedOnResume) {
  const Arguments resume = {"--resume"};
  expect_failure(pretrain("dense", "21") + resume,
                 "'steps' was 20 when the run was started and is 21 now");
  expect_failure(pretrain("dense", "20") + Arguments{"--lr", "0.5"} + resume,
                 "'learning_rate' was 0.003");
  expect_failure(pretrain("dense", "20") + Arguments{"--width", "32"} + resume, "'width' was 16");
  expect_failure(pretrain("dense", "20") + Arguments{"--seed", "9"} + resume, "'seed' was 0");
  Arguments other_data = pretrain("dense", "20") + resume;
  other_data[1] = make_shards("other", "2");
  expect_failure(other_data, "'data' was ");

  expect_trained(sparsify("sparse", "5"));
  expect_failure(sparsify("sparse", "5") + Arguments{"--set", "gate-bias=3"} + resume,
                 "'gate_bias' was 2.0");
  expect_failure(sparsify("sparse", "5") + Arguments{"--set", "objective=linear"} + resume,
                 "'objective' was \"log\"");
  // What does not decide the result may change.
  expect_trained(sparsify("sparse", "5") + Arguments{"--set", "log-every=3", "--set", "keep=1"} +
                 resume);
}

TEST_F(TrainingCommandTest, DamagedShardsAreNamedAndTheCheckpointStays) {
  const std::string shard = path("shards/train-00000.tokens");
  const std::string good = contents_of(shard);
  std::string flipped = good;
  flipped[good.size() / 2] ^= 1;
  for (const std::string& bad : {flipped, good.substr(0, good.size() - 10), std::string()}) {
    std::ofstream(shard, std::ios::binary) << bad;
    expect_failure(pretrain("dense", "20") + Arguments{"--resume"}, "train-00000.tokens");
    expect_failure({"eval", path("dense"), "--data", shards_}, "train-00000.tokens");
  }
  const std::string before = weights("dense");
  std::ofstream(shard, std::ios::binary) << good;
  expect_success(pretrain("dense", "20") + Arguments{"--resume"});
  EXPECT_TRUE(weights("dense") == before);
}

TEST_F(TrainingCommandTest, ALossThatIsNotFiniteLeavesTheLastCheckpoint) {
  const Arguments wild = {"--lr", "1e30", "--set", "warmup=1", "--checkpoint-every", "1"};
  expect_failure(pretrain("run", "20") + wild, "is not finite at step", 3);
  EXPECT_THAT(contents_of(scratch_.path() / "run" / "log.jsonl"),
              ::testing::HasSubstr("\"stopped\""));
  EXPECT_FALSE(fs::exists(path("run/model.safetensors")));
  std::size_t checkpoints = 0;
  for (const auto& item : fs::directory_iterator(path("run/checkpoints"))) {
    EXPECT_NE(load_model(item.path()), nullptr);
    ++checkpoints;
  }
  EXPECT_GE(checkpoints, 1u);
}

TEST_F(TrainingCommandTest, ALossThatRunsAwayStopsWithTheReason) {
  const auto json = json_of(pretrain("run", "300") + Arguments{"--lr", "10"}, 3);
  EXPECT_EQ(json["end"], "stopped-early");
  EXPECT_THAT(json["reason"].get<std::string>(), ::testing::HasSubstr("training diverges"));
  EXPECT_LT(json["steps"], 300);
  const auto curves = json_of({"info", path("run"), "--out", path("run.svg")}, 0);
  EXPECT_EQ(curves["runs"][0]["events"][0]["event"], "stopped");
}

TEST_F(TrainingCommandTest, NothingIsOverwrittenUnasked) {
  const std::string before = weights("dense");
  expect_failure(pretrain("dense", "20"), "holds a run already; resume it");
  fs::remove_all(path("dense/checkpoints"));
  for (const Arguments& resume : {Arguments{}, Arguments{"--resume"}})
    expect_failure(pretrain("dense", "20") + resume, "holds a model, which is no run");
  expect_failure(sparsify("dense", "20"), "holds a model");
  EXPECT_TRUE(weights("dense") == before);
  std::ofstream(path("file")) << "in the way";
  expect_failure(pretrain("file/below", "20"), "cannot create the folder");
}

TEST_F(TrainingCommandTest, WhatDoesNotFitIsRefused) {
  expect_failure(pretrain("run", "20") + Arguments{"--set", "warmup=21"},
                 "a warm-up of 21 steps is longer", 2);
  expect_failure(pretrain("run", "20") + Arguments{"--config", "x"}, "leave out --layers", 2);
  expect_failure({"pretrain", path("nothing"), "--out", path("run")}, "filigree prepare");
  expect_failure(sparsify("run", "20") + Arguments{"--set", "objective=sqrt"},
                 "neither log nor linear", 2);
  expect_failure(sparsify("run", "20") + Arguments{"--context", "33"}, "context of 32");
  expect_failure(sparsify("run", "20") + Arguments{"--set", "lambda-min=5"}, "multiplier");
  expect_failure(pretrain("run", "20") + Arguments{"--context", "100000"}, "a window of 100000");
  expect_trained(sparsify("sparse", "2"));
  expect_failure({"sparsify", path("sparse"), shards_, "--out", path("run")}, "is sparse already");
  // Another tokenizer.
  const std::string other = make_shards("other", "2");
  expect_failure({"sparsify", path("dense"), other, "--out", path("run")}, "another tokenizer");
  expect_failure({"eval", path("dense"), "--data", other}, "another tokenizer");
  expect_failure(pretrain("run", "20") + Arguments{"--held-out", other}, "another tokenizer");
  EXPECT_FALSE(fs::exists(path("run")));
}

TEST_F(TrainingCommandTest, ADryRunSaysHowLargeTheRunWouldBe) {
  const nlohmann::json json = json_of(pretrain("run", "20") + Arguments{"--dry-run"});
  EXPECT_EQ(json["parameters"], load_model(path("dense"))->parameter_count());
  EXPECT_EQ(json["tokens"], 20 * 2 * 32);
  EXPECT_GT(json["memory_bytes"]["total"], 16 * json["parameters"].get<std::int64_t>());
  const nlohmann::json sparse = json_of_trained(sparsify("run", "20") + Arguments{"--dry-run"});
  EXPECT_GT(sparse["memory_bytes"]["teacher"], 0);
  EXPECT_THAT(run_program(sparsify("run", "20") + Arguments{"--dry-run"}).out,
              AllOf(HasSubstr("20 steps of 64 tokens = 1,280 tokens"), HasSubstr("teacher")));
  EXPECT_FALSE(fs::exists(path("run")));
}

TEST_F(TrainingCommandTest, MemoryIsToldBeforeItIsSpent) {
  Arguments loud = pretrain("told", "2");
  ASSERT_EQ(loud.back(), "--quiet");
  loud.pop_back();
  const ProgramRun run = expect_success(loud);
  EXPECT_THAT(run.err, AllOf(HasSubstr("pretrain: memory about"), HasSubstr("optimiser")));
  const nlohmann::json result = nlohmann::json::parse(contents_of(path("told/result.json")));
  const nlohmann::json told =
      json_of(pretrain("other", "2") + Arguments{"--dry-run"})["memory_bytes"];
  const double peak = result["peak_memory_bytes"].get<double>();
  EXPECT_GT(told["total"].get<double>(), 0.5 * peak);
  EXPECT_LT(told["total"].get<double>(), 2.0 * peak);
  EXPECT_EQ(told["optimizer"], result["optimizer_memory_bytes"]);

  // A model that no machine could train.
  const Arguments huge = {"pretrain", shards_,         "--out", path("huge"), "--layers",
                          "1000",     "--layer-heads", "64",    "--width",    "65536"};
  expect_failure(huge, "--set shard-optimizer=true on 8 devices");
  EXPECT_FALSE(fs::exists(path("huge")));
  EXPECT_THAT(expect_success(huge + Arguments{"--dry-run"}).out, HasSubstr("cannot be run"));
}

TEST_F(TrainingCommandTest, TheShapeMayComeFromAConfiguration) {
  nlohmann::json config = {{"model_type", "gpt2"}, {"n_layer", 1},      {"n_head", 2},
                           {"n_embd", 8},          {"n_positions", 16}, {"n_inner", 24}};
  const auto write = [&] { std::ofstream(path("config.json")) << config; };
  const Arguments command = {
      "pretrain", shards_, "--out",   path("run"), "--config", path("config.json"),
      "--steps",  "3",     "--batch", "2",         "--quiet"};
  write();
  expect_success(command);
  const auto model = load_model(path("run"));
  EXPECT_EQ(model->config().mlp_width, 24);
  EXPECT_EQ(model->config().vocabulary, 300);
  config["n_inner"] = 32;
  write();
  expect_failure(command + Arguments{"--resume"}, "'config' was");
  config["vocab_size"] = 100;
  write();
  expect_failure(command + Arguments{"--out", path("other")}, "less than the 300 tokens");
}

TEST_F(TrainingCommandTest, ProgressShowsWhatMatters) {
  Arguments loud = sparsify("sparse", "20");
  std::erase(loud, "--quiet");
  const ProgramRun run = expect_trained(loud);
  for (const char* part : {"20/20 steps", "loss ", "gap ", "edges ", "lambda ", "tokens/s"})
    EXPECT_THAT(run.err, HasSubstr(part));
  EXPECT_THAT(run.out, AllOf(HasSubstr("dense"), HasSubstr("sparse"), HasSubstr("active edges"),
                             HasSubstr("finished after 20 steps"), Not(HasSubstr("control"))));
}

}  // namespace
}  // namespace filigree::cli
