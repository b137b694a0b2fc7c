#include "serve/requests.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "filigree/error.h"
#include "filigree/names.h"
#include "serve/answer.h"

namespace filigree::serve {
namespace {

constexpr std::size_t kMostValues = 4096;  // of a request's JSON, whatever they are
constexpr std::size_t kDepth = 4;
constexpr std::int64_t kMostTop = 100, kMostTaskPrompts = 256;
constexpr std::int64_t kFarthest = 1 << 20;  // position; the prompt decides
constexpr std::int64_t kMostTopK = 1 << 20, kLargestSeed = std::int64_t{1} << 53;

std::vector<std::string> texts(const JsonObject& object, std::string_view key) {
  std::vector<std::string> list;
  if (!object.has(key)) return list;
  for (const nlohmann::json& value : object.array(key)) {
    require(value.is_string(), "the request: {} holds {}, should hold texts", key,
            value.type_name());
    list.push_back(value.get<std::string>());
  }
  return list;
}

template <NamedEnum Enum>
Enum named(const JsonObject& object, std::string_view key, Enum fallback) {
  const std::string name = object.string_or(key, std::string(name_of(fallback)));
  const std::optional<Enum> found = find_name<Enum>(name);
  require(found.has_value(), "the request: {} is '{}', should be one of {}", key, printable(name),
          fmt::join(names_of<Enum>(), ", "));
  return *found;
}

// The lists of a request: changes of a kind under its name.
std::vector<WrittenChange> written_changes(const JsonObject& object) {
  std::vector<WrittenChange> changes;
  for (const ChangeKind kind : {ChangeKind::kAblate, ChangeKind::kScale, ChangeKind::kPatch})
    for (std::string& text : texts(object, name_of(kind)))
      changes.push_back({kind, std::move(text)});
  return changes;
}

MapKind packed_kind(const JsonObject& object) {
  const MapKind kind = named(object, "kind", MapKind::kWeights);
  if (kind == MapKind::kScores)
    throw Refusal(400, "scores are no shares and cannot be packed",
                  "POST /api/head gives those of one head");
  return kind;
}

}  // namespace

study::Models chosen_models(study::Models models, std::vector<std::size_t> chosen) {
  std::sort(chosen.begin(), chosen.end());
  require(!chosen.empty() && chosen.back() - chosen.front() + 1 == chosen.size(),
          "the request: models must lie side by side");
  return models.subspan(chosen.front(), chosen.size());
}

JsonObject RequestReader::object(const std::string& body,
                                 std::initializer_list<std::string_view> keys) const {
  const JsonObject object = JsonObject::parse(body, "the request",
                                              {.max_bytes = limits_.body_bytes,
                                               .max_depth = kDepth,
                                               .max_values = kMostValues,
                                               .max_string_bytes = limits_.body_bytes});
  for (const std::string& key : object.keys())
    require(std::find(keys.begin(), keys.end(), key) != keys.end(),
            "the request has the unknown key '{}', can have {}", printable(key),
            fmt::join(keys, ", "));
  return object;
}

std::string RequestReader::prompt(const JsonObject& object) const {
  std::string text = object.string("prompt");
  if (text.size() > limits_.prompt_bytes)
    throw Refusal(413, fmt::format("the prompt has {} bytes", text.size()),
                  fmt::format("send at most {}", limits_.prompt_bytes));
  return text;
}

std::vector<std::size_t> RequestReader::models(const JsonObject& object) const {
  std::vector<std::size_t> chosen;
  std::vector<std::string> labels;
  for (const study::LoadedModel& model : models_) labels.push_back(model.label());
  for (const std::string& label : texts(object, "models")) {
    const auto found = std::find(labels.begin(), labels.end(), label);
    require(found != labels.end(), "the request: there is no model '{}', only {}", printable(label),
            printable(fmt::format("{}", fmt::join(labels, ", "))));
    const auto index = static_cast<std::size_t>(found - labels.begin());
    require(std::find(chosen.begin(), chosen.end(), index) == chosen.end(),
            "the request names the model '{}' twice", printable(label));
    chosen.push_back(index);
  }
  if (chosen.empty())
    for (std::size_t m = 0; m < models_.size(); ++m) chosen.push_back(m);
  return chosen;
}

Interventions interventions_of(std::span<const WrittenChange> changes, const Limits& limits) {
  std::size_t bytes = 0;
  for (const WrittenChange& change : changes) bytes += change.text.size();
  if (bytes > limits.intervention_bytes)
    throw Refusal(413, fmt::format("the interventions have {} bytes", bytes),
                  fmt::format("send at most {}", limits.intervention_bytes));
  Interventions read;
  for (const WrittenChange& change : changes) switch (change.kind) {
      case ChangeKind::kAblate: read.add_ablations(change.text); break;
      case ChangeKind::kScale: read.add_scales(change.text); break;
      case ChangeKind::kPatch: read.add_patch(change.text); break;
    }
  if (read.changes.size() > limits.interventions)
    throw Refusal(
        413, fmt::format("there are {} interventions", read.changes.size()),
        fmt::format("send at most {}; L6H* is all heads of a layer", limits.interventions));
  std::set<std::string_view> sources;
  for (const Change& change : read.changes)
    if (change.kind == ChangeKind::kPatch) sources.insert(change.prompt);
  if (sources.size() > limits.patch_texts)
    throw Refusal(413, fmt::format("the patches come from {} texts", sources.size()),
                  fmt::format("take at most {}", limits.patch_texts));
  return read;
}

ChangesQuery RequestReader::changes(const std::string& body) const {
  const JsonObject read = object(body, {"prompt", "models", "ablate", "scale", "patch"});
  return {prompt(read), models(read), written_changes(read)};
}

PromptQuery RequestReader::run(const JsonObject& object) const {
  return {prompt(object), models(object), interventions_of(written_changes(object), limits_)};
}

std::size_t RequestReader::top(const JsonObject& object, std::int64_t fallback) const {
  return static_cast<std::size_t>(object.integer_or("top", fallback, 1, kMostTop));
}

PromptViewQuery RequestReader::view_prompt(const std::string& body) const {
  const JsonObject read = object(
      body, {"prompt", "models", "ablate", "scale", "patch", "heads", "kind", "top", "after"});
  return {run(read), read.string_or("heads", "*"), packed_kind(read), top(read, 10),
          read.string_or("after", "")};
}

ImportanceQuery RequestReader::importance(const std::string& body) const {
  const JsonObject read = object(body, {"prompt", "models", "ablate", "scale", "patch", "token"});
  return {run(read), read.string_or("token", "")};
}

HeadQuery RequestReader::head(const std::string& body) const {
  const JsonObject read =
      object(body, {"prompt", "models", "ablate", "scale", "patch", "head", "query", "top"});
  const Component part = parse_component(read.string("head"));
  require(part.kind == ComponentKind::kHead, "the request: head is '{}', should be one as 'L6H11'",
          name_of(part));
  return {run(read),
          {part.layer, part.head},
          read.integer_or("query", -1, -kFarthest, kFarthest),
          top(read, 8)};
}

GenerateQuery RequestReader::generate(const std::string& body) const {
  const JsonObject read = object(body, {"prompt", "models", "ablate", "scale", "patch", "tokens",
                                        "temperature", "top_k", "seed", "least"});
  GenerateQuery query;
  query.run = run(read);
  require(query.run.models.size() == 1,
          "the request: one model continues a text, name it in models");
  query.options = steps(read);
  return query;
}

study::StepOptions RequestReader::steps(const JsonObject& read) const {
  study::StepOptions options;
  options.max_tokens = read.integer_or("tokens", 24, 1, limits_.generated_tokens);
  options.sampling.temperature = read.number_or("temperature", 0, 0, 10);
  options.sampling.top_k = read.integer_or("top_k", 50, 0, kMostTopK);
  options.seed = static_cast<std::uint64_t>(read.integer_or("seed", 0, 0, kLargestSeed));
  options.least_weight = static_cast<float>(read.number_or("least", 0.1, 0, 1));
  return options;
}

LensQuery RequestReader::lens(const std::string& body) const {
  const JsonObject read =
      object(body, {"prompt", "models", "ablate", "scale", "patch", "token", "top"});
  return {run(read), read.string_or("token", ""), static_cast<std::int64_t>(top(read, 5))};
}

AttributionQuery RequestReader::attribution(const std::string& body) const {
  const JsonObject read =
      object(body, {"prompt", "models", "ablate", "scale", "patch", "at", "answer", "wrong"});
  AttributionQuery query = {run(read)};
  if (read.has("at"))
    query.at = read.integer("at", 1, kFarthest);
  else
    query.answer = read.string("answer");
  query.wrong = read.string_or("wrong", "");
  return query;
}

TaskQuery RequestReader::task(const std::string& body) const {
  const JsonObject read = object(body, {"task", "prompts"});
  return {std::string(task_definition(read.string("task")).name),
          read.integer_or("prompts", 8, 1, kMostTaskPrompts)};
}

ExportQuery RequestReader::exported(const std::string& body) const {
  const JsonObject read = object(
      body, {"prompt", "models", "ablate", "scale", "patch", "view", "format", "theme", "heads",
             "kind", "answer", "at", "layer", "least", "tokens", "temperature", "top_k", "seed"});
  ExportQuery query = {run(read),
                       named(read, "view", ExportView::kMaps),
                       named(read, "format", ExportFormat::kSvg),
                       named(read, "theme", study::FigureTheme::kLight),
                       read.string_or("heads", "*"),
                       named(read, "kind", MapKind::kWeights),
                       read.string_or("answer", "")};
  if (read.has("at")) query.at = read.integer("at", -kFarthest, kFarthest);
  if (read.has("layer")) query.layer = read.integer("layer", 0, kFarthest);
  query.least = read.number_or("least", 0.1, 0, 1);
  query.steps = steps(read);
  return query;
}

JobExportQuery RequestReader::job_export(const std::string& body) const {
  const JsonObject read = object(body, {"figure", "format", "theme"});
  return {static_cast<std::size_t>(read.integer_or("figure", 0, 0, kMostValues)),
          named(read, "format", ExportFormat::kSvg),
          named(read, "theme", study::FigureTheme::kLight)};
}

JobKind RequestReader::job_kind(const std::string& body) const {
  const JsonObject read =
      object(body, {"trace", "target", "against", "sweep", "by", "direction", "train", "features",
                    "tokens", "text", "models", "task", "pairs", "parts", "prompts", "level"});
  if (read.has("trace")) return JobKind::kTrace;
  if (read.has("sweep")) return JobKind::kSweep;
  return read.has("train") ? JobKind::kTraining : JobKind::kCircuit;
}

TraceQuery RequestReader::trace(const std::string& body) const {
  const JsonObject read = object(body, {"trace", "models", "target", "against"});
  TraceQuery query;
  query.request.prompt = read.string("trace");
  if (query.request.prompt.size() > limits_.prompt_bytes)
    throw Refusal(413, fmt::format("the prompt has {} bytes", query.request.prompt.size()),
                  fmt::format("send at most {}", limits_.prompt_bytes));
  query.request.target = read.string_or("target", "");
  query.request.against = read.string_or("against", "");
  query.request.max_features = limits_.traced_features;
  query.models = models(read);
  return query;
}

// A built-in task, or the request's own pairs of prompts as lines of a task file.
study::TaskSelection RequestReader::task_of(const JsonObject& read) const {
  study::TaskSelection task;
  task.prompts = read.integer_or("prompts", 16, 2, kMostTaskPrompts);
  if (!read.has("pairs")) {
    // Of the built-in ones alone: elsewhere a task may be the name of a file.
    task.name = std::string(task_definition(read.string("task")).name);
    return task;
  }
  const auto& pairs = read.array("pairs");
  require(!pairs.empty(), "the request: pairs are empty; give at least two of prompts");
  for (const nlohmann::json& pair : pairs) task.lines += pair.dump() + "\n";
  task.name = "own prompts";
  return task;
}

SweepQuery RequestReader::sweep(const std::string& body) const {
  const JsonObject read =
      object(body, {"sweep", "by", "direction", "task", "pairs", "prompts", "models"});
  SweepQuery query;
  query.request.sites = {named(read, "sweep", Site::kZ)};
  if (read.has("by")) query.request.by = named(read, "by", SweepAxis::kHead);
  // Positions mean the same only where prompts are equally long.
  query.request.one_length = query.request.by == SweepAxis::kPosition;
  query.request.direction = named(read, "direction", PatchDirection::kNoising);
  query.request.task = task_of(read);
  query.models = models(read);
  study::check_request(query.request);
  return query;
}

TrainingQuery RequestReader::training(const std::string& body) const {
  const JsonObject read = object(body, {"train", "features", "tokens", "text"});
  TrainingQuery query;
  const std::string label = read.string("train");
  const auto found = std::find_if(models_.begin(), models_.end(),
                                  [&](const auto& model) { return model.label() == label; });
  require(found != models_.end(), "the request: there is no model '{}' to train for",
          printable(label));
  query.model = static_cast<std::size_t>(found - models_.begin());
  query.features = read.integer_or("features", query.features, 8, limits_.trained_features);
  query.tokens = read.integer_or("tokens", query.tokens, 1024, limits_.trained_tokens);
  query.text = read.string_or("text", "");
  return query;
}

CircuitQuery RequestReader::circuit(const std::string& body) const {
  const JsonObject read = object(body, {"task", "pairs", "models", "parts", "prompts", "level"});
  CircuitQuery query;
  query.request.task = task_of(read);
  query.request.search.parts = named(read, "parts", study::Parts::kHeads);
  query.request.search.method = study::usual_method(query.request.search.parts);
  query.request.search.level = read.number_or("level", query.request.search.level, 0.01, 1.0);
  query.models = models(read);
  study::check_request(query.request);
  return query;
}

}  // namespace filigree::serve
