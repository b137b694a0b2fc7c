// Training from nothing and training that closes attention.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "filigree/data.h"
#include "filigree/evaluation.h"
#include "filigree/evaluation_study.h"
#include "filigree/knobs.h"
#include "filigree/model.h"
#include "filigree/names.h"
#include "filigree/sparsification.h"
#include "filigree/study.h"
#include "filigree/study_figures.h"
#include "filigree/train.h"
#include "filigree/weights.h"

namespace filigree::study {

// -------------------------------------------------------------------------------------------------
// A GPT-2 of a chosen size with random weights, for measuring, for showing and for training.

// The smallest GPT-2 that was published, with 124M parameters.
struct ModelShape {
  std::int64_t layers = 12;
  std::int64_t heads = 12;
  std::int64_t width = 768;
  std::int64_t vocabulary = 50257;
  std::int64_t context = 1024;

  // Throws RequestError when the width is not a multiple of the heads.
  ModelConfig config() const;
};

// The configuration of a model, of a config.json by itself (a name that ends so), or, as "gpt2"
// where no model is called so, of the smallest GPT-2 that was published.
ModelConfig named_config(const std::string& name);

// -------------------------------------------------------------------------------------------------
// Memory of a training run, told from its settings alone: nothing is loaded and nothing allocated.
//
// The numbers are those of tensors (pool_statistics). Tests hold the total to within 15 % of what
// small runs take at their peak; what the driver, the libraries and the pool's blocks of odd sizes
// take comes on top.

// Bytes that a parameter takes. This is the one place that knows how weights are kept.
struct WeightBytes {
  std::uint64_t trained = 0;
  std::uint64_t frozen = 0;          // of teachers
  std::uint64_t under_adapters = 0;  // of all models of a run that trains adapters
};
WeightBytes weight_bytes(const Placement& placement);

// What decides the memory of a run, for one of its processes.
struct TrainingSetup {
  ModelConfig config;
  std::optional<ModelConfig> teacher = {};  // a frozen model that runs along
  // The teacher is the model as it was: under adapters they have one set of weights.
  bool own_teacher = false;
  std::int64_t idle_models = 0;  // frozen ones of the same size that stay in memory meanwhile
  std::int64_t batch = 1;        // windows at a time, of this process
  std::int64_t length = 1;       // tokens a window
  bool accumulates = false;      // several batches a step
  std::int64_t lora_rank = 0;    // 0: all weights are trained
  bool adapters_possible = false;
  bool recompute = false;
  int processes = 1;
  bool shard_optimizer = false;
  Placement placement = {};
};

struct TrainingMemory {
  std::uint64_t weights = 0;      // of the model that is trained, with its adapters
  std::uint64_t gradients = 0;    // of what is trained
  std::uint64_t optimizer = 0;    // AdamW's moments, this process's share
  std::uint64_t activations = 0;  // kept for the backward pass
  std::uint64_t workspace = 0;    // logits at a time, and gradients of activations on their way
  std::uint64_t teacher = 0;      // weights of the teacher and of idle models
  // At the peak of a step. Without accumulation gradients come as activations go, so that this is
  // less than the sum.
  std::uint64_t total = 0;
};

TrainingMemory training_memory(const TrainingSetup& setup);

Json to_json(const TrainingMemory& memory);
// "about 3.1 GiB: 0.5 GiB weights, ..."
std::string memory_text(const TrainingMemory& memory);

// Something to change, and what the run then needs.
struct MemorySaving {
  std::string option;  // "--recompute"
  std::uint64_t total = 0;
};
// What would save memory in this run; the last is all of them together, where there are several.
std::vector<MemorySaving> memory_savings(const TrainingSetup& setup);

// Of the device that each process has for itself; 0: unknown. Processes of a machine share its
// CPU's.
std::uint64_t memory_of_process(DeviceKind device, int processes_on_machine);

// Throws Error, naming what would help, when the run needs more than there is (0: unknown).
void require_memory(const TrainingSetup& setup, std::uint64_t there);

// -------------------------------------------------------------------------------------------------
// Token shards as runs are given them: opened, checked in full, and checked against a model.

struct TrainingData {
  std::filesystem::path folder;  // holds the tokenizer too
  ShardIndex index;
  TokenSplit train;
  std::optional<TokenSplit> held_out;
};

// The split "train" of `shards`, and the split "held-out" of `held_out` or, when that is empty, of
// `shards` if it has tokens there. Throws Error for damaged shards and for two folders that were
// made with different tokenizers.
TrainingData open_training_data(const std::string& shards, const std::string& held_out);

// Throws Error unless the tokens mean the same to the model in `folder`: its tokenizer, where it
// has one, must be the one that made the shards, and its vocabulary must hold every id.
void check_shards_fit(const ShardIndex& index, const std::string& shards,
                      const std::filesystem::path& folder, const ModelConfig& config);

// Copies the files of a tokenizer.
void copy_tokenizer(const std::filesystem::path& from, const std::filesystem::path& to);

// -------------------------------------------------------------------------------------------------
// Whether the numbers of a sparse run can be taken at their word.
//
// A gap against a dense model that had not converged says nothing: the sparse model trains on and
// its loss falls, whatever its gates cost. And a run may keep the loss because it closed
// everything: then the text was too easy for the model, or the model too poor, to need attention at
// all. Both are findings; a run that has one did not show what it was asked for.

// The model whose loss a budget is counted from.
enum class BudgetReference { kDense, kControl };

enum class Finding {
  kNoOpenEdges,       // all gates are closed on held-out text
  kIdleAttention,     // closing them all costs nothing
  kUnconvergedDense,  // the control's loss falls by more than the budget
  kBelowDense,        // the sparse model's does, and there is no control
};

struct SparsifyVerdict {
  struct Found {
    Finding finding = {};
    std::string text;  // in words, with the numbers and what to do
  };
  struct Difference {
    double nats = 0.0;
    std::optional<double> error;  // standard; nothing where it is not known
  };

