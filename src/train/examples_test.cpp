// Training on sequences of ids with answers at chosen positions.
#include <gmock/gmock.h>

#include <set>

#include "filigree/error.h"
#include "filigree/train.h"
#include "model/family_samples_test_support.h"
#include "support/errors.h"
#include "support/files.h"
#include "support/temporary_folder.h"

namespace filigree {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::int32_t> numbers(const Tensor& x) { return {x.i32(), x.i32() + x.elements()}; }

class ExampleFiles : public testing::Test {
 protected:
  Examples read(const std::string& text) {
    return read_examples(write_file(folder_.path() / "examples.jsonl", text));
  }
  TemporaryFolder folder_;
};

TEST_F(ExampleFiles, SayWhatIsPredictedWhere) {
  const Examples examples = read(R"({"ids": [1, 2, 9], "targets": [null, 0, 7]})"
                                 "\n"
                                 R"({"ids": [4, 5, 6], "loss": [1]})"
                                 "\n\n"
                                 R"({"ids": [7, 8, 9]})"
                                 "\n");
  EXPECT_EQ(examples.count(), 3);
  EXPECT_EQ(examples.length(), 3);
  EXPECT_THAT(numbers(examples.ids), ElementsAre(1, 2, 9, 4, 5, 6, 7, 8, 9));
  constexpr std::int32_t kNone = kIgnoredTarget;
  EXPECT_THAT(numbers(examples.targets), ElementsAre(kNone, 0, 7, kNone, 6, kNone, 8, 9, kNone));
  EXPECT_EQ(examples.largest_id(), 9);
  EXPECT_EQ(examples.largest_target(), 9);
}

TEST_F(ExampleFiles, WhatIsNoneIsNamedWithItsLine) {
  const auto message = [&](const std::string& text) { return error_of([&] { read(text); }); };
  EXPECT_THAT(message("\n"), HasSubstr("no examples"));
  EXPECT_THAT(message(R"({"ids": [1, 2]})"
                      "\n"
                      R"({"ids": [1, 2, 3]})"),
              HasSubstr("3 ids, but the lines before have 2"));
  EXPECT_THAT(message(R"({"ids": [1, -2]})"), HasSubstr("-2, which is no id"));
  EXPECT_THAT(message(R"({"ids": [1, 99999999999]})"), HasSubstr("which is no id"));
  EXPECT_THAT(message(R"({"ids": [1, 2], "loss": [1]})"), HasSubstr("no token follows position 1"));
  EXPECT_THAT(message(R"({"ids": [1, 2], "targets": [1]})"), HasSubstr("1 targets for 2 ids"));
  EXPECT_THAT(message(R"({"ids": [1, 2], "targets": [null, null]})"), HasSubstr("nothing to"));
  EXPECT_THAT(message(R"({"ids": [1, 2], "label": 3})"), HasSubstr("'label'"));
  EXPECT_THAT(message(R"({"ids": [1, 2], "loss": [0], "targets": [1, 2]})"), HasSubstr("loss"));
  EXPECT_THAT(message(R"({"ids": []})"), HasSubstr("0 ids"));
}

TEST_F(ExampleFiles, BatchesAreDrawnAndFoundAgain) {
  std::string text;
  for (int i = 0; i < 10; ++i) text += fmt::format("{{\"ids\": [{}, {}]}}\n", i, i + 1);
  const Examples examples = read(text);
  ExampleSource source(examples, 4, 7), again(examples, 4, 7);
  std::set<std::vector<std::int32_t>> different;
  for (int b = 0; b < 5; ++b) {
    const Batch batch = source.next();
    const std::vector<std::int32_t> ids = numbers(batch.ids);
    EXPECT_EQ(ids, numbers(again.next().ids));
    std::set<std::int32_t> firsts;
    for (std::size_t i = 0; i < ids.size(); i += 2) firsts.insert(ids[i]);
    EXPECT_EQ(firsts.size(), 4u);  // none twice
    different.insert(ids);
  }
  EXPECT_GT(different.size(), 3u);
  ExampleSource resumed(examples, 4, 7);
  resumed.restore(source.state());
  EXPECT_EQ(numbers(resumed.next().ids), numbers(source.next().ids));
  EXPECT_THROW(resumed.restore({{"drawn", "x"}}), Error);
  EXPECT_EQ(numbers(ExampleSource(examples, 99, 1).next().ids), numbers(examples.ids));
}

TEST_F(ExampleFiles, AToyModelLearnsThem) {
  std::string text;
  for (int a = 0; a < 6; ++a)
    for (int b = 0; b < 6; ++b)
      text += fmt::format("{{\"ids\": [{}, {}, 49], \"targets\": [null, null, {}]}}\n", a, b,
                          50 + (a < b ? 1 : 2));
  const Examples examples = read(text);
  for (const char* kind : {"no_norm", "bidirectional"}) {
    nlohmann::json json = sample_hooked_json(kind);
    json["d_vocab_out"] = 53;
    const auto model = make_model(parse_model_config(json, "test"), 3);
    model->set_requires_grad(true);
    AnswerObjective objective(*model);
    ExampleSource source(examples, 99, 1);
    AdamW optimizer(decay_groups(model->parameters(), 0.01f), {});
    Metrics metrics;
    const std::unique_ptr<Communicator> alone = make_single_process();
    double first = 0.0;
    for (int step = 0; step < 120; ++step) {
      Tape tape;
      const Variable loss = objective.loss(source.next(), step, *alone, metrics);
      if (step == 0) first = metric(metrics, "loss");
      tape.backward(loss);
      optimizer.step(5e-3f, 1.0);
      model->clear_grads();
    }
    const Metrics found = answer_metrics(*model, examples);
    EXPECT_GT(first, 2.0) << kind;
    EXPECT_LT(metric(found, "loss"), 0.1) << kind;
    EXPECT_EQ(metric(found, "accuracy"), 1.0) << kind;
  }
}

}  // namespace
}  // namespace filigree
