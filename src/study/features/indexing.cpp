#include <algorithm>

#include "base/file_status.h"
#include "base/stopwatch.h"
#include "filigree/error.h"
#include "filigree/feature_study.h"
#include "filigree/features.h"
#include "filigree/interventions.h"
#include "filigree/names.h"
#include "filigree/study.h"
#include "filigree/training_study.h"
#include "study/not_finite.h"

namespace filigree::study {
namespace {

constexpr std::int64_t kTokensAtOnce = 2048;

// Windows of a text, and its tokens by their number.
struct IndexedText {
  EvaluationWindows windows;
  IndexBuilder::ReadTokens read;
};

IndexedText open_indexed_text(const IndexRequest& request, const LoadedModel& model,
                              const WindowOptions& windows, std::vector<TokenId>& ids) {
  if (const auto* shards = std::get_if<EvaluationShards>(&request.data)) {
    check_shards_fit(shards->shards.index(), shards->folder, model.folder(), model.config());
    const TokenSplit& split = shards->shards.split(name_of(shards->split));
    return {shard_windows(split, windows, model.config()),
            [&split](std::uint64_t begin, std::span<TokenId> to) { split.read(begin, to); }};
  }
  const auto& text = std::get<EvaluationText>(request.data);
  ids = encode_text(model.tokenizer(), text.text, text.source,
                    {.replace_invalid_utf8 = text.replace_invalid_utf8});
  require(ids.size() >= 2, "{} has less than two tokens; there is nothing to index", text.source);
  check_ids(ids, model.config().vocabulary, model.name());
  return {text_windows(ids, windows, model.config()),
          [&ids](std::uint64_t begin, std::span<TokenId> to) {
            std::copy_n(ids.begin() + static_cast<std::int64_t>(begin), to.size(), to.begin());
          }};
}

}  // namespace

std::unique_ptr<FeatureDictionary> open_features(const std::string& folder, const Model& model) {
  auto dictionary = open_dictionary(features_path(folder));
  const TranscoderShape& shape = dictionary->shape();
  const ModelConfig& config = model.config();
  require(shape.layers == config.layers && shape.width == config.width,
          "the features of '{}' are of a model of {} layers and width {}; this one has {} and {}",
          printable(folder), shape.layers, shape.width, config.layers, config.width);
  const std::vector<std::string>& taps = model.tap_names();
  for (const std::string& tap : {dictionary->hooks().input_of(0), dictionary->hooks().output_of(0)})
    if (std::find(taps.begin(), taps.end(), tap) == taps.end()) fail_no_tap(tap, model);
  return dictionary;
}

IndexResult run(const IndexRequest& request, Models models, const Context& context) {
  const LoadedModel& model = models.only();
  const Stopwatch watch;
  const auto dictionary = open_features(request.features, model.model());
  const TranscoderShape& shape = dictionary->shape();
  WindowOptions windows = request.windows;
  windows.length = window_length(windows, model.config());
  if (windows.length < 2) throw RequestError("windows of one token have no token that counts");
  if (windows.batch == 0) windows.batch = std::max<std::int64_t>(1, kTokensAtOnce / windows.length);
  std::vector<TokenId> ids;
  const IndexedText text = open_indexed_text(request, model, windows, ids);

  IndexOptions options = request.options;
  options.seed = context.seed;
  IndexBuilder builder(shape.layers, shape.features, options);
  std::uint64_t begin = 0, counted = 0;
  std::vector<std::uint64_t> entries(static_cast<std::size_t>(shape.layers), 0);
  Tensor running;  // the batch
  Taps taps;
  for (std::int64_t l = 0; l < shape.layers; ++l)
    taps.watch(dictionary->hooks().input_of(l), [&, l](std::string_view, const Tensor& value) {
      const std::int64_t B = value.size(0), T = value.size(1);
      const Tensor input = value.on_host().reshape({B * T, value.size(2)});
      const SparseCode code = dictionary->encode(l, input);
      if (!all_finite(input.values()) || !all_finite(code.value.value().values()))
        fail_not_finite("an activation of a feature", model.label(), model.model(), running,
                        what_the_transcoder_gave(request.features));
      for (std::int64_t b = 0; b < B; ++b)
        entries[static_cast<std::size_t>(l)] +=
            static_cast<std::uint64_t>(code.begin.i32()[(b + 1) * T] - code.begin.i32()[b * T + 1]);
      builder.add(l, code, begin, T);
    });
  const auto report = context.begin({"features", "tokens", text.windows.targets});
  while (const std::optional<Batch> batch = text.windows.next()) {
    context.throw_if_stopped();
    const std::int64_t B = batch->ids.size(0), T = batch->ids.size(1);
    running = batch->ids;
    model.model().final_hidden(batch->ids, {.taps = &taps});
    begin += static_cast<std::uint64_t>(B * T);
    counted += static_cast<std::uint64_t>(B * (T - 1));
    report->update(static_cast<std::int64_t>(begin));
  }
  report->finish();
  require(counted > 0, "the text has no token that counts");

  IndexResult result;
  result.model = model.name();
  result.request = request;
  result.facts = {model.name(),   request.features, request.text,   shape.layers,
                  shape.features, counted,          windows.length, 0};
  if (model.tokenizer_if_any() != nullptr)
    result.facts.tokenizer = tokenizer_fingerprint(model.tokenizer());
  FeatureIndexWriter writer(request.out, result.facts);
  for (std::int64_t l = 0; l < shape.layers; ++l) {
    IndexedLayer layer{l, static_cast<double>(entries[static_cast<std::size_t>(l)]) /
                              static_cast<double>(counted)};
    for (std::int64_t f = 0; f < shape.features; ++f) {
      const FeatureRecord record = builder.record({l, f}, text.read);
      if (!record.active()) ++layer.silent;
      writer.add(record);
    }
    context.throw_if_stopped();
    result.layers.push_back(layer);
  }
  writer.commit();
  result.bytes = bytes_of_file(request.out);
  result.seconds = watch.seconds();
  return result;
}

Json to_json(const IndexResult& result) {
  Json layers = Json::array();
  for (const IndexedLayer& layer : result.layers)
    layers.push_back({{"layer", layer.layer}, {"l0", layer.l0}, {"silent", layer.silent}});
  return {{"model", result.model},
          {"features", result.request.features},
          {"text", result.request.text},
          {"tokens", result.facts.tokens},
          {"length", result.facts.length},
          {"features_of_a_layer", result.facts.features},
          {"layers", layers},
          {"bytes", result.bytes},
          {"seconds", result.seconds}};
}

Knobs knobs_of(IndexRequest& request) {
  Knobs knobs;
  knobs.section("Examples");
  knobs.count({.name = "sampled", .what = "examples of all activations of a feature, by chance"},
              request.options.sampled, {.min = 0, .max = 1000});
  knobs.section("Windows");
  knobs.count(
      {.name = "batch", .what = "windows computed at once", .otherwise = "about 2048 tokens"},
      request.windows.batch, {.min = 1, .max = 1 << 20});
  return knobs;
}

}  // namespace filigree::study
