#include "filigree/study/comparison/stored_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "filigree/analyze/lens/logit_attribution.h"
#include "filigree/analyze/lens/logit_lens.h"
#include "filigree/analyze/next_token.h"
#include "filigree/study/run/prediction.h"
#include "filigree/study/run/run.h"
#include "filigree/study/tokens.h"

namespace filigree::study {
namespace {

constexpr std::size_t kTop = 8;         // likeliest tokens of a prediction
constexpr std::int64_t kLensTop = 3;    // of a cell of the lens
constexpr std::size_t kChangedTop = 3;  // of a changed run
constexpr double kStoredPrecision = 1e4;
constexpr std::int64_t kTokensAPass = 512;

double rounded(double value) { return std::round(value * kStoredPrecision) / kStoredPrecision; }

// All numbers of a document with as many digits as a page shows.
void round_numbers(Json& json) {
  if (json.is_number_float()) json = rounded(json.get<double>());
  if (json.is_structured())
    for (Json& part : json) round_numbers(part);
}

Json lens_json(const LoadedModel& model, const std::vector<TokenId>& ids) {
  const LogitLens lens = logit_lens(model.model(), ids, {.top = kLensTop});
  Json points = Json::array();
  for (std::size_t p = 0; p < lens.points.size(); ++p) {
    Json positions = Json::array();
    for (std::int64_t t = 0; t < lens.positions; ++t) {
      Json top = Json::array();
      for (const LensToken& token : lens.at(p, t).top)
        top.push_back({{"token", shown_token(model.tokenizer(), token.id)},
                       {"probability", token.probability}});
      positions.push_back({{"top", top}});
    }
    points.push_back({{"point", name_of(lens.points[p])}, {"positions", positions}});
  }
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

// Sets what a part wrote in one run of [B, T, ...] to zero: of heads [B, T, H, D], else all of it.
void silence(Tensor& value, std::int64_t run, const Component& part) {
  const std::int64_t T = value.size(1), inner = value.elements() / (value.size(0) * T);
  const bool head = part.kind == ComponentKind::kHead;
  const std::int64_t width = head ? value.size(3) : inner, first = head ? part.head * width : 0;
  for (std::int64_t t = 0; t < T; ++t)
    std::fill_n(value.mutable_f32() + (run * T + t) * inner + first, width, 0.0f);
}

// A run without each of the parts, several in a pass: short texts alone are slow.
std::vector<Prediction> predict_without(const LoadedModel& model, const std::vector<TokenId>& ids,
                                        std::span<const Component> parts) {
  const auto T = static_cast<std::int64_t>(ids.size());
  const auto at_once = static_cast<std::size_t>(std::max<std::int64_t>(1, kTokensAPass / T));
  std::vector<Prediction> found;
  for (std::size_t begin = 0; begin < parts.size(); begin += at_once) {
    const std::span<const Component> some =
        parts.subspan(begin, std::min(at_once, parts.size() - begin));
    std::vector<TokenId> all;
    std::map<std::string, std::vector<std::size_t>> by_tap;  // runs of this pass
    for (std::size_t run = 0; run < some.size(); ++run) {
      all.insert(all.end(), ids.begin(), ids.end());
      const bool head = some[run].kind == ComponentKind::kHead;
      by_tap[fmt::format("blocks.{}.{}", some[run].layer, head ? "attn.hook_z" : "hook_mlp_out")]
          .push_back(run);
    }
    Taps taps;
    for (const auto& [tap, runs] : by_tap)
      taps.intervene(tap, [&some, &runs = runs](const Variable& value) {
        Tensor changed = value.value().clone();
        for (const std::size_t run : runs)
          silence(changed, static_cast<std::int64_t>(run), some[run]);
        return Variable(changed);
      });
    const Tensor input = Tensor::from_ids({static_cast<std::int64_t>(some.size()), T}, all);
    const Tensor logits = model.model().forward(input, {.taps = &taps}).value();
    for (std::size_t run = 0; run < some.size(); ++run)
      found.push_back(prediction_of(logits, model, ids, run));
  }
  return found;
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

Json stored_prompt(std::span<const LoadedModel> models, const std::vector<TokenId>& ids,
                   const Context& context) {
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
                                     std::pair(ComponentKind::kMlp, kStoredMlps)})
      for (const Component& part : strongest(gradients, kind, most))
        if (std::find(parts.begin(), parts.end(), part) == parts.end()) parts.push_back(part);
  }
  std::vector<std::vector<Prediction>> without;
  for (const LoadedModel& model : models) {
    context.throw_if_stopped();
    without.push_back(predict_without(model, ids, parts));
  }
  for (std::size_t p = 0; p < parts.size(); ++p) {
    Json of_models = Json::array();
    for (std::size_t m = 0; m < models.size(); ++m) {
      of_models.push_back(to_json(without[m][p], &plain[m], models[m], kChangedTop));
      of_models.back()["surprise"] = Json::array();  // what the whole prompt loses is the loss
    }
    changes.push_back({{"ablate", name_of(parts[p])}, {"looks", of_models}});
  }
  Json json = {{"looks", looks},
               {"lens", lens},
               {"attribution", attribution},
               {"importance", importance},
               {"changes", changes}};
  round_numbers(json);
  return json;
}

Json stored_circuits(const CircuitsOfKind& heads, std::span<const LoadedModel> models,
                     const Context& context) {
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
