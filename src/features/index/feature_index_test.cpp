#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "filigree/features.h"
#include "support/check_op.h"
#include "support/errors.h"
#include "support/files.h"
#include "support/temporary_folder.h"

namespace filigree {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ActivationHistogram, KnowsQuantilesWithinABin) {
  ActivationHistogram histogram;
  for (int i = 1; i <= 1000; ++i) histogram.add(static_cast<float>(i) / 100);
  EXPECT_EQ(histogram.total(), 1000u);
  for (const double share : {0.05, 0.25, 0.5, 0.9, 0.99})
    EXPECT_NEAR(histogram.quantile(share), 10 * share, 0.04 * 10 * share) << share;
  const std::vector<double> shares = histogram.shares(10, 0, 10);
  for (const double share : shares) EXPECT_NEAR(share, 0.1, 0.02);
  EXPECT_NEAR(std::accumulate(shares.begin(), shares.end(), 0.0), 1.0, 1e-9);
}

TEST(ActivationHistogram, KeepsTheLargestSixteenOctaves) {
  ActivationHistogram histogram;
  histogram.add(1e-20f);
  histogram.add(1.0f);
  histogram.add(3e4f);
  EXPECT_EQ(histogram.total(), 3u);
  EXPECT_NEAR(histogram.quantile(1.0), 3e4, 4e3);
  EXPECT_LT(histogram.quantile(0.3), 2.0);
  EXPECT_EQ(error_of([&] { histogram.add_to_bin(-1, 1); }),
            "features: no activation has the bin -1");
}

constexpr std::int64_t kLength = 20, kWindows = 30, kFeatureCount = 5;

// Feature f is active where (row * 7 + f) % (f + 2) == 0, feature 4 never.
float value_of(std::int64_t row, std::int64_t f) {
  if (f == 4 || (row * 7 + f) % (f + 2) != 0) return 0.0f;
  return 0.5f + static_cast<float>((row * 131 + f * 17) % 997) / 64;
}

SparseCode code_of(std::int64_t first_row, std::int64_t rows) {
  std::vector<std::int32_t> begin = {0}, feature;
  std::vector<float> value;
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t f = 0; f < kFeatureCount; ++f) {
      if (value_of(first_row + r, f) == 0) continue;
      feature.push_back(static_cast<std::int32_t>(f));
      value.push_back(value_of(first_row + r, f));
    }
    begin.push_back(static_cast<std::int32_t>(feature.size()));
  }
  const auto entries = static_cast<std::int64_t>(value.size());
  return make_code(kFeatureCount, begin, feature, Variable(Tensor::from({entries}, value)));
}

// Token i of the text is i + 1.
void read_tokens(std::uint64_t begin, std::span<TokenId> ids) {
  std::iota(ids.begin(), ids.end(), static_cast<TokenId>(begin) + 1);
}

IndexBuilder built(std::int64_t windows_at_once) {
  IndexBuilder builder(1, kFeatureCount, {.top = 3, .sampled = 8, .before = 4, .after = 2});
  for (std::int64_t w = 0; w < kWindows; w += windows_at_once)
    builder.add(0, code_of(w * kLength, windows_at_once * kLength),
                static_cast<std::uint64_t>(w * kLength), kLength);
  return builder;
}

