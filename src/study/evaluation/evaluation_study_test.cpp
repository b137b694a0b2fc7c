#include "filigree/evaluation_study.h"

#include <cmath>

#include "study/training/training_test_support.h"
#include "support/errors.h"
#include "support/thread_ranks.h"

namespace filigree::study {
namespace {

using ::testing::HasSubstr;

class EvaluationStudy : public TrainingStudyTest {
 protected:
  const EvaluationText text_{"The capital of France is Paris.<|endoftext|>The capital of Italy is",
                             "the text"};
};

TEST_F(EvaluationStudy, OfATextIsThatOfItsTokens) {
  const LoadedModel model(make_model_folder("model", {{0.01f}}), "label");
  const std::vector<TokenId> ids = model.tokenizer().encode(text_.text);
  const WindowOptions options{.length = 8, .stride = 3};
  const Evaluation expected = evaluate(model.model(), text_windows(ids, options, model.config()));
  const EvaluatedModel found = evaluate_text(model, text_, options, {});
  EXPECT_EQ(found.model, path("model"));
  EXPECT_EQ(found.label, "label");
  EXPECT_EQ(found.length, 8);
  EXPECT_EQ(found.evaluation.loss(), expected.loss());
  EXPECT_EQ(found.evaluation.open_edges, expected.open_edges);
  // All bytes but those of the first token and of the mark between the documents.
  const auto bytes = static_cast<std::int64_t>(text_.text.size() - 13 -
                                               model.tokenizer().token_bytes(ids[0]).size());
  EXPECT_EQ(found.bytes, bytes);
  EXPECT_DOUBLE_EQ(*found.bits_per_byte(),
                   expected.total.sum / std::log(2.0) / static_cast<double>(bytes));
}

TEST_F(EvaluationStudy, OfAChangedModelIsThatOfItsChangedRuns) {
  const LoadedModel model(make_model_folder("model", {{0.01f}}), "label");
  const WindowOptions options{.length = 8};
  Interventions same, without;
  same.add_scales("L0H1=1");
  without.add_ablations("L*,L0MLP@2");
  const EvaluatedModel plain = evaluate_text(model, text_, options, {});
  const EvaluatedModel kept = evaluate_text(model, text_, options, {}, {}, same);
  EXPECT_NEAR(kept.evaluation.loss(), plain.evaluation.loss(), 1e-5);
  EXPECT_EQ(kept.evaluation.open_edges, plain.evaluation.open_edges);
  EXPECT_EQ(kept.label, "label: L0H1 x 1");

  const std::vector<TokenId> ids = model.tokenizer().encode(text_.text);
  double sum = 0;
  const auto count = static_cast<std::int64_t>(ids.size());
  for (std::int64_t begin = 0; begin + 1 < count; begin += 8) {
    const std::int64_t T = std::min<std::int64_t>(8, count - 1 - begin);
    AppliedInterventions changes(model.model(), for_model(without, model));
    changes.allow_shorter_runs();
    Taps taps;
    changes.put_on(taps);
    const Tensor logits =
        model.model()
            .forward(
                Tensor::from_ids({1, T}, std::span(ids).subspan(static_cast<std::size_t>(begin),
                                                                static_cast<std::size_t>(T))),
                {.taps = &taps})
            .value();
    const std::int64_t V = logits.size(2);
    for (std::int64_t t = 0; t < T; ++t) {
      const float* row = logits.f32() + t * V;
      double total = 0;
      for (std::int64_t v = 0; v < V; ++v) total += std::exp(static_cast<double>(row[v]));
      sum += std::log(total) - row[ids[static_cast<std::size_t>(begin + t + 1)]];
    }
  }
  const EvaluatedModel changed = evaluate_text(model, text_, options, {}, {}, without);
  EXPECT_NEAR(changed.evaluation.total.sum, sum, 1e-3);
  EXPECT_GT(std::abs(changed.evaluation.loss() - plain.evaluation.loss()), 1e-3);

  EvaluationRequest request{text_, options, without};
  const Json json = to_json(run(request, model, {}).models);
  ASSERT_EQ(json.size(), 2u);
  EXPECT_TRUE(json[0]["interventions"].empty());
  EXPECT_EQ(json[1]["interventions"][1]["place"], "L0MLP@2");
  EXPECT_NEAR(json[1]["change"].get<double>(), changed.evaluation.loss() - plain.evaluation.loss(),
              1e-9);
  request.interventions.add_ablations("L0H0@8");
  EXPECT_THAT(error_of([&] { run(request, model, {}); }), HasSubstr("no position 8"));
}

TEST_F(EvaluationStudy, ReadsNoModelAgainAndComparesWithTheFirst) {
  const EvaluationRequest request{open_evaluation_shards(path("shards")),
                                  {.length = 16, .max_tokens = 320}};
  const std::vector<LoadedModel> models =
      load_models({make_model_folder("dense"), make_model_folder("closed", {{-99}})}, {});
  const std::int64_t before = models_loaded();
  const EvaluationResult result = run(request, models, {});
  EXPECT_EQ(models_loaded(), before);
  EXPECT_FALSE(result.caution);
  ASSERT_EQ(result.models.size(), 2u);
  EXPECT_EQ(result.models[1].label, "closed");
  EXPECT_EQ(result.models[1].evaluation.total.tokens, 320);
  EXPECT_FALSE(result.models[1].bits_per_byte());

  const Json json = to_json(result.models);
  EXPECT_TRUE(json[0]["change"].is_null());
  EXPECT_TRUE(json[0]["bits_per_byte"].is_null());
  EXPECT_EQ(json[1]["change"],
            result.models[1].evaluation.loss() - result.models[0].evaluation.loss());
  EXPECT_EQ(json[1]["change_error"],
            *change_error(result.models[1].evaluation, result.models[0].evaluation));
  EXPECT_EQ(json[1]["active_edges"], 0.0);
  EXPECT_EQ(json[0]["layers"][1]["heads"][1]["head"], "L1H1");
  EXPECT_EQ(json[0]["layers"][1]["heads"][1]["keys_per_query"], 8.5);
}

TEST_F(EvaluationStudy, SaysWhenLossesAreNotToBeCompared) {
  const std::vector<std::string> names = {make_model_folder("long"),
                                          make_model_folder("short", {}, 16)};
  const std::vector<LoadedModel> models = load_models(names, {});
  EvaluationRequest request{text_, {}};
  EXPECT_THAT(run(request, models, {}).caution.value_or(""), HasSubstr("differ in length"));
  request.windows.length = 16;
  EXPECT_FALSE(run(request, models, {}).caution);
  make_shards("other", 2);
  std::filesystem::copy_file(path("other/tokenizer.json"), path("short/tokenizer.json"),
                             std::filesystem::copy_options::overwrite_existing);
  std::filesystem::remove(path("short/checksums.json"));  // changed on purpose
  EXPECT_THAT(run(request, load_models(names, {}), {}).caution.value_or(""),
              HasSubstr("bits/byte"));
}

TEST_F(EvaluationStudy, RanksShareTheWorkAndStopTogether) {
  const LoadedModel model(make_model_folder("model"), "model");
  const EvaluationShards shards = open_evaluation_shards(path("shards"));
  const EvaluatedModel alone = evaluate_shards(model, shards, {}, {});
  run_ranks(2, [&](Communicator& ranks) {
    Context context;
    context.ranks = &ranks;
    EXPECT_EQ(evaluate_shards(model, shards, {}, context).evaluation.loss(),
              alone.evaluation.loss());
  });
  Context stopped;
  stopped.stop = [] { return true; };
  EXPECT_THROW(evaluate_shards(model, shards, {}, stopped), Stopped);
}

TEST_F(EvaluationStudy, RefusesWhatDoesNotFit) {
  const std::string name = make_model_folder("model");
  const LoadedModel model(name, "model");
  EXPECT_THROWS(Error, evaluate_text(model, {"T", "the text"}, {}, {}),
                "the text is a single token");
  EXPECT_THROWS(Error, evaluate_text(model, {"a\xff", "the text"}, {}, {}), "invalid UTF-8");
  EXPECT_NO_THROW(evaluate_text(model, {"a\xff", "the text", true}, {}, {}));
  EXPECT_THROWS(Error, open_evaluation_shards(make_shards("all", 1, 0.0)), "nothing to predict");
  EXPECT_THROWS(Error,
                evaluate_shards(model, open_evaluation_shards(make_shards("other", 2)), {}, {}),
                "another tokenizer");
  const auto run = [&](EvaluationRequest request) { study::run(request, model, {}); };
  EXPECT_THROWS(study::RequestError, run({text_, {.length = 8, .stride = 9}}), "a stride of 9");
  EXPECT_THROWS(study::RequestError, run({open_evaluation_shards(path("shards")), {.stride = 4}}),
                "do not overlap");
  EXPECT_THROWS(Error, run({EvaluationText{"", "the text"}, {}}), "the text is empty");
}

}  // namespace
}  // namespace filigree::study
