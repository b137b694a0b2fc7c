#include "filigree/evaluation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "filigree/error.h"
#include "filigree/ops.h"
#include "filigree/random.h"
#include "support/errors.h"
#include "support/temporary_folder.h"
#include "train/shard_source.h"
#include "train/weights_checksum.h"

namespace filigree {
namespace {

using ::testing::HasSubstr;

std::vector<TokenId> random_ids(std::size_t count, std::int64_t vocabulary) {
  Random random(11);
  std::vector<TokenId> ids;
  for (std::size_t i = 0; i < count; ++i)
    ids.push_back(static_cast<TokenId>(random.below(static_cast<std::uint64_t>(vocabulary))));
  return ids;
}

// -log p(target | inputs), in double precision from the logits of one forward pass.
double direct_loss(const Model& model, std::span<const TokenId> inputs, TokenId target) {
  const Tensor ids = Tensor::from_ids({1, static_cast<std::int64_t>(inputs.size())}, inputs);
  const Variable logits = model.forward(ids, {.last_position_only = true});
  double sum = 0.0;
  for (const float logit : logits.value().values()) sum += std::exp(static_cast<double>(logit));
  return std::log(sum) -
         static_cast<double>(logits.value().values()[static_cast<std::size_t>(target)]);
}

// The definition, target by target: the first window that has a target is the one that counts.
double direct_mean(const Model& model, const std::vector<TokenId>& ids, std::int64_t length,
                   std::int64_t stride) {
  double sum = 0.0;
  for (std::size_t i = 1; i < ids.size(); ++i) {
    std::size_t begin = 0;  // of the first window [begin, begin + length) that has input i - 1
    while (i - 1 >= begin + static_cast<std::size_t>(length))
      begin += static_cast<std::size_t>(stride);
    sum += direct_loss(model, std::span(ids).subspan(begin, i - begin), ids[i]);
  }
  return sum / static_cast<double>(ids.size() - 1);
}

ModelConfig config() {
  return parse_model_config({{"model_type", "gpt2"},
                             {"n_layer", 2},
                             {"n_head", 4},
                             {"n_embd", 32},
                             {"n_positions", 16},
                             {"vocab_size", 300}},
                            "test");
}

class EvaluationTest : public ::testing::Test {
 protected:
  std::string error_of(const std::vector<TokenId>& ids, const WindowOptions& options) {
    return filigree::error_of([&] { measure(ids, options); });
  }

  Evaluation measure(const std::vector<TokenId>& ids, const WindowOptions& options) {
    return evaluate(*model_, text_windows(ids, options, model_->config()));
  }

