// The training loop and what it trains.
#pragma once

#include <nlohmann/json.hpp>

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "filigree/autograd.h"
#include "filigree/error.h"
#include "filigree/knobs.h"
#include "filigree/model.h"
#include "filigree/names.h"
#include "filigree/ops.h"
#include "filigree/ranks.h"
#include "filigree/taps.h"
#include "filigree/tensor.h"

namespace filigree {

// -------------------------------------------------------------------------------------------------
// What decides the result of a run, as values with names. Each part of a run (what is trained, the
// data, the objective, the optimiser, the loop) says what of it does; the loop puts them together,
// stores them with every checkpoint, and refuses to resume a run whose settings are others. So
// nothing that matters depends on a caller who remembers it.
//
//   Settings({{"batch", 16}, {"clip", 1.0}, {"objective", "log"}})

// There is none. Its copy is not trivial on purpose: of trivial types and strings alone libstdc++
// 12 makes a variant that believes never to be without a value, and where a string's copy fails for
// want of memory, it destroys one that was never there.
struct NoValue {
  NoValue() = default;
  NoValue(const NoValue&) noexcept {}
  NoValue& operator=(const NoValue&) noexcept { return *this; }
};

using SettingValue = std::variant<NoValue, bool, std::int64_t, std::uint64_t, double, std::string>;

struct Setting {
  std::string name;
  SettingValue value;
};

class Settings {
 public:
  Settings() = default;
  Settings(std::initializer_list<Setting> settings);

  // Both throw Error for a name that is there already.
  void add(Setting setting);
  void add(const Settings& others);

  const std::vector<Setting>& all() const { return all_; }

  nlohmann::json to_json() const;
  // Throws Error, naming `source`, for anything but plain values under names.
  static Settings from_json(const nlohmann::json& json, const std::string& source);

 private:
  std::vector<Setting> all_;
};

// The shortest decimal number that is read back as this float: 0.003, not 0.003000000026.
double decimal(float value);

template <typename Value>
SettingValue setting_of(const std::optional<Value>& value) {
  return value ? SettingValue(*value) : SettingValue();
}

// The values of knobs that a resumed run must have the same (KnobRecord); `usual` are the knobs of
// the same settings with their defaults.
Settings recorded(const Knobs& knobs, const Knobs& usual);
template <typename Options>
Settings recorded(const Options& options) {
  Options given = options, usual;
  return recorded(knobs_of(given), knobs_of(usual));
}

// Throws Error naming the first of the wanted settings that differs from the stored one, and one
// that was stored and is wanted no more.
void require_same_settings(const Settings& stored, const Settings& wanted);

// -------------------------------------------------------------------------------------------------
// The learning rate over a run: linear warm-up, then a cosine down to a fraction of the peak; and
// the same once more for a last stage, if there is one.

struct Schedule {
  float peak = 1e-3f;
  std::int64_t warmup = 0;  // steps
  std::int64_t steps = 1;   // of the whole run
  float final_fraction = 0.1f;
  std::int64_t stage = 0;  // steps of the last stage, which has as large a share of warm-up
  float stage_peak = 0.0f;

  // Of step 0, 1, ..., steps - 1.
  float at(std::int64_t step) const {
    if (stage > 0) {
      const std::int64_t before = steps - stage;
      if (step >= before)
        return Schedule{stage_peak, warmup * stage / steps, stage, final_fraction}.at(step -
                                                                                      before);
      return Schedule{peak, warmup, before, final_fraction}.at(step);
    }
    if (step < warmup) return peak * static_cast<float>(step + 1) / static_cast<float>(warmup);
    const std::int64_t span = steps - warmup;
    const double progress =
        span > 1 ? static_cast<double>(step - warmup) / static_cast<double>(span - 1) : 1.0;
    const double cosine = 0.5 * (1.0 + std::cos(std::fmin(progress, 1.0) * 3.14159265358979323846));
    const auto low = static_cast<double>(final_fraction);
    return static_cast<float>(static_cast<double>(peak) * (low + (1.0 - low) * cosine));
  }
};

// -------------------------------------------------------------------------------------------------
// What a run trains. The loop and the checkpoints (checkpoint.h) know only this: a
// language model is one, and so may be anything that has parameters.
//
// Ranks that train together hold the same parameters, or each a part of them (own_parameters): what
// is too large for one, such as a dictionary of features, is split. Gradients of the former are
// summed over the ranks, those of the latter are each rank's own, and so are their moments.

class Trainable {
 public:
  virtual ~Trainable() = default;

