#include "filigree/study/training/curves.h"

#include <filesystem>
#include <set>

#include "filigree/base/error.h"
#include "filigree/base/strings.h"
#include "filigree/json/lines.h"
#include "filigree/study/model_places.h"

namespace filigree::study {
namespace {

namespace fs = std::filesystem;

TrainingCurve read_curve(const std::string& run, const std::string& name) {
  const fs::path path = fs::is_directory(run) ? fs::path(run) / "log.jsonl" : fs::path(run);
  std::error_code ignored;
  require(fs::is_regular_file(path, ignored),
          "cannot read '{}'; a run is the folder that sparse training wrote, or its log",
          printable(path.string()));
  TrainingCurve curve{run, name, {}, {}, {}, {}};
  for (JsonLines lines = JsonLines::open(path, LastLine::kMayBeCut); lines.next();) {
    const JsonObject& line = lines.object();
    if (!line.has("step") || !line.has("gap") || line.has("event")) continue;
    curve.steps.push_back(line.number("step"));
    curve.gap.push_back(line.number("gap"));
    curve.active_edges.push_back(line.number("active_edges"));
    curve.lambda.push_back(line.number("lambda"));
  }
  require(!curve.steps.empty(),
          "'{}' has no steps of sparse training (dense runs have no gap and no edges to draw)",
          printable(path.string()));
  return curve;
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

CurvesResult draw_curves(const CurvesRequest& request) {
  check_figure_file(request.out);
  CurvesResult result{request.out, read_curves(request.runs)};
  figure::TrainingCurves drawn;
  drawn.title = "Sparse post-training";
  for (const TrainingCurve& curve : result.curves)
    drawn.runs.push_back({curve.name, curve.steps, curve.gap, curve.active_edges, curve.lambda});
  save_figure(&drawn, request.out, request.style);
  return result;
}

Json to_json(const CurvesResult& result) {
  Json json = {{"out", result.out}, {"runs", Json::array()}};
  for (const TrainingCurve& curve : result.curves)
    json["runs"].push_back({{"run", curve.run},
                            {"name", curve.name},
                            {"steps", curve.steps.back()},
                            {"points", curve.steps.size()}});
  return json;
}

}  // namespace filigree::study
