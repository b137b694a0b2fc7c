// The report page of a comparison, from what was found.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

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

}  // namespace filigree::study