  // What is trained, the same on every rank.
  virtual std::vector<NamedParameter> parameters() const = 0;
  // Of what the ranks hold together, the part of this one.
  virtual std::vector<NamedParameter> own_parameters() const { return {}; }

  // What decides the result of a run that begins with it as it is: sizes, and where its values come
  // from. The same on every rank, and in the process that resumes the run.
  virtual Settings settings() const = 0;

  // Of the values that are the same on every rank, as they are. By default of parameters().
  virtual std::uint64_t checksum() const;

  // By default for all of the parameters.
  virtual void set_requires_grad(bool on);
  virtual void clear_grads();

  // On every rank before it is saved, and when the run ends: whatever follows the parameters is
  // brought up to date.
  virtual void before_save() {}

  // Writes into a folder, which is there, all that it takes to go on from the same bits; and reads
  // it back into a thing of the same shape, or throws Error. Called on every rank: the first one
  // writes what all have alike, each its own part.
  virtual void save(const std::filesystem::path& folder, Communicator& ranks) const = 0;
  virtual void restore(const std::filesystem::path& folder, Communicator& ranks) = 0;
};

// Of names and values, in this order; each parameter goes on from `seed`, which begins it.
std::uint64_t parameters_checksum(const std::vector<NamedParameter>& parameters,
                                  std::uint64_t seed = 0);

// Copies values by name into parameters of the same names and shapes, on their device. Throws Error
// with `source` when they differ.
void restore_parameters(const std::vector<NamedParameter>& stored,
                        const std::vector<NamedParameter>& into, const std::string& source);

// -------------------------------------------------------------------------------------------------
// A batch of token windows, as language models are trained and evaluated on.

struct Batch {
  Tensor ids;      // i32 [B, T]
  Tensor targets;  // i32 [B, T]: the token each position predicts
  // Several processes share a global batch by rows: which of them is this one's first.
  std::int64_t first_row = 0;
};

// Targets that count in the loss.
std::int64_t counted_targets(const Batch& batch);

// -------------------------------------------------------------------------------------------------
// Whether a loss that should fall runs away: far above its best for long.
//
// A rate that is too high need not end in a loss that is not finite: it may stay at ten times the
// start for as long as one lets it run. The loss is averaged over some ten steps, so that neither a
// hard batch nor a spike counts.

// A run that diverged; the message says how and what to do.
class Diverged : public Error {
 public:
  using Error::Error;
};

class DivergenceWatch {
 public:
  static constexpr double kFar = 1.0;        // nats above the best average
  static constexpr std::int64_t kLong = 50;  // steps in a row
  static constexpr double kAveraging = 0.9;  // weight of the old average

  void observe(double loss);
  // A plain explanation once the loss has been far above its best for long.
  std::optional<std::string> reason() const;

  nlohmann::json state() const;
  void restore(const nlohmann::json& state);

 private:
  double average_ = 0.0, best_ = 0.0;
  std::int64_t observed_ = 0, best_step_ = 0, far_steps_ = 0;
};

// -------------------------------------------------------------------------------------------------
// Heads that fall silent at random while a dense model is trained.
//
// A model that must do without any of its heads learns each thing in several of them, as models
// trained with dropout do; what sparse training then takes apart is as tangled as it is there.

struct HeadDropout {
  double share = 0.0;  // of heads that are silent, each by itself in each window; below 1
  std::uint64_t seed = 0;
  // The share falls from here to nothing at `fade_to`, both counted in batches: a model that ends
  // with all of its heads keeps what it learnt in several of them, and has nothing left to gain
  // from training without silent ones. Equal: it falls there at once; both 0: never.
  std::int64_t fade_from = 0, fade_to = 0;

  bool on() const { return share > 0.0; }
  // Of the batch of this number.
  double share_at(std::int64_t micro_step) const;
  // Throws Error for a share that is none.
  void check() const;
  // Silences heads of all layers, and makes the others louder by as much as is missing on average.
  // Which ones depends on the seed, the batch's place in the run and the window's place in the
  // batch, not on the number of ranks.
  void apply(Taps& taps, const Batch& batch, std::int64_t micro_step) const;
};

// -------------------------------------------------------------------------------------------------
// What a run minimises, and on what. The loop passes the batches of a source to an
// objective and does not look into them, so that a batch may be anything: token windows for a
// language model (Batch), activations, pairs of vectors.

// Numbers of one step for the log and the progress bar, in order.
using Metrics = std::vector<std::pair<std::string, double>>;

// The value of a metric; throws Error when it is not there.
double metric(const Metrics& metrics, std::string_view name);

// A source or an objective as far as the loop knows it.
class RunPart {
 public:
  virtual ~RunPart() = default;

