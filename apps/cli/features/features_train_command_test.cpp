// filigree features train and eval as programs: a transcoder of a small model, interrupted and
// resumed, measured, and refused where it does not fit.
#include <gmock/gmock.h>

#include <cmath>

#include "apps/cli/tests/test_figures.h"
#include "apps/cli/training/training_test_support.h"
#include "filigree/features.h"

namespace filigree::cli {
namespace {

using ::testing::HasSubstr;

class FeatureCommandsTest : public TrainingCommandTest {
 protected:
  Arguments steps_of(const std::string& out, const std::string& tokens) const {
    return {"features", "train",    path("dense"), shards_,       "--out",   path(out),
            "--tokens", tokens,     "--batch",     "64",          "--l0",    "6",
            "--set",    "pool=640", "--set",       "log-every=1", "--quiet", "--checkpoint-every",
            "4"};
  }
  Arguments train(const std::string& out) const {
    return steps_of(out, "1920") + Arguments{"--layer-features", "48"};
  }
};

TEST_F(FeatureCommandsTest, TrainsMeasuresAndResumesToTheSameBits) {
  const ProgramRun run = expect_success(train("whole") + Arguments{"--json"});
  const nlohmann::json result = nlohmann::json::parse(run.out);
  EXPECT_EQ(result["steps"], 30);
  EXPECT_EQ(result["plan"]["features"], 48);
  EXPECT_NEAR(result["held_out"]["l0"].get<double>(), 6.0, 1.5);
  EXPECT_LT(result["held_out"]["nmse"].get<double>(), 1.0);

  // A run whose last checkpoints are gone goes on from an earlier one.
  expect_success(train("parts"));
  for (const char* file : {"config.yaml", "W_enc_0.safetensors", "W_dec_1.safetensors"})
    std::filesystem::remove(path("parts") + "/" + file);
  std::filesystem::remove_all(path("parts/checkpoints/step-00000030"));
  expect_success(train("parts") + Arguments{"--resume"});
  for (const char* file :
       {"W_enc_0.safetensors", "W_enc_1.safetensors", "W_dec_0.safetensors", "W_dec_1.safetensors"})
    EXPECT_EQ(contents_of(path("whole") + "/" + file), contents_of(path("parts") + "/" + file))
        << file;

  const ProgramRun again = run_program(train("whole"));
  EXPECT_EQ(again.code, 1);
  EXPECT_THAT(again.err, HasSubstr("holds a run already"));
  const ProgramRun other = run_program(train("whole") + Arguments{"--resume", "--seed", "3"});
  EXPECT_EQ(other.code, 1);
  EXPECT_THAT(other.err, HasSubstr("seed"));
}

TEST_F(FeatureCommandsTest, SaysWhatStepsTakeWithoutTheModel) {
  // The windows of a pass make 3,968 tokens: a second pool is filled while it trains.
  const ProgramRun run = expect_success({"features",
                                         "train",
                                         path("dense"),
                                         shards_,
                                         "--out",
                                         path("timed"),
                                         "--tokens",
                                         "6144",
                                         "--batch",
                                         "512",
                                         "--layer-features",
                                         "48",
                                         "--l0",
                                         "6",
                                         "--set",
                                         "pool=640",
                                         "--set",
                                         "held-out-tokens=0",
                                         "--quiet",
                                         "--json"});
  const nlohmann::json result = nlohmann::json::parse(run.out);
  EXPECT_GT(result["model_seconds"].get<double>(), 0.0);
  EXPECT_LT(result["model_seconds"].get<double>(), result["seconds"].get<double>());
  EXPECT_GT(result["step_seconds"].get<double>(), 0.0);
  EXPECT_GT(result["peak_memory_bytes"].get<double>(), result["pool_memory_bytes"].get<double>());
  EXPECT_GT(result["pool_memory_bytes"].get<double>(), 0.0);
}

TEST_F(FeatureCommandsTest, GoesOnWithATranscoderThroughTheModel) {
  expect_success(train("first") + Arguments{"--dtype", "i8"});
  const auto go_on = [&](const std::string& out) {
    return steps_of(out, "1280") + Arguments{"--from", path("first"), "--set", "through-model=0.5"};
  };
  const nlohmann::json plan =
      nlohmann::json::parse(expect_success(go_on("whole") + Arguments{"--dry-run", "--json"}).out);
  EXPECT_EQ(plan["features"], 48);
  EXPECT_EQ(plan["steps_through_model"], 10);
  EXPECT_GT(plan["memory_bytes"]["through_model"], 0);
  const nlohmann::json result =
      nlohmann::json::parse(expect_success(go_on("whole") + Arguments{"--json"}).out);
  EXPECT_GE(result["last_step"]["kl"].get<double>(), 0.0);
  const std::string log = contents_of(path("whole/log.jsonl"));
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 21);
  expect_success(go_on("parts"));
  std::filesystem::remove_all(path("parts/checkpoints/step-00000020"));
  expect_success(go_on("parts") + Arguments{"--resume"});
  for (const char* file : {"W_enc_1.safetensors", "W_dec_0.safetensors"})
    EXPECT_EQ(contents_of(path("whole") + "/" + file), contents_of(path("parts") + "/" + file))
        << file;
  // It begins where the other ended.
  const nlohmann::json first = nlohmann::json::parse(contents_of(path("first/result.json")));
  EXPECT_LT(result["held_out"]["nmse"].get<double>(), first["held_out"]["nmse"].get<double>());

