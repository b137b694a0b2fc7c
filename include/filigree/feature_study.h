// Transcoders: trained, judged, indexed, converted, used to steer.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "filigree/evaluation_study.h"
#include "filigree/feature_training.h"
#include "filigree/features.h"
#include "filigree/knobs.h"
#include "filigree/names.h"
#include "filigree/study.h"
#include "filigree/study_figures.h"
#include "filigree/train.h"
#include "filigree/training_study.h"
#include "filigree/weights.h"

namespace filigree::study {

// -------------------------------------------------------------------------------------------------
// Trains a transcoder on what a model's MLPs read and write, streamed from the model while it
// trains, and leaves a folder that circuit-tracer reads (features/files).

struct FeatureTrainingRequest {
  std::string shards;  // made with the model's tokenizer
  std::string out = {};
  std::string from = {};  // a transcoder to go on with: its kind, sizes and hooks; empty: a new one
  TranscoderKind kind = TranscoderKind::kCrossLayer;
  FeatureActivation activation = FeatureActivation::kBatchTopK;
  std::int64_t features = 0;  // of a layer; 0: 16 times the model's width
  bool skip = false;
  FeatureHooks hooks = {};
  std::int64_t tokens = 50'000'000;  // of the run
  std::int64_t batch = 4096;         // tokens
  std::int64_t pool = 0;             // tokens that are shuffled together; 0: a million if they fit
  std::int64_t length = 0;           // tokens a window; 0: the model's context
  double learning_rate = 0.0;        // 0: 1e-3 for 2,048 features, less for more
  double final_share = 0.05;
  double clip = 1.0;
  // Of the steps, the last ones, in which it also learns through the model.
  double through_model = 0.2;
  MatrixType stored = MatrixType::kF32;  // of the files
  std::int64_t log_every = 10;
  std::int64_t checkpoint_every = 500;
  int keep = 2;
  bool resume = false;
  std::int64_t held_out_tokens = 50000;       // that the result is measured on; 0: it is not
  TranscoderObjectiveOptions objective = {};  // its steps follow from the tokens

  std::int64_t steps() const { return (tokens + batch - 1) / batch; }
  std::int64_t steps_through_model() const;
};

Knobs knobs_of(FeatureTrainingRequest& request);

// How large a run is, before anything is done.
struct FeatureTrainingPlan {
  std::string out;
  TranscoderShape shape;
  std::int64_t steps = 0, tokens = 0, pool = 0;
  std::int64_t steps_through_model = 0;
  double learning_rate = 0.0;
  std::uint64_t train_tokens = 0;  // that there are
  // Memory of each process, in bytes.
  std::uint64_t state = 0;  // weights, gradients and moments
  std::uint64_t pool_bytes = 0;
  std::uint64_t model = 0;
  std::uint64_t batch = 0;  // what a step keeps
  std::uint64_t through_model =
      0;  // what it keeps besides, through the model; the pool is then gone

  std::uint64_t total_bytes() const {
    return state + std::max(pool_bytes, through_model) + model + batch;
  }
};

struct FeatureTrainingResult {
  FeatureTrainingPlan plan;
  RunEnd end = RunEnd::kFinished;
  std::int64_t steps = 0;  // done in all
  std::int64_t resumed_from = 0;
  std::int64_t trained_tokens = 0;  // by this call
  double seconds = 0.0;
  double model_seconds = 0.0;  // of these, in the model's forward passes
  double step_seconds = 0.0;   // of a step without them, the median of the later half
  // Most that was in use at once while it trained, and the activations that it drew from in it.
  std::uint64_t peak_memory = 0, pool_memory = 0;
  Metrics last_step;
  std::optional<FeatureQuality> held_out;

