// The files of a comparison: figures, tables, data, and what they say of tasks.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/output_folder.h"
#include "study/comparison/comparison_maps.h"

namespace filigree::study {

// The folder of the result, and the names of the files in it so far.
class ComparisonFolder {
 public:
  // Makes those inside it. Throws Error when that cannot be.
  explicit ComparisonFolder(const OutputFolder& root);

  std::filesystem::path add(const std::string& name) {
    files_.push_back(name);
    return root_ / name;
  }
  const std::vector<std::string>& files() const { return files_; }
  const std::filesystem::path& root() const { return root_; }

 private:
  std::filesystem::path root_;
  std::vector<std::string> files_;
};

std::string page_title(const ComparisonRequest& request, const ComparisonResult& result);

// The grid, correlations, scatter matrix, bars and strips, in every format.
void write_figures(const ComparisonRequest& request, const ComparisonPlan& plan,
                   const ComparisonResult& result, ComparisonMaps& maps, ComparisonFolder& folder,
                   std::uint64_t seed);

// Roles and statistics as CSV, and the summary as JSON.
void write_tables(const ComparisonResult& result, ComparisonFolder& folder);

// Curves, grid of heads, drawing and Graphviz files of each task's circuits in every format; the
// sections of the page.
std::vector<ReportTask> write_tasks(const ComparisonRequest& request,
                                    const ComparisonResult& result, Models models,
                                    ComparisonFolder& folder);

}  // namespace filigree::study
