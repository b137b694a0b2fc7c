// How training runs went, drawn from their logs: of sparse ones loss gap, active edges and
// multiplier, of dense ones the loss; and where they were stopped or warned.
#pragma once

#include <string>
#include <vector>

#include "study/figures.h"
#include "study/json.h"

namespace filigree::study {

// The steps of a log.
struct TrainingCurve {
  std::string run;   // as the user named it
  std::string name;  // as the legend calls it
  std::vector<double> steps;
  std::vector<double> loss;  // of a dense run; else the following
  std::vector<double> gap, active_edges, lambda;
  struct Event {
    double step = 0;
    std::string what;    // "stopped" or "warning"
    std::string reason;  // in a sentence
  };
  std::vector<Event> events;
};

// Of each run's folder, or its log.jsonl. A half line at the end, of a run that goes on or was
// killed, is left out. Throws Error naming file and line for what is no log, and for a log without
// steps.
std::vector<TrainingCurve> read_curves(const std::vector<std::string>& runs);

struct CurvesRequest {
  std::vector<std::string> runs;
  std::string out;  // a figure
  FigureStyle style;
};

struct CurvesResult {
  std::string out;
  std::vector<TrainingCurve> curves;
};

CurvesResult draw_curves(const CurvesRequest& request);

Json to_json(const CurvesResult& result);

}  // namespace filigree::study
