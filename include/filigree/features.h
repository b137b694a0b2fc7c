// Features of the MLPs: transcoders, their training, quality and index.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "filigree/autograd.h"
#include "filigree/model.h"
#include "filigree/names.h"
#include "filigree/ops.h"
#include "filigree/ranks.h"
#include "filigree/taps.h"
#include "filigree/tokenizer.h"
#include "filigree/weights.h"

namespace filigree {

struct EvaluationWindows;

// -------------------------------------------------------------------------------------------------
// A transcoder: features that read what a layer's MLP reads and write what MLPs write, those of the
// same layer (per-layer) or of that layer and all later ones (cross-layer).
//
//   h_l = W_enc[l] x_l + b_enc[l]        a_l = h_l where it passes (ops/sparse_encode), else 0
//   y_m = b_dec[m] + sum over sources l of W_dec[l -> m]^T a_l  [+ W_skip[m] x_m]
//
// Inputs and outputs are [layers, tokens, width]. A process may hold some of the features of every
// layer; what they write is then summed over the processes.

enum class TranscoderKind { kCrossLayer, kPerLayer };
template <>
inline constexpr auto kNames<TranscoderKind> = std::to_array<Named<TranscoderKind>>(
    {{TranscoderKind::kCrossLayer, "cross-layer"}, {TranscoderKind::kPerLayer, "per-layer"}});

enum class FeatureActivation { kRelu, kJumpRelu, kTopK, kBatchTopK };
template <>
inline constexpr auto kNames<FeatureActivation> =
    std::to_array<Named<FeatureActivation>>({{FeatureActivation::kRelu, "relu"},
                                             {FeatureActivation::kJumpRelu, "jump-relu"},
                                             {FeatureActivation::kTopK, "top-k"},
                                             {FeatureActivation::kBatchTopK, "batch-top-k"}});

struct TranscoderShape {
  TranscoderKind kind = TranscoderKind::kCrossLayer;
  std::int64_t layers = 0, width = 0;
  std::int64_t features = 0;  // of each layer
  bool skip = false;          // W_skip, of per-layer ones as the file formats have it

  // Targets that the features of a layer write to, from that layer on.
  std::int64_t reach(std::int64_t layer) const {
    return kind == TranscoderKind::kCrossLayer ? layers - layer : 1;
  }
  std::int64_t parameters() const;  // numbers, all features
};

// Throws Error for sizes that make no sense.
void check_shape(const TranscoderShape& shape);

// A range of the features of every layer.
struct FeatureRange {
  std::int64_t begin = 0, end = 0;
  std::int64_t count() const { return end - begin; }
};
// The part of one of several processes.
FeatureRange features_of_rank(std::int64_t features, int rank, int size);

struct TranscoderLayer {
  Variable encoder;        // [features, width]
  Variable encoder_bias;   // [features]
  Variable log_threshold;  // [features] of JumpReLU, else undefined
  Variable decoder;        // [features, reach * width]
  Variable skip;           // [width, width] or undefined: y += W_skip x
};

struct Activity {
  std::vector<SparseCode> codes;  // of each layer
  std::vector<Variable> below;    // of each layer, if asked for
  std::vector<float> bounds;      // of batch-top-k; not in training on a GPU
};

struct ActivityOptions {
  std::int64_t k = 0;      // of top-k and batch-top-k
  float bandwidth = 0.0f;  // of JumpReLU's gradient
  bool below = false;
};

class Transcoder {
 public:
  // All parameters zero, thresholds 1.
  Transcoder(const TranscoderShape& shape, FeatureActivation activation, FeatureRange features,
             const Placement& placement = {});

  const TranscoderShape& shape() const { return shape_; }
  FeatureActivation activation() const { return activation_; }
  const FeatureRange& features() const { return features_; }
  bool whole() const { return features_.count() == shape_.features; }
  const Placement& placement() const { return placement_; }

  std::vector<TranscoderLayer>& layers() { return layers_; }
  const std::vector<TranscoderLayer>& layers() const { return layers_; }
  const Variable& decoder_bias() const { return decoder_bias_; }  // [layers, 1, width]

  // Names as circuit-tracer's files have them, with "log_threshold_0" and "W_skip_0".
  std::vector<NamedParameter> feature_parameters() const;
  std::vector<NamedParameter> shared_parameters() const;