TEST(IndexBuilder, CountsAndFindsTheLargest) {
  const IndexBuilder builder = built(3);
  EXPECT_EQ(builder.active(), 4);
  EXPECT_FALSE(builder.record({0, 4}, read_tokens).active());
  for (std::int64_t f = 0; f < 4; ++f) {
    const FeatureRecord record = builder.record({0, f}, read_tokens);
    std::uint64_t count = 0;
    std::vector<float> peaks;
    for (std::int64_t w = 0; w < kWindows; ++w) {
      float peak = 0;
      for (std::int64_t t = 1; t < kLength; ++t) {  // the first does not count
        const float value = value_of(w * kLength + t, f);
        count += value > 0;
        peak = std::max(peak, value);
      }
      peaks.push_back(peak);
    }
    std::sort(peaks.begin(), peaks.end(), std::greater<>());
    EXPECT_EQ(record.count, count);
    EXPECT_EQ(record.histogram.total(), count);
    EXPECT_EQ(record.max, peaks[0]);
    ASSERT_EQ(record.top.size(), 3u);
    for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(record.top[i].value, peaks[i]);
    EXPECT_EQ(record.sampled.size(), 8u);
    EXPECT_TRUE(std::is_sorted(record.sampled.begin(), record.sampled.end(),
                               [](const auto& a, const auto& b) { return a.value > b.value; }));
    for (const std::vector<FeatureExample>* list : {&record.top, &record.sampled})
      for (const FeatureExample& example : *list) {
        ASSERT_EQ(example.tokens.size(), example.activations.size());
        const auto centre = static_cast<std::size_t>(example.centre);
        EXPECT_EQ(example.tokens[centre], static_cast<TokenId>(example.position) + 1);
        EXPECT_EQ(example.value, value_of(static_cast<std::int64_t>(example.position), f));
        for (std::size_t i = 0; i < example.tokens.size(); ++i) {
          const std::int64_t row = example.tokens[i] - 1;
          EXPECT_EQ(row / kLength, static_cast<std::int64_t>(example.position) / kLength);
          const float value = row % kLength == 0 ? 0.0f : value_of(row, f);
          EXPECT_NEAR(example.activations[i], value, 0.001 * value);
        }
      }
  }
}

TEST(IndexBuilder, DoesNotDependOnHowTheTextCame) {
  const IndexBuilder one = built(1), ten = built(10);
  for (std::int64_t f = 0; f < kFeatureCount; ++f) {
    const FeatureRecord a = one.record({0, f}, read_tokens), b = ten.record({0, f}, read_tokens);
    EXPECT_EQ(a.count, b.count);
    ASSERT_EQ(a.sampled.size(), b.sampled.size());
    for (std::size_t i = 0; i < a.sampled.size(); ++i)
      EXPECT_EQ(a.sampled[i].position, b.sampled[i].position);
  }
}

TEST(QuantileBands, HoldEveryExampleOnce) {
  const FeatureRecord record = built(5).record({0, 1}, read_tokens);
  const std::vector<FeatureBand> bands = quantile_bands(record, 4, 100);
  ASSERT_EQ(bands.size(), 4u);
  EXPECT_EQ(bands[0].to, 1.0);
  EXPECT_EQ(bands[3].from, 0.0);
  std::size_t examples = 0;
  for (const FeatureBand& band : bands) {
    examples += band.examples.size();
    for (const FeatureExample* example : band.examples) {
      EXPECT_GE(example->value, record.quantile(band.from) * 0.999);
      EXPECT_LE(example->value, record.quantile(band.to) * 1.001);
    }
  }
  EXPECT_EQ(examples, record.sampled.size());
}

class FeatureIndexTest : public ::testing::Test {
 protected:
  FeatureIndexTest() {
    const IndexBuilder builder = built(6);
    FeatureIndexWriter writer(path_, {"m", "t", "text", 1, kFeatureCount, kWindows * (kLength - 1),
                                      kLength, 0xABCDEF0123456789});
    for (std::int64_t f = 0; f < kFeatureCount; ++f) {
      records_.push_back(builder.record({0, f}, read_tokens));
      writer.add(records_.back());
    }
    writer.commit();
    bytes_ = read_file(path_);
  }

  static FeatureIndex opened(const std::string& bytes) {
    return FeatureIndex::from_bytes(std::as_bytes(std::span(bytes)), "file");
  }

  const TemporaryFolder folder_;
  const std::filesystem::path path_ = folder_ / "a.index";
  std::vector<FeatureRecord> records_;
  std::string bytes_;
};