  bool interrupted() const { return end == RunEnd::kInterrupted; }
};

// Throws RequestError for values that do not go together, and Error when the run cannot fit into
// the memory of its device, naming what would help.
FeatureTrainingPlan plan(const FeatureTrainingRequest& request, Models models,
                         const Context& context);
// The same of a model that is loaded, where the context says; the request names it.
FeatureTrainingResult run(const FeatureTrainingRequest& request, Models models,
                          const Context& context);

Json to_json(const FeatureTrainingPlan& plan);
Json to_json(const FeatureTrainingResult& result);

// -------------------------------------------------------------------------------------------------
// How well transcoders stand in for the MLPs of their models, side by side.

struct FeatureEvaluationRequest {
  std::vector<std::string> features;  // of each model, folders or names; empty: those beside them
  std::variant<EvaluationText, EvaluationShards> data;
  WindowOptions windows = {.max_tokens = 32768};
  bool layers_alone = true;
};

struct EvaluatedFeatures {
  std::string model, label;
  std::string features;
  TranscoderShape shape;
  FeatureQuality quality;
  double seconds = 0.0;
};

// Throws RequestError unless there are as many transcoders as models, and Error when one does not
// fit its model or the data.
std::vector<EvaluatedFeatures> run(const FeatureEvaluationRequest& request, Models models,
                                   const Context& context);

// Of a split that is known to fit; shows its progress as `work`.
FeatureQuality evaluate_features(const LoadedModel& model, const FeatureDictionary& dictionary,
                                 const TokenSplit& split, const WindowOptions& windows,
                                 bool layers_alone, const Context& context,
                                 const std::string& work);

Json to_json(const FeatureQuality& quality);

using NamedQuality = std::pair<std::string, FeatureQuality>;

// A line a model; without names for one.
std::string quality_table(const std::vector<NamedQuality>& models);
// A line a layer, with what replacing it alone does where that was measured.
std::string layer_quality_table(const FeatureQuality& quality);
// How many features are active how often.
std::string density_text(const FeatureQuality& quality);

Json to_json(const std::vector<EvaluatedFeatures>& models);

// -------------------------------------------------------------------------------------------------
// How well transcoders stand in for MLPs, drawn.

// The ending of the path chooses the format. The recovery of layers is drawn where it was measured.
void save_quality_figure(const std::vector<EvaluatedFeatures>& models,
                         const std::filesystem::path& path, const FigureStyle& style);

// -------------------------------------------------------------------------------------------------
// An index of a transcoder's features over a text: when each is active, how strongly, and where.

struct IndexRequest {
  std::string features = {};  // folder of the transcoder
  std::variant<EvaluationText, EvaluationShards> data = {};
  std::string text = {};  // what the data is called
  WindowOptions windows = {};
  IndexOptions options = {};
  std::filesystem::path out = {};
};

Knobs knobs_of(IndexRequest& request);

struct IndexedLayer {
  std::int64_t layer = 0;
  double l0 = 0;            // features that are active at a token, in the mean
  std::int64_t silent = 0;  // that never are
};

struct IndexResult {
  std::string model = {};
  IndexRequest request = {};
  FeatureIndexFacts facts = {};
  std::vector<IndexedLayer> layers = {};
  std::uint64_t bytes = 0;  // of the file
  double seconds = 0;
};

// The features of a folder, held to a model. Throws Error when they are of another one's sizes or
// taps.
std::unique_ptr<FeatureDictionary> open_features(const std::string& folder, const Model& model);

// Throws Error for a text that does not fit the model, and for features that do not.
IndexResult run(const IndexRequest& request, Models models, const Context& context);

Json to_json(const IndexResult& result);

// -------------------------------------------------------------------------------------------------
// What one feature is: when it is active, what it writes, whom it reads and who reads it, and a few
// words for it.

struct FeatureRequest {
  std::string feature = {};          // "L5F123"
  std::string features = {};         // folder of the transcoder
  std::filesystem::path index = {};  // "": what weights tell, and no more
  std::size_t top = 10;              // of each list
  std::size_t examples = 6;          // of each range of activations
};

// What a unit of the feature adds to a token's logit on the direct way: everything that it writes,
// summed over the layers it writes to, through the final norm's gain (its scale held at 1) and the
// unembedding, less the mean over all tokens.
struct FeatureLogit {
  TokenId token = 0;
  double effect = 0;
};

// By weights: what the earlier one writes before the later one reads, times the latter's encoder
// row through its norm's gain; the norm's scale held at 1.
struct FeaturePartner {
  FeatureId feature = {};
  double weight = 0;
};

struct FeatureWrite {
  std::int64_t layer = 0;
  double norm = 0;  // of the decoder row
};

// A token at which the feature is largest, over the examples of the largest activations.
struct FeatureToken {
  TokenId token = 0;
  double share = 0;  // of the examples
};

// Of a token as it is shown: line breaks and tabs themselves, not as \x0a and \x09.
std::string with_line_breaks(std::string shown);
// The same as one line: ↵ and ⇥.
std::string in_one_line(const std::string& shown);

struct FeaturePage {
  FeatureRequest request = {};
  std::string model = {}, label = {};
  FeatureId feature = {};
  TranscoderShape shape = {};
  FeatureActivation activation = FeatureActivation::kRelu;
  double encoder_norm = 0, encoder_bias = 0, threshold = 0;
  std::vector<FeatureWrite> writes = {};
  std::vector<FeatureLogit> raised = {}, lowered = {};
  std::vector<FeaturePartner> reads = {}, read_by = {};  // earlier and later ones
  std::optional<FeatureIndexFacts> indexed = {};
  FeatureRecord record = {};  // of the index
  double frequency = 0;
  std::vector<FeatureToken> tokens = {};
  ShownTokens shown = {};

