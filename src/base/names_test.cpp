#include "filigree/names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/errors.h"

namespace filigree {

enum class Fruit { kApple, kPear, kPlum };
template <>
inline constexpr auto kNames<Fruit> = std::to_array<Named<Fruit>>({{Fruit::kApple, "apple"},
                                                                   {Fruit::kPear, "pear"},
                                                                   {Fruit::kPlum, "plum"}});

namespace {

TEST(Names, OneTablePrintsParsesAndLists) {
  EXPECT_EQ(name_of(Fruit::kPear), "pear");
  EXPECT_EQ(find_name<Fruit>("plum"), Fruit::kPlum);
  EXPECT_EQ(find_name<Fruit>("Plum"), std::nullopt);
  EXPECT_EQ(parse_name<Fruit>("apple", "fruit"), Fruit::kApple);
  EXPECT_THAT(names_of<Fruit>(), ::testing::ElementsAre("apple", "pear", "plum"));
}

TEST(Names, AWrongNameIsAnErrorThatListsTheRightOnes) {
  EXPECT_EQ(error_of([] { parse_name<Fruit>("nut\n", "fruit"); }),
            "fruit 'nut\\x0a' is not known; it is apple, pear or plum");
}

TEST(Names, ListsReadAsASentence) {
  EXPECT_EQ(any_of_text({"a"}), "a");
  EXPECT_EQ(any_of_text({"a", "b"}), "a or b");
  EXPECT_EQ(any_of_text({}), "");
}

}  // namespace
}  // namespace filigree
