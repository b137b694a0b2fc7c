// The prompt of a request and its changes, as one model takes them, and what is said of tokens.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "filigree/maps.h"
#include "serve/requests.h"

namespace filigree::serve {

struct ChangedRun {
  Prompt prompt = {};
  Interventions interventions = {};
};

// Throws Error for a prompt or a place that the model does not have.
ChangedRun run_of(const study::LoadedModel& model, const PromptQuery& query);

std::vector<std::string> shown_tokens(const study::LoadedModel& model,
                                      std::span<const TokenId> ids);

// Throws Refusal where maps of so many heads have more than `most` cells.
void check_cells(std::size_t heads, std::size_t tokens, std::size_t most);

}  // namespace filigree::serve