  // Which features are active. `inputs` is [layers, tokens, width] in the placement's precision.
  Activity encode(const Tensor& inputs, const ActivityOptions& options,
                  Communicator* ranks = nullptr) const;
  // Those of one layer alone, of inputs [tokens, width], to which gradients flow back.
  Encoded encode_layer(std::int64_t layer, const Variable& inputs, const ActivityOptions& options,
                       Communicator* ranks = nullptr) const;
  // What they write: f32 [layers, tokens, width]. `inputs` are read by skips only.
  Variable decode(const std::vector<SparseCode>& codes, const Tensor& inputs,
                  Communicator* ranks = nullptr) const;
  // The same without the decoder bias, for whoever adds it in a pass of its own; its gradient is
  // then to be that of shared_decoder_bias().
  Variable decode_unbiased(const std::vector<SparseCode>& codes, const Tensor& inputs,
                           Communicator* ranks = nullptr) const;
  Variable shared_decoder_bias(Communicator* ranks = nullptr) const;
  // What those of one layer write to it and the layers that it reaches: f32 [reach, tokens, width],
  // without biases and skips.
  Variable decode_layer(std::int64_t layer, const SparseCode& code,
                        Communicator* ranks = nullptr) const;
  // What is written to a layer whatever is active, f32: its decoder bias [1, width], or with a skip
  // what that makes of the inputs too, [tokens, width].
  Variable written_always(std::int64_t layer, const Variable& inputs,
                          Communicator* ranks = nullptr) const;

  // The threshold itself, or undefined.
  Variable threshold(std::int64_t layer) const;

 private:
  EncoderWeights encoder_weights(std::int64_t layer) const;
  SparseEncodeOptions encode_options(const ActivityOptions& options, Communicator* ranks) const;
  Variable features_written(const std::vector<SparseCode>& codes, Communicator* ranks) const;
  Variable add_skips(const Variable& written, const Tensor& inputs, Communicator* ranks) const;

  TranscoderShape shape_;
  FeatureActivation activation_;
  FeatureRange features_;
  Placement placement_;
  std::vector<TranscoderLayer> layers_;
  Variable decoder_bias_;
};

// The sum over the processes of what each of them has written. The gradient of the sum is that of
// every part.
Variable sum_over_ranks(const Variable& part, Communicator& ranks);
// The other way round: a value that is the same on every process and of which each uses a part, so
// that its gradient is the sum of theirs.
Variable shared_by_ranks(const Variable& value, Communicator& ranks);

// Row r of target m of [layers, tokens, width], same memory.
Tensor layer_rows(const Tensor& all, std::int64_t layer);

// -------------------------------------------------------------------------------------------------
// What a transcoder is trained to make small, over a batch of tokens:
//
//   1/tokens ( sum |y^ - y|^2  +  lambda sum tanh(c a N)  +  lambda_P sum max(theta - h, 0) N )
//
// N is the norm of all that a feature writes, and carries gradient. The second term counts active
// features, the third pulls features that are never active towards where they would be.

struct Penalties {
  double sparsity = 0.0;    // lambda
  double saturation = 4.0;  // c
  double inactive = 0.0;    // lambda_P
};

struct TranscoderLoss {
  Variable loss;  // of this process: the whole error and the penalties of its features
  // Of all processes, per token: the three sums without their coefficients.
  double error = 0.0, sparsity = 0.0, inactive = 0.0;
  Activity activity;
  Tensor difference;  // y^ - y, [layers, tokens, width]
  // [2, layers] on the CPU: sums of squares of the difference, and of y about its mean.
  Tensor squares;
};

// Inputs and targets are [layers, tokens, width], the former in the transcoder's precision.
TranscoderLoss transcoder_loss(const Transcoder& transcoder, const Tensor& inputs,
                               const Tensor& targets, const ActivityOptions& options,
                               const Penalties& penalties, Communicator* ranks = nullptr);

// The norm of all that each feature of a layer writes, [features].
Variable decoder_norms(const TranscoderLayer& layer);

// -------------------------------------------------------------------------------------------------
// The features of a transcoder as studies use them, wherever they are kept: in memory, or in files
// of which only the rows that are needed are read.

// What features read and write in every layer: taps behind "blocks.L.".
struct FeatureHooks {
  std::string input = "ln2.hook_normalized";
  std::string output = "hook_mlp_out";

