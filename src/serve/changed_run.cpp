#include "serve/changed_run.h"

#include <fmt/format.h>

#include "filigree/study.h"
#include "serve/answer.h"

namespace filigree::serve {

std::vector<std::string> shown_tokens(const study::LoadedModel& model,
                                      std::span<const TokenId> ids) {
  std::vector<std::string> tokens;
  for (const TokenId id : ids) tokens.push_back(study::shown_token(model.tokenizer(), id));
  return tokens;
}

ChangedRun run_of(const study::LoadedModel& model, const PromptQuery& query) {
  ChangedRun run;
  run.prompt.ids = study::prompt_tokens(model, query.prompt);
  run.prompt.tokens = shown_tokens(model, run.prompt.ids);
  run.interventions = study::for_text(query.interventions, model, run.prompt.ids);
  study::check_fits(run.interventions, static_cast<std::int64_t>(run.prompt.ids.size()));
  return run;
}

void check_cells(std::size_t heads, std::size_t tokens, std::size_t most) {
  const auto cells = [&](std::size_t length) { return heads * (length * (length + 1) / 2); };
  if (cells(tokens) <= most) return;
  std::size_t fitting = tokens;
  while (fitting > 0 && cells(fitting) > most) --fitting;
  throw Refusal(
      413,
      fmt::format("the prompt has {} tokens, more than the {} of which the server gives "
                  "the maps of {} at once",
                  tokens, fitting, heads == 1 ? "a head" : fmt::format("{} heads", heads)),
      heads == 1 ? "shorten it" : "shorten it, or ask for fewer heads");
}

}  // namespace filigree::serve
