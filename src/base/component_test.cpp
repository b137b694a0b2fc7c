#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "filigree/names.h"
#include "support/errors.h"

namespace filigree {
namespace {

TEST(Component, HasOneName) {
  EXPECT_EQ(layer_name(3), "L3");
  EXPECT_EQ(head_name({3, 7}), "L3H7");
  EXPECT_EQ(mlp_name(11), "L11 MLP");
  EXPECT_EQ(name_of(Component{ComponentKind::kInput}), "input");
  EXPECT_EQ(name_of(Component{ComponentKind::kHead, 10, 0}), "L10H0");
  EXPECT_EQ(name_of(Component{ComponentKind::kMlp, 0}), "L0 MLP");
  EXPECT_EQ(expert_name({3, 5}), "L3E5");
  EXPECT_EQ(name_of(Component{.kind = ComponentKind::kExpert, .layer = 3, .expert = 5}), "L3E5");
  EXPECT_EQ(name_of(Component{ComponentKind::kLogits}), "logits");
}

TEST(Component, IsReadBackFromItsName) {
  for (const Component& component :
       {Component{ComponentKind::kInput}, Component{ComponentKind::kLogits},
        Component{ComponentKind::kHead, 0, 12}, Component{ComponentKind::kHead, 23, 5},
        Component{ComponentKind::kMlp, 0}, Component{ComponentKind::kMlp, 117},
        Component{.kind = ComponentKind::kExpert, .layer = 0, .expert = 0},
        Component{.kind = ComponentKind::kExpert, .layer = 15, .expert = 63}})
    EXPECT_EQ(parse_component(name_of(component)), component) << name_of(component);
}

TEST(Component, NothingElseIsAName) {
  for (const char* name :
       {"",       "L",       "L3",      "H7",        "L3H",   "LH7",
        "L3H7 ",  " L3H7",   "l3h7",    "L03H7",     "L3H07", "L-3H7",
        "L3H-7",  "L3H-0",   "L3H*",    "3.7",       "MLP 3", "L3MLP",
        "L3 mlp", "L3  MLP", "L MLP",   "embedding", "Input", "L99999999999999999999H1",
        "L3H7\n", "L3E",     "L3E05",   "E5",        "L3E-1", "L3E5 ",
        "L3E*",   "L3H7E5",  "L3E5 MLP"})
    EXPECT_FALSE(find_component(name).has_value()) << "'" << name << "'";
  EXPECT_THAT(error_of([] { parse_component("MLP 3"); }),
              testing::AllOf(testing::HasSubstr("'MLP 3'"), testing::HasSubstr("L3 MLP"),
                             testing::HasSubstr("L3E5")));
}

TEST(Feature, HasOneName) {
  EXPECT_EQ(feature_name({5, 123}), "L5F123");
  EXPECT_EQ(parse_feature("L5F123"), (FeatureId{5, 123}));
  EXPECT_EQ(parse_feature("L0F0"), (FeatureId{0, 0}));
  for (const char* name : {"", "L5", "F1", "L5F", "L5F01", "l5f1", "L5F1 ", "L5H1", "L5F-1"})
    EXPECT_FALSE(find_feature(name).has_value()) << "'" << name << "'";
  EXPECT_THAT(error_of([] { parse_feature("5.123"); }), testing::HasSubstr("L3F250"));
}

}  // namespace
}  // namespace filigree
