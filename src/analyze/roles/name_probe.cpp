#include <optional>
#include <string_view>

#include "filigree/error.h"
#include "filigree/roles.h"
#include "filigree/tasks.h"

namespace filigree {
namespace {

// A name at the beginning of a text has no space before it, and is another token.
std::string_view without_space(std::string_view text) {
  if (text.starts_with(' ')) text.remove_prefix(1);
  return text;
}

std::optional<NameProbe> probe_of(const TaskPrompt& task, const Tokenizer& tokenizer) {
  NameProbe probe = {{task.clean}, -1, -1, -1};
  const std::string receiver(without_space(task.text.answers[0])),
      giver(without_space(task.text.wrong[0]));
  for (std::size_t t = 0; t < task.clean.size(); ++t) {
    const std::string text = tokenizer.token_text(task.clean[t]);
    const std::string_view name = without_space(text);
    const auto place = static_cast<std::int64_t>(t);
    if (name == receiver && probe.receiver < 0) probe.receiver = place;
    if (name != giver) continue;
    (probe.first < 0 ? probe.first : probe.second) = place;
  }
  const bool whole = probe.receiver >= 0 && probe.second > probe.first && probe.first >= 0 &&
                     probe.second + 1 < task.length();
  return whole ? std::optional(probe) : std::nullopt;
}

}  // namespace

std::vector<NameProbe> make_name_probes(const Tokenizer& tokenizer,
                                        const NameProbeOptions& options) {
  const TaskDefinition& task = task_definition("ioi");
  TaskOptions drawn;
  drawn.prompts = options.prompts;
  drawn.seed = options.seed;
  drawn.fit.vocabulary = options.vocabulary;
  drawn.fit.context = options.context;
  std::vector<NameProbe> probes;
  try {
    const TaskPrompts prompts = make_task(task, corruption_of(task, ""), tokenizer, drawn);
    for (const TaskPrompt& prompt : prompts.prompts)
      if (const std::optional<NameProbe> probe = probe_of(prompt, tokenizer))
        probes.push_back(*probe);
  } catch (const Error&) {
    // No sentence fits this tokenizer or context: then names are not asked about.
  }
  return probes;
}

}  // namespace filigree
