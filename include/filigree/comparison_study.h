// Two models side by side.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "filigree/attention_study.h"
#include "filigree/circuit_study.h"
#include "filigree/evaluation_study.h"
#include "filigree/knobs.h"
#include "filigree/report.h"
#include "filigree/study.h"
#include "filigree/trace_study.h"

namespace filigree::study {

// -------------------------------------------------------------------------------------------------
// Two models of one shape compared, usually a dense one and its sparse twin: a folder of figures,
// tables and data with one offline page.

enum class GridOrder { kLayer, kRole };

}  // namespace filigree::study

namespace filigree {

template <>
inline constexpr auto kNames<study::GridOrder> = std::to_array<Named<study::GridOrder>>(
    {{study::GridOrder::kLayer, "layer"}, {study::GridOrder::kRole, "role"}});

}  // namespace filigree

namespace filigree::study {

// A text that both models are measured on.
struct HeldOutText {
  std::string name;  // "prose"
  EvaluationText text;
};

// A task that cannot be asked of the models, and why.
struct TaskLeftOut {
  std::string task, why;
};

struct ComparisonRequest {
  std::filesystem::path folder = {};
  PromptRequest prompts = {};  // empty: a choice of our own

  // Heads, as filigree/maps.h reads them.
  std::string heads = "*";              // of the grid
  GridOrder order = GridOrder::kLayer;  // kLayer: as they are named, layer by layer where all are
  GridLayout layout = {};               // of the grid; its title is the page's
  std::string first = {};    // of the grid, those that come before the others, in this order
  std::string strips = {};   // drawn large side by side; "": those that changed most
  std::string scatter = {};  // of the scatter matrix; "": some that differ

  std::vector<figure::Format> formats = {figure::Format::kSvg, figure::Format::kPng};
  FigureStyle style = {};
  bool maps = false;  // every map of every prompt as data too

  std::vector<HeldOutText> texts = {};
  WindowOptions windows = {};             // of the texts; no longer than a model's context
  std::vector<TaskSelection> tasks = {};  // whose circuits are compared
  CircuitEffort effort = {};
  std::vector<TaskLeftOut> tasks_left_out = {};  // by the caller, for the summary

  // Transcoders of both models, to trace a prompt through; none: no trace.
  std::vector<std::string> features = {};
  TraceRequest trace = {.prompt = "The opposite of \"large\" is \""};

  NamedTexts made = {};  // how the page came to be, before what is known here
};

Knobs knobs_of(ComparisonRequest& request);

struct TextLosses {
  std::string text;  // the name
  std::vector<EvaluatedModel> models;
};

struct ComparisonResult {
  std::vector<Prompt> prompts = {};
  std::vector<HeadId> heads = {};
  std::vector<AnalysedModel> models = {};  // two, with roles, statistics and pairs
  std::vector<ComparedStatistic> comparison = {};
  std::vector<KeptConnections> connections = {};
  std::vector<TextLosses> held_out = {};
  std::vector<TaskCircuits> tasks = {};
  std::vector<TaskLeftOut> tasks_left_out = {};
  Json trace = {};  // of the traced prompt, or null
  std::filesystem::path folder = {};
  std::vector<std::string> files = {};  // below the folder

  std::filesystem::path page() const { return folder / "report.html"; }
};

// Throws Error for a task that there is not and where this build cannot draw; for callers that want
// to know before they load models.
void check_request(const ComparisonRequest& request);

// Throws Error for models and options that do not go together before anything is written, and
// Stopped between passes.
ComparisonResult run(const ComparisonRequest& request,
                                Models models, const Context& context);

// What was found, without what was written: data/summary.json.
Json findings_json(const ComparisonResult& result);
Json to_json(const ComparisonResult& result);
std::string text_of(const ComparisonResult& result);

// -------------------------------------------------------------------------------------------------
// The whole story on the two reference models, in about a minute on two cores: both are measured on
// held-out text, compared on a handful of prompts and searched for the circuits of a few tasks.

struct DemoRequest {
  std::filesystem::path folder = "demo";
  // Prose to measure the models on; nothing: held-out.txt beside the dense model, if there.
  std::optional<EvaluationText> prose = {};
  std::int64_t tokens = 4096;  // of each held-out text
  std::int64_t length = 256;   // of its windows, at most
  std::vector<std::string> tasks = {"ioi", "greater-than"};
  // Of a task. The time is nearly proportional; of 16 answers between two, 14 right ones are better
  // than chance.
  std::int64_t task_prompts = 16;
  std::vector<figure::Format> formats = {figure::Format::kSvg, figure::Format::kPng};
  FigureStyle style = {};
  NamedTexts made = {};  // how the page came to be
};

Knobs knobs_of(DemoRequest& request);

struct DemoResult {
  ComparisonResult comparison = {};
  double level = 0.0;  // of the effect, that circuits explain
  double seconds = 0.0;
};

// Of a dense model and a sparse one. Throws Error before anything is written for models, tasks and texts that
// there are not; a task that the models' tokenizer cuts so that it cannot be asked is left out, and
// the result says why.
DemoResult run(const DemoRequest& request, Models models, const Context& context);

Json to_json(const DemoResult& result);
std::string text_of(const DemoResult& result);

}  // namespace filigree::study
