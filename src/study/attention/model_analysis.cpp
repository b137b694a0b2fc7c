#include <algorithm>
#include <cctype>

#include "analyze/roles/name_copying.h"
#include "analyze/statistics/cross_layer.h"
#include "analyze/statistics/statistics_report.h"
#include "filigree/attention_study.h"
#include "study/not_finite.h"

namespace filigree::study {
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

// Whether a token is punctuation or a line break: no letter, no digit, and not a special token.
bool is_delimiter(const Tokenizer& tokenizer, TokenId id) {
  if (!tokenizer.has_token(id) || tokenizer.is_special(id)) return false;
  const std::string_view bytes = tokenizer.token_bytes(id);
  return std::any_of(bytes.begin(), bytes.end(), [](char c) { return c != ' '; }) &&
         std::none_of(bytes.begin(), bytes.end(), [](char c) {
           const auto byte = static_cast<unsigned char>(c);
           return std::isalnum(byte) != 0 || byte >= 0x80;
         });
}

// Of every prompt; empty where the tokenizer is not known.
std::vector<std::vector<bool>> delimiters_of(const PromptSet& prompts) {
  std::vector<std::vector<bool>> all;
  if (!prompts.tokenizer) return all;
  for (const Prompt& prompt : prompts.prompts) {
    std::vector<bool>& own = all.emplace_back();
    for (const TokenId id : prompt.ids) own.push_back(is_delimiter(*prompts.tokenizer, id));
  }
  return all;
}

Json roles_json(const AnalysedModel& model) {
  if (model.roles.empty()) return {};
  Json list = Json::array();
  for (std::size_t h = 0; h < model.heads.size(); ++h) {
    Json entry = {{"name", head_name(model.heads[h])},
                  {"layer", model.heads[h].layer},
                  {"head", model.heads[h].head}};
    entry.update(role_json(model.roles[h], model.role_scores[h]));
    list.push_back(std::move(entry));
  }
  return list;
}

Json pairs_json(const HeadPairs& pairs) {
  const std::size_t n = pairs.heads.size();
  const auto matrix = [n](const CorrelationMatrix& values) {
    Json rows = Json::array();
    for (std::size_t a = 0; a < n; ++a)
      rows.push_back(
          std::vector<double>(values.begin() + static_cast<std::ptrdiff_t>(a * n),
                              values.begin() + static_cast<std::ptrdiff_t>((a + 1) * n)));
    return rows;
  };
  const auto names = [&](const std::vector<std::size_t>& slots) {
    Json list = Json::array();
    for (const std::size_t slot : slots) list.push_back(head_name(pairs.heads[slot]));
    return list;
  };
  return {{"cells", pairs.cells},
          {"cells_used", pairs.cells_used},
          {"rank_cells", pairs.points.size()},
          {"order", names(pairs.clustering.order)},
          {"constant", names(pairs.constant)},
          {"pearson", matrix(pairs.pearson)},
          {"spearman", matrix(pairs.spearman)}};
}

constexpr std::size_t kMostPromptsRead = 64;

// What heads read of earlier ones, of the prompts of which it is asked.
void add_cross_layer_reads(const LoadedModel& model, const PromptSet& prompts,
                           const std::vector<HeadId>& heads, AppliedInterventions& changes,
                           const Context& context, AttentionStatistics& statistics) {
  const std::size_t count = std::min(prompts.prompts.size(), kMostPromptsRead);
  const std::unique_ptr<WorkReport> report =
      context.begin({model.label() + ": reads", "prompts", static_cast<std::int64_t>(count)});
  find_cross_layer_reads(model.model(), std::span(prompts.prompts).first(count), heads, &changes,
                         [&](std::size_t prompt, std::size_t slot, const ReadsOfHeads& reads) {
                           context.throw_if_stopped();
                           statistics.add_reads(prompt, slot, reads.whole(), reads.pairs());
                           report->update(static_cast<std::int64_t>(prompt + 1));
                         });
  report->finish();
}

}  // namespace

Json role_json(const HeadRole& role, const RoleScores& scores) {
  Json json = {{"role", role.name}, {"confidence", role.confidence}};
  json["patterns"] = Json::array();
  for (const Pattern pattern : role.patterns) json["patterns"].push_back(name_of(pattern));
  json["evidence"] = Json::array();
  for (const RoleEvidence& one : role.evidence)
    json["evidence"].push_back({{"pattern", name_of(one.pattern)},
                                {"score", one.score},
                                {"rows", one.rows},
                                {"on", name_of(text_of(one.pattern))}});
  for (std::size_t p = 0; p < kPatterns; ++p) {
    std::string key(name_of(static_cast<Pattern>(p)));
    std::replace(key.begin(), key.end(), '-', '_');
    json["scores"][key] = scores.score[p];
  }
  json["offset"] = scores.offset;
  json["name_copying"] = Json();
  if (scores.copying)
    json["name_copying"] = {{"median_rank", scores.copying->median_rank},
                            {"vocabulary", scores.copying->vocabulary},
                            {"names", scores.copying->names}};
  return json;
}