  const ProgramRun sizes = run_program(go_on("other") + Arguments{"--layer-features", "40"});
  EXPECT_EQ(sizes.code, 2);
  EXPECT_THAT(sizes.err, HasSubstr("48 features a layer"));
}

TEST_F(FeatureCommandsTest, EvaluationFitsWhatTrainingMeasured) {
  const nlohmann::json trained =
      nlohmann::json::parse(expect_success(train("run") + Arguments{"--json"}).out);
  const ProgramRun run =
      expect_success({"eval", path("dense"), "--features", path("run"), "--data", shards_,
                      "--max-tokens", "50000", "--show", "layers", "--json", "--quiet"});
  const nlohmann::json quality = nlohmann::json::parse(run.out)["models"][0]["quality"];
  EXPECT_NEAR(quality["nmse"].get<double>(), trained["held_out"]["nmse"].get<double>(), 1e-4);
  EXPECT_NEAR(quality["replaced"]["loss"].get<double>(),
              trained["held_out"]["replaced"]["loss"].get<double>(), 1e-4);
  // Replacing all by what is nearly a bias is nearly mean ablation, and one layer changes less.
  for (const nlohmann::json& layer : quality["layers"])
    EXPECT_TRUE(std::isfinite(layer["replaced_alone"]["loss"].get<double>()));
  const ProgramRun text =
      expect_success(Arguments{"eval", path("dense"), "--features", path("run"), "--data", shards_,
                               "--show", "densities,layers", "--quiet"} +
                     Arguments{"--out", path("quality.svg")});
  expect_figure(path("quality.svg"));
  EXPECT_THAT(text.out, HasSubstr("top-1 agreement"));
  EXPECT_THAT(text.out, HasSubstr("how often features are active"));
}

TEST_F(FeatureCommandsTest, WhatDoesNotFitIsRefused) {
  expect_success(train("run"));
  expect_success({"pretrain", shards_, "--out", path("wider"), "--layers", "2", "--layer-heads",
                  "2", "--width", "24", "--steps", "2", "--context", "32", "--batch", "2",
                  "--quiet"});
  const ProgramRun wider =
      run_program({"eval", path("wider"), "--features", path("run"), "--data", shards_, "--quiet"});
  EXPECT_EQ(wider.code, 1);
  EXPECT_THAT(wider.err, HasSubstr("width 16"));
  const ProgramRun two = run_program({"eval", path("dense"), path("wider"), "--features",
                                      path("run"), "--data", shards_, "--quiet"});
  EXPECT_EQ(two.code, 2);
  const ProgramRun many = run_program(train("many") + Arguments{"--l0", "400"});
  EXPECT_EQ(many.code, 1);
  EXPECT_THAT(many.err, HasSubstr("400"));
}

}  // namespace
}  // namespace filigree::cli
