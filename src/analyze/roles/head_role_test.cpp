// Roles of maps that were made to have them, dense and sparse, pure, mixed and noisy.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cctype>
#include <string>

#include "analyze/analyze_test_support.h"
#include "analyze/constructed_maps_test_support.h"
#include "filigree/roles.h"
#include "support/files.h"

namespace filigree {
namespace {

using analyze_test::column_keys;
using analyze_test::ConstructedMap;
using analyze_test::dense_map;
using analyze_test::dotted_keys;
using analyze_test::every_key;
using analyze_test::KeysOf;
using analyze_test::mixture;
using analyze_test::offset_keys;
using analyze_test::sparse_map;
using ::testing::HasSubstr;

RoleScores scores_of(const ConstructedMap& map) {
  RoleAccumulator roles;
  roles.add(map.weights, map.length);
  return roles.scores();
}

HeadRole role_of(const ConstructedMap& map) { return classify(scores_of(map)); }

struct Kind {
  std::string role;
  KeysOf keys;
};

const std::vector<Kind> kKinds = {{"sink", column_keys({0})},         {"current", offset_keys(0)},
                                  {"previous", offset_keys(1)},       {"offset 2", offset_keys(2)},
                                  {"offset 7", offset_keys(7)},       {"stripes", column_keys({1})},
                                  {"stripes", column_keys({2, 5, 9})}};

TEST(HeadRole, EveryPatternIsRecognisedDenseAndSparse) {
  for (const std::int64_t T : {24, 64, 256})
    for (const Kind& kind : kKinds) {
      SCOPED_TRACE(fmt::format("{} at {} tokens", kind.role, T));
      for (std::uint64_t seed = 1; seed <= 5; ++seed) {
        const HeadRole dense = role_of(dense_map(T, kind.keys, 0.8, seed));
        // Where an offset reaches back beyond the text a dense head must look elsewhere.
        EXPECT_THAT(dense.name, ::testing::StartsWith(kind.role));
        EXPECT_GT(dense.confidence, 0.45);
        const HeadRole sparse = role_of(sparse_map(T, kind.keys, 0.4, seed));
        EXPECT_EQ(sparse.name, kind.role);
        EXPECT_GT(sparse.confidence, 0.55);
      }
    }
}

TEST(HeadRole, DiffuseIsRecognisedDenseAndSparse) {
  for (const std::int64_t T : {8, 24, 64, 256}) {
    EXPECT_EQ(role_of(dense_map(T, every_key(), 0.9)).name, "diffuse") << T;
    // Of 8 tokens only three rows are open.
    EXPECT_EQ(role_of(sparse_map(T, every_key())).name, T > 8 ? "diffuse" : "too few rows") << T;
    EXPECT_GT(scores_of(sparse_map(T, every_key()))[Pattern::kDiffuse], 0.99) << T;
  }
}

TEST(HeadRole, DottedDiagonalsAreFragmented) {
  for (const std::int64_t T : {64, 256})
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
      const KeysOf keys = dotted_keys({5, 12, 19, 26}, 0.3, seed);
      EXPECT_EQ(role_of(sparse_map(T, keys, 0.0, seed)).name, "fragmented") << T << " " << seed;
      EXPECT_THAT(role_of(dense_map(T, keys, 0.9, seed)).name, HasSubstr("fragmented"))
          << T << " " << seed;
    }
  // One diagonal is an offset, however dotted.
  EXPECT_EQ(role_of(sparse_map(256, dotted_keys({12}, 0.3, 3), 0.0)).name, "offset 12");
}

TEST(HeadRole, ABandBesideTheDiagonalIsNotFragmented) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    const KeysOf near = dotted_keys({2, 3, 4, 5, 6, 7}, 0.4, seed);
    EXPECT_EQ(scores_of(sparse_map(128, near, 0.0, seed))[Pattern::kFragmented], 0.0) << seed;
    // Beside a band there may still be fragments.
    const KeysOf more = dotted_keys({2, 3, 4, 20, 30, 40}, 0.4, seed);
    EXPECT_GT(scores_of(sparse_map(128, more, 0.0, seed))[Pattern::kFragmented], 0.3) << seed;
  }
}

