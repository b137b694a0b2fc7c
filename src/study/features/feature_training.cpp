#include "filigree/feature_training.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/atomic_file.h"
#include "base/checksum.h"
#include "base/stopwatch.h"
#include "filigree/device.h"
#include "filigree/error.h"
#include "filigree/feature_study.h"
#include "filigree/features.h"
#include "filigree/model_study.h"
#include "filigree/names.h"
#include "filigree/runtime.h"
#include "filigree/study.h"
#include "filigree/training_study.h"
#include "study/output.h"

namespace filigree::study {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kPool = 1 << 20;
// Of the device's memory, for the pool.
constexpr double kPoolShare = 0.4;
constexpr std::int64_t kTokensAPass = 4096;  // that the model runs on at once
constexpr int kCalibrationBatches = 16;
// Of the learning rate, in the steps through the model.
constexpr double kRateThroughModel = 0.2;
constexpr std::int64_t kLeastPool = 1 << 14;  // tokens that scales are estimated on

// Adam's steps are as long for every feature however many share a token, so more features want
// shorter ones: 1e-3 works for 1,024 to 2,048 of them, 4e-4 for 24,576.
double learning_rate_for(std::int64_t features) {
  return 1e-3 * std::min(1.0, std::pow(2048.0 / static_cast<double>(features), 0.4));
}

std::uint64_t device_memory(DeviceKind kind) {
  for (const DeviceInfo& device : list_devices())
    if (device.kind == kind) return device.memory_bytes;
  return 0;
}

struct Start {
  FeatureTrainingRequest request;  // with what a transcoder to go on with says
  TrainingData data;
  const LoadedModel& model;
  ActivationOptions activations;
  FeatureTrainingPlan plan;
};

ActivationOptions activation_options(const FeatureTrainingRequest& request,
                                     const ModelConfig& config, const Context& context) {
  const int processes = context.communicator().size();
  ActivationOptions options;
  options.hooks = request.hooks;
  options.tokens = request.batch;
  options.length = request.length > 0 ? request.length : config.context;
  options.windows =
      std::max<std::int64_t>(1, kTokensAPass / options.length / processes) * processes;
  options.seed = context.seed;
  const std::int64_t through = request.steps_through_model();
  if (through > 0) options.windows_from = request.steps() - through;
  // Of the tokens before those that go through the model.
  const std::int64_t drawn =
      std::max((request.steps() - through) * request.batch, std::min(kLeastPool, request.tokens));
  options.pool = request.pool;
  if (options.pool == 0) {
    options.pool = 1;
    const std::uint64_t a_token =
        ActivationSource::pool_bytes(config, options, context.placement, 1);
    const auto room = static_cast<std::int64_t>(
        kPoolShare * static_cast<double>(device_memory(context.placement.device)) * processes /
        static_cast<double>(std::max<std::uint64_t>(a_token, 1)));
    options.pool = std::min({kPool, std::max<std::int64_t>(room, 1), drawn});
    if (room < kPool && room < drawn)
      context.say(fmt::format(
          "{} tokens are shuffled together, not a million: more would take more "
          "than {:.0f} % of the memory",
          with_thousands(static_cast<std::uint64_t>(options.pool)), 100.0 * kPoolShare));
  }
  options.pool = std::max(options.pool, request.batch);
  return options;
}

// The request with the kind, sizes and hooks of the transcoder that it goes on with.
FeatureTrainingRequest going_on(FeatureTrainingRequest request, const LoadedModel& model) {
  if (request.from.empty()) return request;
  const auto dictionary = open_dictionary(features_path(request.from));
  check_fits(*dictionary, model.model());
  const TranscoderShape& shape = dictionary->shape();
  if (request.features > 0 && request.features != shape.features)
    throw RequestError(fmt::format("'{}' has {} features a layer, not {}; leave the number out",
                                   printable(request.from), shape.features, request.features));
  request.kind = shape.kind;
  request.features = shape.features;
  request.skip = shape.skip;
  request.hooks = dictionary->hooks();
  request.objective.first_l0 = 1.0;  // features know what they are: none need be tried out
  return request;
}

// What a step keeps that goes through the model: the run of windows, and of each pair of layers
// what is written, its sum with what is there already and their gradient.
std::uint64_t bytes_through_model(const ModelConfig& config, const ActivationOptions& options,
                                  const TranscoderShape& shape) {
  const std::int64_t windows = ActivationSource::windows_of_a_batch(options);
  std::int64_t pairs = 0;
  for (std::int64_t l = 0; l < shape.layers; ++l) pairs += shape.reach(l);
  return estimate_memory(config, windows, options.length).training_activations +
         static_cast<std::uint64_t>(3 * pairs * windows * options.length * shape.width) *
             sizeof(float);
}

// Before anything is loaded.
void check_request(const FeatureTrainingRequest& asked) {
  if (asked.batch < 1 || asked.tokens < asked.batch)
    throw RequestError(
        fmt::format("{} tokens in batches of {} make no step", asked.tokens, asked.batch));
  if (!(asked.through_model >= 0.0 && asked.through_model <= 1.0))
    throw RequestError(
        fmt::format("a share of {} of the steps through the model is none from 0 to "
                    "1",
                    asked.through_model));
  check_run_folder(asked.out, asked.resume);
}

// `model` must outlive what is returned.
Start open_start(const FeatureTrainingRequest& asked, const LoadedModel& model,
                 const Context& context) {
  Start start{asked, open_training_data(asked.shards, {}), model, {}, {}};
  start.request = going_on(asked, start.model);
  const FeatureTrainingRequest& request = start.request;
  const ModelConfig& config = start.model.config();
  check_shards_fit(start.data.index, request.shards, start.model.folder(), config);
  start.activations = activation_options(request, config, context);
  FeatureTrainingPlan& plan = start.plan;
  plan.out = request.out;
  plan.shape = {request.kind, config.layers, config.width,
                request.features > 0 ? request.features : 16 * config.width, request.skip};
  check_shape(plan.shape);
  plan.steps = request.steps();
  plan.tokens = plan.steps * request.batch;
  plan.steps_through_model = request.steps_through_model();
  plan.pool = start.activations.pool;
  plan.learning_rate =
      request.learning_rate > 0.0 ? request.learning_rate : learning_rate_for(plan.shape.features);
  plan.train_tokens = start.data.train.tokens();
  const auto processes = static_cast<std::uint64_t>(context.communicator().size());
  const bool halves = context.placement.precision == DType::kBf16;
  plan.state = static_cast<std::uint64_t>(plan.shape.parameters()) * (halves ? 18 : 16) / processes;
  plan.pool_bytes = ActivationSource::pool_bytes(config, start.activations, context.placement,
                                                 static_cast<int>(processes));
  const MemoryEstimate of_model =
      estimate_memory(config, start.activations.windows / static_cast<std::int64_t>(processes),
                      start.activations.length);
  plan.model = of_model.weights + of_model.forward;
  // Inputs, targets, what is written, its difference and two gradients; values of one layer twice.
  plan.batch =
      static_cast<std::uint64_t>(request.batch) * 4 *
      static_cast<std::uint64_t>(6 * config.layers * config.width +
                                 2 * plan.shape.features / static_cast<std::int64_t>(processes));
  if (plan.steps_through_model > 0)
    plan.through_model = bytes_through_model(config, start.activations, plan.shape);
  const std::uint64_t there = device_memory(context.placement.device);
  require(there == 0 || plan.total_bytes() < there,
          "features: the run needs about {} and the device has {}; give fewer features of a layer, "
          "a smaller pool or batch, or the kind per-layer",
          human_bytes(plan.total_bytes()), human_bytes(there));
  return start;
}

nlohmann::json header_of(const Start& start, const Context& context) {
  nlohmann::json header = run_header("features", context);
  header["model"] = start.model.name();
  header["parameters"] = start.plan.shape.parameters();
  header["data"] = {{"folder", start.data.folder.string()},
                    {"tokens", start.data.train.tokens()},
                    {"train", checksum_text(start.data.train.fingerprint())}};
  return header;
}

std::string progress_text(const Metrics& metrics, double tokens_per_second) {
  std::string text =
      fmt::format("{:.0f} tokens/s  nmse {:.3f}  l0 {:.1f}  dead {}", tokens_per_second,
                  metric(metrics, "nmse"), metric(metrics, "l0"), percent(metric(metrics, "dead")));
  for (const auto& [name, value] : metrics)  // of steps through the model alone
    if (name == "kl") text += fmt::format("  kl {:.3f}", value);
  return text;
}

TrainerOptions trainer_options(const FeatureTrainingRequest& request,
                               const FeatureTrainingPlan& plan, Communicator& ranks) {
  TrainerOptions trainer;
  trainer.schedule = {static_cast<float>(plan.learning_rate),
                      std::min<std::int64_t>(plan.steps / 20, 1000),
                      plan.steps,
                      static_cast<float>(request.final_share),
                      plan.steps_through_model,
                      static_cast<float>(kRateThroughModel * plan.learning_rate)};
  trainer.clip = request.clip;
  trainer.log_every = request.log_every;
  trainer.checkpoint_every = request.checkpoint_every;
  trainer.keep = request.keep;
  trainer.resume = request.resume;
  trainer.ranks = &ranks;
  return trainer;
}

double median(std::vector<double> values) {
  if (values.empty()) return 0.0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// The loop, shown from step `first` on; what its steps took goes to `result`.
TrainerResult train_watched(TranscoderTrainable& trained, TranscoderObjective& objective,
                            ActivationSource& source, AdamW& optimizer, RunFolder& folder,
                            const TrainerOptions& options, std::int64_t batch, std::int64_t first,
                            const Context& context, FeatureTrainingResult& result) {
  const DeviceKind device = trained.transcoder().placement().device;
  reset_pool_peak(device);
  const double filled_before = source.filling_seconds();
  const Stopwatch watch;
  // Without the model's passes, which fall into some of the steps.
  std::vector<double> steps;
  double last = 0.0;
  const auto report = context.begin({"features", "steps", options.schedule.steps, first});
  TrainerCallbacks callbacks;
  callbacks.progress = [&](std::int64_t step, const Metrics& metrics) {
    const auto tokens = static_cast<double>((step - first) * batch);
    report->update(step, progress_text(metrics, tokens / watch.seconds()));
    const double now = watch.seconds() - (source.filling_seconds() - filled_before);
    steps.push_back(now - last);
    last = now;
  };
  callbacks.stop_requested = [&] { return context.stopping(); };
  TrainerResult ended = train(trained, objective, source, optimizer, folder, options, callbacks);
  if (ended.steps > first) report->finish();
  result.seconds = watch.seconds();
  result.model_seconds = source.filling_seconds() - filled_before;
  // At first there are more active features, and plans of products to be made.
  steps.erase(steps.begin(), steps.begin() + static_cast<std::ptrdiff_t>(steps.size() / 2));
  result.step_seconds = median(std::move(steps));
  result.peak_memory = pool_statistics(device).peak_bytes_in_use;
  result.pool_memory = source.pool_memory();
  return ended;
}

// As it is stored: all features, for the model's own activations, active above thresholds.
Transcoder finished(const Transcoder& trained, const FeatureTrainingRequest& request,
                    ActivationSource& source, Communicator& ranks) {
  const FeatureActivation kind = trained.activation();
  const bool chooses = kind == FeatureActivation::kTopK || kind == FeatureActivation::kBatchTopK;
  std::vector<float> thresholds;
  if (chooses)
    thresholds = calibrated_thresholds(trained, source, std::llround(request.objective.l0),
                                       kCalibrationBatches, ranks);
  Transcoder whole = gathered(trained, ranks);
  fold_scales(whole, source.scales());
  if (!chooses) return whole;
  Transcoder stored(whole.shape(), FeatureActivation::kJumpRelu, whole.features());
  for (std::size_t l = 0; l < thresholds.size(); ++l) {
    TranscoderLayer layer = whole.layers()[l];
    layer.log_threshold = Variable(Tensor::full({whole.shape().features}, std::log(thresholds[l])));
    stored.layers()[l] = layer;
  }
  stored.decoder_bias().mutable_value() = whole.decoder_bias().value();
  return stored;
}

// How it begins: as one that is trained already, or from nothing. Says what of it decides the
// result; where the run is resumed its values come from the checkpoint.
Settings begin_transcoder(Transcoder& transcoder, const FeatureTrainingRequest& request,
                          ActivationSource& source, bool resumed, const Context& context) {
  if (!request.from.empty()) {
    LoadedTranscoder loaded = load_transcoder(features_path(request.from));
    const std::uint64_t values =
        parameters_checksum(loaded.transcoder.shared_parameters(),
                            parameters_checksum(loaded.transcoder.feature_parameters()));
    if (!resumed) begin_from(transcoder, std::move(loaded.transcoder), source.scales());
    return {{"from", checksum_text(values)}};
  }
  const TranscoderStart begin{
      .seed = context.seed,
      .rate = std::min(0.5, request.objective.l0 * request.objective.first_l0 /
                                static_cast<double>(transcoder.shape().features))};
  if (!resumed) initialise(transcoder, source.peek(), begin);
  return {{"weights_seed", context.seed},
          {"threshold", decimal(begin.threshold)},
          {"rate", begin.rate}};
}

}  // namespace

std::int64_t FeatureTrainingRequest::steps_through_model() const {
  return std::llround(through_model * static_cast<double>(steps()));
}

FeatureTrainingPlan plan(const FeatureTrainingRequest& request, Models models,
                         const Context& context) {
  check_request(request);
  return open_start(request, models.only(), context).plan;
}

FeatureTrainingResult run(const FeatureTrainingRequest& asked, Models models,
                          const Context& context) {
  check_request(asked);
  const std::unique_ptr<OutputFolder> out = open_output(asked.out, context);
  Start start = open_start(asked, models.only(), context);
  const FeatureTrainingRequest& request = start.request;
  const FeatureTrainingPlan& plan = start.plan;
  Communicator& ranks = context.communicator();
  context.throw_if_stopped();
  const Model& model = start.model.model();
  FeatureTrainingResult result;
  result.plan = plan;
  std::unique_ptr<WorkReport> filling;
  start.activations.filling = [&](std::int64_t done, std::int64_t of) {
    if (done == 1 || !filling) filling = context.begin({"activations", "passes", of});
    filling->update(done);
    if (done < of) return;
    filling->finish();
    filling.reset();
  };
  ActivationSource source(model, start.data.train, start.activations, ranks);

  Transcoder transcoder(plan.shape, request.activation,
                        features_of_rank(plan.shape.features, ranks.rank(), ranks.size()),
                        context.placement);
  TranscoderObjectiveOptions options = request.objective;
  options.steps = plan.steps;
  RunFolder folder(request.out, RunFolder::LockedBy::kCaller);
  const std::int64_t first = folder.resume_point().step;
  if (first > 0) context.say(fmt::format("features: going on after step {}", first));
  TranscoderTrainable trained(transcoder,
                              begin_transcoder(transcoder, request, source, first > 0, context));
  TranscoderObjective objective(trained, options,
                                {plan.steps_through_model > 0 ? &model : nullptr, request.hooks});
  trained.set_requires_grad(true);
  AdamW optimizer(decay_groups(trained, 0.0f), {.beta2 = 0.999f});
  TrainerOptions trainer = trainer_options(request, plan, ranks);
  trainer.header = header_of(start, context);
  const TrainerResult ended = train_watched(trained, objective, source, optimizer, folder, trainer,
                                            request.batch, first, context, result);
  trained.set_requires_grad(false);
  result.end = ended.end;
  result.steps = ended.steps;
  result.resumed_from = ended.resumed_from;
  result.trained_tokens = (ended.steps - first) * request.batch;
  result.last_step = ended.last;
  if (result.interrupted()) {
    context.say(fmt::format("features: stopped after step {} of {} and saved in '{}'", result.steps,
                            plan.steps, printable(request.out)));
    return result;
  }
  Transcoder stored = finished(transcoder, request, source, ranks);
  if (context.writes())
    write_transcoder(
        request.out, stored,
        {.model_name = start.model.name(), .hooks = request.hooks, .dtype = request.stored});
  if (request.held_out_tokens > 0 && start.data.held_out)
    result.held_out = evaluate_features(
        start.model, *dictionary_of(std::move(stored), request.hooks), *start.data.held_out,
        {.length = start.activations.length, .max_tokens = request.held_out_tokens}, false, context,
        "held-out");
  if (context.writes())
    write_file_atomically(fs::path(request.out) / "result.json", to_json(result).dump(2) + "\n");
  return result;
}

Json to_json(const FeatureTrainingPlan& plan) {
  return {{"out", plan.out},
          {"kind", name_of(plan.shape.kind)},
          {"layers", plan.shape.layers},
          {"width", plan.shape.width},
          {"features", plan.shape.features},
          {"skip", plan.shape.skip},
          {"parameters", plan.shape.parameters()},
          {"steps", plan.steps},
          {"tokens", plan.tokens},
          {"steps_through_model", plan.steps_through_model},
          {"pool_tokens", plan.pool},
          {"learning_rate", plan.learning_rate},
          {"train_tokens", plan.train_tokens},
          {"memory_bytes",
           {{"weights_gradients_moments", plan.state},
            {"pool", plan.pool_bytes},
            {"model", plan.model},
            {"batch", plan.batch},
            {"through_model", plan.through_model},
            {"total", plan.total_bytes()}}}};
}

Json to_json(const FeatureTrainingResult& result) {
  Json last = Json::object();
  for (const auto& [name, value] : result.last_step) last[name] = value;
  return {{"plan", to_json(result.plan)},
          {"end", name_of(result.end)},
          {"steps", result.steps},
          {"resumed_from", result.resumed_from},
          {"trained_tokens", result.trained_tokens},
          {"seconds", result.seconds},
          {"model_seconds", result.model_seconds},
          {"step_seconds", result.step_seconds},
          {"peak_memory_bytes", result.peak_memory},
          {"pool_memory_bytes", result.pool_memory},
          {"last_step", last},
          {"held_out", result.held_out ? to_json(*result.held_out) : Json()}};
}

}  // namespace filigree::study
