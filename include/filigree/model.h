// Models: configuration, weights, forward pass.
#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "filigree/activation.h"
#include "filigree/autograd.h"
#include "filigree/device.h"
#include "filigree/layers.h"
#include "filigree/names.h"
#include "filigree/taps.h"
#include "filigree/weights.h"

namespace filigree {

// -------------------------------------------------------------------------------------------------
// Where a model computes, and with which element type.

struct Placement {
  DeviceKind device = DeviceKind::kCpu;
  // Of activations: f32, or bf16 on the GPU, where parameters then have a bf16 copy beside their
  // f32 values.
  DType precision = DType::kF32;
};

// Throws Error when the device is missing or does not compute in that precision.
void check_placement(const Placement& placement);

// -------------------------------------------------------------------------------------------------
// What a model is, in terms that hold for every family.

// The gate of sparse attention (filigree/ops.h): the "gate" section of
// config.json,
//   "gate": {"bias": 2.0}              one bias for all heads
//   "gate": {"bias": [[...], ...]}     one a layer and head
// Other programs ignore the section and see an ordinary model.
struct GateConfig {
  std::vector<float> bias;  // one number, or layers * heads; empty: no gate

  bool on() const { return !bias.empty(); }
};

// How a model knows where a token stands.
enum class PositionKind {
  kLearned,      // a vector a position, added to the token's
  kRotary,       // queries and keys turned by the position (ops/rotary)
  kShortformer,  // a vector a position, added to what queries and keys read, in every layer
  kNone,         // by the causal mask alone
};

// filigree/layers.h
enum class MlpKind {
  kPlain,
  kGated,
  kSolu,     // x softmax(x) in place of an activation
  kExperts,  // several gated ones, some of which a router chooses for each token
  kNone,     // attention only
};

// What the MLP of a block reads.
enum class ResidualKind {
  kSequential,  // the stream after the attention
  kParallel,    // the stream that the attention reads too
};

// Where the norms of a block stand.
enum class BranchNorms {
  kBefore,  // in front of attention and MLP: what they read
  kAfter,   // behind them: what they add to the stream
  kBoth,
};

// What queries and keys are normalised over, before they are turned.
enum class QueryKeyNorm {
  kNone,
  kHead,      // each head by itself, with weights that all heads share
  kEachHead,  // each head by itself, with weights of its own
  kAllHeads,  // all heads together
};

// By how much rotary positions turn.
struct RotaryAngles {
  double base = 10000.0;
  RotaryScaling scaling = {};