TEST(HeadRole, HybridsNameBothParts) {
  const auto hybrid = [](const Kind& a, const Kind& b, float share) {
    return role_of(mixture(dense_map(128, a.keys, 0.95, 1), dense_map(128, b.keys, 0.95, 2), share))
        .name;
  };
  const Kind diffuse = {"diffuse", every_key()};
  EXPECT_EQ(hybrid(kKinds[0], kKinds[2], 0.6f), "sink+previous");
  EXPECT_EQ(hybrid(kKinds[0], kKinds[2], 0.4f), "previous+sink");
  EXPECT_EQ(hybrid(kKinds[0], kKinds[1], 0.6f), "sink+current");
  EXPECT_EQ(hybrid(kKinds[1], kKinds[4], 0.6f), "current+offset 7");
  EXPECT_EQ(hybrid(kKinds[0], kKinds[6], 0.6f), "sink+stripes");
  EXPECT_EQ(hybrid(kKinds[0], diffuse, 0.6f), "sink+diffuse");
  EXPECT_EQ(hybrid(diffuse, kKinds[2], 0.6f), "diffuse+previous");
  // A small admixture changes nothing.
  EXPECT_EQ(hybrid(kKinds[0], kKinds[2], 0.9f), "sink");
  // A sparse head that does one thing in some rows and another in others.
  ConstructedMap map = sparse_map(128, offset_keys(1), 0.0);
  for (std::int64_t i = 1; i < 128; i += 2) {
    map.at(i, 0) = map.at(i, i - 1);
    if (i > 1) map.at(i, i - 1) = 0.0f;
  }
  EXPECT_THAT(role_of(map).name, ::testing::AnyOf("sink+previous", "previous+sink"));
}

TEST(HeadRole, ScoresOfMixturesAreTheShares) {
  const RoleScores scores = scores_of(
      mixture(dense_map(256, column_keys({0}), 1.0), dense_map(256, every_key(), 1.0), 0.3f));
  EXPECT_NEAR(scores[Pattern::kSink], 0.3, 1e-3);
  EXPECT_NEAR(scores[Pattern::kDiffuse], 0.7, 1e-3);
  EXPECT_NEAR(scores[Pattern::kPrevious], 0.0, 1e-3);
  EXPECT_NEAR(scores[Pattern::kOffset], 0.0, 1e-3);
  EXPECT_EQ(scores[Pattern::kStripes], 0.0);
  EXPECT_EQ(scores[Pattern::kFragmented], 0.0);
  EXPECT_EQ(scores[Pattern::kEmpty], 0.0);
}

// Even rows have every key of a short prompt at a large weight; that must not look like a pattern.
TEST(HeadRole, AnIndifferentHeadScoresNothingButDiffuse) {
  for (const std::int64_t T : {5, 6, 10, 100}) {
    const RoleScores scores = scores_of(sparse_map(T, every_key(), 0.0));
    for (std::size_t p = 0; p < kPatterns; ++p) {
      const auto pattern = static_cast<Pattern>(p);
      if (pattern == Pattern::kDiffuse) {
        EXPECT_NEAR(scores[pattern], 1.0, 1e-5);
      } else {
        EXPECT_NEAR(scores[pattern], 0.0, 1e-5) << name_of(pattern);
      }
    }
  }
}

TEST(HeadRole, RandomKeysAreOther) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Random random(seed);
    for (const bool dense : {false, true}) {
      const KeysOf keys = [&](std::int64_t i) {
        return std::vector<std::int64_t>{
            static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(i) + 1))};
      };
      const HeadRole role = role_of(dense ? dense_map(128, keys, 0.9) : sparse_map(128, keys, 0.3));
      EXPECT_EQ(role.name, "other") << seed;
      EXPECT_GT(role.confidence, 0.5);
    }
    // Noise alone: steep softmax is no pattern, flat softmax is diffuse.
    RoleAccumulator roles;
    const ConstructedMap noise = dense_map(
        128, [](std::int64_t) { return std::vector<std::int64_t>(); }, 0.0, seed);
    roles.add(noise.weights, noise.length);
    EXPECT_LT(roles.scores()[Pattern::kFragmented], 0.1) << seed;
    EXPECT_LT(roles.scores()[Pattern::kStripes], 0.1) << seed;
  }
}

