// What a comparison keeps of the maps while the models run, and what it writes: the page, figures,
// tables, data, and what they say of tasks and of a traced prompt.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/output_folder.h"
#include "filigree/attention_study.h"
#include "filigree/comparison_study.h"
#include "report/packed_maps.h"

namespace filigree::study {

// Packs the maps of the models as they come, for the page: those of the first prompts, and of long
// ones the first tokens. Attention is causal, so that is the map of the shorter prompt.
class PageMaps {
 public:
  // Of all prompts; `heads` a model. What fits a page is decided here.
  PageMaps(std::size_t models, std::size_t heads, const std::vector<Prompt>& prompts);

  // A HeadMapConsumer that wants prompts one by one and models one after the other.
  void add(std::size_t model, std::span<const HeadMap> maps);

  std::size_t prompts() const { return prompts_; }  // that are shown
  std::int64_t tokens() const { return tokens_; }   // of each, at most
  // Packed, of a model and prompt.
  const std::string& packed(std::size_t model, std::size_t prompt) const {
    return packed_.at(model).at(prompt);
  }

 private:
  std::size_t heads_, prompts_;
  std::int64_t tokens_;
  std::size_t seen_ = 0;  // heads of the prompt at hand
  std::unique_ptr<PackedMaps> current_;
  std::vector<std::vector<std::string>> packed_;
  std::vector<float> square_;
};

// All but the tasks and how it was made.
Report make_page(const std::string& title, const ComparisonResult& result, Models models,
                 const PageMaps& maps);

// The heads of the figures, as the request names them. Empty: chosen by what is found.
struct ComparisonPlan {
  std::vector<HeadId> grid = {};   // by layer and head
  std::vector<HeadId> asked = {};  // the same in the order they were asked for
  std::size_t columns = 0;         // where they are whole layers; else 0
  std::vector<HeadId> first = {};  // of the grid
  std::vector<HeadId> strips = {};
  std::vector<HeadId> scatter = {};
};

class ComparisonMaps {
 public:
  // Which heads are drawn side by side is known only when both models have run, so that the first
  // prompt's maps of all that may be are kept, unless those of a model would take more than this.
  static constexpr std::size_t kStripBytes = std::size_t{64} << 20;

  // The models must outlive it.
  ComparisonMaps(ComparisonPlan plan, const std::vector<HeadId>& heads,
                 const std::vector<Prompt>& prompts, Models models,
                 std::size_t strip_bytes = kStripBytes);

  // A HeadMapConsumer that wants prompts one by one and models one after the other.
  void add(std::size_t model, std::span<const HeadMap> maps);

  figure::AttentionGrid& grid() { return grid_; }
  const PageMaps& page() const { return page_; }

  // The maps [T, T] of these heads on the first prompt. Runs the model once more when they were
  // too large to keep.
  std::map<HeadId, std::vector<float>> first_maps(std::size_t model,
                                                  std::vector<HeadId> heads) const;

 private:
  ComparisonPlan plan_;
  Prompt first_prompt_;
  Models models_;
  figure::AttentionGrid grid_;
  PageMaps page_;
  bool keeps_;
  std::vector<std::map<HeadId, std::vector<float>>> kept_;  // by model
};

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

// Traces the request's prompt, writes the figures of heads and graph in every format, the graphs
// for viewers and what was found, and returns the section of the page.
ReportTask write_trace(const ComparisonRequest& request, Models models, ComparisonResult& result,
                       ComparisonFolder& folder, const Context& context);

}  // namespace filigree::study
