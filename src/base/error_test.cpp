// The exception type and its two helpers.
#include "filigree/error.h"

#include <gtest/gtest.h>

#include <string>

#include "support/errors.h"

namespace filigree {
namespace {

TEST(Error, FailFormatsItsMessage) {
  EXPECT_EQ(error_of([] { fail("softmax: axis {} of '{}'", 3, "x"); }), "softmax: axis 3 of 'x'");
}

TEST(Error, RequireThrowsOnlyWhenTheConditionDoesNotHold) {
  EXPECT_EQ(error_of([] { require(true, "unused {}", 1); }), "no error");
  EXPECT_EQ(error_of([] { require(false, "used {}", 1); }), "used 1");
}

TEST(Error, IsAStandardException) {
  EXPECT_THROW(fail("x"), std::runtime_error);  // so that callers who know nothing of it catch it
}

}  // namespace
}  // namespace filigree
