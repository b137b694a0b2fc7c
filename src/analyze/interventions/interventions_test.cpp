// Interventions: how they are read, and what changed runs give against patched runs and hand-made
// ones.
#include "filigree/interventions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "analyze/circuit/circuit_test_support.h"
#include "analyze/circuit/induction_model_test_support.h"
#include "filigree/circuit.h"
#include "filigree/tasks.h"
#include "support/errors.h"

namespace filigree {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(InterventionText, ReadsEveryWayToWriteAPlace) {
  const auto is =
      [](const std::string& text, const std::string& tap, std::optional<std::int64_t> head = {},
         std::optional<std::int64_t> position = {}, std::optional<std::int64_t> key = {}) {
        const TapPlace place = parse_tap_place(text);
        EXPECT_EQ(place.tap, tap) << text;
        EXPECT_EQ(place.head, head) << text;
        EXPECT_EQ(place.position, position) << text;
        EXPECT_EQ(place.key, key) << text;
      };
  is("L6H11", "blocks.6.attn.hook_z", 11);
  is(" L6H11 ", "blocks.6.attn.hook_z", 11);
  is("L6H*", "blocks.6.attn.hook_z");
  is("L6", "blocks.6.attn.hook_z");
  is("L*H3", "blocks.*.attn.hook_z", 3);
  is("L7MLP", "blocks.7.hook_mlp_out");
  is("L7 MLP@2", "blocks.7.hook_mlp_out", {}, 2);
  is("L*MLP", "blocks.*.hook_mlp_out");
  is("L10H0.q@-1", "blocks.10.attn.hook_q", 0, -1);
  is("L10H0.pattern@5<-2", "blocks.10.attn.hook_pattern", 0, 5, 2);
  is("L10.resid-mid@0", "blocks.10.hook_resid_mid", {}, 0);
  is("embedding@3", "hook_embed", {}, 3);
  is("blocks.3.mlp.hook_post@4", "blocks.3.mlp.hook_post", {}, 4);
  is("blocks.*.attn.hook_attn_scores@4 <- -1", "blocks.*.attn.hook_attn_scores", {}, 4, -1);
  is("L3.expert-out@1", "blocks.3.mlp.hook_expert_out", {}, 1);
  is("L6H11@START", "blocks.6.attn.hook_z", 11, 0);
  is("L6H1.pattern@END<-START", "blocks.6.attn.hook_pattern", 1, -1, 0);
}

TEST(InterventionText, ReadsExperts) {
  const auto is = [](const std::string& text, const std::string& tap,
                     std::optional<std::int64_t> expert, std::optional<std::int64_t> position) {
    const TapPlace place = parse_tap_place(text);
    EXPECT_EQ(place.tap, tap) << text;
    EXPECT_EQ(place.site, Site::kExpertOut) << text;
    EXPECT_EQ(place.expert, expert) << text;
    EXPECT_EQ(place.head, std::nullopt) << text;
    EXPECT_EQ(place.position, position) << text;
  };
  is("L3E5", "blocks.3.mlp.hook_expert_out", 5, {});
  is("L3E12@-1", "blocks.3.mlp.hook_expert_out", 12, -1);
  is("L3E*", "blocks.3.mlp.hook_expert_out", {}, {});
  is("L*E0", "blocks.*.mlp.hook_expert_out", 0, {});
}

TEST(InterventionText, PositionsMayBeTokens) {
  const std::vector<std::string> tokens = {"When", " Mary", ",", "'s", " to", " to", "=", "Mary"};
  const auto at = [&](const std::string& place) {
    Interventions changes;
    changes.add_ablations(place);
    changes.resolve_positions(tokens);
    return changes.changes[0].place;
  };
  EXPECT_EQ(at("L6H11@' Mary'").position, 1);
  EXPECT_EQ(at("L6H11@'Mary'").position, 7);
  EXPECT_EQ(at("L6H11@Mary").position, 7);  // as it is before with a space
  EXPECT_EQ(at("L6H11@When").position, 0);
  EXPECT_EQ(at("L6H11@','").position, 2);
  EXPECT_EQ(at("L6H11@''s'").position, 3);
  EXPECT_EQ(at("L6.pattern@' Mary' <- 'When'").position, 1);
  EXPECT_EQ(at("L6.pattern@' Mary' <- 'When'").key, 0);
  EXPECT_EQ(at("L6.pattern@5<-When").key, 0);
  // Commas, signs of equality and quotes of tokens separate nothing.
  Interventions changes;
  changes.add_ablations("L6H11@',',L7MLP@'='");
  changes.add_scales("L1H0@','=0.5,L1H1@'='=2");
  changes.add_patch("L2.resid@'='=a = 'b', c");
  ASSERT_EQ(changes.changes.size(), 5u);
  EXPECT_EQ(changes.changes[0].prompt, "a = 'b', c");
  EXPECT_EQ(changes.for_any_text().changes.size(), 0u);
  changes.resolve_positions(tokens);
  std::vector<std::int64_t> positions;
  for (const Change& change : changes.changes) positions.push_back(change.place.position.value());
  EXPECT_EQ(positions, (std::vector<std::int64_t>{6, 2, 6, 2, 6}));

  EXPECT_THAT(error_of([&] { at("L6H11@' John'"); }),
              AllOf(HasSubstr("no token ' John'"), HasSubstr("0 to 7, START, END or one of 'When'"),
                    HasSubstr("' Mary'")));
  EXPECT_THAT(error_of([&] { at("L6H11@' to'"); }), HasSubstr("' to' is at 4 and 5"));
  EXPECT_THAT(error_of([&] { at("L6H11@S2"); }), HasSubstr("no token 'S2'"));
}

TEST(InterventionText, SaysWhatItCannotRead) {
  const auto error = [](const std::string& text) {
    return error_of([&] { parse_tap_place(text); });
  };
  for (const char* text : {"", "L", "L6H", "L6Hx", "6.11", "H6", "L6MLPx", "nonsense", "L-1H2",
                           "L6E", "L6Ex", "L6E5x", "E5"})
    EXPECT_THAT(error(text), HasSubstr("is no place in a model")) << text;
  EXPECT_THAT(error("L6H11@"), HasSubstr("'' in 'L6H11@' is no position"));
  EXPECT_THAT(error("L6.pattern@3<-"), HasSubstr("'3<-' in 'L6.pattern@3<-' is no position"));
  EXPECT_THAT(error("L6H11@' a'<-' b'"), HasSubstr("only patterns, scores and gates have keys"));
  EXPECT_THAT(error("L6H11@5<-2"), HasSubstr("only patterns, scores and gates have keys"));
  EXPECT_THAT(error("L6H11.resid"), HasSubstr("of a whole layer, L6.resid"));
  EXPECT_THAT(error("L6E5.q"), HasSubstr("'q' is no part of"));
  EXPECT_THAT(error("L6H11.zz"), HasSubstr("'zz' is no part of"));
  Interventions read;
  EXPECT_THAT(error_of([&] { read.add_scales("L6H11"); }), HasSubstr("write L6H11=0.5"));
  EXPECT_THAT(error_of([&] { read.add_scales("L6H11=2,L7MLP=nan"); }), HasSubstr("no factor"));
  EXPECT_THAT(error_of([&] { read.add_patch("L6H11@2"); }), HasSubstr("no text"));
}

TEST(InterventionText, AreMadeInOneOrderAndSayWhatTheyAre) {
  Interventions changes;
  changes.add_ablations("L6H11,L7MLP");
  changes.add_scales("L1H0=0.5");
  changes.add_patch("L2.resid@-1=a = b, c");
  EXPECT_EQ(text_of(changes),
            "L2.resid@-1 from 'a = b, c', L1H0 x 0.5, L6H11 ablated, L7MLP ablated");
  EXPECT_EQ(changes.for_any_text().changes.size(), 3u);
}

class InterventionRun : public testing::TestWithParam<SmallKind> {
 protected:
  // Logits [T, V] of the run on `ids` with the changes.
  Tensor logits(const std::vector<TokenId>& ids, const Interventions& changes,
                Taps* given = nullptr) const {
    AppliedInterventions applied(*model_, changes);
    Taps own;
    Taps& taps = given != nullptr ? *given : own;
    applied.put_on(taps);
    const auto T = static_cast<std::int64_t>(ids.size());
    return model_->forward(Tensor::from_ids({1, T}, ids), {.taps = &taps})
        .value()
        .reshape({T, kTestVocabulary})
        .clone();
  }
  double metric(const TaskPrompt& prompt, const Interventions& changes) const {
    const Tensor all = logits(prompt.clean, changes);
    const float* last = all.f32() + (prompt.length() - 1) * kTestVocabulary;
    return static_cast<double>(last[prompt.answers[0]]) - last[prompt.wrong[0]];
  }
  static Interventions patch_from(const TaskPrompt& prompt, const std::string& place) {
    Interventions changes;
    changes.add_patch(place + "=corrupt");
    changes.changes[0].ids = prompt.corrupt;
    return changes;
  }

