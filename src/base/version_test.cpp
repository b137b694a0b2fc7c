// The build describes itself.
#include "filigree/version.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cctype>
#include <cstdio>
#include <filesystem>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "support/files.h"

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

std::string first_match(const std::string& text, const std::string& pattern) {
  std::smatch found;
  return std::regex_search(text, found, std::regex(pattern)) ? found[1].str() : "";
}

std::vector<int> parts_of(const std::string& version) {
  std::vector<int> parts;
  for (std::istringstream text(version); std::isdigit(text.peek());) {
    text >> parts.emplace_back();
    if (text.get() != '.') break;
  }
  return parts;
}

TEST(Version, IsOneInEveryFileThatHasIt) {
  const std::filesystem::path sources = FILIGREE_SOURCE_DIR;
  const std::string version = first_match(version_string(), R"(^([0-9.]+))");
  EXPECT_EQ(first_match(read_file(sources / "CMakeLists.txt"), R"(project\(\w+ VERSION ([0-9.]+))"),
            version);
  for (const char* file : {"web/package.json", "web/package-lock.json"})
    EXPECT_EQ(first_match(read_file(sources / file), R"("version": "([0-9.]+)\")"), version)
        << file;
  EXPECT_EQ(first_match(read_file(sources / "CHANGELOG.md"), R"(\n## ([0-9.]+))"), version)
      << "the newest heading but Unreleased";
}

// Tags are set when a version is out: none may be ahead of the sources.
TEST(Version, NoTagIsAheadOfIt) {
  FILE* const git = ::popen("git -C '" FILIGREE_SOURCE_DIR "' tag --list 'v*' 2>/dev/null", "r");
  ASSERT_NE(git, nullptr);
  std::string tags;
  for (int c = 0; (c = std::fgetc(git)) != EOF;) tags += static_cast<char>(c);
  ::pclose(git);
  const std::vector<int> version = parts_of(version_string());
  EXPECT_EQ(version.size(), 3u);
  std::istringstream lines(tags);
  for (std::string tag; lines >> tag;) EXPECT_LE(parts_of(tag.substr(1)), version) << tag;
}

}  // namespace
}  // namespace filigree