TEST(HeadRole, EmptyRowsAndMapsAreDefined) {
  const ConstructedMap nothing(32);
  const RoleScores scores = scores_of(nothing);
  for (std::size_t p = 0; p < kPatterns; ++p) {
    const auto pattern = static_cast<Pattern>(p);
    EXPECT_EQ(scores[pattern], pattern == Pattern::kEmpty ? 1.0 : 0.0) << name_of(pattern);
  }
  EXPECT_EQ(classify(scores).name, "empty");
  EXPECT_GT(classify(scores).confidence, 0.85);

  // Dust is next to nothing, and exact zeros are not needed.
  ConstructedMap dust(32);
  for (std::int64_t i = 0; i < 32; ++i) dust.at(i, 0) = 1e-3f;
  EXPECT_EQ(role_of(dust).name, "empty");

  // A few rows that speak clearly are a role: here a tenth.
  ConstructedMap rare(200);
  for (std::int64_t i = 10; i < 200; i += 10) rare.at(i, i - 1) = 0.6f;
  EXPECT_EQ(role_of(rare).name, "previous");
  EXPECT_NEAR(scores_of(rare)[Pattern::kEmpty], 0.9, 0.01);
  // Two in a hundred are not.
  ConstructedMap rarer(200);
  for (std::int64_t i = 50; i < 200; i += 50) rarer.at(i, i - 1) = 0.6f;
  EXPECT_EQ(role_of(rarer).name, "empty");
}

TEST(HeadRole, FewRowsGiveNoRole) {
  for (const std::int64_t T : {0, 1, 2, 3, 4, 5}) {
    const HeadRole role = role_of(dense_map(T, offset_keys(0), 1.0));
    EXPECT_EQ(role.name, "too few rows") << T;
    EXPECT_EQ(role.confidence, 0.0);
  }
  // Open rows count, not rows: one edge in a text of 14 tokens is no "offset 4".
  for (const std::int64_t open : {1, 2, 3, 4}) {
    ConstructedMap map(14);
    for (std::int64_t i = 0; i < open; ++i) map.at(13 - i, 9 - i) = 1.0f;
    EXPECT_EQ(role_of(map).name, open < 4 ? "too few rows" : "offset 4") << open;
  }
  EXPECT_EQ(role_of(dense_map(6, offset_keys(1), 1.0)).name, "previous");
  EXPECT_EQ(role_of(dense_map(6, column_keys({0}), 1.0)).name, "sink");
  EXPECT_LT(role_of(dense_map(6, column_keys({0}), 1.0)).confidence, 0.6);
  EXPECT_GT(role_of(dense_map(60, column_keys({0}), 1.0)).confidence, 0.9);
}

TEST(HeadRole, PromptsOfDifferentLengthsArePooled) {
  RoleAccumulator roles;
  for (const std::int64_t T : {3, 40, 1, 17, 100}) {
    const ConstructedMap map = dense_map(T, offset_keys(3), 0.9);
    roles.add(map.weights, T);
  }
  const RoleScores scores = roles.scores();
  EXPECT_EQ(scores.rows, 1 + 38 + 15 + 98);
  EXPECT_EQ(scores.offset, 3);
  EXPECT_EQ(classify(scores).name, "offset 3");
}

