// Figures in tests of commands.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

namespace filigree::cli {

inline void expect_figure(const std::string& file) {
  EXPECT_GT(std::filesystem::file_size(file), 2000u) << file;
}

}  // namespace filigree::cli
