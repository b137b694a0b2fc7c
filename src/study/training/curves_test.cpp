#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "filigree/training_study.h"
#include "support/errors.h"
#include "support/files.h"
#include "support/temporary_folder.h"

namespace filigree::study {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Curves : public ::testing::Test {
 protected:
  std::string log(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories((folder_ / name).parent_path());
    return write_file(folder_ / name, text).string();
  }
  static std::string failure(const std::string& run) {
    return error_of([&] { read_curves({run}); });
  }

  const std::string header_ = R"({"run": "sparsify", "settings": {"steps": 4}})"
                              "\n";
  const std::string steps_ = R"({"step": 1, "gap": 0.5, "active_edges": 1, "lambda": 1})"
                             "\n"
                             R"({"step": 1, "event": "evaluation", "gap": 9, "held_out_loss": 3})"
                             "\n"
                             R"({"step": 2, "gap": -0.25, "active_edges": 0.5, "lambda": 2.5})"
                             "\n";
  const TemporaryFolder folder_;
};

TEST_F(Curves, AreTheStepsOfALog) {
  log("a/log.jsonl", header_ + steps_ + "{\"step\": 3, \"ga");  // killed within a line
  const std::string other = log("b.jsonl", header_ + steps_);
  const std::vector<TrainingCurve> curves = read_curves({(folder_ / "a").string(), other});
  ASSERT_EQ(curves.size(), 2u);
  EXPECT_EQ(curves[0].name, "a");
  EXPECT_EQ(curves[1].name, "b");
  EXPECT_THAT(curves[0].steps, ElementsAre(1, 2));
  EXPECT_THAT(curves[0].gap, ElementsAre(0.5, -0.25));
  EXPECT_THAT(curves[0].active_edges, ElementsAre(1, 0.5));
  EXPECT_THAT(curves[0].lambda, ElementsAre(1, 2.5));
}

TEST_F(Curves, WhatIsNoLogIsNamedWithItsLine) {
  EXPECT_THAT(failure("/nonexistent"), HasSubstr("cannot read '/nonexistent'"));
  EXPECT_THAT(failure(log("none.jsonl", header_)), HasSubstr("no steps of training"));
  EXPECT_THAT(failure(log("half.jsonl", header_ + "{\"step\": 1, \"gap\": 2}\n")),
              AllOf(HasSubstr("line 2"), HasSubstr("active_edges")));
  EXPECT_THAT(failure(log("text.jsonl", header_ + "no JSON\n" + steps_)), HasSubstr("line 2"));
  // Deeper than a call stack is.
  const std::string deep = std::string(60000, '[') + std::string(60000, ']') + "\n";
  EXPECT_THAT(failure(log("deep.jsonl", header_ + deep + steps_)), HasSubstr("line 2"));
  const std::string inside = "{\"step\": 1, \"gap\": " + deep.substr(0, deep.size() - 1) + "}\n";
  EXPECT_THAT(failure(log("inside.jsonl", header_ + inside + steps_)), HasSubstr("line 2"));
}

TEST_F(Curves, HaveTheLossOfDenseRunsAndWhereTheyWentWrong) {
  const std::string text =
      header_ + R"({"step": 1, "loss": 3.5, "gradient_norm": 1})" + "\n" +
      R"({"step": 2, "loss": 60})" + "\n" +
      R"({"step": 2, "event": "evaluation", "held_out_loss": 3})" + "\n" +
      R"({"step": 2, "event": "stopped", "reason": "training diverges: the loss is high"})" + "\n";
  const std::string run = log("dense/log.jsonl", text);
  const TrainingCurve curve = read_curves({run})[0];
  EXPECT_THAT(curve.loss, ElementsAre(3.5, 60));
  EXPECT_TRUE(curve.gap.empty());
  ASSERT_EQ(curve.events.size(), 1u);
  EXPECT_EQ(curve.events[0].step, 2);
  EXPECT_EQ(curve.events[0].what, "stopped");
  EXPECT_THAT(failure(log("both.jsonl", header_ + steps_ + "{\"step\": 9, \"loss\": 1}\n")),
              HasSubstr("of dense and of sparse"));
  const std::string warned = log(
      "sparse.jsonl",
      header_ + steps_ + R"({"step": 2, "event": "warning", "warning": "gap climbs; do"})" + "\n");
  const std::string out = (folder_ / "both.svg").string();
  const CurvesResult result = study::run(CurvesRequest{{run, warned}, out, {}}, {}, {});
  EXPECT_EQ(to_json(result)["runs"][0]["events"][0]["reason"],
            "training diverges: the loss is high");
  EXPECT_EQ(to_json(result)["runs"][1]["events"][0]["event"], "warning");
}

TEST_F(Curves, AreDrawnAndToldAsJson) {
  const std::string run = log("run/log.jsonl", header_ + steps_);
  const std::string out = (folder_ / "curves.svg").string();
  const CurvesResult result = study::run(CurvesRequest{{run}, out, {}}, {}, {});
  EXPECT_GT(std::filesystem::file_size(out), 1000u);
  const Json json = to_json(result);
  EXPECT_EQ(json["runs"][0]["name"], "run");
  EXPECT_EQ(json["runs"][0]["steps"], 2);
  EXPECT_EQ(json["runs"][0]["points"], 2);
}

}  // namespace
}  // namespace filigree::study