  BudgetReference against = {};
  double budget = 0.0;
  Difference gap;                            // the sparse model's loss above the reference's
  std::optional<Difference> control;         // the control's loss above the dense model's
  double active_edges = 0.0;                 // share, on held-out text
  std::optional<double> worth_of_attention;  // nats that closing all gates costs
  std::vector<Found> found;

  bool holds() const { return found.empty(); }
};

// What was measured on held-out text, all models on the same windows.
struct SparsifyMeasurements {
  const Evaluation& dense;
  const Evaluation& sparse;
  const Evaluation* control = nullptr;
  std::optional<double> worth_of_attention = {};
};

// Closing all gates costs less than this: attention does nothing.
inline constexpr double kLeastWorth = 1e-3;

// A loss counts as having fallen by more than the budget where it has by two standard errors more.
SparsifyVerdict judge_sparsify(BudgetReference against, double budget,
                               const SparsifyMeasurements& measured);

Json to_json(const SparsifyVerdict& verdict);

}  // namespace filigree::study

namespace filigree {

template <>
inline constexpr auto kNames<study::BudgetReference> = std::to_array<Named<study::BudgetReference>>(
    {{study::BudgetReference::kDense, "dense"}, {study::BudgetReference::kControl, "control"}});

template <>
inline constexpr auto kNames<study::Finding> =
    std::to_array<Named<study::Finding>>({{study::Finding::kNoOpenEdges, "no-open-edges"},
                                          {study::Finding::kIdleAttention, "idle-attention"},
                                          {study::Finding::kUnconvergedDense, "unconverged-dense"},
                                          {study::Finding::kBelowDense, "below-dense"}});

}  // namespace filigree

namespace filigree::study {

// -------------------------------------------------------------------------------------------------
// A training run of a language model on token shards: the loop of filigree/train.h with the log's
// header, progress with what matters, and a model folder at the end.

// What every run is asked for.
struct TrainingRequest {
  std::string out = {};  // folder of the run, which becomes the trained model
  std::int64_t steps = 1000;
  std::int64_t batch = 16;      // windows
  std::int64_t accumulate = 1;  // batches a step
  double learning_rate = 1e-3;
  std::int64_t warmup = -1;  // steps; -1: a twentieth of all
  double final_share = 0.1;  // of the learning rate at the end
  double weight_decay = 0.05;
  double beta2 = 0.95;
  double clip = 1.0;
  bool recompute = false;        // activations, which saves memory and does not change the result
  bool shard_optimizer = false;  // AdamW's moments, over the ranks; nor does this
  std::int64_t log_every = 10;
  std::int64_t checkpoint_every = 500;
  int keep = 2;
  std::string held_out =
      {};  // shards whose split "held-out" is evaluated on; empty: those of the run
  std::int64_t evaluate_every = 0;
  std::int64_t held_out_tokens = 200000;
  bool resume = false;