  friend bool operator==(const RotaryAngles&, const RotaryAngles&) = default;
};

struct ModelConfig {
  std::string family;  // Hugging Face's model_type: "gpt2"
  std::int64_t layers = 0;
  std::int64_t heads = 0;
  std::int64_t key_heads = 0;  // key-value heads; equal to `heads` without grouping
  std::int64_t width = 0;      // of the residual stream
  std::int64_t head_width = 0;
  std::int64_t mlp_width = 0;
  std::int64_t context = 0;  // longest input
  std::int64_t vocabulary = 0;
  std::int64_t classes = 0;     // of which the logits are; 0: the tokens of the vocabulary
  bool tied_embeddings = true;  // the output matrix is the token embedding
  NormKind norm = NormKind::kLayer;
  double norm_epsilon = 1e-5;
  bool norm_around_one = false;  // weights of norms are stored less 1
  BranchNorms branch_norms = BranchNorms::kBefore;
  QueryKeyNorm query_key_norm = QueryKeyNorm::kNone;
  double embedding_scale = 1.0;  // what the tokens' vectors are multiplied with
  double logit_scale = 1.0;      // what the logits are multiplied with
  PositionKind positions = PositionKind::kLearned;
  std::int64_t first_position = 0;  // of kLearned: the row of the first token's vector
  // Of kRotary: elements of a head that are turned, from the first, and one more if it is odd.
  std::int64_t rotary_width = 0;
  double rotary_base = 10000.0;
  RotaryScaling rotary_scaling = {};
  std::optional<RotaryAngles> window_rotary = {};  // in place of these, of layers with a window
  std::vector<bool> turned = {};  // which layers have rotary positions; empty: all of them
  double attention_scale = 0.0;            // of the scores; 0: 1 / sqrt(head_width)
  bool scale_by_layer = false;             // divided further by the layer's number, counted from 1
  bool bidirectional = false;              // queries see the keys behind them too
  std::vector<std::int64_t> windows = {};  // keys that a query of each layer sees; 0 and empty: all
  float score_soft_cap = 0.0f;             // of the scores; 0: none
  float logit_soft_cap = 0.0f;             // of the logits; 0: none
  float clip_qkv = 0.0f;                   // bound of the elements of q, k and v; 0: none
  MlpKind mlp = MlpKind::kPlain;
  std::int64_t experts = 0, experts_per_token = 0;  // of kExperts
  bool expert_gates_sum_to_one = false;             // those that are chosen, by division
  Activation activation = Activation::kGeluNew;     // of the MLPs
  bool mlp_norm = false;                         // of kSolu: a layer norm of the hidden values
  ResidualKind residual = ResidualKind::kSequential;
  // Taps as TransformerLens 3 has them: hook_normalized before the weight and bias of a norm, and
  // unembed.hook_in and unembed.hook_out around the output layer.
  bool lens_taps = false;
  GateConfig gate = {};
  nlohmann::json source;  // config.json as it was read, and as it will be written
  // What neither the file nor its shapes tell and was taken to be so: "attention_dir causal, ...".
  std::string assumed = {};

  std::int64_t outputs() const { return classes > 0 ? classes : vocabulary; }  // logits a position

  // 0: all keys.
  std::int64_t window(std::int64_t layer) const {
    return windows.empty() ? 0 : windows[static_cast<std::size_t>(layer)];
  }
  // Hidden values of the MLP at a token.
  std::int64_t hidden_width() const {
    return mlp == MlpKind::kExperts ? experts_per_token * mlp_width : mlp_width;
  }
  bool gated_mlp() const { return mlp == MlpKind::kGated || mlp == MlpKind::kExperts; }
  // Whether positions turn the queries and keys of a layer, and by how much.
  bool turns(std::int64_t layer) const {
    return positions == PositionKind::kRotary &&
           (turned.empty() || turned[static_cast<std::size_t>(layer)]);
  }
  RotaryAngles rotary_angles(std::int64_t layer) const {
    if (window_rotary && window(layer) > 0) return *window_rotary;
    return {rotary_base, rotary_scaling};
  }
  // Whether a run of so many positions may go on from what another run computed, in a cache: not
  // where positions turn otherwise the longer the run is.
  bool same_angles(std::int64_t length, std::int64_t other) const {
    return rotary_scaling.same_angles(length, other) &&
           (!window_rotary || window_rotary->scaling.same_angles(length, other));
  }
  // Edges of one head of a layer among so many tokens: pairs of a query and a key that it sees.
  double edges_seen(std::int64_t layer, std::int64_t tokens) const {
    const auto T = static_cast<double>(tokens), W = static_cast<double>(window(layer));
    if (bidirectional) return T * T;
    if (W == 0.0 || W >= T) return 0.5 * T * (T + 1.0);
    return 0.5 * W * (W + 1.0) + (T - W) * W;
  }
};

// -------------------------------------------------------------------------------------------------
// Which heads of a model open an edge at all on a text, and how wide those are. The share of open
// edges, and keys per query and head, are means over all heads: in a model most of whose heads are
// dead they say little of the few that live.

struct LivingHead {
  HeadId head = {};
  double keys_per_query = 0;  // over all queries, those without an open edge too
  double edges_share = 0;     // of the open edges of all heads
};

struct LivingHeads {
  std::int64_t heads = 0;               // that were looked at
  std::vector<LivingHead> living = {};  // layer by layer
  std::int64_t queries = 0;             // positions that were looked at

