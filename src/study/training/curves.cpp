#include <fmt/format.h>

#include <filesystem>
#include <set>

#include "base/file_status.h"
#include "filigree/error.h"
#include "filigree/names.h"
#include "filigree/study.h"
#include "filigree/training_study.h"
#include "json/lines.h"

namespace filigree::study {
namespace {

namespace fs = std::filesystem;

// Evaluations are no events of the run's course.
void add_event(const JsonObject& line, TrainingCurve& curve) {
  const std::string what = line.string("event");
  if (what == "stopped") curve.events.push_back({line.number("step"), what, line.string("reason")});
  if (what == "evaluation" && line.has("held_out_accuracy")) {
    curve.held_out_steps.push_back(line.number("step"));
    curve.held_out_loss.push_back(line.number("held_out_loss"));
    curve.held_out_accuracy.push_back(line.number("held_out_accuracy"));
  }
  if (what == "warning")
    curve.events.push_back({line.number("step"), what, line.string("warning")});
}

TrainingCurve read_curve(const std::string& run, const std::string& name) {
  const fs::path path = is_folder(run) ? fs::path(run) / "log.jsonl" : fs::path(run);
  require(is_file(path), "cannot read '{}'; a run is the folder that training wrote, or its log",
          printable(path.string()));
  TrainingCurve curve;
  curve.run = run, curve.name = name;
  for (JsonLines lines = JsonLines::open(path, LastLine::kMayBeCut); lines.next();) {
    const JsonObject& line = lines.object();
    if (!line.has("step")) continue;
    if (line.has("event")) {
      add_event(line, curve);
    } else if (line.has("gap")) {
      curve.steps.push_back(line.number("step"));
      curve.gap.push_back(line.number("gap"));
      curve.active_edges.push_back(line.number("active_edges"));
      curve.lambda.push_back(line.number("lambda"));
    } else if (line.has("loss")) {
      curve.steps.push_back(line.number("step"));
      curve.loss.push_back(line.number("loss"));
      if (line.has("accuracy")) curve.accuracy.push_back(line.number("accuracy"));
    }
  }
  require(!curve.steps.empty(), "'{}' has no steps of training", printable(path.string()));
  require(curve.loss.empty() || curve.gap.empty(),
          "'{}' has steps of dense and of sparse training; a log is of one run",
          printable(path.string()));
  return curve;
}

// Of a reason what went wrong, without the numbers and the remedy: a caption is short.
std::string first_clause(const std::string& reason) {
  const std::string clause = reason.substr(0, reason.find_first_of(":;("));
  return clause.substr(0, clause.find_last_not_of(' ') + 1);
}

// What the legend calls the runs: by their folders, or their logs without ".jsonl".
std::vector<std::string> legend_names(const std::vector<std::string>& runs) {
  std::vector<std::string> shown;
  for (const std::string& run : runs) {
    fs::path path(run);
    if (path.filename() == "log.jsonl" && path.has_parent_path())
      path = path.parent_path();
    else if (path.extension() == ".jsonl")
      path.replace_extension();
    shown.push_back(path.string());
  }
  std::vector<std::string> names = short_names(shown);
  const std::set<std::string> different(names.begin(), names.end());
  return different.size() == names.size() ? names : runs;
}

}  // namespace

std::vector<TrainingCurve> read_curves(const std::vector<std::string>& runs) {
  const std::vector<std::string> names = legend_names(runs);
  std::vector<TrainingCurve> curves;
  for (std::size_t r = 0; r < runs.size(); ++r) curves.push_back(read_curve(runs[r], names[r]));
  return curves;
}

CurvesResult run(const CurvesRequest& request, Models, const Context&) {
  check_figure_file(request.out);
  CurvesResult result{request.out, read_curves(request.runs)};
  figure::TrainingCurves drawn;
  bool sparse = true;  // all of them
  for (const TrainingCurve& curve : result.curves) {
    sparse = sparse && !curve.gap.empty();
    figure::TrainingRun run = {.name = curve.name,
                               .steps = curve.steps,
                               .loss = curve.loss,
                               .accuracy = curve.accuracy,
                               .loss_gap = curve.gap,
                               .active_edges = curve.active_edges,
                               .multiplier = curve.lambda};
    for (const TrainingCurve::Event& event : curve.events) {
      run.marks.emplace_back(event.step, event.what);
      drawn.caption += fmt::format("{}{} at step {:g}: {}.", drawn.caption.empty() ? "" : " ",
                                   curve.name, event.step, first_clause(event.reason));
    }
    drawn.runs.push_back(std::move(run));
    if (!curve.held_out_steps.empty())
      drawn.runs.push_back({.name = curve.name + ", held out",
                            .steps = curve.held_out_steps,
                            .loss = curve.held_out_loss,
                            .accuracy = curve.held_out_accuracy});
  }
  drawn.title = sparse ? "Sparse post-training" : "Training";
  save_figure(&drawn, request.out, request.style);
  return result;
}

Json to_json(const CurvesResult& result) {
  Json json = {{"out", result.out}, {"runs", Json::array()}};
  for (const TrainingCurve& curve : result.curves) {
    Json events = Json::array();
    for (const TrainingCurve::Event& event : curve.events)
      events.push_back({{"step", event.step}, {"event", event.what}, {"reason", event.reason}});
    json["runs"].push_back({{"run", curve.run},
                            {"name", curve.name},
                            {"steps", curve.steps.back()},
                            {"points", curve.steps.size()},
                            {"events", events}});
  }
  return json;
}

}  // namespace filigree::study
