#include "serve/features_work.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/atomic_file.h"
#include "filigree/error.h"
#include "filigree/feature_study.h"
#include "filigree/features.h"
#include "filigree/model_study.h"
#include "filigree/study.h"
#include "filigree/trace_study.h"
#include "serve/scratch_folders.h"

namespace filigree::serve {
namespace {

namespace fs = std::filesystem;

constexpr double kHeldOutShare = 0.05;
constexpr std::uint64_t kBytesAToken = 6;  // of the tasks' sentences, more than there are
constexpr std::int64_t kBatch = 1024, kWindow = 128, kMeasuredTokens = 4096;

std::unique_ptr<FeatureDictionary> dictionary_of(const study::LoadedModel& model,
                                                 const fs::path& own) {
  try {
    return open_dictionary(own.empty() ? study::features_of_model("", model.name()) : own);
  } catch (const Error&) {  // names their folder
    fail("the transcoders of '{}' cannot be read; filigree features eval says why", model.label());
  }
}

fs::path write_text(const ScratchFolder& folder, const TrainingQuery& query,
                    const study::Context& context) {
  const fs::path file = folder.path() / "text.txt";
  if (!query.text.empty()) {
    write_file_atomically(file, query.text);
    return file;
  }
  study::CorpusRequest corpus;
  corpus.bytes = kBytesAToken * static_cast<std::uint64_t>(query.tokens);
  corpus.out = file;
  study::run(corpus, {}, context);
  return file;
}

study::FeatureTrainingResult train(const study::LoadedModel& model, const TrainingQuery& query,
                                   const ScratchFolder& folder, const study::Context& context) {
  study::PreparationRequest preparation;
  preparation.texts = {write_text(folder, query, context)};
  preparation.held_out_share = kHeldOutShare;
  preparation.out = folder.path() / "shards";
  preparation.tokenizer = model.folder().string();
  study::run(preparation, {}, context);
  study::FeatureTrainingRequest request;
  request.shards = preparation.out.string();
  request.out = (folder.path() / "features").string();
  request.kind = TranscoderKind::kPerLayer;
  request.features = query.features;
  request.tokens = query.tokens;
  request.batch = std::min(kBatch, query.tokens);
  request.length = std::min(kWindow, model.config().context);
  request.through_model = 0;
  request.checkpoint_every = request.steps();  // the session keeps the result alone
  request.held_out_tokens = kMeasuredTokens;
  request.objective.l0 = std::min<double>(request.objective.l0, 0.5 * double(query.features));
  study::Context beside_the_model = context;
  beside_the_model.placement = model.model().placement();
  return study::run(request, model, beside_the_model);
}

}  // namespace

TrainedFeatures::Trained TrainedFeatures::find(std::size_t model) const {
  const std::lock_guard lock(mutex_);
  return trained_.at(model);
}

void TrainedFeatures::keep(std::size_t model, Trained trained) {
  const std::lock_guard lock(mutex_);
  trained_.at(model) = std::move(trained);
}

bool has_features(const study::LoadedModel& model) {
  try {
    study::features_of_model("", model.name());
    return true;
  } catch (const Error&) {
    return false;
  }
}

JobResult trace_work(study::Models models, const TraceQuery& query, const TrainedFeatures& trained,
                     const study::Context& context) {
  std::vector<TrainedFeatures::Trained> own;  // held while they are read
  std::vector<study::FeaturesOfModel> through;
  for (const std::size_t m : query.models) {
    own.push_back(trained.find(m));
    if (own.back().path.empty() && !has_features(models[m])) continue;
    through.push_back(
        {&models[m], dictionary_of(models[m], own.back().path), models[m].label() + "-features"});
  }
  require(!through.empty(),
          "no model has transcoders beside it; train some here, or with filigree features train");
  const study::TraceResult result = study::run(query.request, through, context);
  JobResult done = {to_json(result)};
  for (std::size_t m = 0; m < result.through.size(); ++m)
    done.json["models"][m]["model"] = result.through[m].model->label();
  done.json["figures"] = Json::array();
  done.add_figure("Graph of features", study::graph_figure(result));
  try {
    done.add_figure("Heads that carry it", study::heads_figure(result));
  } catch (const Error&) {  // nothing is carried between tokens
  }
  return done;
}

JobResult training_work(study::Models models, const TrainingQuery& query, TrainedFeatures& trained,
                        const study::Context& context) {
  const study::LoadedModel& model = models[query.model];
  const std::shared_ptr<const ScratchFolder> folder = scratch_folder();
  study::FeatureTrainingResult result;
  hiding(*folder, [&] { result = train(model, query, *folder, context); });
  if (result.interrupted()) throw study::Stopped();
  trained.keep(query.model, {folder, folder->path() / "features"});
  const Json json = to_json(result);
  return {{{"model", model.label()},
           {"features", query.features},
           {"tokens", result.trained_tokens},
           {"steps", result.steps},
           {"held_out", json.value("held_out", Json())}}};
}

}  // namespace filigree::serve
