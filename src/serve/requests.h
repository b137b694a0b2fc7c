// The bodies of requests as typed values: read through src/json, bounded, and unknown keys refused.
#pragma once

#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "filigree/circuit_study.h"
#include "filigree/interventions.h"
#include "filigree/maps.h"
#include "filigree/study.h"
#include "filigree/study_figures.h"
#include "filigree/trace_study.h"
#include "json/object.h"
#include "serve/request_limits.h"
#include "study/generation/token_steps.h"

namespace filigree::serve {

// A change of a run as a request writes it: "L6H11", "L7MLP=2", "L6H11@-1=Rome is in".
struct WrittenChange {
  ChangeKind kind = ChangeKind::kAblate;
  std::string text = {};
};

// All of them together. Throws Refusal where they are too many or too long, and Error for what
// cannot be read.
Interventions interventions_of(std::span<const WrittenChange> changes, const Limits& limits);

// Changes whose fit to a prompt is asked for (change_check.h).
struct ChangesQuery {
  std::string prompt = {};
  std::vector<std::size_t> models = {};
  std::vector<WrittenChange> changes = {};
};

// A prompt through some models, with changes:
//   {"prompt": "Paris is in", "models": ["dense"], "ablate": ["L6H11"], "scale": ["L7MLP=2"],
//    "patch": ["L6H11@-1=Rome is in"]}
struct PromptQuery {
  std::string prompt = {};
  std::vector<std::size_t> models = {};  // all of them unless named, by their labels
  Interventions interventions = {};
};

// Maps and predictions of one run.
struct PromptViewQuery {
  PromptQuery run = {};
  std::string heads = "*";  // filigree/maps.h
  MapKind kind = MapKind::kWeights;
  std::size_t top = 10;
  std::string after = {};  // the "text" of the answer that whoever asks has; "": none
};

struct HeadQuery {
  PromptQuery run = {};
  HeadId head = {};
  std::int64_t query =
      -1;               // position of the token for which the head writes; negative: from the end
  std::size_t top = 8;  // of each list of tokens
};

struct ImportanceQuery {
  PromptQuery run = {};
  std::string token = {};  // whose logit counts; "": the likeliest of each model
};

// A continuation of the prompt by one model.
struct GenerateQuery {
  PromptQuery run = {};
  study::StepOptions options = {};
};

struct LensQuery {
  PromptQuery run = {};
  std::string token = {};  // ranked everywhere; "": each next token
  std::int64_t top = 5;
};

// What each part adds to the logit of a token: `answer` after the prompt, or the prompt's own at a
// position after those before it.
struct AttributionQuery {
  PromptQuery run = {};
  std::optional<std::int64_t> at = {};
  std::string answer = {};
  std::string wrong = {};  // "": the logit alone
};

// What is exported, and as what.
enum class ExportView { kMaps, kTokens, kLens, kAttribution, kGenerate };
enum class ExportFormat { kSvg, kPdf, kPng, kNpz, kJson };

struct ExportQuery {
  PromptQuery run = {};
  ExportView view = ExportView::kMaps;
  ExportFormat format = ExportFormat::kSvg;
  study::FigureTheme theme = study::FigureTheme::kLight;
  std::string heads = "*";  // of maps, in this order
  MapKind kind = MapKind::kWeights;
  std::string answer = {};  // of the lens and the attribution: the token
  // Of tokens: the one that arcs are about (negative: from the end) and the layer they are of
  // (none: all). Of the attribution: the prompt's own token, in the place of an answer.
  std::optional<std::int64_t> at = {}, layer = {};
  double least = 0.1;             // of tokens and generated texts: edges of at least this
  study::StepOptions steps = {};  // of generated texts
};

// A figure of a job's result, or its numbers.
struct JobExportQuery {
  std::size_t figure = 0;
  ExportFormat format = ExportFormat::kSvg;
  study::FigureTheme theme = study::FigureTheme::kLight;
};

struct TraceQuery {
  study::TraceRequest request = {};
  std::vector<std::size_t> models = {};
};

struct TaskQuery {
  std::string task = {};
  std::int64_t prompts = 8;
};

struct SweepQuery {
  study::PatchRequest request = {};
  std::vector<std::size_t> models = {};
};

// A transcoder of each layer, small enough for a session.
struct TrainingQuery {
  std::size_t model = 0;
  std::int64_t features = 256;    // of a layer
  std::int64_t tokens = 100'000;  // of the run
  std::string text = {};          // to train on; "": sentences of the tasks
};

enum class JobKind { kCircuit, kTrace, kSweep, kTraining };

struct CircuitQuery {
  study::CircuitRequest request = {};
  std::vector<std::size_t> models = {};
};

// Models of a request as they lie side by side. Throws Error where others lie between them.
study::Models chosen_models(study::Models models, std::vector<std::size_t> chosen);

// Reads requests for these models. Throws Refusal for what is too large, and Error for what cannot
// be read.
class RequestReader {
 public:
  RequestReader(study::Models models, const Limits& limits) : models_(models), limits_(limits) {}

  PromptViewQuery view_prompt(const std::string& body) const;
  HeadQuery head(const std::string& body) const;
  ImportanceQuery importance(const std::string& body) const;
  GenerateQuery generate(const std::string& body) const;
  LensQuery lens(const std::string& body) const;
  AttributionQuery attribution(const std::string& body) const;
  TaskQuery task(const std::string& body) const;
  ChangesQuery changes(const std::string& body) const;
  ExportQuery exported(const std::string& body) const;
  JobExportQuery job_export(const std::string& body) const;
  JobKind job_kind(const std::string& body) const;
  TraceQuery trace(const std::string& body) const;
  SweepQuery sweep(const std::string& body) const;
  TrainingQuery training(const std::string& body) const;
  CircuitQuery circuit(const std::string& body) const;

 private:
  JsonObject object(const std::string& body, std::initializer_list<std::string_view> keys) const;
  std::string prompt(const JsonObject& object) const;
  std::vector<std::size_t> models(const JsonObject& object) const;
  PromptQuery run(const JsonObject& object) const;
  std::size_t top(const JsonObject& object, std::int64_t fallback) const;
  study::TaskSelection task_of(const JsonObject& object) const;
  study::StepOptions steps(const JsonObject& object) const;

  study::Models models_;
  Limits limits_;
};

}  // namespace filigree::serve

namespace filigree {

template <>
inline constexpr auto kNames<serve::ExportView> =
    std::to_array<Named<serve::ExportView>>({{serve::ExportView::kMaps, "maps"},
                                             {serve::ExportView::kTokens, "tokens"},
                                             {serve::ExportView::kLens, "lens"},
                                             {serve::ExportView::kAttribution, "attribution"},
                                             {serve::ExportView::kGenerate, "generate"}});
template <>
inline constexpr auto kNames<serve::ExportFormat> =
    std::to_array<Named<serve::ExportFormat>>({{serve::ExportFormat::kSvg, "svg"},
                                               {serve::ExportFormat::kPdf, "pdf"},
                                               {serve::ExportFormat::kPng, "png"},
                                               {serve::ExportFormat::kNpz, "npz"},
                                               {serve::ExportFormat::kJson, "json"}});

}  // namespace filigree
