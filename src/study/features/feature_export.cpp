#include "filigree/study/features/feature_export.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "filigree/analyze/lens/head_matrices.h"
#include "filigree/base/atomic_file.h"
#include "filigree/base/error.h"
#include "filigree/study/trace/graph_files.h"

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

std::string transcoder_name(const std::string& folder) {
  const std::filesystem::path path = std::filesystem::path(folder).lexically_normal();
  return path.has_filename() ? path.filename().string() : path.parent_path().filename().string();
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
    std::filesystem::create_directories(request.folder);
  }

  void begin_layer(std::int64_t layer) {
    if (request_.layout != FeatureLayout::kPacked) return;
    end_layer();
    name_ = fmt::format("layer_{}.bin", layer);
    file_ = std::make_unique<AtomicFile>(request_.folder / name_);
    offsets_ = {0};
  }

  void add(const FeatureId& feature, const FeatureRecord& record, const Json& detail) {
    const std::string text = detail.dump();
    if (request_.layout == FeatureLayout::kFiles) {
      if (!record.active()) return;
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
  std::unique_ptr<AtomicFile> file_;
  std::string name_;
  std::vector<std::uint64_t> offsets_;
  Json index_ = Json::object();
  FeatureExport written_;
};

}  // namespace

Json feature_detail(const FeaturePage& page) {
  return detail_of({page.feature, page.record, page.frequency, page.raised, page.lowered,
                    page.shown, transcoder_name(page.request.features), page.request.examples});
}

FeatureExport export_features(const FeatureExportRequest& request, const LoadedModel& model,
                              const FeatureDictionary& dictionary, const Context& context) {
  constexpr std::int64_t kBlock = 64;
  const FeatureIndex index = open_feature_index(request.index, model, dictionary);
  const TranscoderShape& shape = dictionary.shape();
  const Tensor unembedding = folded_unembedding(model.model());
  const std::string name = transcoder_name(request.features);
  DetailFiles files(request);
  ShownTokens shown;
  for (TokenId id = 0; id < model.config().vocabulary; ++id) shown.add(model.tokenizer(), id);
  const auto report = context.begin({"export", "features", shape.layers * shape.features});
  for (std::int64_t l = 0; l < shape.layers; ++l) {
    files.begin_layer(l);
    for (std::int64_t begin = 0; begin < shape.features; begin += kBlock) {
      context.throw_if_stopped();
      std::vector<std::int32_t> block(
          static_cast<std::size_t>(std::min(kBlock, shape.features - begin)));
      std::iota(block.begin(), block.end(), static_cast<std::int32_t>(begin));
      const std::vector<FeatureLogits> logits =
          feature_logits(model, unembedding, written_by(dictionary, l, block), request.top);
      for (std::size_t i = 0; i < block.size(); ++i) {
        const FeatureId feature{l, block[i]};
        const FeatureRecord record = index.record(feature);
        files.add(feature, record,
                  detail_of({feature, record, index.frequency(record), logits[i].raised,
                             logits[i].lowered, shown, name, request.examples}));
      }
      report->update(l * shape.features + begin);
    }
  }
  report->finish();
  return files.finish();
}

}  // namespace filigree::study
