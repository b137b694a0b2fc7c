// An index of a transcoder's features over a text: when each is active, how strongly, and where.
#pragma once

#include <filesystem>
#include <string>
#include <variant>

#include "features/dictionary.h"
#include "features/index/index_builder.h"
#include "study/evaluation/evaluation.h"

namespace filigree::study {

struct IndexRequest {
  std::string features = {};  // folder of the transcoder
  std::variant<EvaluationText, EvaluationShards> data = {};
  std::string text = {};  // what the data is called
  WindowOptions windows = {};
  IndexOptions options = {};
  std::filesystem::path out = {};
};

struct IndexedLayer {
  std::int64_t layer = 0;
  double l0 = 0;            // features that are active at a token, in the mean
  std::int64_t silent = 0;  // that never are
};

struct IndexResult {
  std::string model = {};
  IndexRequest request = {};
  FeatureIndexFacts facts = {};
  std::vector<IndexedLayer> layers = {};
  std::uint64_t bytes = 0;  // of the file
  double seconds = 0;
};

// The features of a folder, held to a model. Throws Error when they are of another one's sizes or
// taps.
std::unique_ptr<FeatureDictionary> open_features(const std::string& folder, const Model& model);

// Throws Error for a text that does not fit the model, and for features that do not.
IndexResult index_features(const IndexRequest& request, const LoadedModel& model,
                           const Context& context);

Json to_json(const IndexResult& result);

}  // namespace filigree::study