AnalysedModel analyse_model(const LoadedModel& model, const PromptSet& prompts,
                            const AnalysisPlan& plan, const Context& context) {
  std::optional<MeanMaps> means;  // where the sums fit, they are taken along in the pass
  if (plan.mean) {
    const std::int64_t length = common_length(prompts.prompts);
    if (MeanMaps::fit(plan.heads.size(), length))
      means.emplace(plan.heads.size(), prompts.prompts.size(), length, plan.kind);
  }
  CaptureOptions capture =
      CaptureOptions::of(plan.heads, plan.each || means ? plan.kind : MapKind::kWeights);
  capture.gate = capture.gate || plan.statistics;
  AppliedInterventions changes(model.model(), plan.interventions);
  AppliedInterventions lasting(model.model(), plan.interventions.for_any_text());
  capture.interventions = &changes;
  capture.batch_tokens = plan.pairs || plan.each ? 0 : kBatchTokens;

  AnalysedModel result;
  result.model = model.name();
  result.label = model.label();
  result.parameters = parameter_count(model.config());
  result.heads = plan.heads;
  std::optional<HeadRoles> roles;
  std::optional<HeadPairAccumulator> pairs;
  if (plan.roles) roles.emplace(plan.heads.size());
  const std::vector<std::vector<bool>> delimiters =
      plan.roles ? delimiters_of(prompts) : std::vector<std::vector<bool>>();
  if (plan.statistics) result.statistics.emplace(plan.heads, prompts.prompts.size());
  if (plan.pairs) pairs.emplace(plan.heads, HeadPairOptions{.seed = context.seed});

  if (plan.roles || plan.statistics || plan.pairs || plan.each || means) {
    const std::unique_ptr<WorkReport> report = context.begin(
        {model.label(), "prompts", static_cast<std::int64_t>(prompts.prompts.size())});
    capture_maps(model.model(), prompts.prompts, capture, [&](std::span<const HeadMap> heads) {
      context.throw_if_stopped();
      for (const HeadMap& head : heads)
        study::require_finite(head.weights, "the attention", model,
                              prompts.prompts[head.prompt].ids);
      if (roles) roles->add(heads, delimiters);
      if (result.statistics) result.statistics->add(heads);
      if (pairs) pairs->add(heads);
      if (plan.each) plan.each(heads);
      if (means) means->add(heads);
      if (heads.back().slot + 1 == plan.heads.size())
        report->update(static_cast<std::int64_t>(heads[0].prompt) + 1);
    });
    report->finish();
    if (result.statistics)
      add_cross_layer_reads(model, prompts, plan.heads, changes, context, *result.statistics);
  }
  if (means)
    for (std::size_t slot = 0; slot < plan.heads.size(); ++slot) plan.mean(slot, means->mean(slot));
  else if (plan.mean)
    average_maps(model.model(), prompts.prompts,
                 {.heads = plan.heads, .kind = plan.kind, .interventions = &changes},
                 [&](std::size_t slot, std::span<const float> mean) {
                   context.throw_if_stopped();
                   study::require_finite(mean, "the mean attention", model, prompts.prompts[0].ids);
                   plan.mean(slot, mean);
                 });
  if (roles) {
    const RepeatedText text = repeated_text(prompts, model.config(), context.seed);
    roles->add_repeated(model.model(), text, plan.heads, &lasting);
    std::vector<NameProbe> probes;
    if (prompts.tokenizer)
      probes = make_name_probes(*prompts.tokenizer, {.seed = context.seed,
                                                     .vocabulary = model.config().vocabulary,
                                                     .context = model.config().context});
    if (!probes.empty()) roles->add_names(model.model(), probes, plan.heads, &lasting);
    result.role_scores = roles->scores();
    find_name_copying(model.model(), probes, plan.heads, result.role_scores);
    for (const RoleScores& scores : result.role_scores) result.roles.push_back(classify(scores));
  }
  if (pairs) result.pairs = pairs->finish();
  return result;
}

Json to_json(const AnalysedModel& model) {
  return {{"model", model.model},
          {"label", model.label},
          {"parameters", model.parameters},
          {"roles", roles_json(model)},
          {"statistics", model.statistics ? statistics_json(*model.statistics) : Json()},
          {"pairs", model.pairs ? pairs_json(*model.pairs) : Json()}};
}

}  // namespace filigree::study