  // What of it decides the result; the same on every rank, whatever their number.
  virtual Settings settings() const = 0;

  // What a checkpoint keeps of it, so that it goes on as if nothing had happened.
  virtual nlohmann::json state() const { return nlohmann::json::object(); }
  virtual void restore(const nlohmann::json& state) { (void)state; }
};

// An endless stream of batches whose place can be stored and found again.
template <typename AnyBatch>
class SourceOf : public RunPart {
 public:
  virtual AnyBatch next() = 0;
};

class AnyObjective : public RunPart {
 public:
  // After the weights have changed; `metrics` are the means over the step's batches.
  virtual void after_step(const Metrics& metrics) { (void)metrics; }

  // A plain explanation when going on makes no sense.
  virtual std::optional<std::string> stop_reason() const { return std::nullopt; }

  // What the user should know while the run goes on, once: asked after every step.
  virtual std::optional<std::string> take_warning() { return std::nullopt; }
};

template <typename AnyBatch>
class ObjectiveOn : public AnyObjective {
 public:
  // The value to minimise on one batch, recorded on the current tape. `micro_step` counts batches
  // over the whole run, so that random numbers can be addressed by it. Where several ranks have
  // parts of a global batch, the gradients of their values add up to that of the global batch, and
  // the metrics are of the global batch, the same on every rank.
  virtual Variable loss(const AnyBatch& batch, std::int64_t micro_step, Communicator& ranks,
                        Metrics& metrics) = 0;
};

using BatchSource = SourceOf<Batch>;
using Objective = ObjectiveOn<Batch>;

// -------------------------------------------------------------------------------------------------
// AdamW over groups of parameters, with its state as named tensors that a checkpoint can hold.

struct ParameterGroup {
  std::vector<NamedParameter> parameters;
  float weight_decay = 0.0f;
  float learning_rate_factor = 1.0f;
  bool own = false;  // this rank's part of what the ranks hold together
};

struct AdamWOptions {
  float beta1 = 0.9f;
  float beta2 = 0.95f;
  float epsilon = 1e-8f;
};

// One of the moments, as checkpoints have it.
struct AdamWMoment {
  std::string name;  // "m.NAME" or "v.NAME"
  Shape shape;
  std::function<Tensor()> fetch;  // all of it, on the CPU
};

class AdamW {
 public:
  // Parameters whose memory is read-only (mapped from a file) are copied first. The moments lie on
  // the parameters' device.
  //
  // With `sharing` its ranks share the moments of the parameters that all hold alike: each keeps
  // about one part in their number, steps that part of the parameters and is given the others'. An
  // element's step depends on nothing but itself and the norm of all gradients, so the numbers are
  // those of ranks that do not share, to the bit. The communicator must outlive the optimiser.
  AdamW(const std::vector<ParameterGroup>& groups, const AdamWOptions& options,
        Communicator* sharing = nullptr);

  // One step with the gradients that backward() left, scaled so that their global norm is at most
  // `clip` (0: not clipped) after multiplying them by `gradient_scale`. Parameters without a
  // gradient are left alone. The norm is that of all ranks' gradients where each has some of its
  // own. Returns the norm before clipping.
  double step(float learning_rate, double clip, float gradient_scale = 1.0f,
              Communicator* ranks = nullptr);

  std::int64_t steps() const { return steps_; }

  // What of it decides the result, the same on every rank.
  Settings settings() const;

  // The moments in the order of their names, of the parameters that all ranks hold alike or of this
  // rank's own. Those that the ranks share are fetched by all of them together, in this order.
  // restore() takes both parts together, whole, and throws Error when one is missing or has another
  // shape.
  enum class Part { kAlike, kOwn };
  std::vector<AdamWMoment> state(Part part = Part::kAlike) const;
  bool has_own() const;
  bool sharing() const { return ranks_ != nullptr; }
  // Of the moments that this rank keeps.
  std::uint64_t bytes() const;
  void restore(std::int64_t steps, const std::vector<std::pair<std::string, Tensor>>& state);

