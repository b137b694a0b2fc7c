#include "apps/cli/attention/attention_analysis.h"

#include <iostream>

#include "apps/cli/program/input.h"
#include "filigree/analyze/maps/average.h"
#include "filigree/base/error.h"

namespace filigree::cli {
namespace {

constexpr std::int64_t kBatchTokens = 512;

// The ids that random text is made of: ordinary tokens where the tokenizer is known.
std::vector<TokenId> ordinary_tokens(const PromptSet& prompts, const ModelConfig& config) {
  std::vector<TokenId> ids;
  for (TokenId id = 0; id < static_cast<TokenId>(config.vocabulary); ++id)
    if (!prompts.tokenizer ||
        (prompts.tokenizer->has_token(id) && !prompts.tokenizer->is_special(id)))
      ids.push_back(id);
  return ids;
}

RepeatedText repeated_text(const PromptSet& prompts, const ModelConfig& config,
                           std::uint64_t seed) {
  RepeatedTextOptions options;
  options.seed = seed;
  if (prompts.tokenizer) options.first = prompts.tokenizer->eos_id();
  if (options.first && *options.first >= config.vocabulary) options.first.reset();
  return make_repeated_text(ordinary_tokens(prompts, config), config.context, options);
}

}  // namespace

AnalysedModel analyse_attention(const std::string& name, const std::string& label,
                                const PromptSet& prompts, const AnalysisPlan& plan, MapFile* maps,
                                const Session& session) {
  const std::unique_ptr<Model> model =
      load_model(model_folder(name), {.placement = session.placement()});
  const bool maps_one_by_one = maps != nullptr && !plan.average;
  CaptureOptions capture =
      CaptureOptions::of(plan.heads, maps_one_by_one ? plan.kind : MapKind::kWeights);
  capture.gate = capture.gate || plan.statistics;
  capture.batch_tokens = plan.pairs || maps_one_by_one || plan.also ? 0 : kBatchTokens;

  AnalysedModel result;
  result.model = name;
  result.label = label;
  std::optional<HeadRoles> roles;
  std::optional<HeadPairAccumulator> pairs;
  if (plan.roles) roles.emplace(plan.heads.size());
  if (plan.statistics) result.statistics.emplace(plan.heads, prompts.prompts.size());
  if (plan.pairs) pairs.emplace(plan.heads, HeadPairOptions{.seed = session.options().seed});

  const bool by_pass = plan.roles || plan.statistics || plan.pairs || plan.also || maps_one_by_one;
  if (by_pass) {
    Progress progress(
        std::cerr,
        session.progress(label, "prompts", static_cast<std::int64_t>(prompts.prompts.size())));
    std::vector<float> map;
    capture_maps(*model, prompts.prompts, capture, [&](std::span<const HeadMap> heads) {
      throw_if_interrupted();
      if (roles) roles->add(heads);
      if (result.statistics) result.statistics->add(heads);
      if (pairs) pairs->add(heads);
      if (plan.also) plan.also(heads);
      for (const HeadMap& head : heads) {
        if (!maps_one_by_one) break;
        map.resize(static_cast<std::size_t>(head.length * head.length));
        fill_map(head, plan.kind, map);
        maps->add(map);
      }
      if (heads.back().slot + 1 == plan.heads.size())
        progress.update(static_cast<std::int64_t>(heads[0].prompt) + 1);
    });
    progress.finish();
  }
  if (maps != nullptr && plan.average)
    average_maps(*model, prompts.prompts, {.heads = plan.heads, .kind = plan.kind},
                 [&](std::size_t, std::span<const float> mean) {
                   throw_if_interrupted();
                   maps->add(mean);
                 });
  if (roles) {
    const RepeatedText text = repeated_text(prompts, model->config(), session.options().seed);
    roles->add_repeated(*model, text, plan.heads);
    result.roles = roles->scores();
  }
  if (pairs) result.pairs = pairs->finish();
  return result;
}

}  // namespace filigree::cli