  bool lives(const HeadId& head) const;
  // Of the living heads' keys per query; nothing where none lives.
  std::optional<double> median_keys() const;
  std::optional<LivingHead> widest() const;
  // What the `count` heads with most open edges have of all; 0 where none is open.
  double share_of_widest(std::size_t count) const;
};

// From the open edges of heads, over so many queries.
LivingHeads living_heads(std::span<const HeadId> heads, std::span<const double> open_edges,
                         std::int64_t queries);

// -------------------------------------------------------------------------------------------------
// A transformer language model of any family.
//
// A model is a set of named parameters and a forward pass that names its intermediates (filigree/taps.h).
// It is read from and written to folders as Hugging Face lays them out. Each family is one file
// (gpt2.cpp, ...) that reads its configuration, lists its parameters and builds its forward pass;
// everything else works through this class.
//
// Several threads may run one model at once: forward(), final_hidden(), make_cache() and what else
// is const may be called from any number of threads, each run with taps, cache, start and reports
// of its own, and every result has the bits that it would have alone. On the CPU their operations
// share the worker threads in turn, on a GPU its one stream. A tape belongs to the thread that made
// it. Gradients of the parameters, adapters and gates are kept by the model, so that only one run
// that brings them may be on its way (from forward() to the end of backward()); others run beside
// it without a tape. Where all of these are frozen, runs may be differentiated at their taps from
// several threads. What is not const (place(), set_gate(), add_lora(), ...) and changes of
// parameters, such as a step of an optimiser, must have the model to themselves.

// How the gates of a sparse model work in a run.
enum class GateMode {
  kHard,     // open when the logit is positive: evaluation
  kSampled,  // open with probability sigmoid(logit), from the counters of `noise`: training
  kIgnored,  // all open: the dense model that shares the weights
};

// Where a run starts that does not begin at the embeddings: with the residual stream before a
// layer's attention (hook_resid_pre) or before its MLP (hook_resid_mid, which a parallel residual
// stream does not have), as an earlier run of the same ids passed it. The taps before that place
// are not passed.
struct ForwardStart {
  std::int64_t layer = 0;  // the number of layers: before the final norm
  bool after_attention = false;
  Variable residual;  // [B, T, width]
};

struct ForwardOptions {
  Taps* taps = nullptr;
  const ForwardStart* start = nullptr;  // null: at the embeddings
  KeyValueCache* cache = nullptr;       // the ids follow the positions it holds
  bool last_position_only = false;      // logits [B, 1, V]
  std::int64_t position = -1;           // of the ids, whose logits are kept in place of the last's
  GateMode gates = GateMode::kHard;
  GateNoise noise = {};                        // of kSampled; the layer is filled in
  std::vector<GateReport>* reports = nullptr;  // receives one a layer, when the model is gated
  // Leaves the logits on the model's device in its precision, for losses; else they are f32 on the
  // CPU. Reports lie on the model's device in any case.
  bool logits_on_device = false;
  // Computes the final norm and the logits in f32 also where the model computes in bf16: metrics
  // are small differences of large logits.
  bool precise_logits = false;
  // Leaves out the soft cap of the logits, where the model has one: what analyses of sums split.
  bool uncapped_logits = false;
  std::optional<std::int64_t> end_layer = {};  // of residual_before()
};

// The weights as analyses of weights read them, whatever a family calls and keeps them. They live
// as long as the model.
struct LayerWeights {
  NormWeights norm;  // before the attention
  const AttentionWeights* attention = nullptr;
  NormWeights mlp_norm;
  const MlpWeights* mlp = nullptr;  // null: attention only
  NormWeights attention_post_norm = kNoNorm, mlp_post_norm = kNoNorm;  // behind them
};
struct ModelWeights {
  Variable token_embedding;     // [V, width]
  Variable position_embedding;  // [context, width], where positions are learned
  std::vector<LayerWeights> layers;
  NormWeights final_norm;
  LinearWeight output;  // width -> V, or the classes
};

class Model {
 public:
  virtual ~Model() = default;
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  const ModelConfig& config() const { return config_; }