  // A token as it is in the text, with its line breaks; bytes that are no text are \xNN.
  std::string text_of(TokenId id) const { return with_line_breaks(shown[id]); }
  // A few words: the tokens at which it is largest, and those that it raises.
  std::string words() const;
};

// Throws Error for a feature that is not there, and for an index of another model or transcoder.
FeaturePage describe_feature(const FeatureRequest& request, const LoadedModel& model,
                             const FeatureDictionary& dictionary);

Json to_json(const FeaturePage& page);
std::string text_of(const FeaturePage& page);

// The index of a folder's features. Throws Error when it is of other sizes or another tokenizer.
FeatureIndex open_feature_index(const std::filesystem::path& file, const LoadedModel& model,
                                const FeatureDictionary& dictionary);

// The tokens whose logits features raise and lower most, from what they write [features, width].
struct FeatureLogits {
  std::vector<FeatureLogit> raised = {}, lowered = {};
};
std::vector<FeatureLogits> feature_logits(const LoadedModel& model, const Tensor& unembedding,
                                          const Tensor& written, std::size_t top);

}  // namespace filigree::study

namespace filigree {

// -------------------------------------------------------------------------------------------------
// Features as circuit-tracer's and Neuronpedia's viewers read them.
//
//   one record     JSON: index, examples_quantiles, top_logits, bottom_logits, act_min, act_max,
//                  quantile_values, histogram, activation_frequency, transcoder_id
//   files          a folder of <number>.json, the number pairing layer and feature
//   packed         layer_<layer>.bin, records one after the other, each its length in four bytes
//   and
//                  the JSON deflated; index.json.gz has file and offsets by layer

class OutputFolder;
}  // namespace filigree

namespace filigree::study {

enum class FeatureLayout { kPacked, kFiles };

Json feature_detail(const FeaturePage& page);

struct FeatureExportRequest {
  std::string features = {};         // folder of the transcoder
  std::filesystem::path index = {};  // of its features
  std::filesystem::path folder = {};
  const OutputFolder* held = nullptr;  // the same, where the caller has opened it before the work
  FeatureLayout layout = FeatureLayout::kPacked;
  std::size_t top = 10, examples = 6;
};

struct FeatureExport {
  std::int64_t features = 0;  // records
  std::uint64_t bytes = 0;
};

// Of files, those of features that are active in the index; packed, all. Throws Error as
// describe_feature() does.
FeatureExport export_features(const FeatureExportRequest& request, const LoadedModel& model,
                              const FeatureDictionary& dictionary, const Context& context);
// Of these features alone, as files, also of those that the index has never seen active.
FeatureExport export_chosen_features(const FeatureExportRequest& request,
                                     std::vector<FeatureId> features, const LoadedModel& model,
                                     const FeatureDictionary& dictionary, const Context& context);

// The transcoder's folder without what is above it.
std::string transcoder_name(const std::string& folder);

}  // namespace filigree::study

namespace filigree {
template <>
inline constexpr auto kNames<study::FeatureLayout> = std::to_array<Named<study::FeatureLayout>>(
    {{study::FeatureLayout::kPacked, "packed"}, {study::FeatureLayout::kFiles, "files"}});
}  // namespace filigree

namespace filigree::study {

// -------------------------------------------------------------------------------------------------
// A transcoder of any layout that is read, written anew in circuit-tracer's, with its matrices in
// the type that is asked for.

// Whether a command that takes models and transcoders was given a transcoder: a folder or file of one
// of the layouts that are read, or a name that is one of a transcoder and of no model.
bool is_transcoder(const std::string& name);

struct FeatureConversionRequest {
  std::string features = {};  // folder, file or name
  std::filesystem::path out = {};
  MatrixType dtype = MatrixType::kF32;
  NotFinite not_finite = NotFinite::kRefuse;
  std::string model_name = {};  // that the result is said to be of; empty: as before
};

struct FeatureConversion {
  FeatureConversionRequest request;
  RewrittenTranscoder written;
};

// Throws Error when `out` holds a transcoder already, and for numbers that are not finite or too
// large for the type.
FeatureConversion run(const FeatureConversionRequest& request, Models models,
                      const Context& context);

Json to_json(const FeatureConversion& conversion);

// -------------------------------------------------------------------------------------------------
// Changes of features (filigree/features.h) as studies take them: with the folder of a transcoder,
// and as JSON.

class Steering {
 public:
  // Without a folder, of the features that lie beside the model. Throws RequestError when there are
  // none, and Error for features that do not fit the model.
  Steering(const std::string& folder, const std::vector<SteeringChange>& changes,
           const LoadedModel& model);

  SteeredFeatures& features() { return *steered_; }
  // Throws Error when a change is at a position that a run of `length` tokens does not have.
  void check_positions(std::int64_t length) const;

 private:
  std::unique_ptr<FeatureDictionary> dictionary_;
  std::unique_ptr<SteeredFeatures> steered_;
};

Json to_json(const SteeringChange& change);
Json to_json(const std::vector<SteeringChange>& changes);

}  // namespace filigree::study
