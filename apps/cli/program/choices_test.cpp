// Options with a few names, and the other kinds of values.
#include "apps/cli/program/choices.h"

#include <CLI/CLI.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace filigree {

enum class Metal { kGold, kSilver, kTin };
template <>
inline constexpr auto kNames<Metal> = std::to_array<Named<Metal>>({{Metal::kGold, "gold"},
                                                                   {Metal::kSilver, "silver"},
                                                                   {Metal::kTin, "tin"}});

namespace cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// What is wrong with these arguments; "" when nothing is.
std::string problem(CLI::App& app, std::vector<std::string> arguments) {
  std::reverse(arguments.begin(), arguments.end());
  try {
    app.parse(arguments);
    return "";
  } catch (const CLI::ParseError& error) {
    return error.what();
  }
}

TEST(Choice, IsReadIntoTheEnumeration) {
  CLI::App app;
  Metal metal = Metal::kSilver;
  const CLI::Option* option = add_choice(app, "--metal", metal, "of the ring");
  EXPECT_EQ(option->get_description(), "of the ring: gold, silver or tin");
  EXPECT_EQ(option->get_default_str(), "silver");
  EXPECT_EQ(problem(app, {}), "");
  EXPECT_EQ(metal, Metal::kSilver);
  EXPECT_EQ(problem(app, {"--metal", "tin"}), "");
  EXPECT_EQ(metal, Metal::kTin);
}

TEST(Choice, AWrongNameIsRefusedWithTheNearest) {
  CLI::App app;
  Metal metal = Metal::kGold;
  add_choice(app, "--metal", metal, "of the ring");
  EXPECT_EQ(problem(app, {"--metal", "glod"}),
            "--metal: 'glod' is none of gold, silver, tin; did you mean 'gold'?");
  EXPECT_EQ(problem(app, {"--metal", "platinum"}),
            "--metal: 'platinum' is none of gold, silver, tin");
  EXPECT_EQ(problem(app, {"--metal", ""}), "--metal: '' is none of gold, silver, tin");
  EXPECT_EQ(metal, Metal::kGold);
}

TEST(Choice, CanBeAmongFewer) {
  CLI::App app;
  Metal metal = Metal::kGold;
  add_choice(app, "--metal", metal, "of the ring", {Metal::kGold, Metal::kTin});
  EXPECT_EQ(problem(app, {"--metal", "silver"}), "--metal: 'silver' is neither gold nor tin");
}

TEST(Choice, CanBeLeftOut) {
  CLI::App app;
  std::optional<Metal> metal;
  const CLI::Option* option = add_choice(app, "--metal", metal, "of the ring");
  EXPECT_EQ(option->get_default_str(), "");
  EXPECT_EQ(problem(app, {}), "");
  EXPECT_EQ(metal, std::nullopt);
  EXPECT_EQ(problem(app, {"--metal", "gold"}), "");
  EXPECT_EQ(metal, Metal::kGold);
}

TEST(Choices, AreAListWithCommas) {
  CLI::App app;
  std::vector<Metal> metals = {Metal::kTin, Metal::kGold};
  const CLI::Option* option = add_choices(app, "--metals", metals, "of the ring");
  EXPECT_EQ(option->get_description(), "of the ring: one or several of gold, silver, tin");
  EXPECT_EQ(option->get_default_str(), "tin,gold");
  EXPECT_EQ(problem(app, {"--metals", "silver,gold"}), "");
  EXPECT_THAT(metals, ElementsAre(Metal::kSilver, Metal::kGold));
  for (const char* wrong : {"silver,", ",", "gold;tin", "gold,brass"})
    EXPECT_THAT(problem(app, {"--metals", wrong}), HasSubstr("is none of gold, silver, tin"))
        << wrong;
}

TEST(Choice, NamesCanBeKnownLate) {
  CLI::App app;
  std::string task = "ioi";
  std::vector<std::string> tasks;
  const CLI::Option* one = add_choice(app, "--task", task, {"ioi", "copy"}, "task");
  const CLI::Option* several = add_choices(app, "--tasks", tasks, {"ioi", "copy"}, "tasks");
  EXPECT_EQ(one->get_default_str(), "ioi");
  EXPECT_EQ(several->get_default_str(), "");
  EXPECT_EQ(problem(app, {"--task", "copy", "--tasks", "copy,ioi"}), "");
  EXPECT_EQ(task, "copy");
  EXPECT_THAT(tasks, ElementsAre("copy", "ioi"));
}

TEST(ValueKind, TellsWhatAnOptionTakes) {
  CLI::App app;
  std::string text;
  Metal metal = Metal::kGold;
  const ValueKind choice = value_kind(*add_choice(app, "--metal", metal, "of the ring"));
  EXPECT_EQ(choice.label, "NAME");
  EXPECT_EQ(choice.kind, "choice");
  EXPECT_THAT(choice.choices, ElementsAre("gold", "silver", "tin"));
  const auto kind = [&](const char* name, const CLI::Validator& check) {
    return value_kind(*app.add_option(name, text)->check(check)->type_name("X")).kind;
  };
  EXPECT_EQ(kind("--a", whole_number(1, 2)), "number");
  EXPECT_EQ(kind("--b", number(1, 2)), "number");
  EXPECT_EQ(kind("--c", number_above(1, 2)), "number");
  EXPECT_EQ(kind("--d", head_list()), "heads");
  EXPECT_EQ(kind("--e", figure_file()), "figure");
  const ValueKind free = value_kind(*app.add_option("--text", text)->type_name("FILE"));
  EXPECT_EQ(free.label, "FILE");
  EXPECT_EQ(free.kind, "");
  EXPECT_THAT(free.choices, IsEmpty());
}

TEST(Values, AreCheckedWithoutAModel) {
  CLI::App app;
  std::string text;
  app.add_option("--heads", text)->check(head_list());
  app.add_option("--out", text)->check(figure_file());
  EXPECT_EQ(problem(app, {"--heads", "L3H7,L6H*"}), "");
  EXPECT_THAT(problem(app, {"--heads", "L3Hx"}),
              HasSubstr("--heads: heads: 'L3Hx' is not a choice"));
  EXPECT_EQ(problem(app, {"--out", "a/b.svg"}), "");
  EXPECT_EQ(problem(app, {"--out", "b.gif"}),
            "--out: 'b.gif': the ending must be .svg, .pdf or .png");
}

TEST(Values, SizesAreInDecimalUnits) {
  EXPECT_EQ(parse_size("300"), 300u);
  EXPECT_EQ(parse_size("1.5 GB"), 1500000000u);
  EXPECT_EQ(parse_size("10MB"), 10000000u);
  for (const char* wrong : {"", "10XB", "-1", "0", "1e30", "MB", "nan", "10 M B"})
    EXPECT_THROW(parse_size(wrong), Error) << wrong;
}

TEST(Values, WhatIsReadFromAnOptionFailsAsUsage) {
  EXPECT_EQ(as_usage("--size", [] { return parse_size("7"); }), 7u);
  try {
    as_usage("--size", [] { return parse_size("x"); });
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), HasSubstr("--size: 'x' is not a size"));
  }
}

}  // namespace
}  // namespace cli
}  // namespace filigree