  std::string input_of(std::int64_t layer) const;
  std::string output_of(std::int64_t layer) const;
};

// Of some features of a layer, in the order they were asked for; f32 on the CPU.
struct FeatureRows {
  Tensor encoder;       // [features, width]
  Tensor encoder_bias;  // [features]
  Tensor threshold;     // [features]; zeros where they have none
  Tensor decoder;       // [features, reach, width]
};

class FeatureDictionary {
 public:
  virtual ~FeatureDictionary() = default;

  virtual const TranscoderShape& shape() const = 0;
  virtual FeatureActivation activation() const = 0;
  virtual const FeatureHooks& hooks() const = 0;

  // The features that are active, of inputs f32 [tokens, width] on the CPU.
  virtual SparseCode encode(std::int64_t layer, const Tensor& inputs) const = 0;
  // Throws Error for a feature that is not there.
  virtual FeatureRows rows(std::int64_t layer, std::span<const std::int32_t> features) const = 0;
  virtual Tensor decoder_bias(std::int64_t layer) const = 0;  // [width]
  virtual Tensor skip(std::int64_t layer) const = 0;          // [width, width] or undefined

  // Of every feature, its encoder row times x [width], and the sum of its first `targets` decoder
  // rows times x: [features].
  virtual Tensor encoder_products(std::int64_t layer, const Tensor& x) const;
  virtual Tensor decoder_products(std::int64_t layer, const Tensor& x, std::int64_t targets) const;

  // What a layer's active features write to each of its targets: [reach, tokens, width], without
  // biases and skips. Reads the rows of the active features, unless there is a shorter way.
  virtual Tensor written(std::int64_t layer, const SparseCode& code) const;
};

// Of a transcoder with all of its features on the CPU. `k` is of top-k.
std::unique_ptr<FeatureDictionary> dictionary_of(Transcoder transcoder, FeatureHooks hooks = {},
                                                 std::int64_t k = 0);

// The features of a code that are active in any of its rows, ascending.
std::vector<std::int32_t> active_features(const SparseCode& code);

// -------------------------------------------------------------------------------------------------
// Transcoders in files. What is written is circuit-tracer's layout, so that it loads them as they
// are; read are those of
//
//   circuit-tracer   config.yaml beside W_enc_0.safetensors, W_dec_0.safetensors, ... (cross-layer)
//                    or layer_0.safetensors, ... (per-layer, or the files that `transcoders` lists)
//   CLT-Forge        a checkpoint: one safetensors file; its scales are folded in
//   sparsify         a folder for each layer (layers.0.mlp) with cfg.json and a safetensors file
//   Gemma Scope      a folder for each layer (layer_0) with params.npz somewhere inside
//
// in f32, bf16 and f16, of circuit-tracer's also in 8 bits (matrix_type.h), which it does not know.
// docs/features.md has the tensors of each.

struct TranscoderExport {
  std::string model_name = {};
  FeatureHooks hooks = {};
  // Of each layer, what activations must exceed: of top-k and batch-top-k, which the layout does
  // not have. The features of a layer share it.
  std::vector<float> thresholds = {};
  MatrixType dtype = MatrixType::kF32;      // biases, thresholds and, with i8, skips are f32
  std::string scan = {};                    // where viewers find the features' pages; may be empty
  std::int64_t k = 0;                       // of top-k that stays so, instead of thresholds
  NotFinite not_finite = NotFinite::kKeep;  // of i8 they are always refused
};

// Replaces what a transcoder left in the folder. config.yaml is written last, after checksums.json,
// so that a folder with it is complete. Scales of inputs and outputs must be folded in already.
// Throws Error for a part of a transcoder, and for top-k without thresholds.
void write_transcoder(const std::filesystem::path& folder, const Transcoder& transcoder,
                      const TranscoderExport& options);

// Maps the files; nothing but biases and thresholds is read before it is needed. Throws Error for a
// folder that is none of the above, and for tensors that do not fit, naming file and tensor.
std::unique_ptr<FeatureDictionary> open_dictionary(const std::filesystem::path& path);

struct RewrittenTranscoder {
  TranscoderShape shape;
  std::string model_name;
  std::uint64_t bytes = 0;  // of the files
};
// The transcoder of `path` written anew into another folder, with one matrix in memory at a time.
// Hooks and k are its own, the model's name and scan too where the options have none.
RewrittenTranscoder rewrite_transcoder(const std::filesystem::path& path,
                                       const std::filesystem::path& folder,
                                       TranscoderExport options);

struct LoadedTranscoder {
  Transcoder transcoder;
  FeatureHooks hooks;
  std::int64_t k = 0;  // of top-k
};
// All of it in memory, for work that uses all of it. Thresholds go through their logarithms, and so
// may differ in their last bit.
LoadedTranscoder load_transcoder(const std::filesystem::path& path);

// -------------------------------------------------------------------------------------------------
// How well features stand in for a model's MLPs, on held-out text:
//
//   NMSE         sum |y - y^|^2 / sum |y - mean y|^2 of a layer, features active as in the plain
//   run recovered    (loss ablated - loss replaced) / (loss ablated - loss), ablated: MLPs at their
//   mean KL           of the plain model's predictions from the replaced one's, a token agreement
//   share of tokens whose likeliest next one is the same
//
// with all MLPs replaced, features recomputed layer by layer, and with those of one layer alone.
// The first position of every window is left out of the first line and keeps its MLPs in the
// others.

struct Replaced {
  double loss = 0.0;
  double ablated_loss = 0.0;
  double kl = 0.0;
  double agreement = 0.0;

