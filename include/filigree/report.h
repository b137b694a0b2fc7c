// Pages that show results.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace filigree {

// -------------------------------------------------------------------------------------------------
// The offline report: one self-contained HTML page with attention maps of one or two models, head
// roles, statistics and head pairs. It opens from disk and makes no request.
//
// The page is data (JSON, format below) and one script: the viewer of web/, whose bundle
// web/dist/report.js is compiled in. web/src/data.ts is the reader's side of these structs. With
// the data go the names of heads (filigree/names.h) and the colours (filigree/palette.h), so that the
// page writes and draws as tables and figures do.

using NamedTexts = std::vector<std::pair<std::string, std::string>>;

struct ReportHead {
  std::string role;  // "previous", "sink+current", ...
  double confidence = 0.0;
  std::map<std::string, double> statistics = {};  // by the names of ReportStatistic
};

// Correlations of all heads with all heads; not a number where one is undefined.
struct ReportPairs {
  std::string measure;  // "Pearson"
  std::vector<std::vector<double>> matrix = {};
  std::vector<std::size_t> order = {};  // by clustering
};

struct ReportModel {
  std::string name;
  std::int64_t layers = 0, heads = 0;
  NamedTexts facts = {};            // shown under the name, as they are
  std::vector<ReportHead> by_head;  // layer by layer
  std::vector<ReportPairs> pairs = {};
};

struct ReportPrompt {
  std::string text;
  std::vector<std::string> tokens;
  std::vector<std::string> maps;  // of each model: PackedMaps::finish()
  // JSON of what else was computed of it, as web/src/stored.ts reads it (study/comparison writes
  // it); "": nothing, and the page has maps alone.
  std::string stored = {};
  std::string changed_maps = {};  // bytes of the maps of its changed runs; "": none
};

// A statistic of the models as wholes; the change and its certainty when there are two.
struct ReportStatistic {
  std::string name, label;
  std::string over = {};  // heading of what it is taken over; "": all heads and rows
  std::string unit = {};  // "" or "%"
  std::vector<double> values = {};
  std::vector<std::optional<std::array<double, 2>>> intervals =
      {};  // of the values; or none at all
  std::optional<double> change = {}, low = {}, high = {}, p = {};
  std::optional<double> least_p = {};  // the smallest p that so many prompts can give
};

// What the page is about, above everything else: a line, and a few numbers with what they are.
struct ReportStory {
  std::string line = {};
  std::vector<std::pair<std::string, std::string>> numbers = {};  // "1.04 %", "of the edges open"
};

// A picture of the page: SVG text, held in the page.
struct ReportFigure {
  std::string title;
  std::string caption = {};
  std::string svg = {};       // for light pages
  std::string dark_svg = {};  // for dark ones; "": the same
};

// What a task needs of each model. circuit_section.h makes it from numbers.
struct ReportTask {
  std::string name;
  std::string description = {};
  NamedTexts facts = {};                            // under the name, as they are
  std::vector<std::string> columns = {};            // of the table
  std::vector<std::vector<std::string>> rows = {};  // as many cells as columns
  // Of each model the heads of its circuit, "L3H7", the most important first; may be left out.
  std::vector<std::vector<std::string>> heads = {};
  std::vector<ReportFigure> figures = {};
  std::string stored = {};  // JSON of runs of its circuits; "": none
};

struct Report {
  std::string title;
  ReportStory story = {};
  std::vector<ReportModel> models;  // one, or dense and sparse of one shape
  std::vector<ReportPrompt> prompts;
  std::vector<ReportStatistic> statistics = {};
  std::vector<ReportTask> tasks = {};
  std::vector<std::string> roles = {};  // those a head can play, in the order of their colours
  NamedTexts made = {};                 // command, versions, ...
};

// The whole page. Throws Error when the parts do not fit together.
std::string report_page(const Report& report);

// Writes it, replacing a file only when it is complete.
void write_report(const Report& report, const std::filesystem::path& path);

// The viewer's bundle, as it is compiled in.
std::string_view viewer_script();

// -------------------------------------------------------------------------------------------------
// The part of the report page about one task: how large the models' circuits are, side by side, and
// the figures of them. Takes numbers and finished pictures, so that it knows neither analyses nor
// drawing.

// One kind of part: heads, component edges, attention edges.
struct CircuitSize {
  std::string parts;
  std::vector<std::optional<std::size_t>> sizes = {};  // one a model; none: level not reached
  std::vector<std::size_t> of = {};                    // how many there are; 0: no circuit
  std::vector<std::optional<double>> without = {};     // effect with none kept; may be left out
  std::vector<bool> carried = {};  // false: too much of it is there without them
};

struct CircuitSection {
  std::string task;
  std::string description = {};
  double level = 0.9;
  std::vector<std::string> models = {};  // the first is what the others are compared with
  std::vector<CircuitSize> sizes = {};
  std::vector<std::vector<std::string>> heads = {};  // as ReportTask has them
  NamedTexts facts = {};
  std::vector<ReportFigure> figures = {};  // curves, grid of heads, drawing; in this order
};

// Throws Error when there is no model or a kind has not one number a model.
ReportTask circuit_section(const CircuitSection& section);

}  // namespace filigree