  // Moves the parameters, adapters and gates, drops their gradients, and computes there from now
  // on. Make optimisers afterwards. Throws Error when the device is missing or has too little
  // memory.
  void place(const Placement& placement);
  const Placement& placement() const { return placement_; }

  // ids i32 [B, T] on the CPU -> logits [B, T, V]. Throws Error when the ids are outside the
  // vocabulary, the positions outside the context, a tap is unknown, the residual of `start` has
  // another shape, or the cache is of runs that turn positions otherwise (ModelConfig::same_angles).
  Variable forward(const Tensor& ids, const ForwardOptions& options = {}) const;
  // What the output layer reads, [B, T, width] on the model's device in its precision, for losses
  // that never form the logits of the whole batch (ops/output_loss).
  Variable final_hidden(const Tensor& ids, const ForwardOptions& options = {}) const;
  virtual const LinearWeight& output_layer() const = 0;  // width -> V, or the classes
  // The residual stream before a layer, [B, T, width] on the model's device in its precision: of a
  // run that ends there, and that others may go on from with ForwardStart. A cache needs to hold
  // the layers that are passed only.
  Variable residual_before(std::int64_t layer, const Tensor& ids,
                           const ForwardOptions& options = {}) const;

  // In the order of the checkpoint: embeddings, blocks, final norm, output.
  const std::vector<NamedParameter>& parameters() const { return parameters_; }
  std::int64_t parameter_count() const;  // adapters included
  virtual ModelWeights weights() const = 0;
  const std::vector<std::string>& tap_names() const { return tap_names_; }

  // Puts gates on the attention, or takes them off (an empty GateConfig). Throws Error unless there
  // is one bias or one a layer and head.
  void set_gate(const GateConfig& gate);
  // The biases of each layer ([1] or [H]), to be trained; empty without a gate. config().gate
  // follows them only at store_gate().
  const std::vector<Variable>& gate_biases() const { return gate_biases_; }
  void store_gate();

  // Puts a low-rank adapter (filigree/layers.h) on the projections q, k, v and o of every layer. The
  // model's function does not change, the parameters are frozen and the adapters require gradients.
  // The same seed gives the same adapters whatever the thread count. Throws Error for options that
  // make no sense, a rank above the smaller side of a projection, or a model that has adapters
  // already.
  void add_lora(const LoraOptions& options, std::uint64_t seed);
  const std::optional<LoraOptions>& lora() const { return lora_; }
  // To be trained, as "h.0.attn.lora_q.down" and ".up"; empty without adapters.
  const std::vector<NamedParameter>& lora_parameters() const { return lora_parameters_; }
  // Adds the adapters to the parameters, which stay frozen, and removes them. Parameters in a
  // mapped file are copied first. Does nothing without adapters.
  void merge_lora();

  // Whether backward() brings gradients to the parameters or, when there are adapters, to those
  // alone: the parameters under them stay frozen. Off after loading. Gate biases keep their own
  // setting.
  void set_requires_grad(bool on);
  void clear_grads();

  // Whether runs that are differentiated keep only the residual stream between layers and compute
  // the rest again in the backward pass: the memory of one layer's activations instead of all, for
  // about a third more time. Runs with taps keep everything. Off at first.
  void set_recompute(bool on) { recomputes_ = on; }
  bool recomputes() const { return recomputes_; }

  std::unique_ptr<KeyValueCache> make_cache(std::int64_t batch, std::int64_t capacity) const;
  // For runs that pass the layers from `first` to before `end` only. Both throw Error where
  // attention is bidirectional.
  std::unique_ptr<KeyValueCache> make_cache(std::int64_t batch, std::int64_t capacity,
                                            std::int64_t first, std::int64_t end) const;

