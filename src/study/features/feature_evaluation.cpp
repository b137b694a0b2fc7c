#include <fmt/format.h>

#include <cmath>

#include "base/stopwatch.h"
#include "filigree/device.h"
#include "filigree/error.h"
#include "filigree/feature_study.h"
#include "filigree/features.h"
#include "filigree/names.h"
#include "filigree/study.h"
#include "filigree/training_study.h"
#include "study/not_finite.h"

namespace filigree::study {
namespace {

constexpr int kHistogramSteps = 2;  // of a power of ten
// Work is shown in thousandths, because passes of very different lengths follow each other.
constexpr std::int64_t kParts = 1000;

// In memory where it takes a third of it at most, since all of it is used.
std::unique_ptr<FeatureDictionary> open_for_all(const std::string& name) {
  const std::filesystem::path path = features_path(name);
  std::unique_ptr<FeatureDictionary> stored = open_dictionary(path);
  const auto bytes = static_cast<std::uint64_t>(stored->shape().parameters()) * sizeof(float);
  if (bytes > list_devices().front().memory_bytes / 3) return stored;
  LoadedTranscoder loaded = load_transcoder(path);
  return dictionary_of(std::move(loaded.transcoder), loaded.hooks, loaded.k);
}

void require_finite(const FeatureQuality& quality, const LoadedModel& model,
                    const std::function<EvaluationWindows()>& windows,
                    const std::string& features) {
  std::vector<double> numbers = {quality.loss, quality.all.loss, quality.all.ablated_loss,
                                 quality.all.kl};
  for (const LayerQuality& layer : quality.layers)
    numbers.insert(numbers.end(), {layer.nmse, layer.alone.loss, layer.alone.ablated_loss});
  if (all_finite(numbers)) return;
  const EvaluationWindows again = windows();
  std::string source;
  for (std::optional<Batch> batch; source.empty() && (batch = again.next());)
    source = source_of_not_finite(model.model(), batch->ids);
  fail("the quality of the features of '{}' is not finite: {}", printable(model.label()),
       source.empty() ? what_the_transcoder_gave(features) : source);
}

FeatureQuality measured(const LoadedModel& model, const FeatureDictionary& dictionary,
                        const std::string& features,
                        const std::function<EvaluationWindows()>& windows, bool layers_alone,
                        const Context& context, const std::string& work) {
  const auto report = context.begin({work, "thousandths", kParts});
  FeatureQuality quality =
      measure_features(model.model(), dictionary, windows, layers_alone, [&](double done) {
        context.throw_if_stopped();
        report->update(std::llround(done * static_cast<double>(kParts)));
      });
  report->finish();
  require_finite(quality, model, windows, features);
  return quality;
}

Json to_json(const Replaced& replaced, double plain) {
  return {{"loss", replaced.loss},
          {"ablated_loss", replaced.ablated_loss},
          {"recovered", replaced.recovered(plain)},
          {"kl", replaced.kl},
          {"top1_agreement", replaced.agreement}};
}

EvaluatedFeatures evaluate_one(const LoadedModel& model, const std::string& features,
                               const FeatureEvaluationRequest& request, const Context& context) {
  const Stopwatch watch;
  const std::unique_ptr<FeatureDictionary> dictionary = open_for_all(features);
  std::vector<TokenId> ids;
  std::function<EvaluationWindows()> windows;
  if (const auto* text = std::get_if<EvaluationText>(&request.data)) {
    ids = encode_text(model.tokenizer(), text->text, text->source);
    require(ids.size() >= 2, "{} is a single token for '{}'; a loss needs at least two",
            text->source, printable(model.name()));
    check_ids(ids, model.config().vocabulary, model.name());
    windows = [&] { return text_windows(ids, request.windows, model.config()); };
  } else {
    const auto& shards = std::get<EvaluationShards>(request.data);
    check_shards_fit(shards.shards.index(), shards.folder, model.folder(), model.config());
    windows = [&] {
      return shard_windows(shards.shards.split(name_of(shards.split)), request.windows,
                           model.config());
    };
  }
  EvaluatedFeatures result{model.name(), model.label(), features, dictionary->shape(), {}, 0.0};
  result.quality = measured(model, *dictionary, features, windows, request.layers_alone, context,
                            model.label() + " features");
  result.seconds = watch.seconds();
  return result;
}

}  // namespace

FeatureQuality evaluate_features(const LoadedModel& model, const FeatureDictionary& dictionary,
                                 const TokenSplit& split, const WindowOptions& windows,
                                 bool layers_alone, const Context& context,
                                 const std::string& work) {
  return measured(
      model, dictionary, work, [&] { return shard_windows(split, windows, model.config()); },
      layers_alone, context, work);
}

std::vector<EvaluatedFeatures> run(const FeatureEvaluationRequest& request, Models models,
                                   const Context& context) {
  std::vector<std::string> features = request.features;
  if (features.empty())
    for (const LoadedModel& model : models)
      features.push_back(features_of_model("", model.name()).string());
  if (models.empty() || models.size() != features.size())
    throw RequestError(fmt::format("{} models and {} transcoders; give one for each model",
                                   models.size(), features.size()));
  std::vector<EvaluatedFeatures> results;
  for (std::size_t i = 0; i < models.size(); ++i)
    results.push_back(evaluate_one(models[i], features[i], request, context));
  return results;
}

Json to_json(const FeatureQuality& quality) {
  Json layers = Json::array();
  for (std::size_t l = 0; l < quality.layers.size(); ++l) {
    const LayerQuality& layer = quality.layers[l];
    layers.push_back(
        {{"layer", l},
         {"nmse", layer.nmse},
         {"l0", layer.l0},
         {"dead", layer.dead()},
         {"dense", layer.dense()},
         {"replaced_alone", quality.layers_alone ? to_json(layer.alone, quality.loss) : Json()}});
  }
  return {{"targets", quality.targets},
          {"tokens", quality.tokens},
          {"loss", quality.loss},
          {"nmse", quality.nmse()},
          {"l0", quality.l0()},
          {"dead", quality.dead()},
          {"dense", quality.dense()},
          {"replaced", to_json(quality.all, quality.loss)},
          {"density_histogram", density_histogram(quality, kHistogramSteps)},
          {"layers", layers}};
}

Json to_json(const std::vector<EvaluatedFeatures>& models) {
  Json all = Json::array();
  for (const EvaluatedFeatures& model : models)
    all.push_back({{"model", model.model},
                   {"label", model.label},
                   {"features", model.features},
                   {"kind", name_of(model.shape.kind)},
                   {"features_a_layer", model.shape.features},
                   {"quality", to_json(model.quality)},
                   {"seconds", model.seconds}});
  return all;
}

}  // namespace filigree::study
