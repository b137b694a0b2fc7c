#include "train/sparsification.h"

#include <cmath>

#include "autograd/tape.h"
#include "base/error.h"
#include "ops/cross_entropy/cross_entropy.h"
#include "ops/elementwise/elementwise.h"
#include "ops/kl_divergence/kl_divergence.h"
#include "ops/layout/layout.h"
#include "ops/reduce/reduce.h"

namespace filigree {

Sparsification::Sparsification(Model& student, const Model* teacher,
                               const SparsificationOptions& options)
    : student_(student), teacher_(teacher), options_(options), multiplier_(options.multiplier) {
  require(student.config().gate.on(), "sparsify: the model has no gate");
  require(options.distillation >= 0.0 && options.distillation <= 1.0,
          "sparsify: the distillation weight {} is not between 0 and 1", options.distillation);
  require(teacher != nullptr || (options.target && options.distillation == 0.0),
          "sparsify: without a teacher there must be a fixed target and no distillation");
}

Variable Sparsification::loss(const Batch& batch, std::int64_t micro_step, Communicator& ranks,
                              Metrics& metrics) {
  double teacher_loss = 0.0;
  Tensor teacher_logits;
  if (teacher_ != nullptr) {
    const NoGrad no_grad;
    const Variable logits =
        teacher_->forward(batch.ids, {.gates = GateMode::kIgnored, .logits_on_device = true});
    teacher_logits = logits.value();
    teacher_loss = static_cast<double>(cross_entropy(logits, batch.targets).value().item());
  }
  std::vector<GateReport> reports;
  ForwardOptions forward;
  forward.gates = GateMode::kSampled;
  forward.noise.seed = options_.seed;
  forward.noise.step = static_cast<std::uint64_t>(micro_step);
  forward.noise.first_batch = static_cast<std::uint32_t>(batch.first_row);
  forward.reports = &reports;
  forward.logits_on_device = true;
  const Variable logits = student_.forward(batch.ids, forward);
  const auto kd = static_cast<float>(options_.distillation);
  // With pure distillation the cross entropy is only reported: unrecorded, it does not keep the
  // logits, whose memory the gradient of the divergence can then take.
  const Variable cross =
      cross_entropy(kd < 1.0f ? logits : Variable(logits.value()), batch.targets);

  std::vector<Variable> by_layer;
  double active = 0.0;
  for (const GateReport& report : reports) {
    by_layer.push_back(reshape(report.expected, {1, report.expected.shape().elements()}));
    active += static_cast<double>(mean_all(report.active).value().item());
  }
  const Variable expected = mean_all(concat(by_layer, 0));  // E
  Variable task = cross;
  double divergence = 0.0;
  if (kd > 0.0f) {
    const Variable kl = kl_divergence(teacher_logits, logits, batch.targets);
    divergence = static_cast<double>(kl.value().item());
    task = kd < 1.0f ? add(scale(cross, 1.0f - kd), scale(kl, kd)) : kl;
  }

  // Sums over the global batch: of rows and of targets, and of what is a mean over either.
  const auto rows = static_cast<double>(batch.ids.size(0));
  const auto targets = static_cast<double>(counted_targets(batch));
  const auto here = static_cast<double>(expected.value().item());
  double sums[] = {rows,
                   rows * here,
                   rows * (active / static_cast<double>(reports.size())),
                   targets,
                   targets * static_cast<double>(cross.value().item()),
                   targets * teacher_loss,
                   targets * divergence};
  ranks.sum(sums);
  const auto& [all_rows, all_expected, all_active, all_targets, all_cross, all_teacher, all_kl] =
      sums;

  // E of the global batch, of which the other ranks' part is a constant here.
  const double share = rows / all_rows, global = all_expected / all_rows;
  const Tensor others = Tensor::full(expected.shape(), static_cast<float>(global - share * here),
                                     expected.value().device());
  const Variable all_edges = add(scale(expected, static_cast<float>(share)), others);
  const Variable edges = options_.objective == EdgeObjective::kLog ? log(all_edges) : all_edges;
  const double lambda = multiplier_.lambda();
  const auto inverse = static_cast<float>(1.0 / (1.0 + lambda));
  Variable loss =
      add(scale(edges, inverse), scale(task, static_cast<float>(lambda) * inverse *
                                                 static_cast<float>(targets / all_targets)));

  const double student_loss = all_cross / all_targets, teacher = all_teacher / all_targets;
  const double allowed = options_.target ? *options_.target : teacher + options_.margin;
  metrics = {{"loss", student_loss},     {"gap", student_loss - allowed},
             {"teacher_loss", teacher},  {"divergence", all_kl / all_targets},
             {"expected_edges", global}, {"active_edges", all_active / all_rows},
             {"lambda", lambda}};
  return loss;
}

void Sparsification::after_step(const Metrics& metrics) {
  multiplier_.observe(metric(metrics, "gap"));
  expected_edges_ = metric(metrics, "expected_edges");
}

std::optional<std::string> Sparsification::stop_reason() const {
  const MultiplierState& state = multiplier_.state();
  if (expected_edges_ < options_.least_edges && state.average_gap > options_.tolerance)
    return fmt::format(
        "the gates have closed ({:.1e} of the edges are left) while the loss is {:.3f} nats above "
        "what is allowed, and closed gates cannot learn to open. Lower the learning rate, or start "
        "with a larger multiplier or gate bias",
        expected_edges_, state.average_gap);
  if (state.steps_at_most < options_.patience || state.average_gap < options_.tolerance)
    return std::nullopt;
  return fmt::format(
      "the loss stays {:.3f} nats above what is allowed although the multiplier has been at its "
      "limit of {} for {} steps: the constraint cannot be met with these settings. Allow a larger "
      "margin, a higher limit, more distillation, or a larger gate bias to start from more open "
      "gates",
      state.average_gap, options_.multiplier.most, state.steps_at_most);
}

nlohmann::json Sparsification::state() const {
  const MultiplierState& state = multiplier_.state();
  return {{"log_lambda", state.log_lambda},
          {"average_gap", state.average_gap},
          {"observed", state.observed},
          {"steps_at_most", state.steps_at_most}};
}

void Sparsification::restore(const nlohmann::json& state) {
  multiplier_.restore({state.at("log_lambda").get<double>(), state.at("average_gap").get<double>(),
                       state.at("observed").get<std::int64_t>(),
                       state.at("steps_at_most").get<std::int64_t>()});
}

}  // namespace filigree
