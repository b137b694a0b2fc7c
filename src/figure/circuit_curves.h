// How much of a task the most important parts of a model explain: the effect against the number of
// parts kept, on a log axis with a place for none, one chart a kind of part (heads, edges), one
// curve a model. The level that counts as explained is a line, the size of each model's circuit a
// point on it with a drop line, and the ratio of the sizes stands beside the smaller one.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "figure/figure.h"
#include "figure/theme.h"

namespace filigree::figure {

struct EffectCurve {
  std::string name = {};            // of the model
  std::vector<double> kept = {};    // rising; 0, where it is there, stands left of the log axis
  std::vector<double> effect = {};  // 1: all of it
  std::vector<double> error = {};   // standard errors, drawn as a band; may be empty
  std::optional<double> size = {};  // parts of the circuit, one of `kept`; none: level not reached
};

struct EffectChart {
  std::string unit = "heads";            // of the x axis and of the notes
  std::vector<EffectCurve> curves = {};  // the first is what the others are compared with
};

struct CircuitCurves {
  std::string title = {};
  std::vector<EffectChart> charts = {};  // side by side
  double level = 0.9;
  std::string caption = {};
};

// Effects below -0.25 or above 1.3 are cut off. Throws Error, naming the curve, where lengths
// differ, numbers are not finite, `kept` does not rise, or the size is not among them.
Figure circuit_curves(const CircuitCurves& input, const Theme& theme);

// "2.9 × fewer", "1.4 × more" or "as many": `size` against `reference`.
std::string size_ratio(double reference, double size);

}  // namespace filigree::figure
