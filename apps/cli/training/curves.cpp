// filigree curves: how sparse training runs went, drawn from their logs.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <memory>
#include <set>

#include "apps/cli/attention/attention_figures.h"
#include "apps/cli/commands.h"
#include "apps/cli/program/figure_options.h"
#include "apps/cli/program/input.h"
#include "apps/cli/program/program.h"
#include "filigree/base/error.h"
#include "filigree/base/strings.h"
#include "filigree/json/lines.h"

namespace filigree::cli {
namespace {

namespace fs = std::filesystem;

struct CurvesOptions {
  std::vector<std::string> runs;
  std::string out;
  FigureStyle style;
};

// The steps of RUN/log.jsonl. A half line at the end, of a run that goes on or was killed, is left
// out.
CurveInput read_curve(const std::string& run, const std::string& name) {
  const fs::path path = fs::is_directory(run) ? fs::path(run) / "log.jsonl" : fs::path(run);
  std::error_code ignored;
  require(fs::is_regular_file(path, ignored),
          "cannot read '{}'; RUN is the folder of a run of filigree sparsify",
          printable(path.string()));
  CurveInput curve{name, {}, {}, {}, {}};
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
std::vector<std::string> names_of(const std::vector<std::string>& runs) {
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

void run_curves(const CurvesOptions& options, const Session& session) {
  check_figures();
  require(is_figure_file(options.out), "--out '{}': the ending must be .svg, .pdf or .png",
          printable(options.out));
  const std::vector<std::string> names = names_of(options.runs);
  std::vector<CurveInput> runs;
  Json json = {{"out", options.out}, {"runs", Json::array()}};
  for (std::size_t r = 0; r < options.runs.size(); ++r) {
    runs.push_back(read_curve(options.runs[r], names[r]));
    json["runs"].push_back({{"run", options.runs[r]},
                            {"name", names[r]},
                            {"steps", runs[r].steps.back()},
                            {"points", runs[r].steps.size()}});
  }
  write_training_curves(runs, options.out, options.style);
  if (session.json())
    session.print_json(json);
  else
    session.print(options.out + "\n");
}

}  // namespace

void add_curves(Program& program) {
  const auto options = std::make_shared<CurvesOptions>();
  CLI::App& app = program.add({"curves",
                               "Draw loss gap, active edges and multiplier of sparse runs.",
                               {"filigree curves sparse --out curves.svg",
                                "filigree curves log linear --out objectives.pdf --theme print"}},
                              [options](Session& session) { run_curves(*options, session); });
  app.add_option("RUN", options->runs, "folders of filigree sparsify, or their log.jsonl")
      ->required();
  app.add_option("--out", options->out, "figure: .svg, .pdf or .png")
      ->required()
      ->type_name("FILE");
  add_figure_options(app, options->style);
}

}  // namespace filigree::cli
