// The models in models/: found by name, and able to do what their cards and docs/results.md say.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <fstream>

#include "apps/cli/tests/run_program.h"
#include "base/scratch_folder.h"
#include "filigree/study.h"

namespace filigree::cli {
namespace {

class BundledModels : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!study::find_named_model("dense-12x12") || !study::find_named_model("sparse-12x12"))
      GTEST_SKIP() << "there is no bundled model";
  }

  static nlohmann::json json_of(std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--json", "--quiet"});
    const ProgramRun run = run_program(arguments);
    EXPECT_EQ(run.code, 0) << run.err;
    return nlohmann::json::parse(run.out, nullptr, false);
  }
};

TEST_F(BundledModels, TheSparseOneKeepsTheLossWithFewEdges) {
  const std::string text = (*study::find_named_model("dense-12x12") / "held-out.txt").string();
  const nlohmann::json json =
      json_of({"eval", "dense-12x12", "sparse-12x12", "--text", text, "--context", "256"});
  const auto &dense = json["models"][0], &sparse = json["models"][1];
  EXPECT_NEAR(dense["loss"].get<double>(), 3.6055, 0.002);
  EXPECT_EQ(dense["active_edges"], 1.0);
  // Of 1,424 tokens, the last window a short one, in which the same keys are a larger share; the
  // card's figures are of a hundred times as many.
  EXPECT_LT(sparse["loss"].get<double>() - dense["loss"].get<double>(), 0.02);
  EXPECT_LT(sparse["active_edges"].get<double>(), 0.011);
  EXPECT_LT(sparse["keys_per_query"].get<double>(), 1.4);
}

// Means over all heads say little of a model most of whose heads are dead: it says so itself.
TEST_F(BundledModels, TheSparseOneSaysHowFewHeadsLive) {
  const nlohmann::json json = json_of({"info", "sparse-12x12"});
  const auto& living = json["living_heads"];
  EXPECT_EQ(living["heads"], 144);
  EXPECT_LT(living["living"], 144);
  EXPECT_EQ(living["by_head"].size(), living["living"].get<std::size_t>());
  EXPECT_GE(living["keys_per_query"]["largest"], living["keys_per_query"]["median"]);
  EXPECT_THAT(
      run_program({"info", "sparse-12x12", "--quiet"}).out,
      ::testing::HasSubstr(fmt::format("{} of 144 on held-out.txt", living["living"].get<int>())));
  EXPECT_TRUE(json_of({"info", "dense-12x12"})["living_heads"].is_null());
}

// The heads that move names, as their effects in runs say; bare embeddings say the opposite.
TEST_F(BundledModels, NameMoversCopyByTheirWeights) {
  if (!study::find_named_model(study::kReferenceSparse))
    GTEST_SKIP() << "the larger pair is not here";
  const nlohmann::json json = json_of({"head", study::kReferenceSparse});
  EXPECT_LT(json["heads"].size(), 72u);  // those that ever open
  std::size_t seen = 0;
  for (const auto& head : json["heads"])
    for (const char* name : {"L10H8", "L9H10", "L9H11", "L10H1"})
      if (head["name"] == name) {
        EXPECT_GT(head["copying"].get<double>(), 0.9) << name;
        ++seen;
      }
  EXPECT_EQ(seen, 4u);
  const nlohmann::json page = json_of({"head", study::kReferenceSparse, "L10H8", "--twin", "none",
                                       "--task", "ioi", "--prompts", "16", "--input", "text"});
  EXPECT_EQ(page["facts"]["role"]["role"], "name-mover");
  EXPECT_LE(page["facts"]["role"]["scores"]["name_reader"], 0.0);
  EXPECT_GT(page["facts"]["copied_share"].get<double>(), 0.8);
}

// The pair that results are shown on, stored in 8 bits.
TEST_F(BundledModels, TheLargerPairReadsAndAnswersTheSentenceOfThePaper) {
  if (!study::find_named_model(study::kReferenceDense) ||
      !study::find_named_model(study::kReferenceSparse))
    GTEST_SKIP() << "the larger pair is not here";
  const std::string sentence = "The opposite of \"large\" is \"";
  const nlohmann::json cut = json_of({"info", study::kReferenceDense, "--prompt", sentence});
  ASSERT_EQ(cut["tokens"].size(), 8u);
  EXPECT_EQ(cut["tokens"][4]["token"], "large");
  for (const char* model : {study::kReferenceDense, study::kReferenceSparse})
    EXPECT_TRUE(run_program({"generate", model, "--prompt", sentence, "--max-tokens", "1",
                             "--temperature", "0", "--quiet"})
                    .out.starts_with(sentence + "small"))
        << model;
  const std::string text =
      (*study::find_named_model(study::kReferenceDense) / "held-out.txt").string();
  const nlohmann::json json = json_of({"eval", study::kReferenceDense, study::kReferenceSparse,
                                       "--text", text, "--context", "256"});
  const auto &dense = json["models"][0], &sparse = json["models"][1];
  // One short story: it changes by 0.015, hundreds of times as many tokens by 0.004.
  EXPECT_LT(sparse["loss"].get<double>() - dense["loss"].get<double>(), 0.04);
  EXPECT_LT(sparse["active_edges"].get<double>(), 0.01);
}

