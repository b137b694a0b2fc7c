#include "base/file_status.h"
#include "filigree/study.h"

namespace filigree::study {

LoadedModel::LoadedModel(std::string name, std::string label, const LoadOptions& options)
    : name_(std::move(name)), label_(std::move(label)) {
  const ModelSource source = model_source(name_);
  folder_ = source.folder;
  model_ = source.load(options);
}

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
                                     LoadOptions options, std::optional<std::size_t> adapted) {
  options.placement = context.placement;
  const std::size_t takes_adapter = adapted.value_or(names.size() - 1);
  std::vector<ModelSource> sources;
  std::vector<std::string> shown = names;
  for (std::size_t m = 0; m < names.size(); ++m) {
    const bool takes = m == takes_adapter && !context.adapter.empty();
    sources.push_back(model_source(names[m], takes ? context.adapter : std::filesystem::path()));
    if (takes) shown[m] = context.adapter.string();
  }
  const std::vector<std::string> labels = short_names(shown);
  // Those without an adapter first, so that others can share their weights.
  std::vector<std::unique_ptr<Model>> loaded(names.size());
  for (const bool with_adapter : {false, true})
    for (std::size_t m = 0; m < names.size(); ++m) {
      if (sources[m].adapter.empty() == with_adapter) continue;
      context.throw_if_stopped();
      const Model* base = nullptr;
      for (std::size_t other = 0; with_adapter && other < names.size(); ++other)
        if (sources[other].adapter.empty() && loaded[other] &&
            sources[other].folder == sources[m].folder)
          base = loaded[other].get();
      loaded[m] = sources[m].load(options, base);
    }
  std::vector<LoadedModel> models;
  for (std::size_t m = 0; m < names.size(); ++m)
    models.emplace_back(shown[m], labels[m], std::move(loaded[m]), sources[m].folder);
  return models;
}

}  // namespace filigree::study
