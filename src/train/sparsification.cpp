#include "filigree/sparsification.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/checksum.h"
#include "filigree/autograd.h"
#include "filigree/error.h"
#include "filigree/ops.h"
#include "ops/output_loss/output_loss.h"
#include "train/weights_checksum.h"

namespace filigree {
namespace {

// By how much the bias of a head that is too open falls after a step: a saturated head comes from a
// logit of 15 within 600 steps, and the weights have time to follow.
constexpr float kBiasStep = 0.02f;
// It falls no further than this. A head that is too open even then needs its edges: its scores grow
// as fast as the bias falls, without end, to weights that rounding and averages do not survive.
constexpr float kLowestBias = -40.0f;

// Lambda has grown by so much since the gap was lowest, and the gap by the tolerance and a quarter:
// in runs that end well the gap has turned by then.
constexpr double kClimbOfLambda = 3.0;
constexpr double kClimbOfGap = 1.25;
// Or lambda has grown at all and the gap by half a nat and a half of itself: gates may close for
// good within fifty steps.
constexpr double kLeapOfGap = 1.5;
constexpr double kLeap = 0.5;

// Before the average gap says anything.
constexpr std::int64_t kStepsToTell = 20;

// A share below this counts as so much in a power, whose slope is infinite at zero: far less than
// one edge of the longest window.
constexpr float kLeastShare = 1e-9f;

// Of each share its power.
Variable to_the_power(const Variable& shares, double power) {
  if (power == 1.0) return shares;
  return exp(scale(log(shift(shares, kLeastShare)), static_cast<float>(power)));
}

}  // namespace

SparsificationOptions SparsificationOptions::of_budget(double nats, std::int64_t steps) {
  require(nats > 0.0 && steps >= 1, "sparsify: a budget of {} nats for {} steps", nats, steps);
  SparsificationOptions options;
  options.head_power = 0.5;
  options.max_open = 0.9;
  options.margin = nats;
  MultiplierOptions& multiplier = options.multiplier;
  multiplier.initial = multiplier.min = 2.0;
  multiplier.max = 30.0;
  multiplier.recovery_max = 80.0;
  multiplier.recovery_from = std::llround((1.0 - kRecovery) * static_cast<double>(steps));
  multiplier.gain = 0.1 / nats;
  multiplier.fall = 0.25;
  multiplier.every = std::clamp<std::int64_t>(steps / 1000, 1, 10);
  return options;
}

Sparsification::Sparsification(Model& student, const Model* teacher,
                               const SparsificationOptions& options)
    : student_(student), teacher_(teacher), options_(options), multiplier_(options.multiplier) {
  require(student.config().gate.on(), "sparsify: the model has no gate");
  require(options.distillation >= 0.0 && options.distillation <= 1.0,
          "sparsify: the distillation weight {} is not between 0 and 1", options.distillation);
  require(teacher != nullptr || (options.target && options.distillation == 0.0),
          "sparsify: without a teacher there must be a fixed target and no distillation");
  require(options.max_open > 0.0 && options.max_open <= 1.0,
          "sparsify: the share {} of open edges that a head may have is not between 0 and 1",
          options.max_open);
  require(options.head_power > 0.0 && options.head_power <= 1.0,
          "sparsify: the power {} of the heads' shares is not between 0 and 1", options.head_power);
  require(!options.held_out_gap || (teacher != nullptr && options.held_out_every >= 1),
          "sparsify: the gap of held-out text needs a teacher, and steps between measurements");
  const auto biases = static_cast<std::int64_t>(student.config().gate.bias.size());
  require(options.max_open == 1.0 || biases == student.config().layers * student.config().heads,
          "sparsify: to keep heads from being more open than {} every head needs its own gate bias",
          options.max_open);
}

// The average gap is of the steps before, whose weights are nearly these.
void Sparsification::compare_with_held_out(Communicator& ranks) {
  const MultiplierState& state = multiplier_.state();
  if (!options_.held_out_gap || options_.multiplier.recovery_from < 0 ||
      !multiplier_.last_bound() || state.observed < 1 || compared_after_ == state.observed)
    return;
  if (compared_after_ > 0 && state.observed < compared_after_ + options_.held_out_every) return;
  const NoGrad no_grad;
  const double held_out = options_.held_out_gap(ranks) - options_.margin;
  const double change = state.average_gap - held_out;
  memorised_ += change;
  multiplier_.shift_average(-change);
  compared_after_ = state.observed;
}

Variable Sparsification::loss(const Batch& batch, std::int64_t micro_step, Communicator& ranks,
                              Metrics& metrics) {
  compare_with_held_out(ranks);
  Teacher teacher;
  if (teacher_ != nullptr) {
    const NoGrad no_grad;
    teacher.x = teacher_->final_hidden(batch.ids, {.gates = GateMode::kIgnored}).value();
    teacher.output = teacher_->output_layer();
    teacher.soft_cap = teacher_->config().logit_soft_cap;
  }
  std::vector<GateReport> reports;
  ForwardOptions forward;
  forward.gates = options_.certain_gates ? GateMode::kHard : GateMode::kSampled;
  forward.noise.seed = options_.seed;
  forward.noise.step = static_cast<std::uint64_t>(micro_step);
  forward.noise.first_batch = static_cast<std::uint32_t>(batch.first_row);
  forward.reports = &reports;
  OutputLossOptions output;
  output.teacher = teacher_ != nullptr ? &teacher : nullptr;
  output.soft_cap = student_.config().logit_soft_cap;
  output.distillation = static_cast<float>(options_.distillation);
  const OutputLoss task = output_loss(student_.final_hidden(batch.ids, forward),
                                      student_.output_layer(), batch.targets, output);

  std::vector<Variable> by_layer, active_by_layer;
  for (const GateReport& report : reports) {
    const Shape row = {1, report.expected.shape().elements()};
    by_layer.push_back(reshape(report.expected, row));
    active_by_layer.emplace_back(report.active.reshape(row));
  }
  const auto active = static_cast<double>(mean_all(concat(active_by_layer, 0)).value().item());
  const auto length = static_cast<double>(batch.ids.size(1));
  window_edges_ = static_cast<double>(student_.config().layers * student_.config().heads) * length *
                  (length + 1.0) / 2.0;
  const Variable shares = concat(by_layer, 0);  // [L, B * H]
  const Variable expected = mean_all(shares);   // E
  const Variable powers = mean_all(to_the_power(shares, options_.head_power));
  const auto number = [](const Tensor& value) {
    return value.defined() ? static_cast<double>(value.item()) : 0.0;
  };

  // Sums over the global batch: of rows and of targets, and of what is a mean over either.
  const auto rows = static_cast<double>(batch.ids.size(0));
  const auto targets = static_cast<double>(counted_targets(batch));
  const auto here = static_cast<double>(powers.value().item());
  double sums[] = {rows,
                   rows * here,
                   rows * static_cast<double>(expected.value().item()),
                   rows * active,
                   targets,
                   targets * number(task.cross_entropy),
                   targets * number(task.teacher_cross_entropy),
                   targets * number(task.divergence)};
  ranks.sum(sums);
  const auto& [all_rows, all_powers, all_expected, all_active, all_targets, all_cross, all_teacher,
               all_kl] = sums;

  // The mean power of the global batch, of which the other ranks' part is a constant here.
  const double share = rows / all_rows;
  const Tensor others =
      Tensor::full(powers.shape(), static_cast<float>(all_powers / all_rows - share * here),
                   powers.value().device());
  const Variable global = add(scale(powers, static_cast<float>(share)), others);
  const double root = 1.0 / options_.head_power;
  const Variable edges = options_.objective == EdgeObjective::kLog
                             ? scale(log(global), static_cast<float>(root))
                             : to_the_power(global, root);
  const double lambda = multiplier_.lambda();
  const auto inverse = static_cast<float>(1.0 / (1.0 + lambda));
  Variable loss =
      add(scale(edges, inverse), scale(task.loss, static_cast<float>(lambda) * inverse *
                                                      static_cast<float>(targets / all_targets)));

  const double student_loss = all_cross / all_targets, taught = all_teacher / all_targets;
  const double allowed = options_.target ? *options_.target : taught + options_.margin;
  metrics = {{"loss", student_loss},
             {"gap", student_loss - allowed - memorised_},
             {"teacher_loss", taught},
             {"divergence", all_kl / all_targets},
             {"expected_edges", all_expected / all_rows},
             {"active_edges", all_active / all_rows},
             {"lambda", lambda}};
  if (options_.max_open < 1.0)
    metrics.emplace_back("widest_head", measure_heads(shares.value(), all_rows, ranks));
  return loss;
}

// Adds a batch's expected share of every head, layer by layer, and returns the largest. `shares`
// are those of this rank's sequences, [L, B * H].
double Sparsification::measure_heads(const Tensor& shares, double all_rows, Communicator& ranks) {
  const Tensor here = shares.on_host();
  const auto layers = static_cast<std::size_t>(here.size(0));
  const auto heads = static_cast<std::size_t>(student_.config().heads);
  const std::size_t width = here.values().size() / layers;
  std::vector<double> means(layers * heads, 0.0);
  for (std::size_t i = 0; i < here.values().size(); ++i)
    means[i / width * heads + i % heads] += static_cast<double>(here.values()[i]) / all_rows;
  ranks.sum(means);
  head_shares_.resize(means.size(), 0.0);
  for (std::size_t h = 0; h < means.size(); ++h) head_shares_[h] += means[h];
  ++batches_;
  return *std::max_element(means.begin(), means.end());
}

void Sparsification::lower_open_heads() {
  const auto heads = static_cast<std::size_t>(student_.config().heads);
  const double most = options_.max_open * static_cast<double>(batches_);
  for (std::size_t l = 0; l < student_.gate_biases().size(); ++l) {
    const auto shares = std::span(head_shares_).subspan(l * heads, heads);
    if (*std::max_element(shares.begin(), shares.end()) <= most) continue;
    const Variable& bias = student_.gate_biases()[l];
    const Tensor here = bias.value().on_host();
    std::vector<float> lowered(here.values().begin(), here.values().end());
    for (std::size_t h = 0; h < heads; ++h) {
      if (shares[h] <= most) continue;
      if (lowered[h] - kBiasStep >= kLowestBias)
        lowered[h] -= kBiasStep;
      else if (!runaway_.head)
        runaway_.head = HeadId{static_cast<std::int64_t>(l), static_cast<std::int64_t>(h)};
    }
    bias.mutable_value() = Tensor::from(bias.shape(), lowered).to(bias.value().device());
  }
  head_shares_.clear();
  batches_ = 0;
}

void Sparsification::after_step(const Metrics& metrics) {
  if (options_.max_open < 1.0) lower_open_heads();
  multiplier_.observe(metric(metrics, "gap"));
  expected_edges_ = metric(metrics, "expected_edges");
  follow_growth();
}

void Sparsification::follow_growth() {
  const MultiplierState& state = multiplier_.state();
  const bool falls = growth_.begun && state.log_lambda < growth_.last_log_lambda;
  if (!growth_.begun || falls || state.average_gap < growth_.lowest_gap) {
    growth_.lowest_gap = state.average_gap;
    growth_.log_lambda = state.log_lambda;
    growth_.begun = true;
  }
  growth_.last_log_lambda = state.log_lambda;
}

std::optional<std::string> Sparsification::take_finding() {
  const MultiplierState& state = multiplier_.state();
  if (!warned_.closed && window_edges_ > 0.0 && expected_edges_ * window_edges_ < 1.0) {
    warned_.closed = true;
    return fmt::format(
        "hardly an edge is left open: {:.1e} of them, less than one in a window over all heads, "
        "while the loss is {:+.3f} nats from what is allowed. That loss needs no attention: the "
        "model has not learned to use it, or trains on and gains more than the edges are worth",
        expected_edges_, state.average_gap);
  }
  const double below = -(state.average_gap + options_.margin);
  if (warned_.below || teacher_ == nullptr || options_.target || options_.margin <= 0.0 ||
      state.observed < kStepsToTell || below <= options_.margin)
    return std::nullopt;
  warned_.below = true;
  return fmt::format(
      "the loss is {:.3f} nats below the teacher's, although gates are closing: the teacher had "
      "not converged, and a budget that is counted from it lets edges close that the loss needs. "
      "Train it until its loss stands still, or count the budget from a control",
      below);
}

std::optional<std::string> Sparsification::take_warning() {
  if (std::optional<std::string> finding = take_finding()) return finding;
  if (runaway_.head && !runaway_.warned) {
    runaway_.warned = true;
    return fmt::format(
        "{} has more than {} of its edges open although the bias of its gate was lowered to {}: it "
        "needs them, and its scores grow as fast as the bias falls, which is not lowered any more. "
        "Start again with a larger share that heads may have open",
        head_name(*runaway_.head), options_.max_open, kLowestBias);
  }
  const MultiplierState& state = multiplier_.state();
  const double lowest = std::max(growth_.lowest_gap, 0.0);
  const bool climbs = state.log_lambda >= growth_.log_lambda + std::log(kClimbOfLambda) &&
                      state.average_gap >= kClimbOfGap * lowest + options_.tolerance;
  const bool leaps =
      state.log_lambda > growth_.log_lambda && state.average_gap >= kLeapOfGap * lowest + kLeap;
  if (growth_.warned || !(climbs || leaps)) return std::nullopt;
  growth_.warned = true;
  return fmt::format(
      "the gap and the multiplier climb together: the loss went from {:.3f} to {:.3f} nats above "
      "what is allowed while lambda went from {:.3g} to {:.3g}. Edges close faster than the "
      "weights "
      "can follow, and closed gates cannot learn to open: start again with a lower learning rate, "
      "a "
      "larger first multiplier or a larger gate bias",
      lowest, state.average_gap, std::exp(growth_.log_lambda), lambda());
}

std::optional<std::string> Sparsification::stop_reason() const {
  const MultiplierState& state = multiplier_.state();
  if (expected_edges_ < options_.min_edges && state.average_gap > options_.tolerance)
    return fmt::format(
        "the gates have closed ({:.1e} of the edges are left) while the loss is {:.3f} nats above "
        "what is allowed, and closed gates cannot learn to open. Lower the learning rate, or start "
        "with a larger multiplier or gate bias",
        expected_edges_, state.average_gap);
  if (state.steps_at_max < options_.patience || state.average_gap < options_.tolerance)
    return std::nullopt;
  return fmt::format(
      "the loss stays {:.3f} nats above what is allowed although the multiplier has been at its "
      "limit of {} for {} steps: the constraint cannot be met with these settings. Allow a larger "
      "margin, a higher limit, more distillation, or a larger gate bias to start from more open "
      "gates",
      state.average_gap, multiplier_.max(), state.steps_at_max);
}

Settings Sparsification::settings() const {
  Settings settings({{"task", "sparsification"}});
  settings.add(recorded(options_));
  settings.add({"held_out_every", options_.held_out_gap ? options_.held_out_every : 0});
  settings.add({"gate_seed", options_.seed});
  settings.add({"teacher", teacher_ != nullptr
                               ? SettingValue(checksum_text(weights_checksum(*teacher_)))
                               : SettingValue()});
  return settings;
}

nlohmann::json Sparsification::state() const {
  const MultiplierState& state = multiplier_.state();
  return {{"log_lambda", state.log_lambda},
          {"average_gap", state.average_gap},
          {"observed", state.observed},
          {"steps_at_most", state.steps_at_max},
          {"lowest_gap", state.lowest_gap},
          {"learnt_by_heart", memorised_},
          {"compared_after", compared_after_},
          {"climb",
           {{"lowest_gap", growth_.lowest_gap},
            {"log_lambda", growth_.log_lambda},
            {"last_log_lambda", growth_.last_log_lambda},
            {"begun", growth_.begun},
            {"warned", growth_.warned}}},
          {"race_warned", runaway_.warned},
          {"told_closed", warned_.closed},
          {"told_below", warned_.below}};
}

void Sparsification::restore(const nlohmann::json& state) {
  multiplier_.restore({state.at("log_lambda").get<double>(), state.at("average_gap").get<double>(),
                       state.at("observed").get<std::int64_t>(),
                       state.at("steps_at_most").get<std::int64_t>(),
                       state.value("lowest_gap", 0.0)});
  memorised_ = state.value("learnt_by_heart", 0.0);
  compared_after_ = state.value("compared_after", std::int64_t{0});
  // Runs of older versions have none; it begins anew then.
  const nlohmann::json climb = state.value("climb", nlohmann::json::object());
  growth_ = {climb.value("lowest_gap", 0.0), climb.value("log_lambda", 0.0),
             climb.value("last_log_lambda", 0.0), climb.value("begun", false),
             climb.value("warned", false)};
  runaway_.warned = state.value("race_warned", false);
  warned_ = {state.value("told_closed", false), state.value("told_below", false)};
}

}  // namespace filigree
