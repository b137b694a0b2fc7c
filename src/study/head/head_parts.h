// The parts of a head's page, each found by itself.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "filigree/lens_study.h"

namespace filigree::study {

// Role, rows and all edges.
void look_at_attention(const LoadedModel& model, const PromptSet& prompts, const Context& context,
                       HeadFacts& facts);

// What the tokens of the edges are to the head, by its weights, and whom it reads. `edges` are
// those of facts; the prompts are what means over text are taken of.
void look_at_weights(const LoadedModel& loaded, const HeadRequest& request,
                     std::span<const Prompt> prompts, const Context& context, HeadFacts& facts);

// What the head wrote at one position of a run, and what it writes there for a weight of 1 on each
// token: the tokens' own values in that run, through the head's output and the final norm at the
// query. Each token's effects, times the weights that it got from the query, sum to what was
// written, up to the output's bias.
struct HeadInRun {
  DirectEffect direct = {};
  std::vector<WrittenForToken> reads = {};  // in the order of `tokens`
};
// `attention` is what each position of the prompt got, by which values of one token at several
// positions are averaged. `changes` of the run may be null.
HeadInRun look_at_run(const Model& model, const HeadId& head, const std::vector<TokenId>& ids,
                      std::int64_t query, std::size_t top, const std::vector<TokenId>& tokens,
                      std::span<const double> attention, AppliedInterventions* changes = nullptr);

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
