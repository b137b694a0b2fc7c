#include "base/file_status.h"
#include "filigree/study.h"

namespace filigree::study {

LoadedModel::LoadedModel(std::string name, std::string label, const LoadOptions& options)
    : name_(std::move(name)),
      label_(std::move(label)),
      folder_(model_folder(name_)),
      model_(load_model(folder_, options)) {}

LoadedModel::LoadedModel(std::string name, std::string label, std::unique_ptr<Model> model,
                         std::filesystem::path folder)
    : name_(std::move(name)),
      label_(std::move(label)),
      folder_(std::move(folder)),
      model_(std::move(model)) {}

namespace {

// Of a model of TransformerLens, vocab.json alone has the names of its tokens.
std::filesystem::path names_beside(const std::filesystem::path& folder, const Model& model) {
  const std::filesystem::path names = folder / "vocab.json";
  const bool alone = model.config().family == "hooked_transformer" && is_there(names) &&
                     !is_there(folder / "merges.txt") && !is_there(folder / "tokenizer.json");
  return alone ? names : std::filesystem::path();
}

}  // namespace

const Tokenizer& LoadedModel::tokenizer() const {
  if (tokenizer_) return *tokenizer_;
  const std::filesystem::path folder = folder_.empty() ? folder_ : tokenizer_folder(folder_);
  const std::int64_t tokens = model_->config().vocabulary;
  if (const std::filesystem::path names = names_beside(folder, *model_); !names.empty())
    tokenizer_ = Tokenizer::from_names(names, tokens);
  else if (!folder.empty() && has_tokenizer(folder))
    tokenizer_ = Tokenizer::from_folder(folder);
  else
    tokenizer_ = Tokenizer::of_ids(tokens);
  return *tokenizer_;
}

const Tokenizer* LoadedModel::tokenizer_if_any() const {
  return !folder_.empty() && has_tokenizer(tokenizer_folder(folder_)) && !tokenizer().by_name()
             ? &tokenizer()
             : nullptr;
}

const LoadedModel& Models::only() const {
  if (size() != 1)
    throw RequestError(fmt::format("this is about one model, and {} were given", size()));
  return front();
}

std::vector<LoadedModel> load_models(const std::vector<std::string>& names, const Context& context,
                                     LoadOptions options) {
  options.placement = context.placement;
  const std::vector<std::string> labels = short_names(names);
  std::vector<LoadedModel> models;
  for (std::size_t m = 0; m < names.size(); ++m) {
    context.throw_if_stopped();
    models.emplace_back(names[m], labels[m], options);
  }
  return models;
}

}  // namespace filigree::study
