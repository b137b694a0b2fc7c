// A model that was loaded once, with what belongs to it, to be passed to every study that wants it.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/model.h"
#include "study/context.h"
#include "text/tokenizer.h"

namespace filigree::study {

class LoadedModel {
 public:
  // Reads the weights of a folder or of a model by name. Throws Error when there is none, with the
  // places that were looked in (model_places.h).
  LoadedModel(std::string name, std::string label, const LoadOptions& options = {});
  // One that is not from a folder, or is there already. Has the tokenizer of `folder`, if any.
  LoadedModel(std::string name, std::string label, std::unique_ptr<Model> model,
              std::filesystem::path folder = {});

  const std::string& name() const { return name_; }    // as the user gave it
  const std::string& label() const { return label_; }  // as figures and tables call it
  const std::filesystem::path& folder() const { return folder_; }
  Model& model() { return *model_; }
  const Model& model() const { return *model_; }
  const ModelConfig& config() const { return model_->config(); }

  // Read when it is first asked for; throws Error when the folder has none.
  const Tokenizer& tokenizer() const;
  // Null when the folder has none.
  const Tokenizer* tokenizer_if_any() const;

 private:
  std::string name_, label_;
  std::filesystem::path folder_;
  std::unique_ptr<Model> model_;
  mutable std::optional<Tokenizer> tokenizer_;
};

// Models side by side, in this order, under names short enough for figures (short_names).
std::vector<LoadedModel> load_models(const std::vector<std::string>& names, const Context& context,
                                     LoadOptions options = {});

}  // namespace filigree::study
