#include "apps/cli/attention_output.h"

#include <fmt/format.h>

#include "analyze/average.h"
#include "base/version.h"

namespace filigree::cli {

std::unique_ptr<MapFile> open_output(const OutputPlan& plan, const std::vector<HeadId>& heads,
                                     const std::vector<Prompt>& prompts) {
  MapFileLayout layout;
  layout.kind = plan.kind;
  layout.heads = heads;
  layout.about["filigree"] = version_string();
  layout.about["models"] = plan.models;
  layout.about["prompts"] = prompts.size();
  for (std::size_t m = 0; m < plan.models.size(); ++m) {
    if (plan.average) {
      layout.series.push_back({fmt::format("model{}.mean", m), common_length(prompts), {}});
      continue;
    }
    for (std::size_t p = 0; p < prompts.size(); ++p)
      layout.series.push_back({fmt::format("model{}.prompt{}", m, p),
                               static_cast<std::int64_t>(prompts[p].ids.size()), prompts[p]});
  }
  return MapFile::create(plan.path, std::move(layout));
}

}  // namespace filigree::cli
