// Figures in tests of commands, which a program may be built without.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "filigree/study_figures.h"

namespace filigree::cli {

// --out FILE, where the program can draw.
inline std::vector<std::string> figure_option(const std::string& file) {
  if (!study::has_figures()) return {};
  return {"--out", file};
}

// That the command drew it, where it can.
inline void expect_figure(const std::string& file) {
  if (study::has_figures()) {
    EXPECT_GT(std::filesystem::file_size(file), 2000u) << file;
  }
}

}  // namespace filigree::cli