 private:
  struct Entry {
    NamedParameter parameter;
    float weight_decay, learning_rate_factor;
    bool own;
    // Where each rank's share of the elements begins, and the last one's ends; two numbers where
    // this rank has them all.
    std::vector<std::int64_t> shares;
    Tensor first, second;  // of this rank's share, in a row
  };

  double gradient_norm(Communicator* ranks) const;
  void share_out();
  Tensor own_share(const Entry& entry, const Tensor& whole) const;
  std::vector<std::vector<std::span<float>>> shares_of(
      const std::vector<std::pair<const Entry*, Tensor>>& wholes) const;
  Tensor fetch(const Entry& entry, const Tensor& share) const;

  std::vector<Entry> entries_;
  Communicator* ranks_ = nullptr;  // that share the moments
  AdamWOptions options_;
  std::int64_t steps_ = 0;
};

// The usual two groups: matrices decay, vectors (biases, norms, gate biases) do not.
std::vector<ParameterGroup> decay_groups(const std::vector<NamedParameter>& parameters,
                                         float weight_decay);
// The same of all that is trained, this rank's own parameters in groups of their own.
std::vector<ParameterGroup> decay_groups(const Trainable& trained, float weight_decay);

// -------------------------------------------------------------------------------------------------
// The folder of a training run and the checkpoints in it.
//
//   RUN/checkpoints/step-00000500/   what is trained, in its own files (of a language model
//                                    config.json, model.safetensors and with LoRA
//                                    adapters.safetensors), optimizer.safetensors, state.json, and
//                                    the checksums of them all
//   RUN/log.jsonl                    the run log (run_log.h)
//   RUN/lock                         while the run goes on
//   RUN/config.json, ...             the finished model
//
// A checkpoint is written into a folder beside its place and renamed when complete and on the disk,
// and renamed again before it is removed, so one that has its name is whole, whatever interrupted
// the run. Only names that a run gives count: what else lies there is left alone. What is damaged
// later shows by the checksums, and an older checkpoint serves.

class OutputFolder;

struct TrainingState {
  std::int64_t step = 0;  // steps done
  Settings settings;      // of the run; must not change when it is resumed
  nlohmann::json source;  // place in the data
  nlohmann::json objective;
  std::optional<double> best;  // lowest held-out loss so far
  std::int64_t best_step = -1;
};

// Where a run can go on.
struct ResumePoint {
  std::filesystem::path checkpoint;  // empty: at the beginning
  std::int64_t step = 0;
  std::vector<std::string> damaged;  // what is wrong with newer ones
};

class RunFolder {
 public:
  // Who keeps the folder to one run: an OutputFolder that the caller holds on the first rank until
  // it has written what comes after the run, or one of lock().
  enum class LockedBy { kRun, kCaller };

  // Creates the folder if need be; throws Error when it cannot be written.
  explicit RunFolder(std::filesystem::path path, LockedBy locked = LockedBy::kRun);
  ~RunFolder();

  // On every rank, before anything is written: keeps the folder to this run for as long as the
  // object lives and removes what a killed one left half-made. Throws Error, on every rank, when
  // another process has it, and when something in it is a symbolic link, through which a run would
  // write elsewhere.
  void lock(Communicator& ranks);

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path log_path() const { return path_ / "log.jsonl"; }

  // Removes, on the first rank, the checkpoints of steps up to state.step but the last `keep` and
  // the best. A run that goes on does with it what an interrupted one did not come to.
  void prune(const TrainingState& state, int keep, Communicator& ranks);

  // Writes the checkpoint of state.step and then removes all but the last `keep` and the best.
  // Called on every rank: the first writes what all have alike, each its own part.
  void save(const Trainable& trained, const AdamW& optimizer, const TrainingState& state, int keep,
            Communicator& ranks);

  // The folders of complete checkpoints, oldest first.
  std::vector<std::filesystem::path> checkpoints() const { return checkpoints_in(path_); }
  static std::vector<std::filesystem::path> checkpoints_in(const std::filesystem::path& run);

  // The newest checkpoint whose files are what was written, as their checksums say. Found once, and
  // again after a save. Throws Error when there are checkpoints and all are damaged.
  const ResumePoint& resume_point();

 private:
  void remove_left_behind();

