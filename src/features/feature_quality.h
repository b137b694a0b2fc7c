// How well features stand in for a model's MLPs, on held-out text:
//
//   NMSE         sum |y - y^|^2 / sum |y - mean y|^2 of a layer, features active as in the plain
//   run recovered    (loss ablated - loss replaced) / (loss ablated - loss), ablated: MLPs at their
//   mean KL           of the plain model's predictions from the replaced one's, a token agreement
//   share of tokens whose likeliest next one is the same
//
// with all MLPs replaced, features recomputed layer by layer, and with those of one layer alone.
// The first position of every window is left out of the first line and keeps its MLPs in the
// others.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "features/dictionary.h"
#include "model/model.h"
#include "train/evaluation_windows.h"

namespace filigree {

struct Replaced {
  double loss = 0.0;
  double ablated_loss = 0.0;
  double kl = 0.0;
  double agreement = 0.0;

  double recovered(double plain_loss) const {
    return (ablated_loss - loss) / (ablated_loss - plain_loss);
  }
};

struct LayerQuality {
  double nmse = 0.0;
  double l0 = 0.0;              // active features, a token
  std::vector<double> density;  // of each feature, the share of tokens at which it is active
  Replaced alone;               // if it was asked for

  double dead() const;                     // share of the features that are never active
  double dense(double above = 0.1) const;  // share that are active at more of the tokens
};

struct FeatureQuality {
  std::int64_t targets = 0;  // that the losses are of
  std::int64_t tokens = 0;   // that the others are of
  double loss = 0.0;         // of the plain model
  Replaced all;
  std::vector<LayerQuality> layers;
  bool layers_alone = false;

  double recovered() const { return all.recovered(loss); }
  double nmse() const;  // mean over layers
  double l0() const;    // of a layer, mean
  double dead() const;
  double dense(double above = 0.1) const;
};

// How many features have a density within each power of ten: 1e-6 and below up to 1, `steps` of
// each.
std::vector<std::int64_t> density_histogram(const FeatureQuality& quality, int steps = 2);

// Reads the windows twice, so `windows` makes them anew. Calls `progress` with the share done.
// Throws Error when the dictionary does not fit the model.
FeatureQuality measure_features(const Model& model, const FeatureDictionary& dictionary,
                                const std::function<EvaluationWindows()>& windows,
                                bool layers_alone,
                                const std::function<void(double)>& progress = {});

// Throws Error unless the dictionary has the model's layers and width, and its taps are there.
void check_fits(const FeatureDictionary& dictionary, const Model& model);

}  // namespace filigree
