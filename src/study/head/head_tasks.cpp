// What tasks lose without a head, and what it adds to their answers directly.
#include <algorithm>
#include <cmath>

#include "filigree/lens.h"
#include "study/circuits/patch_progress.h"
#include "study/head/head_parts.h"

namespace filigree::study {
namespace {

constexpr std::int64_t kTaskMapTokens = 1024;

// How often it attends, and the strongest edge of a last token.
void add_attention(const LoadedModel& model, const HeadId& head,
                   const std::vector<TaskPrompt>& prompts, TaskEffect& effect) {
  std::vector<Prompt> texts;
  for (const TaskPrompt& prompt : prompts) texts.push_back({prompt.clean});
  std::int64_t rows = 0, open = 0;
  CaptureOptions capture = CaptureOptions::of({head}, MapKind::kWeights);
  capture.batch_tokens = kTaskMapTokens;
  capture_maps(model.model(), texts, capture, [&](std::span<const HeadMap> maps) {
    for (const HeadMap& map : maps)
      for (std::int64_t i = 0; i < map.length; ++i) {
        double row = 0;
        for (std::int64_t j = 0; j <= i; ++j) {
          const auto weight =
              static_cast<double>(map.weights[static_cast<std::size_t>(i * map.length + j)]);
          row += weight;
          if (i + 1 == map.length && weight > (effect.last ? effect.last->weight : 0.0))
            effect.last = HeadExample{effect.task, map.prompt, i, j, weight};
        }
        ++rows;
        if (row >= kRoleThresholds.empty_row_mass) ++open;
      }
  });
  effect.open_rows = rows > 0 ? static_cast<double>(open) / static_cast<double>(rows) : 0;
}

void add_direct(const LoadedModel& model, const std::vector<TaskPrompt>& prompts,
                const HeadId& head, TaskEffect& effect) {
  const LogitAttribution found = attribute_logits(model.model(), prompts);
  double own = 0;
  for (const bool find : {true, false})  // its own first, then those beyond it
    for (std::size_t p = 0; p < found.parts.size(); ++p) {
      if (found.parts[p].kind != PartKind::kHead) continue;
      const Estimate value = found.of(p);
      if (find && found.parts[p].layer == head.layer && found.parts[p].head == head.head)
        effect.direct = value, own = std::abs(value.mean);
      if (!find && std::abs(value.mean) > own) ++effect.direct_rank;
    }
}

}  // namespace

void look_at_tasks(const LoadedModel& model, std::span<const NamedTask> tasks,
                   Replacement replacement, const Context& context, HeadFacts& facts) {
  for (const NamedTask& one : tasks) {
    context.throw_if_stopped();
    const std::vector<TaskPrompt>& prompts = one.task.prompts.prompts;
    TaskEffect effect;
    effect.task = one.name;
    effect.prompts = prompts.size();
    effect.metric = one.task.metric;
    effect.check = check_ability(model, prompts, one.task.metric, context);
    PatchOptions options;
    options.metric = one.task.metric;
    options.replacement = replacement;
    const PatchedRuns runs =
        run_patched(model.model(), prompts, {{{Site::kZ, facts.head.layer, facts.head.head}}},
                    watched(options, model.label() + " " + one.name, context));
    std::vector<double> drops;
    for (std::size_t p = 0; p < prompts.size(); ++p)
      drops.push_back(runs.clean[p] - runs.patched[0][p]);
    effect.ablated = estimate(runs.patched[0]);
    effect.drop = estimate(drops);
    const double whole = estimate(runs.clean).mean - estimate(runs.corrupt).mean;
    effect.share = whole != 0 ? effect.drop.mean / whole : 0;
    add_direct(model, prompts, facts.head, effect);
    add_attention(model, facts.head, prompts, effect);
    facts.tasks.push_back(std::move(effect));
  }
}

}  // namespace filigree::study