  std::unique_ptr<Model> model_ = small_model(GetParam());
  std::vector<TaskPrompt> prompts_ = small_prompts({9, 6, 12});
};

struct PlaceAndTarget {
  const char* place;
  PatchTarget target;
};
const PlaceAndTarget kPlaces[] = {{"L1H2", {Site::kZ, 1, 2}},
                                  {"L0H0@4", {Site::kZ, 0, 0, 4}},
                                  {"L2", {Site::kZ, 2}},
                                  {"L1MLP", {Site::kMlpOut, 1}},
                                  {"L1.attn-out", {Site::kAttentionOut, 1}},
                                  {"L1H1.q", {Site::kQuery, 1, 1}},
                                  {"L2H0.k@3", {Site::kKey, 2, 0, 3}},
                                  {"L1.v", {Site::kValue, 1}},
                                  {"L1.resid@2", {Site::kResidual, 1, -1, 2}},
                                  {"L1H0.pattern", {Site::kPattern, 1, 0}},
                                  {"L1H0.pattern@4<-3", {Site::kPattern, 1, 0, 4, 3}}};

TEST_P(InterventionRun, AblationsArePatchesWithZero) {
  for (const PlaceAndTarget& one : kPlaces) {
    SCOPED_TRACE(one.place);
    Interventions changes;
    changes.add_ablations(one.place);
    const PatchedRuns runs =
        run_patched(*model_, prompts_, {{one.target}}, {.replacement = Replacement::kZero});
    for (std::size_t p = 0; p < prompts_.size(); ++p)
      EXPECT_NEAR(metric(prompts_[p], changes), runs.patched[0][p], 2e-4);
  }
}

TEST_P(InterventionRun, PatchesAreThoseOfPatchedRuns) {
  for (const PlaceAndTarget& one : kPlaces) {
    SCOPED_TRACE(one.place);
    const PatchedRuns runs = run_patched(*model_, prompts_, {{one.target}});
    for (std::size_t p = 0; p < prompts_.size(); ++p)
      EXPECT_NEAR(metric(prompts_[p], patch_from(prompts_[p], one.place)), runs.patched[0][p],
                  2e-4);
  }
}

TEST_P(InterventionRun, WhatTheFinalNormGivesDecidesEveryPosition) {
  const TaskPrompt& prompt = prompts_[0];
  const Tensor expected = logits(prompt.corrupt, {}),
               patched = logits(prompt.clean, patch_from(prompt, "ln_final.hook_normalized"));
  for (std::int64_t i = 0; i < expected.elements(); ++i)
    EXPECT_NEAR(patched.f32()[i], expected.f32()[i], 2e-4);
}

TEST_P(InterventionRun, FactorsMultiplyAndOneChangesNothing) {
  const std::vector<TokenId>& ids = prompts_[0].clean;
  const std::string tap = "blocks.1.attn.hook_z";
  Taps plain, changed;
  plain.observe(tap), changed.observe(tap);
  const Tensor before = logits(ids, {}, &plain);
  Interventions one;
  one.add_scales("L1H2=1,L*MLP=1");
  const Tensor same = logits(ids, one);
  for (std::int64_t i = 0; i < before.elements(); ++i)
    ASSERT_NEAR(same.f32()[i], before.f32()[i], 2e-4);
  Interventions half;
  half.add_scales("L1H2@-2=0.5");
  logits(ids, half, &changed);
  const Tensor& a = plain.value(tap);
  const Tensor& b = changed.value(tap);
  const std::int64_t T = a.size(1), H = a.size(2), D = a.size(3);
  for (std::int64_t t = 0; t < T; ++t)
    for (std::int64_t h = 0; h < H; ++h)
      for (std::int64_t d = 0; d < D; ++d) {
        const std::int64_t at = (t * H + h) * D + d;
        EXPECT_FLOAT_EQ(b.f32()[at], (t == T - 2 && h == 2 ? 0.5f : 1.0f) * a.f32()[at]);
      }
}

TEST_P(InterventionRun, PositionsOfTextsOfOtherLengthsCountFromEitherEnd) {
  // The whole stream before the last layer at the last position decides the prediction there.
  Interventions changes;
  changes.add_patch("L2.resid@-1=other");
  changes.changes[0].ids = prompts_[1].clean;
  const Tensor patched = logits(prompts_[0].clean, changes);
  EXPECT_THAT(error_of([&] {
                changes.changes[0].place = parse_tap_place("L2.resid@8");
                logits(prompts_[0].clean, changes);
              }),
              AllOf(HasSubstr("has no position 8"), HasSubstr("6 tokens")));
  EXPECT_THAT(error_of([&] {
                changes.changes[0].place = parse_tap_place("L2.resid");
                logits(prompts_[0].clean, changes);
              }),
              AllOf(HasSubstr("6 tokens and the run 9"), HasSubstr("say at which position")));
  EXPECT_THAT(error_of([&] {
                changes.changes[0].place = parse_tap_place("L2.resid@-10");
                logits(prompts_[0].clean, changes);
              }),
              HasSubstr("no position -10; the run has 9 tokens, 0 to 8"));
  Taps seen;
  seen.observe("blocks.2.hook_resid_pre");
  logits(prompts_[1].clean, {}, &seen);
  const Tensor& other = seen.value("blocks.2.hook_resid_pre");  // [1, 6, d]
  Taps here;
  here.observe("blocks.2.hook_resid_pre");
  changes.changes[0].place = parse_tap_place("L2.resid@-1");
  logits(prompts_[0].clean, changes, &here);
  const Tensor& stream = here.value("blocks.2.hook_resid_pre");
  const std::int64_t d = other.size(2);
  for (std::int64_t c = 0; c < d; ++c) EXPECT_EQ(stream.f32()[8 * d + c], other.f32()[5 * d + c]);
}

TEST_P(InterventionRun, APassAfterPassGivesWhatOnePassGives) {
  const std::vector<TokenId>& ids = prompts_[0].clean;
  Interventions changes;
  changes.add_ablations("L1H1,L0MLP@7");
  changes.add_scales("L2H0@-1=3");
  changes.add_patch("L0H2@1=other");
  changes.changes[0].ids = prompts_[2].clean;
  // Five tokens of prompt, four that follow: -1 is the prompt's last, 4.
  AppliedInterventions growing(*model_, changes);
  Taps taps;
  growing.put_on(taps);
  const auto cache = model_->make_cache(1, 16);
  Tensor last;
  for (const auto& [begin, end] : {std::pair<std::size_t, std::size_t>{0, 5}, {5, 6}, {6, 9}}) {
    growing.set_pass(static_cast<std::int64_t>(begin), 5);
    const std::vector<TokenId> part(ids.begin() + static_cast<std::ptrdiff_t>(begin),
                                    ids.begin() + static_cast<std::ptrdiff_t>(end));
    last = model_
               ->forward(Tensor::from_ids({1, static_cast<std::int64_t>(part.size())}, part),
                         {.taps = &taps, .cache = cache.get(), .last_position_only = true})
               .value();
  }
  Interventions fixed = changes;
  fixed.changes[1].place = parse_tap_place("L2H0@4");
  const Tensor whole = logits(ids, fixed);
  for (std::int64_t v = 0; v < kTestVocabulary; ++v)
    EXPECT_NEAR(last.f32()[v], whole.f32()[8 * kTestVocabulary + v], 2e-4);
}

TEST_P(InterventionRun, ShorterRunsMayLackAPosition) {
  Interventions changes;
  changes.add_ablations("L1MLP@7,L0MLP@-8");  // of 9 tokens, not of 6
  AppliedInterventions applied(*model_, changes);
  applied.allow_shorter_runs();
  const auto run = [&](const TaskPrompt& prompt) {
    Taps taps;
    applied.put_on(taps);
    return model_->forward(prompt_ids({&prompt}, false), {.taps = &taps}).value().clone();
  };
  const Tensor longer = run(prompts_[0]), expected = logits(prompts_[0].clean, changes);
  const Tensor shorter = run(prompts_[1]), plain = logits(prompts_[1].clean, {});
  for (std::int64_t i = 0; i < longer.elements(); ++i)
    ASSERT_EQ(longer.f32()[i], expected.f32()[i]);
  for (std::int64_t i = 0; i < shorter.elements(); ++i)
    ASSERT_NEAR(shorter.f32()[i], plain.f32()[i], 2e-4);
}

TEST_P(InterventionRun, TokensNamePositionsOfOneTextOnly) {
  Interventions changes;
  changes.add_ablations("L1H1@' John'");
  EXPECT_THAT(error_of([&] { AppliedInterventions(*model_, changes); }),
              HasSubstr("only where one text is run"));
}

TEST_P(InterventionRun, ScoresAboveTheDiagonalStay) {
  Interventions changes;
  changes.add_ablations("blocks.1.attn.hook_attn_scores");
  Taps taps;
  taps.observe("blocks.1.attn.hook_pattern");
  const Tensor result = logits(prompts_[0].clean, changes, &taps);
  for (const float logit : result.values()) ASSERT_TRUE(std::isfinite(logit));
  if (GetParam() == SmallKind::kGated) return;  // whose gates close at a score of zero
  const Tensor& pattern = taps.value("blocks.1.attn.hook_pattern");
  const std::int64_t T = pattern.size(2);
  EXPECT_NEAR(pattern.f32()[3 * T + 1], 0.25f, 1e-5);  // equal scores: an even row
  EXPECT_EQ(pattern.f32()[3 * T + 4], 0.0f);
}

TEST_P(InterventionRun, NamesWhatTheModelDoesNotHave) {
  const auto error = [&](const char* place) {
    Interventions changes;
    changes.add_ablations(place);
    return error_of([&] { AppliedInterventions(*model_, changes); });
  };
  EXPECT_THAT(error("L3H0"), HasSubstr("there is no layer 3; there are 3"));
  EXPECT_THAT(error("L1H9"), HasSubstr("there is no head 9"));
  EXPECT_THAT(error("blocks.1.attn.hook_zz"),
              AllOf(HasSubstr("no tap 'blocks.1.attn.hook_zz'"),
                    HasSubstr("the nearest are blocks.1.attn.hook_z")));
}

INSTANTIATE_TEST_SUITE_P(Models, InterventionRun,
                         testing::Values(SmallKind::kDense, SmallKind::kGated, SmallKind::kLlama,
                                         SmallKind::kParallel),
                         [](const auto& kind) { return text_of(kind.param); });

// The model built by hand says the next token of a repeated sequence by two heads, and by no other.
TEST(InterventionCircuit, TakesAwayTheHeadsOfAKnownCircuit) {
  const auto model = induction_model();
  const std::vector<TaskPrompt> prompts = induction_prompts(8);
  const auto right = [&](const Interventions& changes) {
    int count = 0;
    for (const TaskPrompt& prompt : prompts) {
      AppliedInterventions applied(*model, changes);
      Taps taps;
      applied.put_on(taps);
      const Tensor logits =
          model->forward(prompt_ids({&prompt}, false), {.taps = &taps, .last_position_only = true})
              .value();
      const float answer = logits.f32()[prompt.answers[0]];
      bool best = true;
      for (const TokenId wrong : prompt.wrong) best = best && answer > logits.f32()[wrong];
      count += best ? 1 : 0;
    }
    return count;
  };
  const auto without = [&](const char* places) {
    Interventions changes;
    changes.add_ablations(places);
    return right(changes);
  };
  EXPECT_EQ(right({}), 8);
  EXPECT_EQ(without("L0H1,L0H2,L0H3,L1H1,L1H2,L1H3,L*MLP"), 8);
  EXPECT_LT(without("L0H0"), 6);
  EXPECT_LT(without("L1H0"), 6);
}

}  // namespace
}  // namespace filigree
