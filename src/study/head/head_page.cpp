#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "filigree/data.h"
#include "filigree/error.h"
#include "filigree/lens_study.h"
#include "filigree/names.h"
#include "study/head/head_parts.h"

namespace filigree::study {
namespace {

constexpr double kClearSign = 0.5;     // of the OV score
constexpr double kLeastExample = 0.1;  // weight of an edge that is shown for a task

HeadId the_head(const std::string& text, const ModelConfig& config) {
  const std::vector<HeadId> heads = parse_heads(text, config.layers, config.heads);
  if (heads.size() != 1)
    throw RequestError(
        fmt::format("'{}' is {} heads; a page is about one", printable(text), heads.size()));
  return heads[0];
}

// The tasks of the request that the model's tokenizer can take, and the names of the others.
std::vector<NamedTask> tasks_for(const HeadRequest& request, const LoadedModel& model,
                                 const Context& context, std::vector<std::string>& skipped) {
  std::vector<NamedTask> tasks;
  const auto load = [&](const std::string& name) {
    TaskSelection selection;
    selection.name = name;
    selection.prompts = request.task_prompts;
    const TaskDefinition* task = find_task(name);
    if (task != nullptr && task->from_text) selection.text = request.text;
    tasks.push_back({name, load_task(selection, model, context)});
  };
  for (const std::string& name : request.tasks) load(name);
  if (!request.tasks.empty()) return tasks;
  std::vector<std::string_view> known;
  for (const TaskDefinition& task : task_definitions()) {
    if (task.from_text && request.text.empty()) continue;
    const std::string name(task.name);
    // Of variants of one task the first.
    if (!task.corpus_task.empty() &&
        std::find(known.begin(), known.end(), task.corpus_task) != known.end())
      continue;
    known.push_back(task.corpus_task);
    try {
      load(name);
    } catch (const Error&) {
      skipped.push_back(name);  // none of its prompts fits
    }
  }
  return tasks;
}

PromptSet prompts_for(const HeadRequest& request, std::span<const NamedTask> tasks,
                      const LoadedModel& model, const Context& context) {
  if (!request.prompts.empty()) return read_prompts(request.prompts, {&model, 1}, context);
  PromptSet set;
  set.tokenizer = model.tokenizer();
  for (const NamedTask& task : tasks)
    for (const TaskPrompt& prompt : task.task.prompts.prompts) {
      set.prompts.push_back({prompt.clean});
      for (const TokenId id : prompt.clean)
        set.prompts.back().tokens.push_back(shown_token(*set.tokenizer, id));
    }
  require(!set.prompts.empty(), "no task has a prompt that fits '{}'; give prompts",
          printable(model.name()));
  return set;
}

// Of the task that loses most, beyond twice its error, where the prompts are the tasks' own.
std::optional<HeadExample> example_of(const HeadFacts& facts, const HeadRequest& request) {
  std::optional<HeadExample> example;
  if (!facts.edges.empty()) {
    const TokenEdge& edge = facts.edges[0];
    example = {"", edge.prompt, edge.query_position, edge.key_position, edge.weight};
  }
  if (!request.prompts.empty()) return example;
  double most = 0;
  std::size_t first = 0;  // prompt of the task at hand
  for (const TaskEffect& effect : facts.tasks) {
    if (is_able(effect.check) && effect.last && effect.last->weight >= kLeastExample &&
        effect.drop.error && std::abs(effect.drop.mean) > 2 * *effect.drop.error &&
        std::abs(effect.share) > most) {
      most = std::abs(effect.share);
      example = effect.last;
      example->prompt += first;
    }
    first += effect.prompts;
  }
  return example;
}

// `example`: given for a twin, which is shown where its counterpart is.
HeadFacts facts_of(const HeadId& head, const HeadRequest& request, const LoadedModel& model,
                   const PromptSet& prompts, std::span<const NamedTask> tasks,
                   const std::optional<HeadExample>& example, const Context& context) {
  HeadFacts facts;
  facts.model = model.name(), facts.label = model.label();
  facts.head = head;
  look_at_attention(model, prompts, context, facts);
  look_at_weights(model, request, prompts.prompts, context, facts);
  look_at_tasks(model, tasks, request.replacement, context, facts);
  facts.example = example ? example : example_of(facts, request);
  look_at_output(model, prompts.prompts, request.top, facts);
  facts.edges.resize(std::min(facts.edges.size(), std::max<std::size_t>(request.top, 1)));
  return facts;
}

void show(ShownTokens& shown, const Tokenizer& tokenizer, const HeadFacts& facts) {
  const auto add = [&](TokenId id) { shown.add(tokenizer, id); };
  for (const TokenEdge& edge : facts.edges) add(edge.query), add(edge.key);
  for (const ReadToken& read : facts.reads)
    add(read.written.token), add(read.written.raised), add(read.written.lowered);
  for (const std::vector<TokenPair>* pairs : {&facts.raises, &facts.lowers})
    for (const TokenPair& pair : *pairs) add(pair.from), add(pair.to);
  for (const std::vector<MatchedToken>* side : {&facts.queries, &facts.keys})
    for (const MatchedToken& matched : *side) {
      add(matched.token);
      for (const TokenPair& pair : matched.partners) add(pair.to);
    }
  for (const std::vector<LogitEffect>* effects : {&facts.direct.raised, &facts.direct.lowered})
    for (const LogitEffect& effect : *effects) add(effect.token);
}

}  // namespace

std::string copying_text(double score) {
  return score >= kClearSign    ? "copies, raises what it reads"
         : score <= -kClearSign ? "anti-copying, lowers what it reads"
                                : "neither copies nor suppresses what it reads";
}

HeadPage run(const HeadRequest& request, Models models, const Context& context) {
  for (const LoadedModel& model : models) require_causal(model, "the page of a head is");
  if (models.empty() || models.size() > 2)
    throw RequestError(
        fmt::format("a head's page is about one model or two, and {} were given", models.size()));
  const LoadedModel& model = models[0];
  const LoadedModel* const other = models.size() > 1 ? &models[1] : nullptr;
  HeadPage page;
  page.request = request;
  const HeadId head = the_head(request.head, model.config());
  const std::vector<NamedTask> tasks = tasks_for(request, model, context, page.skipped_tasks);
  const PromptSet prompts = prompts_for(request, tasks, model, context);
  page.facts = facts_of(head, request, model, prompts, tasks, {}, context);
  show(page.shown, model.tokenizer(), page.facts);
  if (other != nullptr) {
    require(tokenizer_fingerprint(other->tokenizer()) == tokenizer_fingerprint(model.tokenizer()),
            "'{}' and '{}' have different tokenizers: the same text is other tokens to each, and "
            "no head of one can be found in the other",
            printable(model.name()), printable(other->name()));
    check_prompts(prompts.prompts, other->config());
    const std::vector<double> alike =
        map_correlations(model, head, *other, prompts.prompts, context);
    const std::int64_t H = other->config().heads;
    const auto best = std::max_element(alike.begin(), alike.end()) - alike.begin();
    HeadTwin twin;
    twin.correlation = alike[static_cast<std::size_t>(best)];
    if (head.layer < other->config().layers && head.head < H)
      twin.same_correlation = alike[static_cast<std::size_t>(head.layer * H + head.head)];
    twin.facts = facts_of({best / H, best % H}, request, *other, prompts, tasks, page.facts.example,
                          context);
    show(page.shown, model.tokenizer(), twin.facts);
    page.twin = std::move(twin);
  }
  page.prompts = prompts.prompts;
  return page;
}

}  // namespace filigree::study
