#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "filigree/error.h"
#include "filigree/generation_study.h"
#include "study/generation/token_steps.h"
#include "support/model_folder.h"

namespace filigree::study {
namespace {

using ::testing::HasSubstr;

class GeneratorTest : public ::testing::Test {
 protected:
  Continuation run(const std::string& prompt, GenerationOptions options, std::uint64_t seed = 0,
                   std::uint64_t stream = 0) {
    Generator generator(*model_, tokenizer_, tokenizer_.encode(prompt), std::move(options));
    streamed_.clear();
    return generator.run(seed, stream, [this](std::string_view text) { streamed_ += text; });
  }

  std::string error_of(const std::vector<TokenId>& prompt) {
    try {
      Generator(*model_, tokenizer_, prompt, {});
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  }

  ModelFolder folder_;
  std::unique_ptr<Model> model_ = load_model(folder_.path());
  Tokenizer tokenizer_ = Tokenizer::from_folder(folder_.path());
  std::string streamed_;
};

TEST_F(GeneratorTest, GreedyTakesTheModelsOwnBestTokens) {
  const Continuation result =
      run("Once upon a time", {.sampling = {.temperature = 0.0}, .max_tokens = 8});
  std::vector<TokenId> ids = tokenizer_.encode("Once upon a time");
  for (const TokenId id : result.ids) {
    const Tensor input = Tensor::from_ids({1, static_cast<std::int64_t>(ids.size())}, ids);
    const Variable logits = model_->forward(input);  // [1, T, V]
    const std::span<const float> last =
        logits.value().values().last(static_cast<std::size_t>(model_->config().vocabulary));
    EXPECT_EQ(id, std::max_element(last.begin(), last.end()) - last.begin());
    ids.push_back(id);
  }
  EXPECT_EQ(result.ids.size(), 8u);
  EXPECT_EQ(result.finish, Finish::kMaxTokens);
}

TEST_F(GeneratorTest, ChangedRunsGiveTheSameWithAndWithoutCache) {
  Interventions changes;
  changes.add_ablations("L0H1,L1MLP@-1");
  changes.add_scales("L1H0@4=3");
  changes.add_patch("L1.resid@0=A dog");
  for (Change& change : changes.changes)
    if (change.kind == ChangeKind::kPatch) change.ids = tokenizer_.encode("A dog");
  std::vector<TokenId> ids[2];
  for (const bool cache : {false, true}) {
    AppliedInterventions applied(*model_, changes);
    Generator generator(*model_, tokenizer_, tokenizer_.encode("Once upon a time"),
                        {.sampling = {.temperature = 0.0}, .max_tokens = 8, .use_cache = cache},
                        &applied);
    ids[cache ? 1 : 0] = generator.run(0, 0, [](std::string_view) {}).ids;
  }
  EXPECT_EQ(ids[0], ids[1]);
  EXPECT_NE(ids[0],
            run("Once upon a time", {.sampling = {.temperature = 0.0}, .max_tokens = 8}).ids);
}

TEST_F(GeneratorTest, TheCacheChangesNothing) {
  for (const double temperature : {0.0, 1.0}) {
    GenerationOptions options{.sampling = {.temperature = temperature}, .max_tokens = 40};
    const Continuation cached = run("The ship", options, 5);
    options.use_cache = false;
    const Continuation computed = run("The ship", options, 5);
    EXPECT_EQ(cached.ids, computed.ids);
    EXPECT_EQ(cached.text, computed.text);
  }
}

TEST_F(GeneratorTest, SeedsAndStreamsDecideTheText) {
  const GenerationOptions options{.max_tokens = 16};
  const std::vector<TokenId> first = run("The", options, 1, 0).ids;
  EXPECT_EQ(run("The", options, 1, 0).ids, first);
  EXPECT_NE(run("The", options, 1, 1).ids, first);
  EXPECT_NE(run("The", options, 2, 0).ids, first);
}

TEST_F(GeneratorTest, EveryRunStartsFromThePrompt) {
  Generator generator(*model_, tokenizer_, tokenizer_.encode("A long day"), {.max_tokens = 12});
  const auto ignore = [](std::string_view) {};
  const std::vector<TokenId> first = generator.run(3, 0, ignore).ids;
  generator.run(3, 1, ignore);
  EXPECT_EQ(generator.run(3, 0, ignore).ids, first);
}

TEST_F(GeneratorTest, WhatIsStreamedIsTheText) {
  const Continuation result = run("The", {.max_tokens = 30}, 9);
  EXPECT_EQ(streamed_, result.text);
  EXPECT_FALSE(result.text.empty());
}

TEST_F(GeneratorTest, StopsBeforeAStopText) {
  const GenerationOptions plain{.max_tokens = 30};
  const std::string whole = run("The", plain, 9).text;
  const std::string stop = whole.substr(whole.size() / 2, 3);
  GenerationOptions options = plain;
  options.stops = {"this does not occur", stop};
  const Continuation result = run("The", options, 9);
  EXPECT_EQ(result.finish, Finish::kStopText);
  EXPECT_EQ(result.text, whole.substr(0, whole.find(stop)));
  EXPECT_EQ(streamed_, result.text);
}

TEST_F(GeneratorTest, StopsAtEndOfText) {
  const GenerationOptions options{.sampling = {.temperature = 0.0}, .max_tokens = 5};
  const TokenId best = run("The", options).ids.at(0);
  // A tokenizer whose end of text is the token that the model puts first.
  ASSERT_NE(best, tokenizer_.eos_id());
  std::ofstream(folder_.path() / "tokenizer_config.json")
      << nlohmann::json({{"eos_token", tokenizer_.token_name(best)}});
  tokenizer_ = Tokenizer::from_folder(folder_.path());
  ASSERT_EQ(tokenizer_.eos_id(), best);
  const Continuation result = run("The", options);
  EXPECT_EQ(result.finish, Finish::kEndOfText);
  EXPECT_TRUE(result.ids.empty());
  EXPECT_EQ(result.text, "");
}

TEST_F(GeneratorTest, StopsAtTheEndOfTheContext) {
  // 64 positions: a prompt of 60 leaves room for four more, whose last one predicts a fifth.
  const std::vector<TokenId> prompt(60, 100);
  Generator generator(*model_, tokenizer_, prompt, {.max_tokens = 100});
  const Continuation result = generator.run(0, 0, [](std::string_view) {});
  EXPECT_EQ(result.finish, Finish::kContext);
  EXPECT_EQ(result.ids.size(), 5u);
}

TEST_F(GeneratorTest, PromptsThatDoNotFitAreAnError) {
  EXPECT_THAT(error_of({}), HasSubstr("empty"));
  EXPECT_THAT(error_of(std::vector<TokenId>(70, 1)), HasSubstr("70 tokens long"));
  EXPECT_THAT(error_of(std::vector<TokenId>(70, 1)), HasSubstr("context is 64; shorten it by 6"));
  EXPECT_EQ(error_of(std::vector<TokenId>(64, 1)), "no error");
}

TEST_F(GeneratorTest, NeverChoosesAnIdTheTokenizerLacks) {
  // More embeddings than tokens, as models padded to a round number have.
  const std::unique_ptr<Model> padded = make_model(tiny_config(9000), 3);
  Generator generator(*padded, tokenizer_, {5},
                      {.sampling = {.temperature = 50.0}, .max_tokens = 60});
  for (std::uint64_t stream = 0; stream < 5; ++stream)
    for (const TokenId id : generator.run(0, stream, [](std::string_view) {}).ids)
      EXPECT_LT(id, 8192);
}

class GenerateTest : public ::testing::Test {
 protected:
  ModelFolder folder_;
  const LoadedModel model_{folder_.name(), "tiny"};
};

TEST_F(GenerateTest, TellsTheReaderEveryContinuationAsItComes) {
  GenerationRequest request{.prompt = "Once upon", .options = {.max_tokens = 6}, .count = 3};
  Context context;
  context.seed = 4;
  std::string seen;
  const Generation result =
      run(request, model_, context,
          {.begin = [&](std::int64_t index) { seen += "[" + std::to_string(index) + "]"; },
           .text = [&](std::string_view text) { seen += text; },
           .end = [&] { seen += "\n"; }});
  std::string expected;
  for (std::size_t i = 0; i < 3; ++i)
    expected += "[" + std::to_string(i) + "]" + result.continuations.at(i).text + "\n";
  EXPECT_EQ(seen, expected);
  EXPECT_EQ(result.tokens(), 18u);
  EXPECT_EQ(result.model, folder_.name());
  EXPECT_FALSE(result.reached_context());
  // Nobody need read along.
  EXPECT_EQ(run(request, model_, context).continuations[2].ids, result.continuations[2].ids);
}

TEST_F(GenerateTest, StopsWithinAContinuation) {
  Context context;
  int tokens = 0;
  context.stop = [&] { return ++tokens >= 5; };
  std::int64_t begun = -1;
  int ended = 0;
  EXPECT_THROW(
      run(GenerationRequest{.prompt = "The", .options = {.max_tokens = 60}, .count = 10}, model_,
          context, {.begin = [&](std::int64_t index) { begun = index; }, .end = [&] { ++ended; }}),
      Stopped);
  EXPECT_EQ(begun, 0);
  EXPECT_EQ(ended, 1);
}

TEST_F(GenerateTest, ItsJsonNamesTheEnd) {
  const Generation result =
      run(GenerationRequest{.prompt = "Once upon a time", .options = {.max_tokens = 500}}, model_,
          Context());
  EXPECT_TRUE(result.reached_context());
  const Json json = to_json(result);
  EXPECT_EQ(json["continuations"][0]["finish"], "end-of-context");
  EXPECT_EQ(json["continuations"][0]["ids"], result.continuations[0].ids);
  EXPECT_EQ(json["prompt_tokens"], result.prompt_tokens);
}

TEST_F(GenerateTest, ATokenizerOfAnotherModelIsAnError) {
  save_model(*make_model(tiny_config(300), 1), folder_.path());
  EXPECT_THAT(
      [&] {
        run(GenerationRequest{.prompt = "Hello world"}, LoadedModel(folder_.name(), "small"),
            Context());
      },
      ::testing::ThrowsMessage<Error>(HasSubstr("there is no token 516; its tokens are 0 to 299")));
}

TEST(StopWatcher, HoldsBackWhatMayBecomeAStop) {
  StopWatcher watcher({"END", "\n\n"});
  EXPECT_EQ(watcher.push("abcE"), "abc");
  EXPECT_EQ(watcher.push("N"), "");
  EXPECT_EQ(watcher.push("x"), "ENx");
  EXPECT_EQ(watcher.push("line\n"), "line");
  EXPECT_EQ(watcher.push("EN"), "\n");
  EXPECT_FALSE(watcher.found());
  EXPECT_EQ(watcher.push("D and more"), "");
  EXPECT_TRUE(watcher.found());
}

TEST(StopWatcher, GivesOutTheRestAtTheEnd) {
  StopWatcher watcher({"END"});
  EXPECT_EQ(watcher.push("the EN"), "the ");
  EXPECT_EQ(watcher.finish(), "EN");
}

TEST(StopWatcher, TheEarliestStopCounts) {
  StopWatcher watcher({"late", "b"});
  EXPECT_EQ(watcher.push("a b late"), "a ");
  EXPECT_TRUE(watcher.found());
}

TEST(StopWatcher, FindsAStopThatBeginsInsideABrokenOffOne) {
  StopWatcher watcher({"aab"});
  EXPECT_EQ(watcher.push("aa"), "");
  EXPECT_EQ(watcher.push("a"), "a");
  EXPECT_EQ(watcher.push("b!"), "");
  EXPECT_TRUE(watcher.found());
}

TEST_F(GeneratorTest, StepByStepGivesTheSameTokensAndTheirEdges) {
  const LoadedModel loaded("test", "test", load_model(folder_.path()), folder_.path());
  const std::string prompt = "Once upon a time";
  Interventions changes;
  changes.add_ablations("L0H1");
  AppliedInterventions applied(loaded.model(), changes), again(loaded.model(), changes);
  Generator generator(*model_, tokenizer_, tokenizer_.encode(prompt),
                      {.sampling = {.temperature = 0.0}, .max_tokens = 5}, &again);
  const Continuation whole = generator.run(0, 0, [](std::string_view) {});
  TokenSteps steps(loaded, tokenizer_.encode(prompt), {.max_tokens = 5, .least_weight = 0.2f},
                   &applied);
  std::vector<TokenId> ids = tokenizer_.encode(prompt), made;
  while (const std::optional<GeneratedToken> token = steps.next()) {
    made.push_back(token->id);
    ids.push_back(token->id);
    EXPECT_GT(token->probability, 0);
    Taps taps;
    AppliedInterventions fresh(loaded.model(), changes);
    fresh.put_on(taps);
    taps.observe("blocks.*.attn.hook_pattern");
    const auto T = static_cast<std::int64_t>(ids.size());
    model_->forward(Tensor::from_ids({1, T}, ids), {.taps = &taps});
    std::size_t open = 0;
    for (std::int64_t layer = 0; layer < model_->config().layers; ++layer) {
      const Tensor& pattern = taps.value(fmt::format("blocks.{}.attn.hook_pattern", layer));
      for (std::int64_t h = 0; h < pattern.size(1); ++h)
        for (std::int64_t key = 0; key < T; ++key) {
          const float weight = pattern.f32()[((h + 1) * T - 1) * T + key];
          if (weight < 0.2f || HeadId{layer, h} == HeadId{0, 1}) continue;  // that is off
          ++open;
          EXPECT_TRUE(std::any_of(token->edges.begin(), token->edges.end(), [&](const auto& edge) {
            return edge.head == HeadId{layer, h} && edge.key == key &&
                   std::abs(edge.weight - weight) < 1e-4f;
          }));
        }
    }
    EXPECT_EQ(token->edges.size(), open);
  }
  EXPECT_EQ(made, whole.ids);
  EXPECT_EQ(steps.finish(), Finish::kMaxTokens);
}

}  // namespace
}  // namespace filigree::study