  std::filesystem::path path_;
  LockedBy locked_;
  std::unique_ptr<OutputFolder> lock_;
  std::optional<ResumePoint> resume_point_;
};

// Reads a checkpoint's state; throws Error naming the file when it is damaged.
TrainingState read_training_state(const std::filesystem::path& checkpoint);

// Reads what is trained and the moments into a thing and an optimiser of the same shape, on every
// rank.
void restore_training(const std::filesystem::path& checkpoint, Trainable& trained, AdamW& optimizer,
                      Communicator& ranks);

// -------------------------------------------------------------------------------------------------
// The training loop: batches, gradients, steps, log, checkpoints, resume. It knows neither what is
// trained nor what a batch is.
//
// Same settings, same build, same thread count: same bits, however often the run was interrupted
// and resumed, because everything that a step depends on is in the checkpoint.
//
// Several ranks train one thing on one global batch: each computes the gradients of its rows, their
// sums are the same bits on every rank, and so stay the weights, which is the result of one process
// to rounding. Rank 0 alone writes the log, and of the checkpoints what all ranks have alike.

struct TrainerOptions {
  Schedule schedule;            // schedule.steps is the length of the run
  double clip = 1.0;            // of the global gradient norm; 0: none
  std::int64_t accumulate = 1;  // batches a step
  std::int64_t log_every = 10;
  std::int64_t checkpoint_every = 500;
  std::int64_t evaluate_every = 0;  // 0: never
  int keep = 2;                     // checkpoints, beside the best
  bool resume = false;              // continue from the newest checkpoint, if there is one
  // What else decides the result of the run, and none of its parts records.
  Settings settings = {};
  // First line of the log, to which the settings and the checksum of the start are added.
  nlohmann::json header = nlohmann::json::object();
  Communicator* ranks = nullptr;  // null: this process alone
};

struct TrainerCallbacks {
  // Every step, on every rank, as the others.
  std::function<void(std::int64_t step, const Metrics& metrics)> progress;
  // Held-out numbers, the first of them the loss that "best" is about.
  std::function<Metrics()> evaluate;
  // Asked after every step; true on any rank saves and stops all of them.
  std::function<bool()> stop_requested;
  // What the objective warns of, which the log has too.
  std::function<void(const std::string& warning)> warn;
};

enum class RunEnd { kFinished, kInterrupted, kStoppedEarly };
template <>
inline constexpr auto kNames<RunEnd> =
    std::to_array<Named<RunEnd>>({{RunEnd::kFinished, "finished"},
                                  {RunEnd::kInterrupted, "interrupted"},
                                  {RunEnd::kStoppedEarly, "stopped-early"}});

struct TrainerResult {
  using End = RunEnd;
  End end = End::kFinished;
  std::int64_t steps = 0;         // done in all
  std::int64_t resumed_from = 0;  // 0: from the start
  std::string reason;             // of an early stop
  Metrics last;
};

// What decides the result of a run: what is trained and where it starts, the data, the objective,
// the optimiser and the loop's own numbers. What does not (how often to log, save and evaluate,
// ranks, threads, device) is not in it.
Settings run_settings(const Trainable& trained, const RunPart& objective, const RunPart& source,
                      const AdamW& optimizer, const TrainerOptions& options);

// The value to minimise on the next batch: ObjectiveOn::loss of SourceOf::next.
using NextLoss =
    std::function<Variable(std::int64_t micro_step, Communicator& ranks, Metrics& metrics)>;

// Throws Diverged when the loss is not finite, or a parameter where it is saved or resumed from
// (the last checkpoint stays, and the log says so), and Error when a checkpoint cannot be written,
// a resumed run's settings differ, or the ranks do not start from the same.
TrainerResult train(Trainable& trained, AnyObjective& objective, RunPart& source,
                    const NextLoss& next_loss, AdamW& optimizer, RunFolder& folder,
                    const TrainerOptions& options, const TrainerCallbacks& callbacks = {});

template <typename AnyBatch>
TrainerResult train(Trainable& trained, ObjectiveOn<AnyBatch>& objective,
                    SourceOf<AnyBatch>& source, AdamW& optimizer, RunFolder& folder,
                    const TrainerOptions& options, const TrainerCallbacks& callbacks = {}) {
  const auto next_loss = [&](std::int64_t micro_step, Communicator& ranks, Metrics& metrics) {
    return objective.loss(source.next(), micro_step, ranks, metrics);
  };
  return train(trained, objective, source, next_loss, optimizer, folder, options, callbacks);
}

// -------------------------------------------------------------------------------------------------
// Next-token prediction: pretraining, and the dense fine-tuned control of a sparse run. A loss that
// runs away ends it.

class LanguageModelling : public Objective {
 public:
  // Throws Error for a share of silent heads that is none.
  explicit LanguageModelling(Model& model, const HeadDropout& silent = {});
  Variable loss(const Batch& batch, std::int64_t micro_step, Communicator& ranks,
                Metrics& metrics) override;
  void after_step(const Metrics& metrics) override { watch_.observe(metric(metrics, "loss")); }
  std::optional<std::string> stop_reason() const override { return watch_.reason(); }
  Settings settings() const override;
  nlohmann::json state() const override { return watch_.state(); }
  void restore(const nlohmann::json& state) override { watch_.restore(state); }

