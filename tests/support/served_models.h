// A small model and the same with gates, loaded as the server shows them.
#pragma once

#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

#include "filigree/features.h"
#include "filigree/study.h"
#include "support/model_folder.h"
#include "support/random_transcoder.h"

namespace filigree {

inline std::vector<study::LoadedModel> served_models(const ModelFolder& folder) {
  std::vector<study::LoadedModel> models;
  models.emplace_back("dense", "dense", load_model(folder.path()), folder.path());
  std::unique_ptr<Model> gated = load_model(folder.path());
  gated->set_gate({{0.01f}});
  models.emplace_back("sparse", "sparse", std::move(gated), folder.path());
  return models;
}

// The small model alone, copied into `folder` with a transcoder beside it, as the bundled ones lie.
inline std::vector<study::LoadedModel> model_with_features(const ModelFolder& folder,
                                                           const std::filesystem::path& into) {
  const std::filesystem::path copy = into / "dense";
  std::filesystem::copy(folder.path(), copy);
  std::vector<study::LoadedModel> models;
  models.emplace_back(copy.string(), "dense", load_model(copy), copy);
  write_transcoder(
      copy.string() + "-features",
      random_transcoder(models[0].config(), TranscoderKind::kCrossLayer, 12, false, 0.3f), {});
  return models;
}

}  // namespace filigree
