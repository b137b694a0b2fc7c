// Whole files, read and written as they are, and the stored ones of tests/golden.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

namespace filigree {

// A file that cannot be opened fails the test and reads as empty.
inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.is_open()) << "cannot open " << path;
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// Replaces what was there; returns `path`.
inline const std::filesystem::path& write_file(const std::filesystem::path& path,
                                               std::string_view bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << bytes;
  EXPECT_TRUE(file.flush().good()) << "cannot write " << path;
  return path;
}

inline std::filesystem::path golden_folder() {
  return std::filesystem::path(FILIGREE_SOURCE_DIR) / "tests" / "golden";
}

}  // namespace filigree
