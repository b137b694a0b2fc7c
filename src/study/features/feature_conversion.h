// A transcoder of any layout that is read, written anew in circuit-tracer's, with its matrices in
// the type that is asked for.
#pragma once

#include <filesystem>
#include <string>

#include "features/files/transcoder_files.h"
#include "study/json.h"

namespace filigree::study {

struct FeatureConversionRequest {
  std::string features = {};  // folder, file or name
  std::filesystem::path out = {};
  MatrixType dtype = MatrixType::kF32;
  NotFinite not_finite = NotFinite::kRefuse;
  std::string model_name = {};  // that the result is said to be of; empty: as before
};

struct FeatureConversion {
  FeatureConversionRequest request;
  RewrittenTranscoder written;
};

// Throws Error when `out` holds a transcoder already, and for numbers that are not finite or too
// large for the type.
FeatureConversion convert_features(const FeatureConversionRequest& request);

Json to_json(const FeatureConversion& conversion);

}  // namespace filigree::study
