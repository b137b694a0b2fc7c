#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/atomic_file.h"
#include "base/output_folder.h"
#include "filigree/error.h"
#include "filigree/feature_study.h"
#include "filigree/lens.h"
#include "filigree/trace_study.h"

namespace filigree::study {
namespace {

constexpr int kBands = 5, kHistogramBins = 40;

Json detail_example(const FeatureExample& example, const ShownTokens& shown) {
  Json tokens = Json::array(), activations = Json::array();
  for (const TokenId id : example.tokens) tokens.push_back(with_line_breaks(shown[id]));
  // Four digits are what the index has.
  for (const float value : example.activations)
    activations.push_back(value == 0 ? 0.0 : std::stod(fmt::format("{:.4g}", value)));
  return {{"tokens", tokens},
          {"tokens_acts_list", activations},
          {"train_token_ind", example.centre},
          {"is_repeated_datapoint", false}};
}

struct DetailSource {
  FeatureId feature;
  const FeatureRecord& record;
  double frequency;
  const std::vector<FeatureLogit>&raised, &lowered;
  const ShownTokens& shown;
  std::string transcoder;
  std::size_t examples;
};

Json detail_of(const DetailSource& source) {
  const FeatureRecord& record = source.record;
  Json quantiles = Json::array();
  const auto add = [&](const std::string& name, const std::vector<const FeatureExample*>& list) {
    Json examples = Json::array();
    for (const FeatureExample* example : list)
      examples.push_back(detail_example(*example, source.shown));
    quantiles.push_back({{"quantile_name", name}, {"examples", examples}});
  };
  std::vector<const FeatureExample*> top;
  for (const FeatureExample& example : record.top) top.push_back(&example);
  add("Largest activations", top);
  if (record.active())
    for (const FeatureBand& band : quantile_bands(record, kBands, source.examples))
      add(fmt::format("Quantiles {:.0f} to {:.0f} %", 100 * band.from, 100 * band.to),
          band.examples);
  const auto tokens = [&](const std::vector<FeatureLogit>& list) {
    Json json = Json::array();
    for (const FeatureLogit& logit : list)
      json.push_back(with_line_breaks(source.shown[logit.token]));
    return json;
  };
  Json values = Json::array();
  for (int percent = 1; percent <= 100; ++percent)
    values.push_back(record.quantile(percent / 100.0));
  return {{"index", paired_number(source.feature.layer, source.feature.feature)},
          {"examples_quantiles", quantiles},
          {"top_logits", tokens(source.raised)},
          {"bottom_logits", tokens(source.lowered)},
          {"transcoder_id", source.transcoder},
          {"act_min", record.min},
          {"act_max", record.max},
          {"quantile_values", values},
          {"histogram", record.histogram.shares(kHistogramBins, record.min, record.max)},
          {"activation_frequency", source.frequency}};
}

// With zlib's own frame, or gzip's.
std::string deflated(const std::string& text, bool gzip) {
  z_stream stream = {};
  require(deflateInit2(&stream, 6, Z_DEFLATED, 15 + (gzip ? 16 : 0), 8, Z_DEFAULT_STRATEGY) == Z_OK,
          "features: zlib cannot begin");
  std::string packed(deflateBound(&stream, static_cast<uLong>(text.size())), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  const int code = deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  require(code == Z_STREAM_END, "features: zlib ended with {}", code);
  return packed;
}

// What features write, summed over the layers they write to, [features, width].
Tensor written_by(const FeatureDictionary& dictionary, std::int64_t layer,
                  std::span<const std::int32_t> features) {
  const FeatureRows rows = dictionary.rows(layer, features);
  const std::int64_t reach = rows.decoder.size(1), width = rows.decoder.size(2);
  Tensor sums = Tensor::zeros({static_cast<std::int64_t>(features.size()), width});
  for (std::int64_t f = 0; f < sums.size(0); ++f)
    for (std::int64_t j = 0; j < reach; ++j)
      for (std::int64_t d = 0; d < width; ++d)
        sums.mutable_f32()[f * width + d] += rows.decoder.f32()[(f * reach + j) * width + d];
  return sums;
}

// Records as they come, in one of the two layouts.
class DetailFiles {
 public:
  explicit DetailFiles(const FeatureExportRequest& request) : request_(request) {
    if (request.held == nullptr) out_.emplace(request.folder);
  }

  void begin_layer(std::int64_t layer) {
    if (request_.layout != FeatureLayout::kPacked) return;
    end_layer();
    name_ = fmt::format("layer_{}.bin", layer);
    file_ = std::make_unique<AtomicFile>(request_.folder / name_);
    offsets_ = {0};
  }

  void add(const FeatureId& feature, const Json& detail) {
    const std::string text = detail.dump();
    if (request_.layout == FeatureLayout::kFiles) {
      write_file_atomically(
          request_.folder / fmt::format("{}.json", paired_number(feature.layer, feature.feature)),
          text);
      count(text.size());
      return;
    }
    const std::string packed = deflated(text, false);
    const auto length = static_cast<std::uint32_t>(packed.size());
    std::string bytes(reinterpret_cast<const char*>(&length), sizeof length);
    bytes += packed;
    file_->write(bytes);
    offsets_.push_back(offsets_.back() + bytes.size());
    count(bytes.size());
  }

  FeatureExport finish() {
    if (request_.layout == FeatureLayout::kPacked) {
      end_layer();
      AtomicFile file(request_.folder / "index.json.gz");
      file.write(deflated(index_.dump(), true));
      file.commit();
    }
    return written_;
  }

 private:
  void end_layer() {
    if (!file_) return;
    file_->commit();
    file_.reset();
    index_[std::to_string(index_.size())] = {{"filename", name_}, {"offsets", offsets_}};
  }
  void count(std::size_t bytes) {
    ++written_.features;
    written_.bytes += bytes;
  }

  const FeatureExportRequest& request_;
  std::optional<OutputFolder> out_;  // where the caller has not opened it
  std::unique_ptr<AtomicFile> file_;
  std::string name_;
  std::vector<std::uint64_t> offsets_;
  Json index_ = Json::object();
  FeatureExport written_;
};

// Records of blocks of features, written as they are made.
class Exporter {
 public:
  Exporter(const FeatureExportRequest& request, const LoadedModel& model,
           const FeatureDictionary& dictionary)
      : request_(request),
        model_(model),
        dictionary_(dictionary),
        index_(open_feature_index(request.index, model, dictionary)),
        unembedding_(folded_unembedding(model.model())),
        name_(transcoder_name(request.features)),
        files_(request) {
    for (TokenId id = 0; id < model.config().vocabulary; ++id) shown_.add(model.tokenizer(), id);
  }

  void begin_layer(std::int64_t layer) { files_.begin_layer(layer); }

  void add(std::int64_t layer, std::span<const std::int32_t> block, bool silent_too) {
    const std::vector<FeatureLogits> logits =
        feature_logits(model_, unembedding_, written_by(dictionary_, layer, block), request_.top);
    for (std::size_t i = 0; i < block.size(); ++i) {
      const FeatureId feature{layer, block[i]};
      const FeatureRecord record = index_.record(feature);
      if (!silent_too && !record.active()) continue;
      files_.add(feature, detail_of({feature, record, index_.frequency(record), logits[i].raised,
                                     logits[i].lowered, shown_, name_, request_.examples}));
    }
  }

  FeatureExport finish() { return files_.finish(); }

 private:
  const FeatureExportRequest& request_;
  const LoadedModel& model_;
  const FeatureDictionary& dictionary_;
  const FeatureIndex index_;
  const Tensor unembedding_;
  const std::string name_;
  DetailFiles files_;
  ShownTokens shown_;
};

constexpr std::int64_t kBlock = 64;

}  // namespace

std::string transcoder_name(const std::string& folder) {
  const std::filesystem::path path = std::filesystem::path(folder).lexically_normal();
  return path.has_filename() ? path.filename().string() : path.parent_path().filename().string();
}

Json feature_detail(const FeaturePage& page) {
  return detail_of({page.feature, page.record, page.frequency, page.raised, page.lowered,
                    page.shown, transcoder_name(page.request.features), page.request.examples});
}

FeatureExport export_features(const FeatureExportRequest& request, const LoadedModel& model,
                              const FeatureDictionary& dictionary, const Context& context) {
  const TranscoderShape& shape = dictionary.shape();
  Exporter exporter(request, model, dictionary);
  const auto report = context.begin({"export", "features", shape.layers * shape.features});
  for (std::int64_t l = 0; l < shape.layers; ++l) {
    exporter.begin_layer(l);
    for (std::int64_t begin = 0; begin < shape.features; begin += kBlock) {
      context.throw_if_stopped();
      std::vector<std::int32_t> block(
          static_cast<std::size_t>(std::min(kBlock, shape.features - begin)));
      std::iota(block.begin(), block.end(), static_cast<std::int32_t>(begin));
      // What is packed is found by its place, so that none may be missing.
      exporter.add(l, block, request.layout == FeatureLayout::kPacked);
      report->update(l * shape.features + begin);
    }
  }
  report->finish();
  return exporter.finish();
}

FeatureExport export_chosen_features(const FeatureExportRequest& request,
                                     std::vector<FeatureId> features, const LoadedModel& model,
                                     const FeatureDictionary& dictionary, const Context& context) {
  require(request.layout == FeatureLayout::kFiles,
          "features: some of them cannot be packed; export them as files");
  std::sort(features.begin(), features.end());
  features.erase(std::unique(features.begin(), features.end()), features.end());
  Exporter exporter(request, model, dictionary);
  const auto report = context.begin({"export", "features", std::ssize(features)});
  std::vector<std::int32_t> block;
  for (std::size_t i = 0; i < features.size(); ++i) {
    block.push_back(static_cast<std::int32_t>(features[i].feature));
    const bool last = i + 1 == features.size() || features[i + 1].layer != features[i].layer;
    if (!last && std::ssize(block) < kBlock) continue;
    context.throw_if_stopped();
    exporter.add(features[i].layer, block, true);
    block.clear();
    report->update(static_cast<std::int64_t>(i) + 1);
  }
  report->finish();
  return exporter.finish();
}

}  // namespace filigree::study
