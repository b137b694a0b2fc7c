// What a comparison of two models found, and the files that are written of it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "apps/cli/attention/attention_analysis.h"
#include "apps/cli/attention/attention_figures.h"
#include "filigree/analyze/statistics/comparison.h"
#include "filigree/study/circuits/task_circuits.h"

namespace filigree::cli {

struct CompareOptions {
  std::string dense, sparse, out;
  std::string title;
  PromptOptions prompts;
  std::string heads = "*";      // of the grid
  std::string order = "layer";  // layer, role, or heads
  std::string strips, scatter;
  std::vector<figure::Format> formats = {figure::Format::kSvg, figure::Format::kPng};
  FigureStyle style;
  bool data = false;
  std::vector<study::TaskSelection> tasks;  // whose circuits are compared
  study::CircuitEffort effort;
};

struct Compared {
  std::vector<PromptModel> models;
  std::vector<std::int64_t> parameters;
  std::vector<HeadId> heads;
  PromptSet prompts;
  std::vector<AnalysedModel> analysed;
  std::vector<std::vector<HeadRole>> roles;
  std::vector<ComparedStatistic> comparison;
  std::vector<std::vector<std::string>> packed;  // maps of the page, by model and prompt
  std::vector<study::TaskCircuits> tasks;
  std::int64_t page_tokens = 0;
  std::size_t page_prompts = 0;
};

// "L9H1,L3H0": heads in the order given, each once.
std::vector<HeadId> parse_order(const std::string& text, const ModelConfig& config);

// The folder of the result, and the names of the files in it so far.
class Folder {
 public:
  explicit Folder(std::filesystem::path root);
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

// The grid of `grid_heads`, correlations, scatter matrix, bars and strips, in every format.
void write_figures(const CompareOptions& options, const Compared& compared, const MapGrid& grid,
                   const std::vector<HeadId>& grid_heads, Folder& folder, std::uint64_t seed);

// Curves, grid of heads, drawing and Graphviz files of each task's circuits in every format; the
// sections of the page.
std::vector<ReportTask> write_tasks(const CompareOptions& options, const Compared& compared,
                                    std::span<const study::LoadedModel> models, Folder& folder);

std::string roles_csv(const Compared& compared);

}  // namespace filigree::cli
