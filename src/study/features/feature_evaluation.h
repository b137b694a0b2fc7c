// How well transcoders stand in for the MLPs of their models, side by side.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "features/feature_quality.h"
#include "study/context.h"
#include "study/evaluation/evaluation.h"
#include "study/json.h"
#include "study/loaded_model.h"

namespace filigree::study {

struct FeatureEvaluationRequest {
  std::vector<std::string> models;    // folders or names
  std::vector<std::string> features;  // of each model, folders or names; empty: those beside them
  std::variant<EvaluationText, EvaluationShards> data;
  WindowOptions windows = {.max_tokens = 32768};
  bool layers_alone = true;
};

struct EvaluatedFeatures {
  std::string model, label;
  std::string features;
  TranscoderShape shape;
  FeatureQuality quality;
  double seconds = 0.0;
};

// Throws RequestError unless there are as many transcoders as models, and Error when one does not
// fit its model or the data.
std::vector<EvaluatedFeatures> run_feature_evaluation(const FeatureEvaluationRequest& request,
                                                      const Context& context);

// Of a split that is known to fit; shows its progress as `work`.
FeatureQuality evaluate_features(const LoadedModel& model, const FeatureDictionary& dictionary,
                                 const TokenSplit& split, const WindowOptions& windows,
                                 bool layers_alone, const Context& context,
                                 const std::string& work);

Json to_json(const FeatureQuality& quality);
Json to_json(const std::vector<EvaluatedFeatures>& models);

}  // namespace filigree::study
