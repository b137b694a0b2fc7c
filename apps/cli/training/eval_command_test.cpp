// eval on token shards, and gates in eval and generate.
#include <fmt/format.h>

#include "apps/cli/training/training_test_support.h"
#include "filigree/evaluation.h"
#include "support/models.h"

namespace filigree::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class EvalShardsTest : public TrainingCommandTest {
 protected:
  // The dense model with a gate of this bias, under another name.
  std::string gated(const std::string& name, const GateConfig& gate) const {
    std::filesystem::copy(path("dense"), path(name));
    const auto model = load_model(path("dense"));
    model->set_gate(gate);
    save_model(*model, path(name));
    return path(name);
  }
};

TEST_F(EvalShardsTest, EqualsTheLibrary) {
  const std::string sparse = gated("sparse", {{0.5f, -100.0f, 100.0f, 0.01f}});
  const nlohmann::json json = json_of({"eval", sparse, "--data", shards_, "--split", "train",
                                       "--context", "20", "--max-tokens", "500"});
  EXPECT_EQ(json["split"], "train");
  const nlohmann::json& result = json["models"][0];
  const auto model = load_model(sparse);
  const TokenShards shards = TokenShards::open(shards_);
  const Evaluation expected = evaluate(
      *model,
      shard_windows(shards.split("train"), {.length = 20, .max_tokens = 500}, model->config()));
  EXPECT_EQ(result["tokens"], 500);
  EXPECT_EQ(result["windows"], 25);
  EXPECT_EQ(result["length"], 20);
  EXPECT_EQ(result["loss"], expected.loss());
  EXPECT_EQ(result["loss_error"], *expected.loss_error());
  EXPECT_EQ(result["perplexity"], expected.perplexity());
  EXPECT_EQ(result["active_edges"], expected.connectivity().active_edges);
  EXPECT_EQ(result["keys_per_query"], expected.connectivity().keys_per_query);
  ASSERT_EQ(result["layers"].size(), 2u);
  EXPECT_EQ(result["layers"][0]["heads"][1]["head"], "L0H1");
  EXPECT_EQ(result["layers"][0]["heads"][1]["active_edges"], 0.0);
  EXPECT_EQ(result["layers"][1]["heads"][0]["active_edges"], 1.0);
  EXPECT_EQ(result["layers"][1]["heads"][0]["keys_per_query"], 10.5);
  EXPECT_EQ(result["layers"][1]["active_edges"], expected.connectivity(1).active_edges);
}

TEST_F(EvalShardsTest, ShowsModelsSideBySide) {
  const std::string closed = gated("closed", {{-100.0f}});
  const Arguments command = {"eval", path("dense"), closed, "--data", shards_};
  const nlohmann::json models = json_of(command)["models"];
  EXPECT_EQ(models[0]["active_edges"], 1.0);
  EXPECT_EQ(models[1]["active_edges"], 0.0);
  EXPECT_NE(models[0]["loss"], models[1]["loss"]);
  const ProgramRun text = expect_success(command + Arguments{"--show", "layers,heads"});
  EXPECT_THAT(
      text.out,
      AllOf(HasSubstr("100 %"), HasSubstr("±"),
            HasSubstr(fmt::format("{:.4g}", models[0]["keys_per_query"].get<double>())),
            HasSubstr(fmt::format("{:+.4f}", models[1]["change"].get<double>())),
            HasSubstr("dense: active edges"), HasSubstr("closed: active edges of each head in %"),
            HasSubstr("layer   H0   H1")));
}

TEST_F(EvalShardsTest, RefusesWhatDoesNotFit) {
  expect_failure({"eval", path("dense"), "--data", shards_, "--text", "x"}, "either --text", 2);
  expect_failure({"eval", path("dense"), "--data", shards_, "--set", "stride=4"},
                 "a stride goes with", 2);
  expect_failure({"eval", path("dense"), "--data", shards_, "--split", "test"}, "held-out", 2);
  expect_failure({"eval", path("dense"), "--data", shards_, "--context", "33"}, "context of 32");
  // Without a tokenizer of its own a model still must have a row for every id.
  const auto small = make_model(parse_model_config({{"model_type", "gpt2"},
                                                    {"n_layer", 1},
                                                    {"n_head", 1},
                                                    {"n_embd", 4},
                                                    {"n_positions", 8},
                                                    {"vocab_size", 200}},
                                                   "test"),
                                1);
  save_model(*small, path("small"));
  expect_failure({"eval", path("small"), "--data", shards_}, "vocabulary of 300 tokens");
}

TEST_F(EvalShardsTest, GatesCountInTextsAndInGeneration) {
  const std::string closed = gated("closed", {{-100.0f}});
  const std::string open = gated("open", {{100.0f}});
  std::ofstream(path("text.txt"))
      << "The capital of France is Paris. The capital of Italy is Rome.";
  const nlohmann::json models =
      json_of({"eval", path("dense"), open, closed, "--text", path("text.txt")})["models"];
  EXPECT_NEAR(models[0]["loss"].get<double>(), models[1]["loss"].get<double>(), 1e-6);
  EXPECT_GT(std::abs(models[2]["change"].get<double>()), 1e-4);
  EXPECT_EQ(models[2]["keys_per_query"], 0.0);

  // A gate in between, with large scores so that some edges open and some close.
  const auto model = load_model(path("dense"));
  enlarge_weights(*model, 8.0f);
  std::filesystem::copy(path("dense"), path("large"));
  save_model(*model, path("large"));
  std::filesystem::copy(path("large"), path("large-gated"));
  model->set_gate({{0.0f}});
  save_model(*model, path("large-gated"));
  const auto ids = [&](const char* name, const Arguments& more) {
    return json_of(
        Arguments{"generate", path(name), "--prompt", "The capital of", "--max-tokens", "20"} +
        more)["continuations"][0]["ids"];
  };
  EXPECT_NE(ids("large", {}), ids("large-gated", {}));
  EXPECT_EQ(ids("large-gated", {}), ids("large-gated", {"--set", "cache=false"}));
}

}  // namespace
}  // namespace filigree::cli
