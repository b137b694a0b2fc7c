// The part of the report page about one task: how large the models' circuits are, side by side, and
// the figures of them. Takes numbers and finished pictures, so that it knows neither analyses nor
// drawing.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "report/report.h"

namespace filigree {

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
