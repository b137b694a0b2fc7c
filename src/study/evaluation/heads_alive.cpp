#include <fmt/format.h>

#include "filigree/evaluation_study.h"
#include "filigree/maps.h"
#include "filigree/study.h"

namespace filigree::study {
namespace {

constexpr std::int64_t kTokens = 8192, kWindow = 512;
constexpr std::size_t kWidest = 5;

}  // namespace

std::optional<HeadsAlive> find_living_heads(const LoadedModel& model,
                                            const std::filesystem::path& file,
                                            const Context& context) {
  const ModelConfig& config = model.config();
  if (!config.gate.on() || model.tokenizer_if_any() == nullptr) return std::nullopt;
  const SampleText sample = sample_text(model, file, kTokens, context.seed);
  if (sample.ids.size() < 2) return std::nullopt;
  const std::unique_ptr<WorkReport> report =
      context.begin({fmt::format("{}: heads that open", model.label()), "tokens",
                     static_cast<std::int64_t>(sample.ids.size()) - 1});
  const EvaluationWindows windows =
      text_windows(sample.ids, {.length = std::min(kWindow, config.context)}, config);
  const Evaluation evaluation = evaluate(model.model(), windows, [&](const Evaluation& so_far) {
    report->update(so_far.total.tokens);
    context.throw_if_stopped();
  });
  report->finish();
  return HeadsAlive{evaluation.living(), sample.source};
}

Json to_json(const LivingHeads& found) {
  Json living = Json::array();
  for (const LivingHead& one : found.living)
    living.push_back({{"name", head_name(one.head)},
                      {"keys_per_query", one.keys_per_query},
                      {"share_of_open_edges", one.edges_share}});
  const std::optional<LivingHead> widest = found.widest();
  return {{"heads", found.heads},
          {"living", found.living.size()},
          {"keys_per_query",
           {{"median", json_or_null(found.median_keys())},
            {"largest", widest ? Json(widest->keys_per_query) : Json()},
            {"widest", widest ? Json(head_name(widest->head)) : Json()}}},
          {"share_of_five_widest", found.share_of_widest(kWidest)},
          {"queries", found.queries},
          {"by_head", living}};
}

Json to_json(const HeadsAlive& found) {
  Json json = to_json(found.heads);
  json["text"] = found.source;
  return json;
}

std::string count_text(const LivingHeads& found) {
  return fmt::format("{} of {}", found.living.size(), found.heads);
}

std::string keys_text(const LivingHeads& found) {
  const std::optional<LivingHead> widest = found.widest();
  if (!widest) return "-";
  return fmt::format("median {:.3g}, largest {:.3g} ({})", *found.median_keys(),
                     widest->keys_per_query, head_name(widest->head));
}

}  // namespace filigree::study