TEST(HeadRole, InductionAndDuplicateOnRepeatedText) {
  constexpr std::int64_t kPeriod = 20, kStart = 1, kLength = kStart + 2 * kPeriod;
  const auto repeated = [&](std::int64_t back, bool sparse) {
    const KeysOf keys = [=](std::int64_t i) {
      return i > kStart + kPeriod ? std::vector<std::int64_t>{i - back}
                                  : std::vector<std::int64_t>{0};
    };
    return sparse ? sparse_map(kLength, keys) : dense_map(kLength, keys, 0.8);
  };
  const auto role = [&](const ConstructedMap& text, const ConstructedMap& map) {
    RoleAccumulator roles;
    roles.add(text.weights, text.length);
    roles.add_repeated(map.weights, map.length, kStart, kPeriod);
    return classify(roles.scores()).name;
  };
  const ConstructedMap sink = dense_map(50, column_keys({0}), 0.95), nothing(50);
  for (const bool sparse : {false, true}) {
    EXPECT_EQ(role(sink, repeated(kPeriod - 1, sparse)), "sink+induction");
    EXPECT_EQ(role(sink, repeated(kPeriod, sparse)), "sink+duplicate");
    // A sparse induction head is silent where nothing repeats.
    EXPECT_EQ(role(nothing, repeated(kPeriod - 1, sparse)), "induction");
    EXPECT_EQ(role(sink, repeated(kPeriod - 2, sparse)), "sink+next-to-match");
    EXPECT_EQ(role(sink, repeated(kPeriod + 1, sparse)), "sink+next-to-match");
    EXPECT_EQ(role(sink, repeated(kPeriod - 3, sparse)), "sink");
  }
  EXPECT_EQ(role(sink, ConstructedMap(kLength)), "sink");
  EXPECT_EQ(role(nothing, ConstructedMap(kLength)), "empty");
  // Dust on the right cells is silence.
  ConstructedMap dust = repeated(kPeriod - 1, true);
  for (float& w : dust.weights) w *= 1e-3f;
  EXPECT_EQ(role(nothing, dust), "empty");
}

TEST(NameProbes, KnowWhereTheNamesStand) {
  const Tokenizer tokenizer = Tokenizer::from_folder(golden_folder() / "bpe-8k");
  const std::vector<NameProbe> probes = make_name_probes(tokenizer, {.prompts = 20, .seed = 3});
  ASSERT_GT(probes.size(), 5u);
  for (const NameProbe& probe : probes) {
    const auto name = [&](std::int64_t place) {
      std::string text = tokenizer.token_text(probe.prompt.ids.at(static_cast<std::size_t>(place)));
      return text.starts_with(' ') ? text.substr(1) : text;
    };
    EXPECT_EQ(name(probe.first), name(probe.second));
    EXPECT_NE(name(probe.first), name(probe.receiver));
    EXPECT_LT(probe.first, probe.second);
    EXPECT_TRUE(std::isupper(static_cast<unsigned char>(name(probe.receiver)[0])));
    EXPECT_EQ(tokenizer.token_text(probe.prompt.ids.back()), " to");
  }
  // A context too short for any sentence.
  EXPECT_TRUE(make_name_probes(tokenizer, {.context = 4}).empty());
}

// Sentences of 12 tokens with the names at 1, 3 and 8.
TEST(HeadRole, NamesAreReadAtTheEndOfSentences) {
  const auto role = [](const std::vector<std::pair<std::int64_t, float>>& last, int sentences,
                       const ConstructedMap& text) {
    RoleAccumulator roles;
    roles.add(text.weights, text.length);
    for (int s = 0; s < sentences; ++s) {
      ConstructedMap map(12);
      for (const auto& [key, weight] : last) map.at(11, key) = weight;
      roles.add_names(map.weights, 12, 1, 3, 8);
    }
    return classify(roles.scores());
  };
  const ConstructedMap nothing(50), sink = dense_map(50, column_keys({0}), 0.95);
  EXPECT_EQ(role({{8, 1.0f}}, 10, nothing).name, "duplicate-name");
  EXPECT_EQ(role({{1, 0.6f}, {3, 0.3f}}, 10, nothing).name, "name-reader");
  EXPECT_EQ(role({{8, 0.8f}}, 10, sink).name, "sink+duplicate-name");
  EXPECT_EQ(role({{0, 1.0f}}, 10, nothing).name, "empty");
  EXPECT_EQ(role({{8, 1.0f}}, 3, nothing).name, "empty");  // too few to tell
  const HeadRole found = role({{8, 0.5f}, {5, 0.25f}, {0, 0.05f}}, 10, nothing);
  ASSERT_EQ(found.evidence.size(), 1u);
  EXPECT_EQ(found.evidence[0].pattern, Pattern::kDuplicateName);
  EXPECT_EQ(found.evidence[0].rows, 10);
  // 0.5 of 0.8, less the twelfth that an even row has.
  EXPECT_NEAR(found.evidence[0].score, (0.5 / 0.8 - 1.0 / 12) / (1 - 1.0 / 12), 1e-6);
  EXPECT_EQ(evidence_text(found), "duplicate-name 0.59 at the end of 10 ioi sentences");
}

