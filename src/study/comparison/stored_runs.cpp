#include "study/comparison/stored_runs.h"

#include <algorithm>
#include <cmath>

#include "analyze/next_token.h"
#include "filigree/lens.h"
#include "filigree/lens_study.h"
#include "filigree/study.h"
#include "study/comparison/changed_runs.h"

namespace filigree::study {
namespace {

constexpr std::size_t kTop = 8;         // likeliest tokens of a prediction
constexpr std::int64_t kLensTop = 3;    // of a cell of the lens
constexpr std::size_t kChangedTop = 3;  // of a changed run
constexpr double kStoredPrecision = 1e4;
// Cells of changed maps of one prompt; what is beyond has none.
constexpr std::size_t kMostChangedCells = 4'000'000;

double rounded(double value) { return std::round(value * kStoredPrecision) / kStoredPrecision; }

// All numbers of a document with as many digits as a page shows.
void round_numbers(Json& json) {
  if (json.is_number_float()) json = rounded(json.get<double>());
  if (json.is_structured())
    for (Json& part : json) round_numbers(part);
}

Json point_json(const LoadedModel& model, const LensPoint& point, std::span<const LensCell> cells) {
  Json positions = Json::array();
  for (const LensCell& cell : cells) {
    Json top = Json::array();
    for (const LensToken& token : cell.top)
      top.push_back({{"token", shown_token(model.tokenizer(), token.id)},
                     {"probability", token.probability}});
    positions.push_back({{"top", top}});
  }
  return {{"point", name_of(point)}, {"positions", positions}};
}

Json lens_json(const LoadedModel& model, const std::vector<TokenId>& ids) {
  const LogitLens lens = logit_lens(model.model(), ids, {.top = kLensTop});
  Json points = Json::array();
  for (std::size_t p = 0; p < lens.points.size(); ++p)
    points.push_back(point_json(model, lens.points[p],
                                std::span(lens.cells).subspan(p * ids.size(), ids.size())));
  return {{"points", points}};
}

// The points that a change can move; those before it are as they were.
Json lens_json(const LoadedModel& model, const ChangedRun& run) {
  Json points = Json::array();
  for (std::size_t p = 0; p < run.points.size(); ++p)
    points.push_back(point_json(model, run.points[p], run.lens[p]));
  return {{"points", points}};
}

// Of every token after those before it, and of `next` after all: in thousandths, a row a token.
Json attribution_json(const LoadedModel& model, const std::vector<TokenId>& ids, TokenId next) {
  std::vector<ReadLogit> logits;
  for (std::size_t t = 0; t < ids.size(); ++t)
    logits.push_back({static_cast<std::int64_t>(t), {t + 1 < ids.size() ? ids[t + 1] : next}});
  LogitAttribution found;
  try {
    found = attribute_positions(model.model(), ids, logits);
  } catch (const Error&) {  // its logits are no sum
    return {};
  }
  Json parts = Json::array(), tokens = Json::array();
  for (const Part& part : found.parts)
    parts.push_back({{"part", name_of(part)},
                     {"kind", name_of(part.kind)},
                     {"layer", part.layer < 0 ? Json() : Json(part.layer)},
                     {"head", part.head < 0 ? Json() : Json(part.head)}});
  const auto thousandths = [](double value) {
    return static_cast<std::int64_t>(std::lround(1000 * value));
  };
  for (std::size_t i = 0; i < logits.size(); ++i) {
    Json row = Json::array();
    for (const std::vector<double>& part : found.contributions) row.push_back(thousandths(part[i]));
    tokens.push_back({{"total", thousandths(found.total[i])}, {"contributions", row}});
  }
  return {{"parts", parts}, {"tokens", tokens}};
}

// The strongest of a kind, the strongest first.
std::vector<Component> strongest(std::vector<PartGradient> parts, ComponentKind kind,
                                 std::size_t most) {
  std::erase_if(parts, [&](const PartGradient& part) { return part.part.kind != kind; });
  std::stable_sort(parts.begin(), parts.end(), [](const PartGradient& a, const PartGradient& b) {
    return std::abs(a.value_times_gradient) > std::abs(b.value_times_gradient);
  });
  parts.resize(std::min(parts.size(), most));
  std::vector<Component> components;
  for (const PartGradient& part : parts) components.push_back(part.part);
  return components;
}

// Whether every model has the part: mixtures may stand beside models of one MLP a layer.
bool in_all(Models models, const Component& part) {
  if (part.kind != ComponentKind::kExpert) return true;
  return std::all_of(models.begin(), models.end(), [&](const LoadedModel& model) {
    const ModelConfig& config = model.model().config();
    return config.mlp == MlpKind::kExperts && part.expert < config.experts;
  });
}

// A run of a circuit's prompt: the likeliest tokens, and what becomes of the answers.
Json circuit_run(const char* name, const LoadedModel& model, const TaskPrompt& prompt,
                 AppliedInterventions* changes) {
  const Prediction found = predict(model, prompt.clean, changes);
  const double sum = log_sum_of(found.logits);
  const auto probability = [&](const std::vector<TokenId>& ids) {
    double all = 0;
    for (const TokenId id : ids) all += std::exp(found.logits[static_cast<std::size_t>(id)] - sum);
    return all;
  };
  return {{"name", name},
          {"next", to_json(found, nullptr, model, kChangedTop).at("next")},
          {"answer", probability(prompt.answers)},
          {"wrong", probability(prompt.wrong)}};
}

Json circuit_json(const ModelCircuit& circuit, const LoadedModel& model, const TaskPrompt& prompt) {
  Json runs = Json::array({circuit_run("whole", model, prompt, nullptr)});
  const std::size_t kept = circuit.found ? circuit.found->heads.size() : 0;
  if (kept > 0) {
    Interventions off, corrupt;
    for (const HeadId& head : all_heads(model.config().layers, model.config().heads)) {
      const std::vector<HeadId>& heads = circuit.found->heads;
      if (std::find(heads.begin(), heads.end(), head) != heads.end()) continue;
      off.add_ablations(head_name(head));
      corrupt.add_patch(head_name(head) + "=" + prompt.text.corrupt);
    }
    for (Change& change : corrupt.changes) change.ids = prompt.corrupt;
    AppliedInterventions others_off(model.model(), off), others_corrupt(model.model(), corrupt);
    runs.push_back(circuit_run("rest-off", model, prompt, &others_off));
    runs.push_back(circuit_run("rest-corrupt", model, prompt, &others_corrupt));
  }
  return {{"model", model.label()}, {"heads", kept}, {"runs", runs}};
}

}  // namespace

StoredPrompt stored_prompt(Models models, const std::vector<TokenId>& ids, const Context& context) {
  Json looks = Json::array(), lens = Json::array(), attribution = Json::array(),
       importance = Json::array(), changes = Json::array();
  std::vector<Prediction> plain;
  std::vector<Component> parts;  // whose absence is stored, each once
  for (const LoadedModel& model : models) {
    context.throw_if_stopped();
    plain.push_back(predict(model, ids));
    const TokenId next = likeliest_tokens(plain.back().logits, 1)[0];
    looks.push_back(to_json(plain.back(), nullptr, model, kTop));
    lens.push_back(lens_json(model, ids));
    // Of one token in all models, so that they can be compared.
    attribution.push_back(attribution_json(model, ids, likeliest_tokens(plain[0].logits, 1)[0]));
    const std::vector<PartGradient> gradients = part_gradients(model, ids, next);
    Json by_part = Json::object();
    for (const PartGradient& part : gradients)
      by_part[name_of(part.part)] = part.value_times_gradient;
    importance.push_back(by_part);
    for (const auto& [kind, most] : {std::pair(ComponentKind::kHead, kStoredHeads),
                                     std::pair(ComponentKind::kMlp, kStoredMlps),
                                     std::pair(ComponentKind::kExpert, kStoredMlps)})
      for (const Component& part : strongest(gradients, kind, most))
        if (in_all(models, part) && std::find(parts.begin(), parts.end(), part) == parts.end())
          parts.push_back(part);
  }
  std::vector<std::vector<ChangedRun>> without;
  for (const LoadedModel& model : models) {
    context.throw_if_stopped();
    without.push_back(runs_without(model, ids, parts));
  }
  StoredPrompt stored;
  for (std::size_t p = 0; p < parts.size(); ++p) {
    Json of_models = Json::array(), lenses = Json::array();
    std::string maps;
    for (std::size_t m = 0; m < models.size(); ++m) {
      const ChangedRun& run = without[m][p];
      of_models.push_back(to_json(run.prediction, &plain[m], models[m], kChangedTop));
      of_models.back()["surprise"] = Json::array();  // what the whole prompt loses is the loss
      lenses.push_back(lens_json(models[m], run));
      maps += run.maps;
    }
    const bool fits = stored.changed_maps.size() + maps.size() <= kMostChangedCells;
    if (fits) stored.changed_maps += maps;
    changes.push_back({{"ablate", name_of(parts[p])},
                       {"layer", parts[p].layer},
                       {"looks", of_models},
                       {"lens", lenses},
                       {"maps", fits}});
  }
  Json json = {{"looks", looks},
               {"lens", lens},
               {"attribution", attribution},
               {"importance", importance},
               {"changes", changes}};
  round_numbers(json);
  stored.json = std::move(json);
  return stored;
}

Json stored_circuits(const CircuitsOfKind& heads, Models models, const Context& context) {
  const std::vector<TaskPrompt>& prompts = heads.at(0).task.prompts.prompts;
  if (prompts.empty()) return {};
  const PromptText& text = prompts[0].text;
  Json list = Json::array();
  for (std::size_t m = 0; m < models.size(); ++m) {
    context.throw_if_stopped();
    // Each model has the prompts that its own tokenizer takes.
    const std::vector<TaskPrompt>& own = heads[m].task.prompts.prompts;
    const auto same = std::find_if(own.begin(), own.end(), [&](const TaskPrompt& prompt) {
      return prompt.text.clean == text.clean;
    });
    if (same == own.end()) return {};
    list.push_back(circuit_json(heads[m], models[m], *same));
  }
  Json json = {{"prompt", text.clean},
               {"corrupt", text.corrupt},
               {"answer", text.answers},
               {"wrong", text.wrong},
               {"models", list}};
  round_numbers(json);
  return json;
}

}  // namespace filigree::study
