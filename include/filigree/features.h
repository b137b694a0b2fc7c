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
#include "filigree/data.h"
#include "filigree/evaluation.h"
#include "filigree/model.h"
#include "filigree/names.h"
#include "filigree/ops.h"
#include "filigree/ranks.h"
#include "filigree/sparsification.h"
#include "filigree/taps.h"
#include "filigree/tokenizer.h"
#include "filigree/train.h"
#include "filigree/weights.h"

namespace filigree {

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
// What a model's MLPs read and write, token by token, as batches to train a transcoder on. Nothing
// is kept on disk: the model runs on shuffled windows of the shards until a pool of a million
// tokens or so is full, batches are drawn from the pool in a shuffled order until it is used up,
// and the next pool is filled. The first position of every window is left out, whose activations
// are far larger than all others.
//
// A pool is a function of where the loader stood when it was begun, so that a run that is resumed
// fills it again and goes on with the same bits.
//
// From a given batch on, whole windows of text come instead, each with what the model made of it:
// for training through the model, where a token cannot be without those before it.
//
// Several processes fill a part of every pool each, and all get every batch whole. Windows pass
// through the model on each of them.

// Factors that bring inputs and outputs of each layer to a mean norm of sqrt(width).
struct ActivationScales {
  std::vector<float> input, output;
};

// Windows of text, and what the plain model's output layer read of them.
struct TextWindows {
  Tensor ids, targets;  // [B, T], and the tokens one place on
  Tensor hidden;        // [B, T, width]
  ActivationScales scales;
};

struct ActivationBatch {
  Tensor inputs;   // [layers, tokens, width], scaled, in the precision of the placement
  Tensor targets;  // f32, likewise
  std::optional<TextWindows> windows = {};  // that they are from, in order, if they are whole
};

struct ActivationOptions {
  FeatureHooks hooks = {};
  std::int64_t tokens = 4096;   // a batch
  std::int64_t pool = 1 << 20;  // tokens, at least; a batch at least
  std::int64_t length = 128;    // tokens a window
  std::int64_t windows = 16;    // that the model runs on at once, of all processes together
  std::uint64_t seed = 0;
  // The batch from which on whole windows come, about as many tokens of them; none: never.
  std::optional<std::int64_t> windows_from = {};
  // Called while a pool is filled.
  std::function<void(std::int64_t done, std::int64_t of)> filling = {};
};

class ActivationSource : public SourceOf<ActivationBatch> {
 public:
  // The model must outlive it. Throws Error for options that make no sense, taps that the model
  // does not have, or a split without a window of this length.
  ActivationSource(const Model& model, TokenSplit split, const ActivationOptions& options,
                   Communicator& ranks);

  // Estimated from the first pool, which is filled for it.
  const ActivationScales& scales();

  ActivationBatch next() override;
  ActivationBatch peek();  // the next one, which is not taken
  // The next batches are those of the pool at hand from its beginning, unless whole windows come:
  // for measurements after training, which need not wait for another pool.
  void begin_pool_again() {
    if (!gives_windows()) taken_ = 0;
  }
  // Whether the next batch is of whole windows.
  bool gives_windows() const;
  Settings settings() const override;
  nlohmann::json state() const override;
  void restore(const nlohmann::json& state) override;

  std::int64_t batches_of_a_pool() const;
  // What filling pools has taken so far, with the work of the device, and the memory of one.
  double filling_seconds() const { return filling_seconds_; }
  std::uint64_t pool_memory() const { return pool_memory_; }
  // Memory that the pool of one process takes on its device.
  static std::uint64_t pool_bytes(const ModelConfig& config, const ActivationOptions& options,
                                  const Placement& placement, int processes);
  // Whole windows of a batch.
  static std::int64_t windows_of_a_batch(const ActivationOptions& options);

 private:
  struct Pool {
    std::vector<Tensor> inputs, outputs;  // of each layer [own tokens, width]
  };

  std::int64_t passes() const;
  std::int64_t pool_tokens() const;
  void fill();
  void estimate_scales();
  Tensor drawn(const std::vector<Tensor>& layers, const std::vector<std::int32_t>& tokens,
               const std::vector<float>& scales, DType dtype) const;
  ShardLoader loader_at(const LoaderState& state) const;
  ShardLoader window_loader_at(const LoaderState& state) const;
  ActivationBatch next_windows();

  const Model& model_;
  TokenSplit split_;
  ActivationOptions options_;
  Communicator& ranks_;
  std::uint64_t model_checksum_;
  LoaderState pool_start_;  // where the loader stood
  LoaderState pool_end_;    // where it stands, once the pool is full
  std::uint64_t pool_number_ = 0;
  std::int64_t taken_ = 0;    // batches of the pool
  std::optional<Pool> pool_;  // empty: to be filled
  LoaderState windows_;       // where the loader of whole windows stands
  std::optional<ActivationScales> scales_;
  double filling_seconds_ = 0.0;
  std::uint64_t pool_memory_ = 0;
};

// -------------------------------------------------------------------------------------------------
// A transcoder as what a run trains: each process holds some of its features, and all hold the
// decoder biases and skips. With it is kept how often each feature is active of late.

struct TranscoderStart {
  std::uint64_t seed = 0;
  float threshold = 0.03f;  // of JumpReLU
  // The share of tokens at which each feature is active at first.
  double rate = 0.01;
};

// Encoders of random directions, whose length is about one, with biases such that each feature is
// active at the wanted share of the tokens given ([layers, tokens, width], scaled); decoders zero,
// decoder biases the mean of the targets.
void initialise(Transcoder& transcoder, const ActivationBatch& sample,
                const TranscoderStart& start);

// All values from another transcoder, whole and for activations as they are (fold_scales), whatever
// its activation: of JumpReLU its thresholds too. Throws Error where the shapes differ.
void begin_from(Transcoder& transcoder, Transcoder trained, const ActivationScales& scales);

class TranscoderTrainable : public Trainable {
 public:
  // The transcoder must outlive it. `settings` is of how it was made.
  TranscoderTrainable(Transcoder& transcoder, Settings start);