  std::int64_t warmup_steps() const { return warmup >= 0 ? warmup : steps / 20; }
};

Knobs knobs_of(TrainingRequest& request);

struct TrainingResult {
  std::string out;
  RunEnd end = RunEnd::kFinished;
  std::int64_t steps = 0;  // done in all
  std::int64_t asked_steps = 0;
  std::int64_t resumed_from = 0;  // 0: from the start
  std::int64_t tokens = 0;        // trained on by this call
  double seconds = 0.0;
  // Of this process: of all tensors at their peak, and of that AdamW's moments.
  std::uint64_t peak_memory = 0, optimizer_memory = 0;
  Metrics last_step;
  std::string reason;  // of an early stop
  std::vector<EvaluatedModel> held_out;
  std::optional<GateAdjustment> gates;     // of sparse training
  std::optional<SparsifyVerdict> verdict;  // of sparse training that was evaluated

  bool interrupted() const { return end == RunEnd::kInterrupted; }
};

Json to_json(const TrainingResult& result);

// What the first line of every run's log says of the program and the machine.
nlohmann::json run_header(const std::string& run, const Context& context);

// Throws RequestError for values that do not go together.
void check_training(const TrainingRequest& request);

// Throws Error, before anything is written, when `out` holds a model or a run that is not to be
// resumed.
void check_run_folder(const std::filesystem::path& out, bool resume);

// Throws Error when evaluations are asked for and there is nothing to evaluate on; notes the
// latter.
void check_held_out(const TrainingRequest& request, const TrainingData& data,
                    const Context& context);

// One run of a request; sparse training has two, with its control.
struct TrainingJob {
  std::string label;  // of the log and the progress: "pretrain", "sparsify", "control"
  std::filesystem::path out;
  std::int64_t length = 0;          // tokens a window
  std::filesystem::path tokenizer;  // folder that has the tokenizer to put beside the model
  Settings settings = {};           // of the request, that no part of the run records
  // What is done to the trained model before it is saved, unless the run was stopped from outside.
  std::function<void(TrainingResult& result)> before_saving = {};
  std::string adapted_model = {};  // what adapters are for, by name, where they are trained
};

// In the folder of a run that trained adapters: these alone, for the model that they are for.
inline constexpr const char* kAdapterFolder = "adapter";

// Trains, and unless it was stopped leaves the model, with adapters merged, and its tokenizer in
// `run.out`. Context::stop saves and stops after the step. The result has no held-out numbers yet.
TrainingResult train_model(const TrainingJob& run, ModelTrainable& trained, Objective& objective,
                           const TrainingRequest& request, const TrainingData& data,
                           const Context& context);

// The same on batches from anywhere.
struct TrainingStream {
  BatchSource& source;
  nlohmann::json header = {};     // what the log's first line says of the data
  std::int64_t batch_tokens = 0;  // of all processes
  std::function<Metrics()> evaluate = {};  // on held-out data; the first number decides; or empty
};
TrainingResult train_model(const TrainingJob& run, ModelTrainable& trained, Objective& objective,
                           const TrainingRequest& request, const TrainingStream& stream,
                           const Context& context);

// Held-out evaluation of a model, which the tables call `label`. The data must have a held-out
// split.
EvaluatedModel evaluate_held_out(const Model& model, const std::string& label,
                                 const std::filesystem::path& folder, std::int64_t length,
                                 const TrainingRequest& request, const TrainingData& data,
                                 const Context& context);

// Writes OUT/result.json, on the rank that writes, unless the run was interrupted.
void write_result(const TrainingResult& result, const Context& context);

// -------------------------------------------------------------------------------------------------
// How large a training run would be: nothing is loaded and nothing is written.

struct DryRun {
  std::string out;
  ModelConfig config;
  std::int64_t parameters = 0;
  std::int64_t steps = 0;
  std::int64_t tokens_a_step = 0;
  std::uint64_t train_tokens = 0;  // that there are
  std::uint64_t held_out_tokens = 0;

