// Two models compared, as a folder of figures, tables and data with one offline page: the work of
// `filigree compare`, and the larger part of `filigree demo`.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "apps/cli/comparison/comparison_files.h"
#include "filigree/report/report.h"

namespace filigree::cli {

class Comparison {
 public:
  // Reads the models' configurations and the prompts, with a choice of our own where none are
  // given. Throws Error for models and options that do not go together; writes nothing.
  Comparison(CompareOptions options, const Session& session);

  // What the caller knows besides.
  struct More {
    std::vector<NamedTexts> facts = {};  // about each model, for the page
    Json summary = Json::object();       // for data/summary.json, behind what is in it
  };
  // Runs both models and fills the folder. Shows bars; throws Interrupted between passes.
  void write(const More& more);

  const std::vector<std::string>& labels() const { return labels_; }
  // Of write():
  const Compared& compared() const { return compared_; }
  const Json& summary() const { return summary_; }
  const std::vector<std::string>& files() const { return files_; }
  std::filesystem::path page() const { return std::filesystem::path(options_.out) / "report.html"; }

 private:
  void analyse(MapGrid& grid, MapFile* maps);
  void write_page(const More& more, Folder& folder);

  CompareOptions options_;
  const Session& session_;
  std::vector<std::string> labels_;
  std::vector<HeadId> grid_heads_;
  Compared compared_;
  std::vector<study::LoadedModel> loaded_;  // for the circuits
  Json summary_;
  std::vector<std::string> files_;
};

}  // namespace filigree::cli
