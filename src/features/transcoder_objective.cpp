#include <algorithm>
#include <cmath>

#include "features/trained_replacement.h"
#include "filigree/autograd.h"
#include "filigree/error.h"
#include "filigree/feature_training.h"
#include "filigree/features.h"
#include "filigree/ops.h"
#include "ops/output_loss/output_loss.h"
#include "ops/sparse_decode/sparse_decode.h"

namespace filigree {
namespace {

// A feature that was active once so long ago, and never since, has a density of this over the time.
const double kDeadDensity = std::exp(-1.0);

// Within this share of the steps the bias of a dead feature rises by one, which is about how much
// pre-activations differ between tokens.
constexpr double kRevival = 0.05;

// Rows of a parameter by their numbers, differentiable.
Variable chosen(const Variable& parameter, const Tensor& ids) {
  const Shape shape = parameter.shape();
  if (shape.rank() == 2) return embedding(parameter, ids);
  return reshape(embedding(reshape(parameter, {shape[0], 1}), ids), {ids.elements()});
}

// Mean over layers of the share of the targets' variance that is left, of TranscoderLoss::squares.
double unexplained(const Tensor& squares) {
  const std::int64_t layers = squares.size(1);
  const float *left = squares.f32(), *there = left + layers;
  double mean = 0.0;
  for (std::int64_t l = 0; l < layers; ++l)
    mean += static_cast<double>(left[l]) / std::max(static_cast<double>(there[l]), 1e-30) /
            static_cast<double>(layers);
  return mean;
}

}  // namespace

TranscoderObjective::TranscoderObjective(TranscoderTrainable& trained,
                                         const TranscoderObjectiveOptions& options,
                                         ReplacedModel replaced)
    : trained_(trained),
      options_(options),
      replaced_(std::move(replaced)),
      lambda_(options.lambda) {
  const auto features = static_cast<double>(trained.transcoder().shape().features);
  require(options.l0 >= 1.0 && options.l0 <= features,
          "features: {} of {} features cannot be active; give a number from 1", options.l0,
          features);
  require(!chooses() || options.l0 == std::round(options.l0),
          "features: {} takes a whole number of features, not {}; give {} or {}",
          name_of(trained.transcoder().activation()), options.l0, std::floor(options.l0),
          std::ceil(options.l0));
  require(options.ramp >= 0.0 && options.ramp <= 1.0 && options.first_l0 >= 1.0 &&
              options.steps >= 1 && options.dead_after >= 1 && options.auxiliary_features >= 1,
          "features: a ramp of {} of {} steps from {} times l0, dead after {} tokens", options.ramp,
          options.steps, options.first_l0, options.dead_after);
  // As if each had been active a moment ago.
  Tensor& densities = trained.densities();
  densities = Tensor::full(densities.shape(), 1.0f / static_cast<float>(options.dead_after),
                           densities.device());
}

bool TranscoderObjective::chooses() const {
  const FeatureActivation kind = trained_.transcoder().activation();
  return kind == FeatureActivation::kTopK || kind == FeatureActivation::kBatchTopK;
}

double TranscoderObjective::wanted_l0(std::int64_t step) const {
  const double length = options_.ramp * static_cast<double>(options_.steps);
  const double left = length > 0.0 ? std::max(0.0, 1.0 - static_cast<double>(step) / length) : 0.0;
  // By equal factors: the number is felt by its logarithm.
  const double most = static_cast<double>(trained_.transcoder().shape().features) / 2.0;
  return std::max(options_.l0, std::min(most, options_.l0 * std::pow(options_.first_l0, left)));
}

Variable TranscoderObjective::loss(const ActivationBatch& batch, std::int64_t /*micro_step*/,
                                   Communicator& ranks, Metrics& metrics) {
  ActivityOptions activity;
  Penalties penalties;
  if (chooses()) {
    activity.k = std::llround(wanted_l0(step_));
  } else {
    activity.bandwidth = options_.bandwidth;
    penalties.sparsity = lambda_.lambda();
    penalties.inactive = options_.inactive;
  }
  TranscoderLoss result = transcoder_loss(trained_.transcoder(), batch.inputs, batch.targets,
                                          activity, penalties, &ranks);
  Variable total = result.loss;
  if (any_dead_ && options_.auxiliary > 0.0)
    total = add(total, auxiliary_loss(batch, result.difference, ranks));
  // Of the size of a share of the variance, whatever the model's width and depth.
  const auto size = static_cast<float>(batch.targets.size(0) * batch.targets.size(2));
  metrics.emplace_back("loss", result.error / static_cast<double>(size));
  metrics.emplace_back("nmse", unexplained(result.squares));
  observe(result, ranks, metrics);
  if (!chooses()) metrics.emplace_back("lambda", penalties.sparsity);
  total = scale(total, 1.0f / size);
  if (!batch.windows) return total;
  const Variable apart = divergence(*batch.windows, activity, ranks);
  metrics.emplace_back("kl", static_cast<double>(apart.value().item()));
  return add(total, scale(apart, static_cast<float>(options_.divergence)));
}

Variable TranscoderObjective::divergence(const TextWindows& windows,
                                         const ActivityOptions& activity,
                                         Communicator& ranks) const {
  require(replaced_.model != nullptr, "features: windows to train through a model, and no model");
  const Model& model = *replaced_.model;
  const Variable hidden = replaced_hidden(model, windows.ids, trained_.transcoder(),
                                          replaced_.hooks, windows.scales, activity, &ranks);
  const float cap = model.config().logit_soft_cap;
  const Teacher plain{windows.hidden, model.output_layer(), cap};
  return output_loss(hidden, model.output_layer(), windows.targets,
                     {.teacher = &plain, .soft_cap = cap, .distillation = 1.0f})
      .loss;
}

void TranscoderObjective::observe(const TranscoderLoss& loss, Communicator& ranks,
                                  Metrics& metrics) {
  const std::vector<SparseCode>& codes = loss.activity.codes;
  const auto tokens = static_cast<float>(codes[0].rows);
  const float keep = std::exp(-tokens / static_cast<float>(options_.dead_after));
  const Tensor counts = update_density(codes, keep, dead_below(), trained_.densities());
  density_.reset();
  std::vector<double> active(2, 0.0);  // entries, and features that are dead
  const Tensor there = counts.to(DeviceKind::kCpu);
  for (std::int64_t i = 0; i < there.elements(); ++i)
    active[static_cast<std::size_t>(i % 2)] += static_cast<double>(there.i32()[i]);
  ranks.sum(active);
  const TranscoderShape& shape = trained_.transcoder().shape();
  const auto layers = static_cast<double>(shape.layers);
  metrics.emplace_back("l0", active[0] / (static_cast<double>(codes[0].rows) * layers));
  metrics.emplace_back("dead", active[1] / (layers * static_cast<double>(shape.features)));
}

float TranscoderObjective::dead_below() const {
  return static_cast<float>(kDeadDensity / static_cast<double>(options_.dead_after));
}

std::vector<std::int32_t> TranscoderObjective::dead_features(std::size_t layer) const {
  if (!density_) density_ = trained_.density();
  const float bound = dead_below();
  const std::vector<float>& density = (*density_)[layer];
  std::vector<std::int32_t> dead;
  for (std::size_t f = 0; f < density.size(); ++f)
    if (density[f] < bound) dead.push_back(static_cast<std::int32_t>(f));
  return dead;
}

Variable TranscoderObjective::auxiliary_loss(const ActivationBatch& batch, const Tensor& difference,
                                             Communicator& ranks) const {
  const Transcoder& transcoder = trained_.transcoder();
  const TranscoderShape& shape = transcoder.shape();
  std::vector<DecoderSource> sources;
  for (std::int64_t l = 0; l < shape.layers; ++l) {
    const std::vector<std::int32_t> dead = dead_features(static_cast<std::size_t>(l));
    if (dead.empty()) continue;
    const Tensor ids = Tensor::from_ids({static_cast<std::int64_t>(dead.size())}, dead);
    const TranscoderLayer& layer = transcoder.layers()[static_cast<std::size_t>(l)];
    SparseEncodeOptions encode;
    encode.selection = Selection::kTopK;
    encode.precision = transcoder.placement().precision;
    encode.k = std::min<std::int64_t>(ids.elements(), options_.auxiliary_features);
    // Their biases keep them from being active: here they count as zero, and are learnt all the
    // same.
    const Variable bias = chosen(layer.encoder_bias, ids);
    const EncoderWeights weights{chosen(layer.encoder, ids), sub(bias, Variable(bias.value())), {}};
    sources.push_back({sparse_encode(layer_rows(batch.inputs, l), weights, encode).code,
                       chosen(layer.decoder, ids), l, shape.reach(l)});
  }
  Variable written =
      sources.empty()
          ? Variable(Tensor::zeros(difference.shape(), DType::kF32, difference.device()))
          : sparse_decode(sources, shape.layers, shape.width, transcoder.placement().precision);
  if (ranks.size() > 1) written = sum_over_ranks(written, ranks);
  // The difference is what was written less what should have been.
  const Variable left = add(written, Variable(difference));
  return scale(sum_all(square(left)),
               static_cast<float>(options_.auxiliary) / static_cast<float>(difference.size(1)));
}

void TranscoderObjective::raise_dead() {
  const double length = std::max(1.0, kRevival * static_cast<double>(options_.steps));
  const auto step = static_cast<float>(1.0 / length);
  for (std::size_t l = 0; l < trained_.transcoder().layers().size(); ++l) {
    const std::vector<std::int32_t> dead = dead_features(l);
    if (dead.empty()) continue;
    Variable& bias = trained_.transcoder().layers()[l].encoder_bias;
    if (bias.value().on_gpu()) {  // without waiting for it
      const NoGrad constant;
      Tensor by = Tensor::zeros(bias.shape());
      for (const std::int32_t f : dead) by.mutable_f32()[f] = step;
      bias.mutable_value() = add(bias, Variable(by.to(DeviceKind::kCuda))).value();
      continue;
    }
    Tensor raised = bias.value().clone();
    for (const std::int32_t f : dead) raised.mutable_f32()[f] += step;
    bias.mutable_value() = raised;
  }
}

void TranscoderObjective::after_step(const Metrics& metrics) {
  any_dead_ = metric(metrics, "dead") > 0.0;
  if (any_dead_ && options_.auxiliary > 0.0) raise_dead();
  if (!chooses())
    lambda_.observe(std::log(std::max(metric(metrics, "l0"), 1e-3) / wanted_l0(step_)));
  ++step_;
}

Settings TranscoderObjective::settings() const {
  Settings settings({{"l0", options_.l0},
                     {"ramp", options_.ramp},
                     {"first_l0", options_.first_l0},
                     {"bandwidth", decimal(options_.bandwidth)},
                     {"inactive", options_.inactive},
                     {"lambda0", options_.lambda.initial},
                     {"auxiliary", options_.auxiliary},
                     {"auxiliary_features", options_.auxiliary_features},
                     {"dead_after", options_.dead_after}});
  if (replaced_.model != nullptr) settings.add(Setting{"divergence", options_.divergence});
  return settings;
}

nlohmann::json TranscoderObjective::state() const {
  const MultiplierState& lambda = lambda_.state();
  return {{"step", step_},
          {"any_dead", any_dead_},
          {"log_lambda", lambda.log_lambda},
          {"average_gap", lambda.average_gap},
          {"observed", lambda.observed},
          {"steps_at_most", lambda.steps_at_max},
          {"lowest_gap", lambda.lowest_gap}};
}

void TranscoderObjective::restore(const nlohmann::json& state) {
  const auto value = [&](const char* key) -> const nlohmann::json& {
    require(state.is_object() && state.contains(key) &&
                (state[key].is_number() || state[key].is_boolean()),
            "resume: the checkpoint's objective has no '{}'", key);
    return state[key];
  };
  density_.reset();
  step_ = value("step").get<std::int64_t>();
  any_dead_ = value("any_dead").get<bool>();
  MultiplierState lambda;
  lambda.log_lambda = value("log_lambda").get<double>();
  lambda.average_gap = value("average_gap").get<double>();
  lambda.observed = value("observed").get<std::int64_t>();
  lambda.steps_at_max = value("steps_at_most").get<std::int64_t>();
  lambda.lowest_gap = value("lowest_gap").get<double>();
  lambda_.restore(lambda);
}

std::vector<float> calibrated_thresholds(const Transcoder& transcoder, ActivationSource& source,
                                         std::int64_t l0, int batches, Communicator& ranks) {
  const NoGrad constant;
  const std::int64_t layers = transcoder.shape().layers;
  std::vector<double> sums(static_cast<std::size_t>(layers), 0.0);
  // The bound of a batch is that of the kind that takes so many of the whole batch.
  Transcoder counting(transcoder.shape(), FeatureActivation::kBatchTopK, transcoder.features(),
                      transcoder.placement());
  counting.layers() = transcoder.layers();
  source.begin_pool_again();
  for (int b = 0; b < batches; ++b) {
    const Activity activity = counting.encode(source.next().inputs, {.k = l0}, &ranks);
    for (std::size_t l = 0; l < sums.size(); ++l)
      sums[l] += static_cast<double>(activity.bounds[l]);
  }
  std::vector<float> thresholds;
  for (const double sum : sums)
    // A feature is active above zero in any case, and files hold thresholds that are positive.
    thresholds.push_back(std::max(static_cast<float>(sum / batches), 1e-6f));
  return thresholds;
}

}  // namespace filigree