  double recovered(double plain_loss) const {
    return (ablated_loss - loss) / (ablated_loss - plain_loss);
  }
};

struct LayerQuality {
  double nmse = 0.0;
  double l0 = 0.0;              // active features, a token
  std::vector<double> density;  // of each feature, the share of tokens at which it is active
  Replaced alone;               // if it was asked for

  double dead() const;                     // share of the features that are never active
  double dense(double above = 0.1) const;  // share that are active at more of the tokens
};

struct FeatureQuality {
  std::int64_t targets = 0;  // that the losses are of
  std::int64_t tokens = 0;   // that the others are of
  double loss = 0.0;         // of the plain model
  Replaced all;
  std::vector<LayerQuality> layers;
  bool layers_alone = false;

  double recovered() const { return all.recovered(loss); }
  double nmse() const;  // mean over layers
  double l0() const;    // of a layer, mean
  double dead() const;
  double dense(double above = 0.1) const;
};

// How many features have a density within each power of ten: 1e-6 and below up to 1, `steps` of
// each.
std::vector<std::int64_t> density_histogram(const FeatureQuality& quality, int steps = 2);

// Reads the windows twice, so `windows` makes them anew. Calls `progress` with the share done.
// Throws Error when the dictionary does not fit the model.
FeatureQuality measure_features(const Model& model, const FeatureDictionary& dictionary,
                                const std::function<EvaluationWindows()>& windows,
                                bool layers_alone,
                                const std::function<void(double)>& progress = {});

// Throws Error unless the dictionary has the model's layers and width, and its taps are there.
void check_fits(const FeatureDictionary& dictionary, const Model& model);

// -------------------------------------------------------------------------------------------------
// Runs in which features are other than they would be: what a feature writes to MLP outputs is
// changed by (value - activation) times its decoder rows, and everything behind is computed again.
//
//   L5F123=8     set to 8, wherever in the text; 0 takes it away, negative ones turn it round
//   L5F123=+8    8 more than it is (also L5F123+=8)
//   L5F123*=-2   times -2
//   L5F123@-1=8  at the last token only; the first is 0, negative ones count from the end
//
// The first token, which features are not trained on, is left as it is unless it is named.

enum class SteeringKind { kSet, kAdd, kMultiply };
template <>
inline constexpr auto kNames<SteeringKind> =
    std::to_array<Named<SteeringKind>>({{SteeringKind::kSet, "set"},
                                        {SteeringKind::kAdd, "add"},
                                        {SteeringKind::kMultiply, "multiply"}});

struct SteeringChange {
  FeatureId feature = {};
  SteeringKind kind = SteeringKind::kSet;
  double value = 0;
  std::optional<std::int64_t> position = {};  // none: every one but the first