TEST_F(FeatureIndexTest, GivesBackWhatWasWritten) {
  const FeatureIndex index = FeatureIndex::open(path_);
  EXPECT_EQ(index.facts().model, "m");
  EXPECT_EQ(index.facts().tokenizer, 0xABCDEF0123456789u);
  for (std::int64_t f = 0; f < kFeatureCount; ++f) {
    const FeatureRecord read = index.record({0, f}),
                        &wanted = records_[static_cast<std::size_t>(f)];
    EXPECT_EQ(read.count, wanted.count);
    EXPECT_EQ(read.histogram.counts(), wanted.histogram.counts());
    EXPECT_EQ(read.max, wanted.max);
    ASSERT_EQ(read.top.size(), wanted.top.size());
    ASSERT_EQ(read.sampled.size(), wanted.sampled.size());
    for (std::size_t i = 0; i < read.sampled.size(); ++i) {
      EXPECT_EQ(read.sampled[i].tokens, wanted.sampled[i].tokens);
      EXPECT_EQ(read.sampled[i].activations, wanted.sampled[i].activations);
      EXPECT_EQ(read.sampled[i].position, wanted.sampled[i].position);
    }
  }
  EXPECT_THAT(error_of([&] { index.record({1, 0}); }), HasSubstr("no feature L1F0"));
}

TEST_F(FeatureIndexTest, DamageIsFound) {
  EXPECT_THAT(error_of([&] { opened("nothing"); }), HasSubstr("is no index of features"));
  EXPECT_THAT(error_of([&] { opened(bytes_.substr(0, bytes_.size() - 9)); }), HasSubstr("cut off"));
  // Each byte in its turn: the file does not open, or a record is refused, or (its length of the
  // header, say) both.
  for (std::size_t i = 0; i < bytes_.size(); i += 7) {
    std::string damaged = bytes_;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x10);
    EXPECT_NE(error_of([&] {
                const FeatureIndex index = opened(damaged);
                for (std::int64_t f = 0; f < kFeatureCount; ++f) index.record({0, f});
              }),
              "no error")
        << i;
  }
}

// Checksums are right, and what they are of makes no sense.
TEST_F(FeatureIndexTest, ForgedRecordsAreRefusedInWords) {
  const auto message_of = [&](const auto& forge) {
    FeatureRecord record = records_[0];
    forge(record);
    FeatureIndexWriter writer(folder_ / "forged.index", {"m", "t", "x", 1, 1, 9, 9, 0});
    writer.add(record);
    writer.commit();
    const FeatureIndex index = FeatureIndex::open(folder_ / "forged.index");
    return error_of([&] { index.record({0, 0}); });
  };
  EXPECT_EQ(message_of([](FeatureRecord&) {}), "no error");
  EXPECT_THAT(message_of([](FeatureRecord& record) { record.top[0].centre = 60000; }),
              HasSubstr("the record of L0F0 has an example of 7 tokens around token 60000"));
  EXPECT_THAT(message_of([](FeatureRecord& record) {
                record.sampled[0].tokens.clear();
                record.sampled[0].activations.clear();
              }),
              HasSubstr("has an example of 0 tokens"));
  EXPECT_THAT(message_of([](FeatureRecord& record) { record.top[0].value = NAN; }),
              HasSubstr("an example with the activation nan"));
  EXPECT_THAT(message_of([](FeatureRecord& record) { ++record.count; }),
              HasSubstr("in its histogram"));
}

TEST_F(FeatureIndexTest, NeedsEveryFeature) {
  FeatureIndexWriter writer(folder_ / "b.index", {"m", "t", "x", 1, 2, 1, 2, 0});
  writer.add({});
  EXPECT_THAT(error_of([&] { writer.commit(); }), HasSubstr("2 features has 1"));
}

}  // namespace
}  // namespace filigree
