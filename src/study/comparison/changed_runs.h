// Runs of a text without single parts, several in a pass: what they predict, how their maps differ
// from those of the run as it is, and what they would predict after each layer.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "filigree/lens.h"
#include "filigree/lens_study.h"
#include "filigree/names.h"
#include "filigree/study.h"

namespace filigree::study {

// A weight beside that of the run as it is, in a byte: 0 where they are the same to half a
// hundredth, 1 for exactly zero, and from 2 on the weight in hundredths, at least one, and one
// added.
std::uint8_t changed_weight(float now, float plain);

struct ChangedRun {
  Prediction prediction = {};
  // changed_weight() of the lower triangles of all heads, row by row, of the layers behind the
  // part's: those before it and its own are as they were.
  std::string maps = {};
  // After the part's layer and each one behind it, a cell a token.
  std::vector<LensPoint> points = {};
  std::vector<std::vector<LensCell>> lens = {};
};

// One run a part.
std::vector<ChangedRun> runs_without(const LoadedModel& model, const std::vector<TokenId>& ids,
                                     std::span<const Component> parts);

}  // namespace filigree::study