  friend bool operator==(const SteeringChange&, const SteeringChange&) = default;
};

// Several with commas. Throws Error for what it cannot read.
std::vector<SteeringChange> parse_steering(std::string_view text);
// "L5F123 = 8", "L5F123 + 8", "L5F123@-1 x -2"; with commas.
std::string text_of(const SteeringChange& change);
std::string text_of(const std::vector<SteeringChange>& changes);

class SteeredFeatures {
 public:
  // The dictionary must outlive it. Throws Error for features that it does not have.
  SteeredFeatures(const FeatureDictionary& dictionary, std::vector<SteeringChange> changes);
  SteeredFeatures(const SteeredFeatures&) = delete;
  SteeredFeatures& operator=(const SteeredFeatures&) = delete;

  // Puts the changes on the taps of runs of one text, from the embeddings on. This object must
  // outlive the runs.
  void put_on(Taps& taps);

  // For texts that grow, pass by pass: the tokens before those of the next pass, and the length
  // from which negative positions count.
  void set_pass(std::int64_t first, std::int64_t length);

  const std::vector<SteeringChange>& changes() const { return changes_; }
  // What each feature was in the last pass before it was changed, by position.
  const std::vector<std::vector<float>>& activations() const { return activations_; }

 private:
  void read(std::int64_t layer, const Tensor& inputs);
  Variable written(std::int64_t layer, const Variable& output) const;

  const FeatureDictionary& dictionary_;
  std::vector<SteeringChange> changes_;
  std::vector<FeatureRows> rows_;                // of each change
  std::vector<std::vector<float>> activations_;  // of each change, of the pass at hand
  std::int64_t first_ = 0;
  std::optional<std::int64_t> length_ = {};
  std::int64_t total_ = 0;  // tokens up to the end of the pass at hand
};

// -------------------------------------------------------------------------------------------------
// What is known of a feature from the text that an index was made of.

// How often activations of each size occur: bins of an eighth of an octave, as many as 16 octaves
// below the largest have; what is smaller counts in the lowest.
class ActivationHistogram {
 public:
  static constexpr int kBins = 128;

  void add(float value, std::uint64_t count = 1);

  std::uint64_t total() const { return total_; }
  // The activation below which a share of them lies, within a bin's width.
  double quantile(double share) const;
  // By `bins` equal steps from `low` to `high`: shares that sum to 1.
  std::vector<double> shares(int bins, double low, double high) const;

  // Bins as files have them: a number that rises with the size, and how many.
  static int bin_of(float value);
  static float lower_bound(int bin);
  int first_bin() const { return first_; }
  const std::array<std::uint64_t, kBins>& counts() const { return counts_; }
  // Throws Error for a bin that no positive number has.
  void add_to_bin(int bin, std::uint64_t count);

 private:
  int first_ = 0;  // bin of counts_[0]
  std::uint64_t total_ = 0;
  std::array<std::uint64_t, kBins> counts_ = {};
};

// A token at which the feature is active, with those around it.
struct FeatureExample {
  std::uint64_t position = 0;           // of the token in the text, the first being 0
  float value = 0;                      // the activation there
  std::int64_t centre = 0;              // which of the tokens it is
  std::vector<TokenId> tokens = {};     // in the order of the text
  std::vector<float> activations = {};  // of each; three digits are kept
};

struct FeatureRecord {
  std::uint64_t count = 0;  // tokens at which it is active
  float min = 0, max = 0;   // of its activations there
  ActivationHistogram histogram = {};
  std::vector<FeatureExample> top = {};      // the largest, each of another window
  std::vector<FeatureExample> sampled = {};  // of all windows it is active in, by chance

  bool active() const { return count > 0; }
  double quantile(double share) const;
};

// A range of activations with the examples that are in it.
struct FeatureBand {
  double from = 0, to = 1;  // quantiles
  std::vector<const FeatureExample*> examples = {};
};
// `count` bands of equal shares, the highest first, with at most so many examples each.
std::vector<FeatureBand> quantile_bands(const FeatureRecord& record, int count,
                                        std::size_t examples);

// -------------------------------------------------------------------------------------------------
// The file of an index of features (docs/file_formats.md): a record for each feature of a
// transcoder, found by its number and read alone. Every record has a checksum, and so has the table
// of their places.

class AtomicFile;

// What an index is of.
struct FeatureIndexFacts {
  std::string model = {}, transcoder = {}, text = {};  // as they were named
  std::int64_t layers = 0, features = 0;               // of each layer
  std::uint64_t tokens = 0;                            // that were looked at
  std::int64_t length = 0;                             // tokens a window
  std::uint64_t tokenizer = 0;                         // tokenizer_fingerprint()
};

// Writes records in the order of layers and features.
class FeatureIndexWriter {
 public:
  FeatureIndexWriter(const std::filesystem::path& path, const FeatureIndexFacts& facts);
  ~FeatureIndexWriter();

