// Adapters of a sparse run on its dense model: every command takes them, and they are the model
// that the run saved merged.
#include "apps/cli/training/training_test_support.h"
#include "filigree/model.h"

namespace filigree::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class AdapterCommands : public TrainingCommandTest {
 protected:
  void SetUp() override {
    TrainingCommandTest::SetUp();
    expect_trained(sparsify("sparse", "6") + Arguments{"--lora-rank", "2", "--set", "lora-alpha=4",
                                                       "--set", "gate-bias=0.02"});
  }

  double loss_of(const Arguments& models) const {
    return json_of(Arguments{"eval"} + models + Arguments{"--data", shards_})["models"]
        .back()["loss"];
  }
};

TEST_F(AdapterCommands, TheAdapterOnItsBaseIsTheRunsModel) {
  const double merged = loss_of({path("sparse")});
  const double adapted = loss_of({path("dense"), "--adapter", path("sparse/adapter")});
  EXPECT_NEAR(adapted, merged, 1e-6);
  EXPECT_GT(std::abs(loss_of({path("dense")}) - merged), 2e-5);
  // By itself it finds the model that it is for, and beside that one shares its weights.
  const nlohmann::json pair =
      json_of({"eval", path("dense"), path("sparse/adapter"), "--data", shards_});
  EXPECT_EQ(pair["models"][1]["loss"].get<double>(), adapted);
  EXPECT_EQ(pair["models"][1]["label"], "adapter");
  EXPECT_LT(pair["models"][1]["active_edges"].get<double>(), 1.0);
  EXPECT_EQ(pair["models"][0]["active_edges"].get<double>(), 1.0);

  const nlohmann::json info = json_of({"info", path("sparse/adapter")});
  EXPECT_EQ(info["adapter"], path("sparse/adapter"));
  EXPECT_EQ(info["model"], path("dense"));
  EXPECT_THAT(expect_success({"info", path("dense"), "--adapter", path("sparse/adapter")}).out,
              AllOf(HasSubstr("adapter"), HasSubstr("a bias for each of 4 heads")));
}

TEST_F(AdapterCommands, ConvertMergesThem) {
  expect_success({"convert", path("dense"), "--adapter", path("sparse/adapter"), "--out",
                  path("merged"), "--quiet"});
  const auto merged = load_model(path("merged")), run = load_model(path("sparse"));
  EXPECT_EQ(merged->config().gate.bias, run->config().gate.bias);
  for (std::size_t p = 0; p < run->parameters().size(); ++p) {
    const auto left = merged->parameters()[p].variable.value().values();
    const auto right = run->parameters()[p].variable.value().values();
    for (std::size_t i = 0; i < left.size(); ++i)
      ASSERT_NEAR(left[i], right[i], 1e-6) << run->parameters()[p].name;
  }
}

TEST_F(AdapterCommands, CommandsOfPairsTakeTheBaseAsTheTwin) {
  expect_success({"compare", path("dense"), "--adapter", path("sparse/adapter"), "--out",
                  path("page"), "--prompt", "The capital of France is Paris", "--quiet", "--format",
                  "svg"});
  EXPECT_TRUE(std::filesystem::exists(path("page/report.html")));
  const ProgramRun head =
      expect_success({"head", path("dense"), "L0H1", "--adapter", path("sparse/adapter"),
                      "--prompt", "The capital of France is Paris", "--quiet"});
  EXPECT_THAT(head.out, AllOf(HasSubstr("adapter"), HasSubstr("dense")));
  expect_success({"generate", path("dense"), "--adapter", path("sparse/adapter"), "--prompt",
                  "The capital", "--max-tokens", "2", "--quiet"});
}

// Of an adapter that moved together with its base, whose path is from somewhere else.
TEST_F(AdapterCommands, TheBaseMayLieBesideTheAdapter) {
  const nlohmann::json info =
      json_of({"info", std::string(FILIGREE_SOURCE_DIR) + "/tests/golden/peft/llama-all"});
  EXPECT_EQ(std::filesystem::path(info["model"].get<std::string>()).filename(), "llama-tiny");
}

TEST_F(AdapterCommands, WhatIsNoAdapterOrHasNoBaseIsNamed) {
  const auto failure = [&](const Arguments& arguments) { return run_program(arguments).err; };
  EXPECT_THAT(failure({"info", path("dense"), "--adapter", path("sparse")}),
              HasSubstr("is no adapter; give a folder with adapter_config.json"));
  EXPECT_THAT(failure({"info", path("sparse/adapter"), "--adapter", path("sparse/adapter")}),
              HasSubstr("is an adapter itself"));
  EXPECT_THAT(
      failure({"pretrain", shards_, "--from", path("sparse/adapter"), "--out", path("again")}),
      HasSubstr("no model by itself; 'filigree convert' makes one of it"));
  std::filesystem::rename(path("dense"), path("elsewhere"));
  EXPECT_THAT(failure({"info", path("sparse/adapter")}),
              AllOf(HasSubstr("'" + path("dense") + "'"), HasSubstr("--adapter")));
  expect_success({"info", path("elsewhere"), "--adapter", path("sparse/adapter"), "--quiet"});
}

}  // namespace
}  // namespace filigree::cli