  std::unique_ptr<Model> model_ = make_model(config(), 4);
};

TEST_F(EvaluationTest, EqualsTheDefinitionForEveryWindowing) {
  struct Case {
    std::size_t tokens;
    std::int64_t length, stride, batch;
  };
  for (const Case& c : {Case{50, 16, 16, 1}, Case{50, 16, 16, 3}, Case{50, 16, 5, 2},
                        Case{50, 7, 1, 4}, Case{50, 1, 1, 8}, Case{17, 16, 16, 1},
                        Case{18, 16, 16, 4}, Case{5, 16, 8, 2}, Case{2, 16, 16, 1}}) {
    SCOPED_TRACE(fmt::format("{} tokens, length {}, stride {}, batch {}", c.tokens, c.length,
                             c.stride, c.batch));
    const std::vector<TokenId> ids = random_ids(c.tokens, 300);
    const EvaluationWindows windows =
        text_windows(ids, {c.length, c.stride, c.batch}, model_->config());
    EXPECT_EQ(windows.targets, static_cast<std::int64_t>(c.tokens) - 1);
    const Evaluation result = evaluate(*model_, windows);
    EXPECT_EQ(result.total.tokens, static_cast<std::int64_t>(c.tokens) - 1);
    EXPECT_NEAR(result.loss(), direct_mean(*model_, ids, c.length, c.stride), 1e-5);
  }
}

TEST_F(EvaluationTest, OneWindowIsTheLibrarysCrossEntropy) {
  const std::vector<TokenId> ids = random_ids(17, 300);
  const Variable logits = model_->forward(Tensor::from_ids({1, 16}, std::span(ids).first(16)));
  const Tensor targets = Tensor::from_ids({1, 16}, std::span(ids).last(16));
  EXPECT_NEAR(measure(ids, {}).loss(),
              static_cast<double>(cross_entropy(logits, targets).value().item()), 1e-6);
}

TEST_F(EvaluationTest, DefaultsAreTheContextWithoutOverlap) {
  const std::vector<TokenId> ids = random_ids(60, 300);
  EXPECT_NEAR(measure(ids, {}).total.sum, measure(ids, {16, 16, 1}).total.sum, 1e-4);
}

TEST_F(EvaluationTest, ReportsEveryPass) {
  const std::vector<TokenId> ids = random_ids(50, 300);
  std::vector<std::int64_t> seen;
  evaluate(*model_, text_windows(ids, {16, 16, 2}, model_->config()),
           [&](const Evaluation& so_far) { seen.push_back(so_far.total.tokens); });
  EXPECT_THAT(seen, ::testing::ElementsAre(32, 48, 49));
}

TEST_F(EvaluationTest, WhatCannotBeEvaluatedIsAnError) {
  EXPECT_THAT(error_of({}, {}), HasSubstr("at least two tokens, there are 0"));
  EXPECT_THAT(error_of({1}, {}), HasSubstr("at least two tokens, there is 1"));
  EXPECT_THAT(error_of({1, 2, 3}, {17, 0, 1}),
              HasSubstr("windows of 17 tokens are longer than the model's context of 16"));
  EXPECT_THAT(error_of({1, 2, 3}, {8, 9, 1}), HasSubstr("stride of 9"));
  EXPECT_THAT(error_of({1, 300, 3}, {}), HasSubstr("300"));
}

// The number of open gates of each layer and head, counted in the masks themselves.
std::vector<double> counted_edges(const Model& model, const std::vector<TokenId>& ids,
                                  std::int64_t length) {
  const ModelConfig& c = model.config();
  std::vector<double> open(static_cast<std::size_t>(c.layers * c.heads), 0.0);
  const auto tokens = static_cast<std::int64_t>(ids.size());
  for (const Window& window : windows_of(tokens, length, length)) {
    const std::int64_t T = window.end - window.begin;
    Taps taps;
    taps.observe("blocks.*.attn.hook_gate");
    model.forward(
        Tensor::from_ids({1, T}, std::span(ids).subspan(static_cast<std::size_t>(window.begin),
                                                        static_cast<std::size_t>(T))),
        {.taps = &taps});
    for (std::int64_t l = 0; l < c.layers; ++l) {
      const Tensor& mask = taps.value(fmt::format("blocks.{}.attn.hook_gate", l));
      for (std::int64_t h = 0; h < c.heads; ++h)
        for (std::int64_t i = 0; i < T * T; ++i)
          open[static_cast<std::size_t>(l * c.heads + h)] +=
              static_cast<double>(mask.f32()[h * T * T + i]);
    }
  }
  return open;
}

TEST_F(EvaluationTest, CountsTheOpenEdgesOfEveryHead) {
  std::vector<float> biases(8);
  for (std::size_t i = 0; i < biases.size(); ++i) biases[i] = 0.01f * (static_cast<float>(i) - 4);
  biases[3] = 100.0f, biases[5] = -100.0f;  // all open, all closed
  model_->set_gate({biases});
  for (const NamedParameter& parameter : model_->parameters())
    if (parameter.name.ends_with("c_attn.weight"))
      for (std::int64_t i = 0; i < parameter.variable.value().elements(); ++i)
        parameter.variable.mutable_value().mutable_f32()[i] *= 5.0f;
  const std::vector<TokenId> ids = random_ids(50, 300);
  const Evaluation result = measure(ids, {.batch = 2});
  EXPECT_EQ(result.open_edges, counted_edges(*model_, ids, 16));
  EXPECT_EQ(result.queries, 49);
  EXPECT_EQ(result.edges, std::vector<double>(result.edges.size(), 3 * 136 + 1));
  EXPECT_EQ(result.connectivity(0, 3).active_edges, 1.0);
  EXPECT_EQ(result.connectivity(1, 1).active_edges, 0.0);
  EXPECT_GT(result.connectivity().active_edges, 0.2);
  EXPECT_LT(result.connectivity().active_edges, 0.8);
  EXPECT_NEAR(result.connectivity(1).keys_per_query,
              result.connectivity(1).active_edges * result.edges[1] / 49.0, 1e-12);
}

TEST_F(EvaluationTest, WithoutAGateEveryEdgeIsOpen) {
  const Evaluation result = measure(random_ids(17, 300), {});
  EXPECT_EQ(result.connectivity().active_edges, 1.0);
  EXPECT_EQ(result.connectivity().keys_per_query, 8.5);
}

TEST_F(EvaluationTest, ErrorsAreThoseOfTheWindows) {
  const std::vector<TokenId> ids = random_ids(65, 300);  // four windows of 16
  const Evaluation a = measure(ids, {});
  const auto other = make_model(config(), 5);
  const Evaluation b = evaluate(*other, text_windows(ids, {}, other->config()));
  const auto deviation = [](const std::vector<double>& values) {
    double mean = 0.0, squares = 0.0;
    for (const double value : values) mean += value / 4.0;
    for (const double value : values) squares += (value - mean) * (value - mean);
    return std::sqrt(squares / 3.0);
  };
  std::vector<double> own, paired;
  for (std::size_t i = 0; i < 4; ++i) {
    own.push_back(a.windows[i].sum / 16.0);
    paired.push_back((a.windows[i].sum - b.windows[i].sum) / 16.0);
  }
  ASSERT_TRUE(a.loss_error() && change_error(a, b));
  EXPECT_NEAR(*a.loss_error(), deviation(own) / 2.0, 1e-9);
  EXPECT_NEAR(*change_error(a, b), deviation(paired) / 2.0, 1e-9);
  EXPECT_FALSE(measure(random_ids(9, 300), {}).loss_error());
  EXPECT_FALSE(change_error(a, measure(ids, {.length = 8})));
}

TEST_F(EvaluationTest, ShardsAreEvaluatedLikeTheirTokens) {
  const TemporaryFolder folder;
  const std::vector<TokenId> ids = random_ids(150, 300);
  TokenShardsWriter writer(folder.path(), {.vocabulary = 300, .shard_tokens = 40});
  writer.add_tokens(1, ids);
  writer.finish();
  const TokenShards shards = TokenShards::open(folder.path());
  const auto on_shards = [&](const WindowOptions& options) {
    EvaluationWindows windows = shard_windows(shards.split("held-out"), options, model_->config());
    const std::int64_t promised = windows.targets;
    const Evaluation result = evaluate(*model_, windows);
    EXPECT_EQ(result.total.tokens, promised);
    return result;
  };
  for (const WindowOptions& options :
       {WindowOptions{}, WindowOptions{.length = 7, .batch = 3}, WindowOptions{.max_tokens = 50},
        WindowOptions{.batch = 2, .max_tokens = 33}, WindowOptions{.max_tokens = 1000}}) {
    SCOPED_TRACE(fmt::format("length {}, at most {}", options.length, options.max_tokens));
    const Evaluation expected = measure(ids, options);
    const Evaluation result = on_shards(options);
    EXPECT_EQ(result.total.tokens, expected.total.tokens);
    EXPECT_NEAR(result.loss(), expected.loss(), 1e-6);
    EXPECT_EQ(result.windows.size(), expected.windows.size());
    EXPECT_EQ(result.queries, expected.queries);
  }
  EXPECT_EQ(on_shards({.max_tokens = 50}).total.tokens, 64);  // whole windows
}

TEST(ShardSource, ContinuesWhereItsStateSays) {
  const TemporaryFolder folder;
  TokenShardsWriter writer(folder.path(), {.vocabulary = 300});
  writer.add_tokens(0, random_ids(100, 300));
  writer.finish();
  const TokenShards shards = TokenShards::open(folder.path());
  ShardSource source(shards.split("train"), {.batch = 3, .length = 8, .seed = 4});
  for (int i = 0; i < 5; ++i) source.next();
  ShardSource resumed(shards.split("train"), {.batch = 3, .length = 8, .seed = 4});
  resumed.restore(nlohmann::json::parse(source.state().dump()));
  for (int i = 0; i < 5; ++i) {
    const Batch a = source.next(), b = resumed.next();
    EXPECT_TRUE(std::equal(a.ids.i32(), a.ids.i32() + 24, b.ids.i32()));
    EXPECT_TRUE(std::equal(a.targets.i32(), a.targets.i32() + 24, b.targets.i32()));
  }
  EXPECT_THROW(resumed.restore({{"epoch", 0}}), Error);
  EXPECT_THROW(resumed.restore({{"epoch", 0}, {"position", 1000}}), Error);
}

TEST(WeightsChecksum, TellsModelsApart) {
  const auto model = make_model(config(), 1), same = make_model(config(), 1);
  EXPECT_EQ(weights_checksum(*model), weights_checksum(*same));
  EXPECT_NE(weights_checksum(*model), weights_checksum(*make_model(config(), 2)));
  same->set_gate({{2.0f}});
  EXPECT_NE(weights_checksum(*model), weights_checksum(*same));
}

TEST(Windows, EveryTargetCountsOnce) {
  for (std::int64_t tokens = 2; tokens < 40; ++tokens)
    for (std::int64_t length = 1; length < 12; ++length)
      for (std::int64_t stride = 1; stride <= length; ++stride) {
        std::int64_t next = 1;
        for (const Window& window : windows_of(tokens, length, stride)) {
          ASSERT_EQ(window.first_counted, next);
          ASSERT_GT(window.first_counted, window.begin);  // it has its input in the window
          ASSERT_LE(window.end - window.begin, length);
          next = window.end + 1;
        }
        ASSERT_EQ(next, tokens);
      }
}

}  // namespace
}  // namespace filigree