  TrainingMemory memory;           // of each process
  std::uint64_t memory_there = 0;  // for it; 0: unknown

  std::int64_t tokens() const { return steps * tokens_a_step; }
  double epochs() const {
    return static_cast<double>(tokens()) / static_cast<double>(train_tokens);
  }
};

Json to_json(const DryRun& run);

// Of windows of `length` tokens of a model, as far as the request and the processes decide it.
TrainingSetup training_setup(const ModelConfig& config, std::int64_t length,
                             const TrainingRequest& request, const Context& context);

DryRun plan_training(const TrainingSetup& setup, const TrainingRequest& request,
                     const TrainingData& data, const Context& context);

// Says what the run called `label` will need. Throws Error, before anything is allocated, where
// there is not so much.
void tell_memory(const std::string& label, const TrainingSetup& setup, const Context& context);

// -------------------------------------------------------------------------------------------------
// A model trained on token shards, from scratch or from where another training left it.

struct TrainedModel {
  std::string name;  // or folder; dense
};

struct PretrainRequest {
  // Token shards; or a file of examples (.jsonl, filigree/train.h), whose held-out ones are another
  // such file, TrainingRequest::held_out. Batches are then of examples.
  std::string shards;
  // A GPT-2 of this shape, whose vocabulary is that of the shards; or the model that this
  // config.json describes, which may leave the vocabulary out; or a trained one to go on with. On
  // examples a shape is that of a toy model (hooked_transformer), and d_vocab, d_vocab_out and n_ctx
  // may be left out of a toy's config.json, too.
  std::variant<ModelShape, std::filesystem::path, TrainedModel> model =
      ModelShape{.layers = 6, .heads = 6, .width = 192, .vocabulary = 0, .context = 256};
  // Of heads that are silent in each window of training (filigree/train.h); not together with
  // recomputed activations.
  double drop_heads = 0.0;
  double drop_heads_end = 1.0;   // of the steps, after which none is silent
  double drop_heads_fade = 0.0;  // of the steps, before that, in which their share falls to none
  TrainingRequest training;
};

Knobs knobs_of(PretrainRequest& request);

DryRun plan_pretrain(const PretrainRequest& request, const Context& context);

// Leaves a model folder; evaluates it where the shards hold some text out. Of the model to go on
// with, if there is one and it is given, trains a copy; reads it otherwise.
TrainingResult run(const PretrainRequest& request, Models models, const Context& context);

// -------------------------------------------------------------------------------------------------
// Sparse post-training: closes the attention edges that a model's loss does not need
// (filigree/sparsification.h), and where asked trains a dense control as long on the same data.
//
// One run presses, recovers and adjusts. For the first part of the steps the multiplier's bound is
// low, so that more edges close than the loss bears; then the bound is higher and the loss comes
// back; at the end the gates of all heads are set on held-out text so that, being certain, they
// cost what was asked for (filigree/evaluation.h).

struct SparsifyRequest {
  static constexpr double kGateBias = 2.0;

  std::string model;  // folder or name; dense, or with a teacher sparse, to go on with
  std::string shards;
  std::string teacher;              // empty: the model itself, which must be dense then
  std::int64_t length = 0;          // tokens a window; 0: the model's context
  std::optional<double> gate_bias;  // of a dense model, to start from
  bool fixed_bias = false;          // otherwise every head learns its own
  bool control = false;             // into OUT/control; the reference below may ask for it too
  // What the budget is counted from. The control is then trained first, and its loss is the one
  // that the sparse model keeps and whose predictions it learns: a gap can only be measured against
  // a model that stands still, and the gates are set against the control's last loss.
  BudgetReference budget_from = BudgetReference::kDense;
  std::int64_t lora_rank = 0;  // 0: every weight is trained
  double lora_alpha = 16.0;
  bool vectors_only = false;        // biases and norms are trained, matrices stay as they are
  double loss_budget = 0.01;        // nats that the held-out loss may rise
  std::optional<double> margin;     // that the loss of training may rise; none: the budget
  std::optional<std::int64_t> dual_every;  // steps; none: a thousandth of all, 10 at most
  std::optional<double> dual_gain;  // of the multiplier; none: as the budget asks for
  std::optional<double> max_open;  // none: the default where biases are learnt
  double recovery =
      SparsificationOptions::kRecovery;  // share of the steps, at the end, with the second bound
  bool keep_gates = false;               // as they were trained
  std::int64_t tokens = 0;               // of training, instead of steps; 0: steps
  // What is given of it; the seed is the context's, and what is optional above is derived from the
  // budget and the steps.
  SparsificationOptions sparsification = SparsificationOptions::of_budget(0.01, 1000);
  // A batch or a learning rate of 0 is the one that suits the model: default_batch(),
  // default_learning_rate().
  TrainingRequest training = {.batch = 0, .learning_rate = 0.0};