 protected:
  Model(ModelConfig config, std::vector<NamedParameter> parameters)
      : config_(std::move(config)), parameters_(std::move(parameters)) {}

  // The family's forward pass up to the output layer, or up to options.end_layer; ids and positions
  // are already checked.
  virtual Variable run(const Tensor& ids, const ForwardOptions& options) const = 0;

  // The attention layers from first to last, in the form that run() reads, for adapters.
  virtual std::vector<AttentionWeights*> attention_layers() = 0;

  // For run(): the gate of a layer, or nullopt; and where its report goes, or null.
  std::optional<GateOptions> gate_of(std::size_t layer, const ForwardOptions& options) const;
  static GateReport* report_of(std::size_t layer, const ForwardOptions& options);

  ModelConfig config_;
  std::vector<NamedParameter> parameters_;
  std::vector<Variable> constants_;  // placed with the parameters, neither trained nor saved
  std::vector<std::string> tap_names_;

 private:
  Variable checked_run(const Tensor& ids, const ForwardOptions& options) const;

  Placement placement_;
  bool recomputes_ = false;
  std::vector<Variable> gate_biases_;
  std::optional<LoraOptions> lora_;
  std::vector<NamedParameter> lora_parameters_;
};

struct LoadOptions {
  bool warn_about_values = true;  // look for values that are not finite, which reads every page
  Placement placement = {};
  // What is compared with checksums.json where the folder has one.
  ChecksumDepth check = ChecksumDepth::kContents;
  // In place of what the folder says, for files that do not.
  std::optional<ModelConfig> config = {};
};

// Reads config.json and the weights of a Hugging Face folder, or of a PyTorch state dict (.pth,
// .pt, .bin) with config.json beside it, under transformers' names or TransformerLens's, whose
// GPT-2s need no config.json. f32 weights stay in the mapped file; bf16 and f16 are widened.
// Adapters that save_model kept are there again. Throws Error naming the file, tensor or key at
// fault, also for files that are not what was saved.
std::unique_ptr<Model> load_model(const std::filesystem::path& folder,
                                  const LoadOptions& options = {});
// How often load_model has read weights since the process started: nothing needs to read the same
// ones twice.
std::int64_t models_loaded();

// A model with random weights, drawn as the family's authors did. The same seed gives the same
// weights whatever the thread count and device.
std::unique_ptr<Model> make_model(const ModelConfig& config, std::uint64_t seed,
                                  const Placement& placement = {});

// The configuration in a Hugging Face folder, of a state dict, or in memory (`source` names it in
// messages).
// `lens` is null, or has what a state dict of TransformerLens's names does not tell, under the names
// of its configuration: {"attention_dir": "bidirectional"}. The file NAME.json beside NAME.pt, or
// config.json, may say the same.
ModelConfig read_model_config(const std::filesystem::path& folder,
                              const nlohmann::json& lens = nullptr);
ModelConfig parse_model_config(const nlohmann::json& json, const std::string& source);

// Numbers in the parameters of a model of this configuration, without adapters; reads no weights.
std::int64_t parameter_count(const ModelConfig& config);

struct SaveOptions {
  // With i8 matrices have 8 bits and a scale a row, vectors are f32, and the file is called so that
  // other programs do not take it for weights (io/matrix_type.h).
  MatrixType dtype = MatrixType::kF32;
  // Writes adapters beside the weights they adapt: adapters.safetensors, always f32, and a section
  // "lora" of config.json. Only load_model knows them; other programs would see the weights alone.
  bool keep_adapters = false;
};

// Writes config.json and model.safetensors so that transformers loads the folder; creates it if
// need be. Each file is replaced only when it has been written in full. Throws Error for a model
// with adapters, which must be merged first, unless they are to be kept.
void save_model(const Model& model, const std::filesystem::path& folder,
                const SaveOptions& options = {});

}  // namespace filigree
