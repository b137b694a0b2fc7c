// The report page of `filigree compare`, from what the analyses found.
#pragma once

#include <string>
#include <vector>

#include "apps/cli/attention/attention_analysis.h"
#include "filigree/analyze/statistics/comparison.h"
#include "filigree/report/packed_maps.h"
#include "filigree/report/report.h"

namespace filigree::cli {

// Packs the maps of a model as they come, for the page. Of long prompts only the first tokens are
// kept: attention is causal, so that is the map of the shorter prompt.
class ReportMaps {
 public:
  // For `heads` heads; the first `prompts` prompts, and of each at most `tokens` tokens.
  ReportMaps(std::size_t heads, std::size_t prompts, std::int64_t tokens)
      : heads_(heads), prompts_(prompts), tokens_(tokens) {}

  // A HeadMapConsumer that wants prompts one by one.
  void add(std::span<const HeadMap> maps);

  // One text a prompt.
  std::vector<std::string> packed() { return std::move(packed_); }

 private:
  std::size_t heads_, prompts_;
  std::int64_t tokens_;
  std::size_t seen_ = 0;  // heads of the prompt at hand
  std::unique_ptr<PackedMaps> current_;
  std::vector<std::string> packed_;
  std::vector<float> square_;
};

struct ReportSource {
  std::string title;
  std::vector<PromptModel> models;
  std::vector<std::int64_t> parameters;
  std::vector<AnalysedModel> analysed;
  std::vector<HeadId> heads;  // all of them
  std::vector<ComparedStatistic> comparison;
  std::vector<Prompt> prompts;                 // those of the page
  std::vector<std::vector<std::string>> maps;  // by model and prompt
  std::int64_t tokens = 0;                     // of a prompt that are shown
  std::vector<ReportTask> tasks;
  std::vector<NamedTexts> facts;  // more about each model; may be empty
  NamedTexts made;
};

// How many tokens of a prompt the page can show when it shows `prompts` of them.
std::int64_t report_tokens(std::size_t models, std::size_t heads, std::size_t prompts);

Report make_report(const ReportSource& source);

}  // namespace filigree::cli