  // The next feature's; nothing is written of one that was never active.
  void add(const FeatureRecord& record);
  // Throws Error unless all features have been added.
  void commit();

 private:
  std::unique_ptr<AtomicFile> file_;
  std::string header_;
  std::size_t features_;
  std::uint64_t position_ = 0;
  std::vector<std::uint64_t> offsets_ = {};
};

class FeatureIndex {
 public:
  // Throws Error naming the file when it is no index or is damaged.
  static FeatureIndex open(const std::filesystem::path& path);
  static FeatureIndex from_bytes(std::span<const std::byte> bytes, const std::string& source,
                                 std::shared_ptr<const void> owner = nullptr);

  const FeatureIndexFacts& facts() const { return facts_; }
  // Throws Error for a feature that is not there and for a damaged record.
  FeatureRecord record(const FeatureId& feature) const;
  // Share of the tokens at which a feature is active.
  double frequency(const FeatureRecord& record) const;
  const std::string& source() const { return source_; }

 private:
  FeatureIndex() = default;

  std::string source_;
  std::shared_ptr<const void> owner_;
  std::span<const std::byte> bytes_;
  FeatureIndexFacts facts_;
  std::vector<std::uint64_t> offsets_;
};

// -------------------------------------------------------------------------------------------------
// An index of features in the making: one pass over a text, in memory that the text's length does
// not change.
//
// Of each feature are kept a histogram, the windows in which it is most active, and windows chosen
// by chance among all in which it is active (a reservoir), at a token chosen by chance among those
// at which it is. What is kept of a window is where it is and the activations around the token; the
// tokens themselves are read again in the end.

struct IndexOptions {
  std::int64_t top = 10;                // examples of the largest activations
  std::int64_t sampled = 30;            // and of all others
  std::int64_t before = 23, after = 8;  // tokens around one
  std::uint64_t seed = 0;
};

class IndexBuilder {
 public:
  IndexBuilder(std::int64_t layers, std::int64_t features, const IndexOptions& options);

  // What a layer's features are at windows of `length` tokens, one after the other, the first of
  // which is token `begin` of the text. The first token of a window does not count.
  void add(std::int64_t layer, const SparseCode& code, std::uint64_t begin, std::int64_t length);

  // What is kept of a feature; `read` gives tokens of the text from a position on.
  using ReadTokens = std::function<void(std::uint64_t begin, std::span<TokenId> ids)>;
  FeatureRecord record(const FeatureId& feature, const ReadTokens& read) const;

  // Features that were active.
  std::int64_t active() const;
  // Memory that features take which are active often enough to have all of their examples.
  static std::uint64_t bytes_of_feature(const IndexOptions& options);

 private:
  struct Slot {
    std::uint64_t first = 0;  // token of the text
    std::uint16_t centre = 0;
    float value = 0;
    std::vector<std::uint16_t> activations = {};  // f16
  };
  struct State {
    std::uint64_t count = 0, windows = 0;
    float min = 0, max = 0;
    ActivationHistogram histogram = {};
    std::vector<Slot> top = {}, sampled = {};
  };
  struct Entries {  // of a feature in a window
    const std::int32_t* row = nullptr;
    const std::int32_t* entry = nullptr;
    std::int64_t count = 0;
    const float* value = nullptr;
    std::int64_t length = 0;   // tokens of a window
    std::uint64_t window = 0;  // first token of it
  };

  void add_window(State& state, std::uint64_t stream, const Entries& entries) const;
  Slot slot_of(const Entries& entries, std::int64_t which) const;

  std::int64_t features_;
  IndexOptions options_;
  std::vector<std::unique_ptr<State>> states_;  // null: never active
};

}  // namespace filigree
