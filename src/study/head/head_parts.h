// The parts of a head's page, each found by itself.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "filigree/study/head/head_page.h"

namespace filigree::study {

// Role, rows and all edges.
void look_at_attention(const LoadedModel& model, const PromptSet& prompts, const Context& context,
                       HeadFacts& facts);

// What the tokens of the edges are to the head, by its weights, and whom it reads. `edges` are
// those of facts.
void look_at_weights(const LoadedModel& loaded, std::size_t top, const Context& context,
                     HeadFacts& facts);

// What the head writes for tokens that it reads, by its weights; `tokens` with their shares.
std::vector<ReadToken> read_tokens(const Model& model, const HeadId& head,
                                   std::span<const std::pair<TokenId, double>> tokens);

// What the head wrote at one position of a run. `changes` of the run may be null.
DirectEffect direct_effect(const Model& model, const HeadId& head, const std::vector<TokenId>& ids,
                           std::int64_t query, std::size_t top,
                           AppliedInterventions* changes = nullptr);

// The map and the direct effect of the example, or the map of the first prompt without one.
void look_at_output(const LoadedModel& loaded, std::span<const Prompt> prompts, std::size_t top,
                    HeadFacts& facts);

struct NamedTask {
  std::string name;
  LoadedTask task;
};
void look_at_tasks(const LoadedModel& model, std::span<const NamedTask> tasks,
                   Replacement replacement, const Context& context, HeadFacts& facts);

// Pearson's correlation of the head's maps with those of every head of the other model, over all
// causal cells; 0 where either does not vary.
std::vector<double> map_correlations(const LoadedModel& model, const HeadId& head,
                                     const LoadedModel& other, std::span<const Prompt> prompts,
                                     const Context& context);

}  // namespace filigree::study
