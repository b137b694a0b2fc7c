#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "filigree/circuit_study.h"
#include "support/errors.h"

namespace filigree::study {
namespace {

using ::testing::HasSubstr;

TEST(SearchOptions, ThatDoNotGoTogetherAreRefused) {
  struct Case {
    std::function<void(SearchOptions&)> change;
    const char* said;
  };
  for (const Case& test : std::vector<Case>{
           {[](SearchOptions& o) { o.parts = Parts::kEdges, o.replacement = Replacement::kZero; },
            "zero"},
           {[](SearchOptions& o) {
              o.parts = Parts::kEdges, o.selection = Selection::kGreedyAddition;
            },
            "greedy-add"},
           {[](SearchOptions& o) {
              o.parts = Parts::kAttentionEdges, o.selection = Selection::kGreedy;
            },
            "top-k"},
           {[](SearchOptions& o) {
              o.parts = Parts::kAttentionEdges, o.replacement = Replacement::kMean;
            },
            "mean"},
           {[](SearchOptions& o) {
              o.method = Method::kIntegrated, o.replacement = Replacement::kMeanByPosition;
            },
            "mean-by-position"},
           {[](SearchOptions& o) { o.level = 0; }, "level"},
           {[](SearchOptions& o) { o.level = 90; }, "level of 90"}}) {
    SearchOptions options;
    test.change(options);
    EXPECT_THROW(check_options(options), RequestError) << test.said;
    EXPECT_THAT(error_of([&] { check_options(options); }), HasSubstr(test.said));
  }
  EXPECT_NO_THROW(check_options({}));
}

TEST(SearchOptions, UsualMethodsGoWithTheirParts) {
  for (const Named<Parts>& parts : kNames<Parts>) {
    SearchOptions options;
    options.parts = parts.value;
    options.method = usual_method(parts.value);
    EXPECT_NO_THROW(check_options(options)) << parts.name;
  }
  EXPECT_EQ(usual_method(Parts::kEdges), Method::kIntegrated);
}

// Attribution of edges goes by two names, and is shown under the first.
TEST(SearchOptions, MethodsHaveTheirOtherNames) {
  EXPECT_EQ(parse_name<Method>("eap", "method"), Method::kAttribution);
  EXPECT_EQ(name_of(Method::kAttribution), "attribution");
  EXPECT_EQ(parse_name<Method>("eap-ig", "method"), Method::kIntegrated);
  EXPECT_EQ(name_of(Method::kIntegrated), "ig");
}

}  // namespace
}  // namespace filigree::study
