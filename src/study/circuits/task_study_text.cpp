
#include <fmt/format.h>

#include <algorithm>

#include "filigree/circuit_study.h"
#include "filigree/names.h"

namespace filigree::study {

std::string dropped_text(const TaskPrompts& prompts) {
  std::string text =
      fmt::format("{} of {} prompts fit the tokenizer\n", with_thousands(prompts.prompts.size()),
                  with_thousands(prompts.drawn));
  for (std::size_t i = 0; i < kDropReasons; ++i)
    if (prompts.dropped[i] > 0)
      text +=
          fmt::format("  {} dropped: {}{}, such as \"{}\"\n", with_thousands(prompts.dropped[i]),
                      description_of(static_cast<DropReason>(i)),
                      static_cast<DropReason>(i) == DropReason::kSeveralTokens
                          ? " (--first-token takes the first)"
                          : "",
                      printable(prompts.example[i]));
  if (prompts.used_up)
    text += "  the text has no more passages; a longer one has (--task-text FILE)\n";
  if (prompts.wrong_left_out > 0)
    text += fmt::format("  {} wrong answers left out for the same reasons\n",
                        with_thousands(prompts.wrong_left_out));
  if (prompts.shortened > 0)
    text +=
        fmt::format("  {} with answers of several tokens: the first token stands for the answer\n",
                    with_thousands(prompts.shortened));
  const auto [shortest, longest] = std::minmax_element(
      prompts.prompts.begin(), prompts.prompts.end(),
      [](const TaskPrompt& a, const TaskPrompt& b) { return a.length() < b.length(); });
  if (shortest != prompts.prompts.end() && shortest->length() < longest->length())
    text +=
        fmt::format("  of {} to {} tokens; prompts of one length run together, none is padded\n",
                    shortest->length(), longest->length());
  return text;
}

std::string verdict_text(const TaskCheck& check, const TaskPrompts& prompts) {
  const std::string chance =
      fmt::format("accuracy {:.1f} %, chance {:.1f} %, p = {:.2g}", 100 * check.clean_accuracy,
                  100 * check.chance, check.p_value);
  if (!check.enough_prompts)
    return fmt::format(
        "There are too FEW prompts to tell ({}): always right, a model would be at p = {:.2g}, and "
        "below {:g} is called better than chance. Take {}.\n",
        chance, check.least_p, kChanceLevel,
        prompts.used_up ? "a longer text (--task-text FILE)" : "more (--prompts)");
  if (!check.better_than_chance)
    return fmt::format("The model is NOT better than chance ({}): a circuit would mean nothing.\n",
                       chance);
  std::string text = fmt::format("The model is better than chance ({}).\n", chance);
  if (!check.corruption_matters)
    text += "The corruption does NOT lower the metric: try another one (--corruption).\n";
  return text;
}

std::string estimate_text(const Estimate& value) {
  return value.error ? fmt::format("{:.3f} +- {:.3f}", value.mean, *value.error)
                     : fmt::format("{:.3f}", value.mean);
}

}  // namespace filigree::study
