// The exception type and its two helpers.
#include "filigree/base/error.h"

#include <gtest/gtest.h>

#include <string>

namespace filigree {
namespace {

std::string message_of(auto&& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Error, FailFormatsItsMessage) {
  EXPECT_EQ(message_of([] { fail("softmax: axis {} of '{}'", 3, "x"); }), "softmax: axis 3 of 'x'");
}

TEST(Error, RequireThrowsOnlyWhenTheConditionDoesNotHold) {
  EXPECT_EQ(message_of([] { require(true, "unused {}", 1); }), "no error");
  EXPECT_EQ(message_of([] { require(false, "used {}", 1); }), "used 1");
}

TEST(Error, IsAStandardException) {
  EXPECT_THROW(fail("x"), std::runtime_error);  // so that callers who know nothing of it catch it
}

}  // namespace
}  // namespace filigree
