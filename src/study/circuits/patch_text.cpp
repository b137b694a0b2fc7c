#include <fmt/format.h>

#include <algorithm>

#include "base/table.h"
#include "filigree/circuit_study.h"
#include "filigree/names.h"

namespace filigree::study {
namespace {

std::string strongest_table(const SweptSite& site, PatchDirection direction, std::size_t top) {
  Table table(
      {{"place"},
       {direction == PatchDirection::kNoising ? "effect lost" : "effect restored", Align::kRight}});
  std::vector<std::size_t> order = site.order();
  order.resize(std::min(order.size(), top));
  for (const std::size_t cell : order) {
    const Estimate& effect = site.sweep.effects[cell];
    std::string text = fmt::format("{:+.1f} %", 100 * effect.mean);
    if (effect.error) text += fmt::format(" +- {:.1f}", 100 * *effect.error);
    table.add({site.place(cell), text});
  }
  return table.text(2);
}

std::string swept_model_text(const SweptModel& model, PatchDirection direction, std::size_t top) {
  const std::vector<TaskPrompt>& all = model.task.prompts.prompts;
  std::string text =
      fmt::format("\n{}\n", printable(model.label)) + dropped_text(model.task.prompts);
  if (model.prompts.size() < all.size())
    text += fmt::format("  {} of {} have the commonest length, {} tokens, and are kept\n",
                        model.prompts.size(), all.size(), model.prompts[0].length());
  text += verdict_text(model.check, model.task.prompts);
  for (const SweptSite& site : model.sites)
    text += fmt::format("\n  {} by {}{}: clean {}, corrupt {}\n", name_of(site.site),
                        name_of(site.axis),
                        site.sweep.from_end ? ", positions counted from the end" : "",
                        estimate_text(site.sweep.clean), estimate_text(site.sweep.corrupt)) +
            strongest_table(site, direction, top);
  return text;
}

}  // namespace

std::string text_of(const PatchResult& result, std::size_t top) {
  const LoadedTask& task = result.models[0].task;
  const PatchDirection direction = result.request.direction;
  std::string text =
      fmt::format("{}: {}, corruption {}, {}, {}\n", printable(task.prompts.task), task.description,
                  task.prompts.corruption, name_of(task.metric), name_of(direction));
  for (const SweptModel& model : result.models) text += swept_model_text(model, direction, top);
  return text;
}

}  // namespace filigree::study
