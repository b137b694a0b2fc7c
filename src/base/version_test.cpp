// The build describes itself.
#include "filigree/base/version.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace filigree {
namespace {

TEST(Version, IsANumberPerhapsWithACommit) {
  EXPECT_THAT(version_string(),
              testing::MatchesRegex("[0-9]+\\.[0-9]+\\.[0-9]+(\\+[0-9a-f]+(\\.modified)?)?"));
}

TEST(Version, TheDescriptionNamesVersionAndBuild) {
  const std::string description = build_description();
  EXPECT_THAT(description, testing::StartsWith("filigree " + version_string() + " ("));
  EXPECT_THAT(description, testing::HasSubstr("CUDA"));
}

}  // namespace
}  // namespace filigree
