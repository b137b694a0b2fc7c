#include "filigree/evaluation_study.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/stopwatch.h"
#include "filigree/error.h"
#include "filigree/maps.h"
#include "filigree/names.h"
#include "filigree/study.h"
#include "filigree/training_study.h"
#include "study/not_finite.h"

namespace filigree::study {
namespace {

constexpr std::size_t kLongestLabel = 48;

// The bytes of text that the first `targets` targets stand for: all tokens but the first, which
// nothing predicts, and but the special ones, which mark where documents end and are no text.
std::int64_t predicted_bytes(const Tokenizer& tokenizer, const std::vector<TokenId>& ids,
                             std::int64_t targets) {
  std::int64_t bytes = 0;
  for (std::size_t i = 1; i <= static_cast<std::size_t>(targets); ++i)
    if (!tokenizer.is_special(ids[i]))
      bytes += static_cast<std::int64_t>(tokenizer.token_bytes(ids[i]).size());
  return bytes;
}

// All but names and bytes.
EvaluatedModel evaluate_windows(const Model& model, const EvaluationWindows& windows,
                                const WindowOptions& options, const Context& context,
                                const std::string& work, AppliedInterventions* changes = nullptr) {
  const Stopwatch watch;
  std::optional<Batch> last;
  EvaluationWindows seen = windows;
  seen.next = [&] { return last = windows.next(); };
  Communicator& ranks = context.communicator();
  const std::int64_t targets = windows.targets;
  const std::unique_ptr<WorkReport> report = context.begin({work, "tokens", targets});
  EvaluatedModel result;
  const auto show = [&](const Evaluation& so_far) {
    if (!std::isfinite(so_far.loss()) && last) fail_not_finite("the loss", work, model, last->ids);
    // This rank's part stands for those of all.
    report->update(std::min(targets, so_far.total.tokens * ranks.size()),
                   fmt::format("loss {:.4f}", so_far.loss()));
    context.throw_if_stopped();
  };
  Taps taps;
  if (changes != nullptr) changes->put_on(taps);
  result.evaluation = evaluate(model, seen, show, &ranks, changes == nullptr ? nullptr : &taps);
  report->finish();
  result.length = window_length(options, model.config());
  result.seconds = watch.seconds();
  return result;
}

EvaluatedModel named(EvaluatedModel result, const LoadedModel& model,
                     const Interventions& changes) {
  result.model = model.name();
  result.label = model.label();
  if (!changes.empty()) result.label += ": " + printable(text_of(changes), kLongestLabel);
  result.interventions = changes;
  return result;
}

EvaluatedModel evaluate_changed(const LoadedModel& model, const EvaluationWindows& windows,
                                const WindowOptions& options, const Context& context,
                                const std::string& work, const Interventions& changes) {
  const std::string label = work.empty() ? model.label() : work;
  if (changes.empty())
    return named(evaluate_windows(model.model(), windows, options, context, label), model, changes);
  check_positions(changes, window_length(options, model.config()));
  AppliedInterventions applied(model.model(), for_model(changes, model));
  applied.allow_shorter_runs();
  return named(
      evaluate_windows(model.model(), windows, options, context, label + " changed", &applied),
      model, changes);
}

void check_request(const EvaluationRequest& request) {
  const WindowOptions& windows = request.windows;
  if (windows.length > 0 && windows.stride > windows.length)
    throw RequestError(
        fmt::format("a stride of {} is longer than windows of {} tokens, which would skip some",
                    windows.stride, windows.length));
  if (std::holds_alternative<EvaluationShards>(request.data) && windows.stride > 0)
    throw RequestError("a stride goes with a text; the windows of shards do not overlap");
  if (const auto* text = std::get_if<EvaluationText>(&request.data))
    require(!text->text.empty(), "{} is empty; there is nothing to predict", text->source);
}

std::optional<std::string> caution_about(const std::vector<EvaluatedModel>& models) {
  const auto differ = [&](auto value) {
    return std::any_of(models.begin(), models.end(), [&](const EvaluatedModel& model) {
      return value(model) != value(models[0]);
    });
  };
  if (differ([](const EvaluatedModel& model) { return model.evaluation.total.tokens; }))
    return "the models cut the text into different tokens: compare bits/byte, not loss";
  if (differ([](const EvaluatedModel& model) { return model.length; }))
    return "the models' windows differ in length: compare at one that all of them have";
  return std::nullopt;
}

void add_connectivity(Json& json, const Connectivity& connectivity) {
  json["active_edges"] = connectivity.active_edges;
  json["keys_per_query"] = connectivity.keys_per_query;
}

Json layers_json(const Evaluation& evaluation) {
  Json layers = Json::array();
  for (std::int64_t l = 0; l < evaluation.layers; ++l) {
    Json layer = {{"layer", l}};
    add_connectivity(layer, evaluation.connectivity(l));
    layer["heads"] = Json::array();
    for (std::int64_t h = 0; h < evaluation.heads; ++h) {
      Json head = {{"head", head_name({l, h})}};
      add_connectivity(head, evaluation.connectivity(l, h));
      layer["heads"].push_back(std::move(head));
    }
    layers.push_back(std::move(layer));
  }
  return layers;
}

Json model_json(const EvaluatedModel& model, const EvaluatedModel* first) {
  const Evaluation& evaluation = model.evaluation;
  const std::optional<double> bits = model.bits_per_byte();
  Json json = {{"model", model.model},
               {"label", model.label},
               {"interventions", to_json(model.interventions)},
               {"loss", evaluation.loss()},
               {"loss_error", json_or_null(evaluation.loss_error())},
               {"change", nullptr},
               {"change_error", nullptr},
               {"perplexity", evaluation.perplexity()},
               {"bits_per_byte", json_or_null(bits)},
               {"bytes", bits ? Json(model.bytes) : Json()},
               {"tokens", evaluation.total.tokens},
               {"windows", evaluation.windows.size()},
               {"length", model.length}};
  if (first != nullptr) {
    json["change"] = evaluation.loss() - first->evaluation.loss();
    json["change_error"] = json_or_null(change_error(evaluation, first->evaluation));
  }
  add_connectivity(json, evaluation.connectivity());
  json["living_heads"] = to_json(evaluation.living());
  json["layers"] = layers_json(evaluation);
  json["by_window"] = Json::array();  // [sum of losses in nats, targets]: what the errors come from
  for (const WindowLoss& window : evaluation.windows)
    json["by_window"].push_back({window.sum, window.tokens});
  json["seconds"] = model.seconds;
  return json;
}

}  // namespace

EvaluationShards open_evaluation_shards(const std::string& folder, DataSplit split) {
  EvaluationShards opened{TokenShards::open(folder), folder, split};
  require(opened.shards.split(name_of(split)).tokens() >= 2,
          "'{}' has no tokens in its split '{}'; there is nothing to predict", printable(folder),
          name_of(split));
  return opened;
}

std::optional<double> EvaluatedModel::bits_per_byte() const {
  if (bytes == 0) return std::nullopt;
  return evaluation.total.sum / std::log(2.0) / static_cast<double>(bytes);
}

std::vector<TokenId> evaluation_ids(const LoadedModel& model, const EvaluationText& text) {
  std::vector<TokenId> ids = encode_text(model.tokenizer(), text.text, text.source,
                                         {.replace_invalid_utf8 = text.replace_invalid_utf8},
                                         "; mend the text, or have invalid bytes read as U+FFFD");
  require(ids.size() >= 2, "{} is a single token for '{}'; a loss needs at least two", text.source,
          printable(model.name()));
  check_ids(ids, model.config().vocabulary, model.name());
  return ids;
}

EvaluatedModel evaluate_text(const LoadedModel& model, const EvaluationText& text,
                             const WindowOptions& options, const Context& context,
                             const std::string& work, const Interventions& changes) {
  const std::vector<TokenId> ids = evaluation_ids(model, text);
  const EvaluationWindows windows = text_windows(ids, options, model.config());
  const std::int64_t bytes = predicted_bytes(model.tokenizer(), ids, windows.targets);
  EvaluatedModel result = evaluate_changed(model, windows, options, context, work, changes);
  result.bytes = bytes;
  return result;
}

EvaluatedModel evaluate_shards(const LoadedModel& model, const EvaluationShards& shards,
                               const WindowOptions& options, const Context& context,
                               const std::string& work, const Interventions& changes) {
  check_shards_fit(shards.shards.index(), shards.folder, model.folder(), model.config());
  return evaluate_changed(
      model, shard_windows(shards.shards.split(name_of(shards.split)), options, model.config()),
      options, context, work, changes);
}

EvaluatedModel evaluate_split(const Model& model, const TokenSplit& split,
                              const WindowOptions& options, const Context& context,
                              const std::string& work) {
  return evaluate_windows(model, shard_windows(split, options, model.config()), options, context,
                          work);
}

EvaluationResult run(const EvaluationRequest& request, Models models, const Context& context) {
  check_request(request);
  EvaluationResult result;
  for (const LoadedModel& model : models) {
    const auto evaluated = [&](const Interventions& changes) {
      const auto* text = std::get_if<EvaluationText>(&request.data);
      return text != nullptr ? evaluate_text(model, *text, request.windows, context, {}, changes)
                             : evaluate_shards(model, std::get<EvaluationShards>(request.data),
                                               request.windows, context, {}, changes);
    };
    if (!request.interventions.empty()) for_model(request.interventions, model);  // or fail early
    result.models.push_back(evaluated({}));
    if (!request.interventions.empty()) result.models.push_back(evaluated(request.interventions));
  }
  result.caution = caution_about(result.models);
  return result;
}

Json to_json(const std::vector<EvaluatedModel>& models) {
  Json list = Json::array();
  for (const EvaluatedModel& model : models)
    list.push_back(model_json(model, &model == models.data() ? nullptr : models.data()));
  return list;
}

}  // namespace filigree::study
