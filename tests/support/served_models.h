// A small model and the same with gates, loaded as the server shows them.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "filigree/study/loaded_model.h"
#include "support/model_folder.h"

namespace filigree {

inline std::vector<study::LoadedModel> served_models(const ModelFolder& folder) {
  std::vector<study::LoadedModel> models;
  models.emplace_back("dense", "dense", load_model(folder.path()), folder.path());
  std::unique_ptr<Model> gated = load_model(folder.path());
  gated->set_gate({{0.01f}});
  models.emplace_back("sparse", "sparse", std::move(gated), folder.path());
  return models;
}

}  // namespace filigree
