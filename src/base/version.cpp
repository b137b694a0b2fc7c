#include "filigree/version.h"

#include <fmt/core.h>

#include <string_view>

namespace filigree {

// Defined in a file that the build writes (cmake/Version.cmake).
namespace build_info {
extern const char* const kVersion;
extern const char* const kCommit;  // may be empty
extern const char* const kBuildType;
extern const char* const kOptions;
}  // namespace build_info

namespace {

std::string compiler() {
#if defined(__clang__)
  return fmt::format("Clang {}.{}.{}", __clang_major__, __clang_minor__, __clang_patchlevel__);
#else
  return fmt::format("GCC {}.{}.{}", __GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__);
#endif
}

}  // namespace

std::string version_string() {
  const std::string_view commit = build_info::kCommit;
  return commit.empty() ? build_info::kVersion : fmt::format("{}+{}", build_info::kVersion, commit);
}

std::string build_description() {
  return fmt::format("filigree {} ({}, {}, {})", version_string(), compiler(),
                     build_info::kBuildType, build_info::kOptions);
}

}  // namespace filigree
