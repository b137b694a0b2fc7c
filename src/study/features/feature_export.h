// Features as circuit-tracer's and Neuronpedia's viewers read them.
//
//   one record     JSON: index, examples_quantiles, top_logits, bottom_logits, act_min, act_max,
//                  quantile_values, histogram, activation_frequency, transcoder_id
//   files          a folder of <number>.json, the number pairing layer and feature
//   packed         layer_<layer>.bin, records one after the other, each its length in four bytes
//   and
//                  the JSON deflated; index.json.gz has file and offsets by layer
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/names.h"
#include "base/output_folder.h"
#include "study/features/feature_page.h"

namespace filigree::study {

enum class FeatureLayout { kPacked, kFiles };

Json feature_detail(const FeaturePage& page);

struct FeatureExportRequest {
  std::string features = {};         // folder of the transcoder
  std::filesystem::path index = {};  // of its features
  std::filesystem::path folder = {};
  const OutputFolder* held = nullptr;  // the same, where the caller has opened it before the work
  FeatureLayout layout = FeatureLayout::kPacked;
  std::size_t top = 10, examples = 6;
};

struct FeatureExport {
  std::int64_t features = 0;  // records
  std::uint64_t bytes = 0;
};

// Of files, those of features that are active in the index; packed, all. Throws Error as
// describe_feature() does.
FeatureExport export_features(const FeatureExportRequest& request, const LoadedModel& model,
                              const FeatureDictionary& dictionary, const Context& context);
// Of these features alone, as files, also of those that the index has never seen active.
FeatureExport export_chosen_features(const FeatureExportRequest& request,
                                     std::vector<FeatureId> features, const LoadedModel& model,
                                     const FeatureDictionary& dictionary, const Context& context);

// The transcoder's folder without what is above it.
std::string transcoder_name(const std::string& folder);

}  // namespace filigree::study

namespace filigree {
template <>
inline constexpr auto kNames<study::FeatureLayout> = std::to_array<Named<study::FeatureLayout>>(
    {{study::FeatureLayout::kPacked, "packed"}, {study::FeatureLayout::kFiles, "files"}});
}  // namespace filigree
