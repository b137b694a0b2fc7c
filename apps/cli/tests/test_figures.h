// Figures in tests of commands, which a program may be built without.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "apps/cli/attention/attention_figures.h"

namespace filigree::cli {

// --figure FILE, where the program can draw.
inline std::vector<std::string> figure_option(const std::string& file) {
  if (!has_figures()) return {};
  return {"--figure", file};
}

// That the command drew it, where it can.
inline void expect_figure(const std::string& file) {
  if (has_figures()) {
    EXPECT_GT(std::filesystem::file_size(file), 2000u) << file;
  }
}

}  // namespace filigree::cli
