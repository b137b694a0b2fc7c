// What a comparison keeps of the maps while the models run: the grid, the maps of the page, and
// those that may be drawn side by side.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <vector>

#include "filigree/attention_study.h"
#include "study/comparison/comparison_page.h"

namespace filigree::study {

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

  MapGrid& grid() { return grid_; }
  const PageMaps& page() const { return page_; }

  // The maps [T, T] of these heads on the first prompt. Runs the model once more when they were
  // too large to keep.
  std::map<HeadId, std::vector<float>> first_maps(std::size_t model,
                                                  std::vector<HeadId> heads) const;

 private:
  ComparisonPlan plan_;
  Prompt first_prompt_;
  Models models_;
  MapGrid grid_;
  PageMaps page_;
  bool keeps_;
  std::vector<std::map<HeadId, std::vector<float>>> kept_;  // by model
};

}  // namespace filigree::study
