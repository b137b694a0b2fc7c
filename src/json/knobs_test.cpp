// Settings that are declared once: names, ranges, JSON in and out, and what is said of wrong
// values.
#include "filigree/knobs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <limits>

#include "support/errors.h"

namespace filigree {

enum class Shade { kLight, kDark };
template <>
inline constexpr auto kNames<Shade> = std::to_array<Named<Shade>>({{Shade::kLight, "light"},
                                                                   {Shade::kDark, "dark"}});

namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

struct Example {
  double rate = 0.5;
  std::optional<double> margin;
  std::int64_t batch = 0;  // not given
  bool certain = false;
  Shade shade = Shade::kLight;
  std::string text;
};

Knobs knobs_of(Example& example) {
  Knobs knobs;
  knobs.section("Speed");
  knobs.number({.name = "dual-rate", .what = "how fast", .unit = "nats"}, example.rate,
               {.min = 0.0, .max = 2.0, .above_min = true});
  knobs.number({.name = "margin", .what = "how far", .otherwise = "the budget"}, example.margin,
               {.min = -1.0});
  knobs.section("Size");
  knobs.count({.name = "batch", .what = "how many", .key = "windows"}, example.batch,
              {.min = 1, .max = 64});
  knobs.flag({.name = "certain", .what = "whether"}, example.certain);
  knobs.choice({.name = "shade", .what = "which"}, example.shade);
  knobs.text({.name = "text", .what = "what"}, example.text);
  return knobs;
}

TEST(Knobs, AreReadAndGivenAsJson) {
  Example example;
  const Knobs knobs = knobs_of(example);
  EXPECT_EQ(knobs.values().dump(),
            R"({"dual_rate":0.5,"margin":null,"windows":null,"certain":false,)"
            R"("shade":"light","text":""})");
  knobs.read({{"dual_rate", 2}, {"windows", 64}, {"certain", true}, {"shade", "dark"}}, "file");
  EXPECT_EQ(example.rate, 2.0);
  EXPECT_EQ(example.batch, 64);
  EXPECT_TRUE(example.certain);
  EXPECT_EQ(example.shade, Shade::kDark);
  // What is given can be read back, and what was not given can be left so again.
  Example other;
  knobs_of(other).read(knobs.values(), "file");
  EXPECT_EQ(knobs_of(other).values(), knobs.values());
  knobs.read({{"windows", nullptr}}, "file");
  EXPECT_EQ(example.batch, 0);
}

TEST(Knobs, SayWhatTheyTakeAndWhatHoldsOtherwise) {
  Example example;
  const Knobs knobs = knobs_of(example);
  EXPECT_EQ(knobs.at("dual-rate").range_text(), "above 0 and up to 2");
  EXPECT_EQ(knobs.at("margin").range_text(), "of at least -1");
  EXPECT_EQ(knobs.at("batch").range_text(), "from 1 to 64");
  EXPECT_EQ(knobs.at("shade").range_text(), "light or dark");
  EXPECT_EQ(knobs.at("dual-rate").default_text(), "0.5 nats");
  EXPECT_EQ(knobs.at("margin").default_text(), "the budget");
  EXPECT_EQ(knobs.at("batch").section, "Size");
}

TEST(Knobs, RefuseWhatIsOutOfRangeAndSetNothingThen) {
  Example example;
  const Knobs knobs = knobs_of(example);
  using Json = nlohmann::ordered_json;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const Json& wrong : {Json(0), Json(2.5), Json("1"), Json(true), Json(nan), Json()})
    EXPECT_NE(knobs.at("dual-rate").problem(wrong), "") << wrong.dump();
  for (const Json& wrong : {Json(0), Json(65), Json(1.5), Json(18446744073709551615u)})
    EXPECT_NE(knobs.at("batch").problem(wrong), "") << wrong.dump();
  EXPECT_EQ(knobs.at("shade").problem("grey"), "'grey' is neither light nor dark");
  EXPECT_THAT(error_of([&] {
                knobs.read({{"dual_rate", 1}, {"windows", 0}}, "my.json");
              }),
              HasSubstr("my.json: windows: '0' is not a whole number from 1 to 64"));
  EXPECT_EQ(example.rate, 0.5);
  EXPECT_THAT(
      error_of([&] {
        knobs.read({{"dual_rat", 1}}, "my.json");
      }),
      AllOf(HasSubstr("there is no setting 'dual_rat'"), HasSubstr("did you mean 'dual_rate'?")));
  EXPECT_THAT(error_of([&] { knobs.read(Json::array(), "my.json"); }),
              HasSubstr("an object of names and values"));
  EXPECT_THAT(error_of([&] { knobs.at("no-such"); }), HasSubstr("no setting 'no-such'"));
}

TEST(Knobs, ReadTextsAsTheirKind) {
  Example example;
  const Knobs knobs = knobs_of(example);
  EXPECT_EQ(knobs.at("batch").value_of("12"), 12);
  EXPECT_EQ(knobs.at("dual-rate").value_of("1e-3"), 1e-3);
  EXPECT_EQ(knobs.at("certain").value_of("true"), true);
  EXPECT_EQ(knobs.at("text").value_of("true"), "true");
  for (const char* wrong : {"x", "", "nan", "1e999", "1 ", "0x1"})
    EXPECT_NE(knobs.at("dual-rate").problem(knobs.at("dual-rate").value_of(wrong)), "") << wrong;
}

TEST(Knobs, MayBeDerivedRemovedAndNeverTwice) {
  Example example;
  std::optional<double> rate;
  Knobs knobs = knobs_of(example);
  knobs.derive("dual-rate", rate, "a tenth of it");
  EXPECT_TRUE(knobs.values()["dual_rate"].is_null());
  knobs.at("dual-rate").set(1.5);
  EXPECT_EQ(rate, 1.5);
  EXPECT_EQ(example.rate, 0.5);
  knobs.remove("margin");
  EXPECT_THAT(error_of([&] { knobs.at("margin"); }), HasSubstr("margin"));
  EXPECT_THAT(error_of([&] { knobs.flag({.name = "certain", .what = ""}, example.certain); }),
              HasSubstr("'certain' is there twice"));
}

}  // namespace
}  // namespace filigree