  std::filesystem::path control_folder() const {
    return std::filesystem::path(training.out) / "control";
  }
  bool trains_control() const { return control || budget_from == BudgetReference::kControl; }
  bool needs_teacher() const { return !sparsification.target || sparsification.distillation > 0.0; }
};

// Windows a step: the multiple of 16 that holds 8,192 tokens. With fewer tokens far more
// edges stay open (docs/results.md); 16 can be shared by 2, 4, 8 and 16 processes.
std::int64_t default_batch(std::int64_t length);

// 0.2 over the model's width and 0.002 at most, since a narrow model bears and needs larger steps;
// 0.0005 for adapters.
double default_learning_rate(std::int64_t width, std::int64_t lora_rank);

Knobs knobs_of(SparsifyRequest& request);

DryRun plan_sparsify(const SparsifyRequest& request, const Context& context);

// Evaluates the dense model, the teacher if it is another, the sparse one and the control, where
// the shards hold some text out, and judges the result. `models` are the model and the teacher that
// the request names, as far as they are loaded: a copy is trained. What is not given is read, once.
TrainingResult run(const SparsifyRequest& request, Models models, const Context& context);

// -------------------------------------------------------------------------------------------------
// A sparse model with fewer open edges, without training: the gates of the heads whose edges are
// worth least are lowered on held-out text (filigree/evaluation.h).

struct CloseGatesRequest {
  std::variant<EvaluationText, EvaluationShards> data = {};
  WindowOptions windows = {};
  double max_edges = 0.0;  // share of the edges that may be open
  std::filesystem::path out = {};
  MatrixType dtype = MatrixType::kF32;  // of the weights
};

struct ClosedGates {
  CloseGatesRequest request;
  std::string model;  // as it was named
  GateClosing closing;
  std::int64_t layer_heads = 0;
  std::int64_t tokens = 0;  // that every measurement predicted

  std::string head(std::size_t index) const;  // of those of all layers, "L3H7"
};

// Throws RequestError unless the share lies between 0 and 1, and Error when `out` holds a model
// already, for a model without gates, and for data that do not fit it. Writes the model also where
// the share was not reached.
ClosedGates run(const CloseGatesRequest& request, Models models, const Context& context);

Json to_json(const ClosedGates& closed);
std::string text_of(const ClosedGates& closed);

// -------------------------------------------------------------------------------------------------
// How training runs went, drawn from their logs: of sparse ones loss gap, active edges and
// multiplier, of dense ones the loss; and where they were stopped or warned.

// The steps of a log.
struct TrainingCurve {
  std::string run;   // as the user named it
  std::string name;  // as the legend calls it
  std::vector<double> steps;
  std::vector<double> loss;  // of a dense run; else the following
  std::vector<double> accuracy;  // of a run on examples, beside the loss
  std::vector<double> held_out_steps, held_out_loss, held_out_accuracy;  // likewise
  std::vector<double> gap, active_edges, lambda;
  struct Event {
    double step = 0;
    std::string what;    // "stopped" or "warning"
    std::string reason;  // in a sentence
  };
  std::vector<Event> events;
};

// Of each run's folder, or its log.jsonl. A half line at the end, of a run that goes on or was
// killed, is left out. Throws Error naming file and line for what is no log, and for a log without
// steps.
std::vector<TrainingCurve> read_curves(const std::vector<std::string>& runs);

struct CurvesRequest {
  std::vector<std::string> runs;
  std::string out;  // a figure
  FigureStyle style;
};

struct CurvesResult {
  std::string out;
  std::vector<TrainingCurve> curves;
};

CurvesResult run(const CurvesRequest& request, Models models, const Context& context);

Json to_json(const CurvesResult& result);

}  // namespace filigree::study