 private:
  Model& model_;
  HeadDropout silent_;
  DivergenceWatch watch_;
};

// -------------------------------------------------------------------------------------------------
// A language model as what a run trains: all its weights, or its adapters alone where it has some,
// or its vectors alone, and with `gate_biases` the biases of its gates. A checkpoint of it is a
// model folder, which load_model reads.

struct ModelTraining {
  bool gate_biases = false;  // every head learns its own, under the names gate.0, gate.1, ...
  // Biases and norms alone: the matrices stay as they are, so that those of 8 bits lose nothing
  // when they are written again.
  bool vectors_only = false;
  // The seed of a model that was made: its weights follow from it. Without one they were read, and
  // runs are told apart by their checksum.
  std::optional<std::uint64_t> drawn_from = {};
};

class ModelTrainable : public Trainable {
 public:
  // The model must outlive it, with the gate and the adapters that it has now.
  explicit ModelTrainable(Model& model, const ModelTraining& training = {});

  Model& model() const { return model_; }

  std::vector<NamedParameter> parameters() const override;
  Settings settings() const override;
  // Of all weights and gate biases, trained or not (weights_checksum.h).
  std::uint64_t checksum() const override;
  void set_requires_grad(bool on) override;
  void clear_grads() override;
  // The configuration follows the gate biases.
  void before_save() override;
  // Weights and adapters apart: merging rounds, and the run must go on from the same bits.
  void save(const std::filesystem::path& folder, Communicator& ranks) const override;
  // Throws Error when the adapters' rank or alpha is another.
  void restore(const std::filesystem::path& folder, Communicator& ranks) override;

 private:
  std::vector<NamedParameter> gate_parameters() const;

  Model& model_;
  ModelTraining training_;
};

// -------------------------------------------------------------------------------------------------
// Sequences of token ids whose answers stand at chosen positions: what toy models are trained on. A
// file has a JSON object a line,
//
//   {"ids": [17, 5, 53], "targets": [null, null, 22]}   the token or class to predict there, or none
//   {"ids": [3, 1, 9, 1, 3], "loss": [2, 3]}            the next token, at these positions
//   {"ids": [3, 1, 9]}                                  the next token, everywhere
//
// all lines with equally many ids.

struct Examples {
  Tensor ids;      // i32 [examples, T]
  Tensor targets;  // i32 [examples, T], kIgnoredTarget where there is none
  std::uint64_t fingerprint = 0;

  std::int64_t count() const { return ids.size(0); }
  std::int64_t length() const { return ids.size(1); }
  std::int64_t largest_id() const;
  std::int64_t largest_target() const;
};

// Throws Error naming file and line for what is no such file.
Examples read_examples(const std::filesystem::path& file);

// Batches of so many examples, drawn anew for each with the seed; all of them in each batch where
// there are no more.
class ExampleSource : public BatchSource {
 public:
  ExampleSource(Examples examples, std::int64_t batch, std::uint64_t seed);

  Batch next() override;
  Settings settings() const override;
  nlohmann::json state() const override;
  void restore(const nlohmann::json& state) override;

 private:
  Examples examples_;
  std::int64_t batch_, drawn_ = 0;
  std::uint64_t seed_;
};

// Cross entropy at the answers and the share of them that is right, which are metrics too: "loss"
// and "accuracy".
class AnswerObjective : public Objective {
 public:
  explicit AnswerObjective(Model& model) : model_(model) {}
  Variable loss(const Batch& batch, std::int64_t micro_step, Communicator& ranks,
                Metrics& metrics) override;
  Settings settings() const override { return {{"task", "answers"}}; }

 private:
  Model& model_;
};

// Of all examples, without a tape: the loss and the accuracy.
Metrics answer_metrics(const Model& model, const Examples& examples);

}  // namespace filigree