// What a head's weights write for names decides whether a reader of names moves them.
TEST(HeadRole, NameMoversRaiseTheNamesThatTheyRead) {
  const auto role = [](double rank, float weight = 0.9f) {
    RoleAccumulator roles;
    for (int s = 0; s < 10; ++s) {
      ConstructedMap map(12);
      map.at(11, 1) = weight;
      roles.add_names(map.weights, 12, 1, 3, 8);
    }
    RoleScores scores = roles.scores();
    scores.set_copying({rank, 1000, 20});
    return classify(scores);
  };
  EXPECT_EQ(role(1).name, "name-mover");
  EXPECT_EQ(role(10).name, "name-mover");
  EXPECT_EQ(role(11).name, "name-reader");
  EXPECT_EQ(role(990).name, "name-reader");
  EXPECT_EQ(role(990.5).name, "negative-name-mover");
  EXPECT_EQ(role(1000).name, "negative-name-mover");
  EXPECT_EQ(evidence_text(role(1)),
            "name-mover 1.00 at the end of 10 ioi sentences, the name it reads at median rank 1 of "
            "1,000");
  EXPECT_FALSE(role(1, 0.0f).copying.has_value());  // reads no names
}

TEST(HeadRole, DelimitersAreTokensNotPlaces) {
  constexpr std::int64_t kLength = 40;
  std::vector<bool> marks(kLength, false);
  for (const std::size_t place : {6, 13, 17, 29}) marks[place] = true;
  const auto role = [&](const std::vector<bool>& delimiters) {
    // Each row looks at the last delimiter before it.
    const ConstructedMap map = sparse_map(kLength, [&](std::int64_t i) {
      std::vector<std::int64_t> keys;
      for (std::int64_t j = i; j > 0 && keys.empty(); --j)
        if (marks[static_cast<std::size_t>(j)]) keys.push_back(j);
      return keys;
    });
    RoleAccumulator roles;
    roles.add(map.weights, kLength, delimiters);
    return classify(roles.scores());
  };
  EXPECT_EQ(role(marks).name, "delimiter");
  EXPECT_GT(role(marks).confidence, 0.8);
  EXPECT_EQ(role({}).name.find("delimiter"), std::string::npos);
  std::vector<bool> elsewhere(kLength, false);
  for (const std::size_t place : {5, 12, 20, 30}) elsewhere[place] = true;
  EXPECT_EQ(role(elsewhere).name.find("delimiter"), std::string::npos);
}

TEST(HeadRole, RefusesMapsOfTheWrongSize) {
  RoleAccumulator roles;
  EXPECT_THAT(error_of([&] { roles.add(std::vector<float>(9), 3, {true}); }),
              HasSubstr("delimiters of 1 tokens"));
  EXPECT_THAT(error_of([&] { roles.add_names(std::vector<float>(16), 4, 0, 1, 3); }),
              HasSubstr("names at 0, 1 and 3"));
  EXPECT_THAT(error_of([&] { roles.add(std::vector<float>(8), 3); }), HasSubstr("8 weights"));
  EXPECT_THAT(error_of([&] { roles.add_repeated(std::vector<float>(9), 3, 0, 2); }),
              HasSubstr("twice 2"));
}

}  // namespace
}  // namespace filigree