TEST_F(BundledModels, BothCanDoTheTasksOfTheDemo) {
  for (const char* task : {"ioi", "greater-than", "copy", "antonym"})
    for (const char* model : {"dense-12x12", "sparse-12x12"})
      EXPECT_GT(json_of({"task", "check", model, task})["accuracy"]["clean"].get<double>(), 0.9)
          << task << " " << model;
}

// Of unequal lengths. Every passage is used and has one corruption, so that no seed enters.
TEST_F(BundledModels, TasksOfATextGoThroughSweepsAndCircuits) {
  const ScratchFolder folder;
  const std::string text = (folder.path() / "text.txt").string();
  std::ofstream(text)
      << "The books on the old table were open. The house behind the trees was old. "
         "The hands of the king are cold. The road to the two villages is long. "
         "The men with the horse were late. The letter from his friends was short. "
         "The trees near the house are green. The door between the rooms is open. "
         "The streets of the city were dark. The boat on the two rivers was small. "
         "The walls around the garden were high. The room above the shops was cold. "
         "The eyes of the child are blue. The voice of the women is soft. "
         "The soldiers from the town have gone. The name of the ships has changed.";
  for (const char* command : {"patch", "circuit"}) {
    const nlohmann::json json =
        json_of({command, "dense-12x12", "--task", "agreement-in-text", "--task-text", text});
    const nlohmann::json& model = json["models"][0];
    EXPECT_EQ(model["fit"]["kept"], 16) << command;
    EXPECT_EQ(model["check"]["better_than_chance"], true) << command;
    EXPECT_FALSE(model[command == std::string("patch") ? "sites" : "circuit"].empty()) << command;
  }
}

// With the transcoder that lies beside the model, as if it had been named.
TEST_F(BundledModels, PredictionsAreTracedOutOfTheBox) {
  if (!study::find_named_features("sparse-12x12-features"))
    GTEST_SKIP() << "there is no bundled transcoder";
  const std::vector<std::string> trace = {"trace",    "sparse-12x12",
                                          "--prompt", "The cat sat on the mat. The cat sat on the",
                                          "--set",    "max-features=200"};
  const nlohmann::json json = json_of(trace);
  const nlohmann::json& model = json["models"][0];
  EXPECT_GT(model["replacement_score"].get<double>(), 0.3);
  std::vector<std::string> named = trace;
  named.insert(named.end(), {"--features", "sparse-12x12-features"});
  EXPECT_EQ(json_of(named)["models"][0]["replacement_score"], model["replacement_score"]);
  EXPECT_EQ(
      run_program({"info", "sparse-12x12-features", "dense-12x12-features", "--checksums", "check"})
          .code,
      0);
}

// The sentence of the paper: a handful of heads where the dense model needs dozens.
TEST_F(BundledModels, TheSparseModelCarriesAWordThroughFewHeads) {
  if (!study::find_named_features("dense-28m-features") ||
      !study::find_named_features("sparse-28m-features"))
    GTEST_SKIP() << "the transcoders of the larger pair are not here";
  const nlohmann::json json = json_of(
      {"trace", study::kReferenceSparse, "--twin", study::kReferenceDense, "--prompt",
       "The opposite of \"large\" is \"", "--target", "small", "--set", "max-features=300"});
  const auto &dense = json["models"][0], &sparse = json["models"][1];
  EXPECT_GT(dense["heads_for_80"].get<int>(), 20);
  EXPECT_LT(sparse["heads_for_80"].get<int>(), 9);
  for (const auto* model : {&dense, &sparse}) {
    EXPECT_GT((*model)["replacement_score"].get<double>(), 0.7);
    EXPECT_GT((*model)["completeness_score"].get<double>(), 0.85);
  }
}

}  // namespace
}  // namespace filigree::cli