  Transcoder& transcoder() const { return transcoder_; }

  // The share of tokens at which each of this process's features was active, an average over some
  // past: f32 [layers, features] where the transcoder lies, and copied out layer by layer.
  Tensor& densities() { return densities_; }
  std::vector<std::vector<float>> density() const;

  std::vector<NamedParameter> parameters() const override;
  std::vector<NamedParameter> own_parameters() const override;
  Settings settings() const override;
  void save(const std::filesystem::path& folder, Communicator& ranks) const override;
  // Throws Error when it was saved by another number of processes.
  void restore(const std::filesystem::path& folder, Communicator& ranks) override;

 private:
  Transcoder& transcoder_;
  Settings start_;
  Tensor densities_;
};

// All features of all processes, on the CPU, on every process.
Transcoder gathered(const Transcoder& part, Communicator& ranks);

// For models as they are: the scales of training go into the weights.
void fold_scales(Transcoder& transcoder, const ActivationScales& scales);

// -------------------------------------------------------------------------------------------------
// What the training of a transcoder minimises: its loss (transcoder_loss.h), with as many active
// features as are wanted, and a second try for features that are never active.
//
// How many are active is given, not a coefficient: the top-k kinds take so many, at first more of
// them, and the coefficient of the others follows the number that is active (train/multiplier.h).
//
// Features that have not been active for long explain, as well as a few of them can, what the
// others leave unexplained (auxiliary loss): so they learn something that is missing, and come
// back.
//
// Batches of whole windows are also learnt from through the model: what it predicts with all MLPs
// replaced by the transcoder (trained_replacement.h) is to be what it predicts by itself,
//
//   loss = reconstruction + weight KL(plain || replaced)

struct TranscoderObjectiveOptions {
  double l0 = 16.0;        // features that are active at a token, of each layer on average
  std::int64_t steps = 1;  // of the run
  double ramp = 0.1;       // share of the steps in which the number falls to l0
  double first_l0 = 4.0;   // times l0 is where it falls from
  float bandwidth = 1.0f;  // of JumpReLU's gradient
  double inactive = 1e-4;  // lambda_P of the kinds that have a coefficient
  MultiplierOptions lambda = {
      .initial = 0.05, .least = 1e-4, .most = 1e3, .rate = 0.2, .gain = 1.0};
  double auxiliary = 1.0 / 32.0;          // weight of the second try; 0: there is none
  std::int64_t auxiliary_features = 512;  // of a layer, at a token
  std::int64_t dead_after = 500000;       // tokens without having been active
  double divergence = 0.1;                // weight of KL, of batches of whole windows
};

// The model that features stand in for, where it is trained through.
struct ReplacedModel {
  const Model* model = nullptr;
  FeatureHooks hooks = {};
};

class TranscoderObjective : public ObjectiveOn<ActivationBatch> {
 public:
  // What is trained must outlive it.
  // The model too, which batches of whole windows need.
  TranscoderObjective(TranscoderTrainable& trained, const TranscoderObjectiveOptions& options,
                      ReplacedModel replaced = {});

  Variable loss(const ActivationBatch& batch, std::int64_t micro_step, Communicator& ranks,
                Metrics& metrics) override;
  void after_step(const Metrics& metrics) override;
  Settings settings() const override;
  nlohmann::json state() const override;
  void restore(const nlohmann::json& state) override;

  // Wanted at a step.
  double wanted_l0(std::int64_t step) const;

 private:
  bool chooses() const;  // a top-k kind
  void observe(const TranscoderLoss& loss, Communicator& ranks, Metrics& metrics);
  float dead_below() const;  // density of a dead feature
  std::vector<std::int32_t> dead_features(std::size_t layer) const;
  void raise_dead();
  Variable auxiliary_loss(const ActivationBatch& batch, const Tensor& difference,
                          Communicator& ranks) const;
  Variable divergence(const TextWindows& windows, const ActivityOptions& activity,
                      Communicator& ranks) const;

  TranscoderTrainable& trained_;
  TranscoderObjectiveOptions options_;
  ReplacedModel replaced_;
  Multiplier lambda_;
  std::int64_t step_ = 0;
  bool any_dead_ = false;  // on any process, after the last step
  // Densities after the last step, copied when they are first asked for.
  mutable std::optional<std::vector<std::vector<float>>> density_;
};

// For a transcoder of a top-k kind: the bound of each layer above which `l0` features are active on
// average, of some batches from the beginning of the source's pool. The
// same on every process.
std::vector<float> calibrated_thresholds(const Transcoder& transcoder, ActivationSource& source,
                                         std::int64_t l0, int batches, Communicator& ranks);

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
