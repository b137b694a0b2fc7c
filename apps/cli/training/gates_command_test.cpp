// close-gates: fewer open edges without training.
#include "apps/cli/training/training_test_support.h"
#include "filigree/model.h"

namespace filigree::cli {
namespace {

using ::testing::HasSubstr;

class CloseGatesTest : public TrainingCommandTest {
 protected:
  void SetUp() override {
    TrainingCommandTest::SetUp();
    std::filesystem::copy(path("dense"), path("sparse"));
    const auto model = load_model(path("dense"));
    model->set_gate({{0.02f}});
    save_model(*model, path("sparse"));
  }

  Arguments close(const std::string& out, const std::string& most) const {
    return {"gates", "close", path("sparse"), "--edges",      most, "--data",
            shards_, "--out", path(out),      "--max-tokens", "600"};
  }
  nlohmann::json evaluated(const std::string& model) const {
    return json_of({"eval", path(model), "--data", shards_, "--max-tokens", "600"})["models"][0];
  }
};

TEST_F(CloseGatesTest, WritesAModelWithAsFewOpenEdgesAsAsked) {
  const nlohmann::json before = evaluated("sparse");
  const double most = 0.8 * before["active_edges"].get<double>();
  const nlohmann::json json = json_of(close("sparser", std::to_string(most)));
  EXPECT_TRUE(json["reached"].get<bool>());
  EXPECT_EQ(json["before"]["loss"], before["loss"]);
  EXPECT_EQ(json["before"]["active_edges"], before["active_edges"]);
  EXPECT_EQ(json["tokens"], before["tokens"]);
  EXPECT_FALSE(json["heads"].empty());

  const nlohmann::json after = evaluated("sparser");
  EXPECT_LE(after["active_edges"].get<double>(), most);
  EXPECT_EQ(after["active_edges"], json["after"]["active_edges"]);
  EXPECT_EQ(after["loss"], json["after"]["loss"]);
  EXPECT_EQ(json_of({"info", path("sparser")})["tokenizer"]["vocabulary"], 300);

  // The same on the text itself, as a table.
  const ProgramRun text =
      expect_success({"gates", "close", path("sparse"), "--edges", std::to_string(most), "--text",
                      path("shards.txt"), "--out", path("from-text"), "--max-tokens", "600",
                      "--dtype", "bf16", "--quiet"});
  EXPECT_THAT(text.out, HasSubstr("as it was"));
  EXPECT_THAT(text.out, HasSubstr(" lowered by "));
}

TEST_F(CloseGatesTest, ExitsWith3WhereNoHeadIsLeftToLower) {
  const auto model = load_model(path("dense"));
  model->set_gate({{100.0f, -100.0f, 100.0f, -100.0f}});  // far from any score
  save_model(*model, path("sparse"));
  const ProgramRun run = run_program(close("none", "0.25") + Arguments{"--json"});
  EXPECT_EQ(run.code, 3) << run.err;
  const nlohmann::json json = nlohmann::json::parse(run.out);
  EXPECT_FALSE(json["reached"].get<bool>());
  EXPECT_EQ(json["after"]["active_edges"], 0.5);
  EXPECT_TRUE(std::filesystem::exists(path("none/config.json")));
  EXPECT_THAT(run_program(close("again", "0.25")).out, HasSubstr("no head is left to lower"));
}

TEST_F(CloseGatesTest, SaysWhatIsWrong) {
  const auto refusal = [&](const Arguments& arguments) { return run_program(arguments).err; };
  EXPECT_THAT(refusal({"gates", "close", path("dense"), "--edges", "0.1", "--data", shards_,
                       "--out", path("x")}),
              HasSubstr("has no gates to close"));
  EXPECT_THAT(refusal(close("dense", "0.1")), HasSubstr("holds a model already"));
  EXPECT_THAT(refusal(close("x", "1.5")), HasSubstr("'1.5'"));
  EXPECT_THAT(refusal({"gates", "close", path("sparse"), "--edges", "0.1", "--out", path("x")}),
              HasSubstr("either --text FILE or --data SHARDS"));
  EXPECT_FALSE(std::filesystem::exists(path("x")));
}

}  // namespace
}  // namespace filigree::cli
