#include "filigree/serve/model_run.h"

#include <fmt/format.h>

#include "filigree/serve/answer.h"
#include "filigree/study/interventions.h"
#include "filigree/study/tokens.h"

namespace filigree::serve {

std::vector<std::string> shown_tokens(const study::LoadedModel& model,
                                      std::span<const TokenId> ids) {
  std::vector<std::string> tokens;
  for (const TokenId id : ids) tokens.push_back(study::shown_token(model.tokenizer(), id));
  return tokens;
}

ModelRun run_of(const study::LoadedModel& model, const PromptQuery& query) {
  ModelRun run;
  run.prompt.ids = study::prompt_tokens(model, query.prompt);
  run.prompt.tokens = shown_tokens(model, run.prompt.ids);
  run.interventions = study::for_text(query.interventions, model, run.prompt.ids);
  study::check_positions(run.interventions, static_cast<std::int64_t>(run.prompt.ids.size()));
  return run;
}

void check_cells(std::size_t heads, std::size_t tokens, std::size_t most) {
  const std::size_t each = tokens * (tokens + 1) / 2;
  if (heads * each > most)
    throw Refusal(413,
                  fmt::format("{} maps of {} tokens are {} cells", heads, tokens, heads * each),
                  fmt::format("ask for at most {}: fewer heads or a shorter prompt", most));
}

}  // namespace filigree::serve
