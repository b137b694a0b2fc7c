#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "filigree/error.h"
#include "filigree/evaluation.h"
#include "filigree/names.h"
#include "filigree/study.h"
#include "filigree/tokenizer.h"
#include "filigree/train.h"
#include "filigree/training_study.h"
#include "model/copy_model.h"
#include "model/rounded_weights.h"
#include "study/output.h"

namespace filigree::study {
namespace {

// Enough to tell thousandths of a nat apart, and little beside a run.
constexpr std::int64_t kAdjustmentTokens = 60000;

// Of the gaps of training and held-out text, in a run that were all recovery.
constexpr std::int64_t kComparisons = 100;

// What is known before anything is loaded.
struct SparsifyStart {
  std::filesystem::path folder;
  ModelConfig config;  // of the model in `folder`
  std::filesystem::path teacher_folder;
  ModelConfig teacher_config;
  TrainingData data;
  std::int64_t length = 0;

  bool own_teacher() const { return teacher_folder == folder; }
  // What the result is compared with, and the control starts from.
  const std::filesystem::path& dense_folder() const {
    return config.gate.on() ? teacher_folder : folder;
  }
};

void check_request(const SparsifyRequest& request) {
  if (request.budget_from == BudgetReference::kControl && !request.needs_teacher())
    throw RequestError(fmt::format(
        "a fixed cross entropy of {} is not counted from the control; leave one of the two out",
        *request.sparsification.target));
  if (request.max_open.value_or(1.0) != 1.0 && request.fixed_bias)
    throw RequestError(
        fmt::format("to keep heads from being more open than {} every head needs its own bias",
                    *request.max_open));
  if (request.vectors_only && request.lora_rank > 0)
    throw RequestError(fmt::format(
        "adapters of rank {} are matrices; train them or the vectors alone", request.lora_rank));
  if (!request.dual_gain && request.loss_budget <= 0.0)
    throw RequestError(fmt::format(
        "a loss budget of {} says nothing of the gaps that the multiplier shall answer to; give "
        "its gain too",
        request.loss_budget));
}

void check_teacher(const SparsifyRequest& request, const SparsifyStart& start) {
  const std::string teacher = printable(request.teacher);
  require(!request.teacher.empty() || !start.config.gate.on(),
          "model '{}' is sparse already; name the dense model whose loss it shall keep as its "
          "teacher",
          printable(request.model));
  require(request.teacher.empty() || request.needs_teacher() || start.config.gate.on(),
          "the teacher '{}' has nothing to teach with a fixed target and no distillation; leave it "
          "out",
          teacher);
  if (request.teacher.empty()) return;
  require(
      request.budget_from == BudgetReference::kDense || start.config.gate.on(),
      "where the budget is counted from the control, the control is the teacher; leave '{}' out",
      teacher);
  const ModelConfig& config = start.teacher_config;
  require(!config.gate.on(), "the teacher '{}' is sparse; a dense model is needed", teacher);
  require(config.vocabulary == start.config.vocabulary,
          "the teacher '{}' has a vocabulary of {} tokens and the model one of {}", teacher,
          config.vocabulary, start.config.vocabulary);
  const std::filesystem::path& folder = start.teacher_folder;
  require(!has_tokenizer(folder) || made_by(start.data.index, Tokenizer::from_folder(folder)),
          "the teacher '{}' has another tokenizer than the model and the shards", teacher);
  require(start.length <= config.context,
          "windows of {} tokens do not fit the teacher's context of {}; choose shorter ones",
          start.length, config.context);
}

// The same with what it leaves to the model, and its tokens counted in steps.
SparsifyRequest completed(const SparsifyRequest& request, const SparsifyStart& start) {
  SparsifyRequest complete = request;
  TrainingRequest& training = complete.training;
  if (training.batch == 0) training.batch = default_batch(start.length);
  if (training.learning_rate == 0.0)
    training.learning_rate = default_learning_rate(start.config.width, request.lora_rank);
  const std::int64_t step = training.batch * training.accumulate * start.length;
  if (request.tokens > 0) training.steps = (request.tokens + step - 1) / step;
  check_training(training);
  return complete;
}

SparsifyStart open_start(const SparsifyRequest& request, const Context& context) {
  const TrainingRequest& training = request.training;
  check_request(request);
  check_run_folder(training.out, training.resume);
  if (request.trains_control()) check_run_folder(request.control_folder(), training.resume);
  const std::filesystem::path folder = model_folder(request.model);
  const std::filesystem::path teacher =
      request.teacher.empty() ? folder : model_folder(request.teacher);
  SparsifyStart start{.folder = folder,
                      .config = read_model_config(folder),
                      .teacher_folder = teacher,
                      .teacher_config = read_model_config(teacher),
                      .data = open_training_data(request.shards, training.held_out)};
  require(!start.config.gate.on() || !request.gate_bias,
          "a gate bias of {} is where a dense model starts; '{}' is sparse and has its biases",
          request.gate_bias.value_or(0.0), printable(request.model));
  check_shards_fit(start.data.index, request.shards, start.folder, start.config);
  start.length = request.length > 0 ? request.length : start.config.context;
  require(start.length <= start.config.context,
          "windows of {} tokens are longer than the model's context of {}", start.length,
          start.config.context);
  check_teacher(request, start);
  check_held_out(training, start.data, context);
  if (start.config.gate.bias.size() > 1 && request.fixed_bias)
    context.say(
        "the model's gate biases stay as they are; they are trained on where every head learns its "
        "own");
  return start;
}

// The models of a run. Of one that is named twice, as a model and as its own teacher, the second is
// a copy of the first.
struct ModelsOfRun {
  std::unique_ptr<Model> student;  // becomes sparse
  const Model* dense = nullptr;    // null where nothing needs it
  const Model* other = nullptr;    // a teacher that is not the dense model
  const Model* teacher = nullptr;  // null: there is a target instead
  std::vector<std::unique_ptr<const Model>> kept = {};

  const Model* keep(std::unique_ptr<const Model> model) {
    kept.push_back(std::move(model));
    return kept.back().get();
  }
};

// `given` are the model and the teacher, as far as they are loaded already.
ModelsOfRun load_start(const SparsifyRequest& request, const SparsifyStart& start, Models given,
                       const Context& context) {
  // Under adapters the weights stay as they are: no f32 values beside those that are computed with,
  // and one set of them for model and teacher.
  const bool frozen = request.lora_rank > 0;
  const bool rounded = frozen && context.placement.precision == DType::kBf16;
  const auto load = [&](const std::filesystem::path& folder) {
    auto model = load_model(folder, {.placement = rounded ? Placement() : context.placement});
    if (rounded) place_rounded(*model, context.placement);
    return model;
  };
  const auto taught_by = [&](ModelsOfRun& models) {
    return given.size() > 1 ? &given[1].model() : models.keep(load(start.teacher_folder));
  };
  const CopiedWeights copied = frozen ? CopiedWeights::kShared : CopiedWeights::kOwn;
  ModelsOfRun models;
  models.student = given.empty() ? load(start.folder) : copy_model(given[0].model(), copied);
  const bool evaluates = start.data.held_out.has_value();
  if (start.config.gate.on()) {
    models.dense = taught_by(models);
    models.teacher = models.dense;
  } else {
    if (!given.empty())
      models.dense = &given[0].model();
    else if (evaluates || request.trains_control() ||
             (start.own_teacher() && request.needs_teacher()))
      models.dense = models.keep(copy_model(*models.student, copied));
    if (!start.own_teacher()) models.other = taught_by(models);
    models.teacher = models.other != nullptr ? models.other : models.dense;
  }
  if (!request.needs_teacher()) models.teacher = nullptr;
  return models;
}

TrainingJob run_of(const SparsifyRequest& request, const SparsifyStart& start, const char* label,
                   const std::filesystem::path& out) {
  return {.label = label,
          .out = out,
          .length = start.length,
          .tokenizer = has_tokenizer(start.folder) ? start.folder : start.data.folder,
          .settings = recorded(request),
          .adapted_model = request.model};
}

// Where adapters are asked for, puts them on the model; they are then all that is trained.
void adapt(Model& model, const SparsifyRequest& request, const Context& context) {
  if (request.lora_rank > 0)
    model.add_lora({.rank = request.lora_rank, .alpha = request.lora_alpha}, context.seed);
}

GateConfig first_gate(const SparsifyRequest& request, const ModelConfig& config) {
  GateConfig gate = config.gate;
  if (!gate.on())
    gate.bias = {static_cast<float>(request.gate_bias.value_or(SparsifyRequest::kGateBias))};
  if (!request.fixed_bias && gate.bias.size() == 1)
    gate.bias.resize(static_cast<std::size_t>(config.layers * config.heads), gate.bias[0]);
  return gate;
}

// What the request asks for and leaves to be derived.
SparsificationOptions sparsification_of(const SparsifyRequest& request, const Context& context) {
  const auto steps = static_cast<double>(request.training.steps);
  SparsificationOptions options = request.sparsification;
  options.seed = context.seed;
  options.margin = request.margin.value_or(request.loss_budget);
  options.max_open =
      request.max_open.value_or(request.fixed_bias ? 1.0 : request.sparsification.max_open);
  MultiplierOptions& multiplier = options.multiplier;
  if (request.loss_budget > 0.0) {
    const auto derived =
        SparsificationOptions::of_budget(request.loss_budget, request.training.steps);
    multiplier.gain = derived.multiplier.gain;
    multiplier.every = derived.multiplier.every;
  }
  multiplier.gain = request.dual_gain.value_or(multiplier.gain);
  multiplier.every = request.dual_every.value_or(multiplier.every);
  multiplier.recovery_from =
      request.recovery > 0.0 ? std::llround((1.0 - request.recovery) * steps) : -1;
  return options;
}

// Held-out text that the result is not measured on, as far as there is other: what the multiplier
// and the gates are set on.
EvaluationWindows own_windows(const SparsifyRequest& request, const SparsifyStart& start) {
  const TokenSplit& split = *start.data.held_out;
  const auto tokens = static_cast<std::int64_t>(split.tokens());
  const std::int64_t own = std::min(kAdjustmentTokens, tokens);
  const WindowOptions options{.length = start.length,
                              .max_tokens = own,
                              .first = std::min(request.training.held_out_tokens, tokens - own)};
  return shard_windows(split, options, start.config);
}

// A margin that is asked for is one of the training loss; a budget is one of held-out text.
void follow_held_out(SparsificationOptions& options, const SparsifyRequest& request,
                     const SparsifyStart& start, const ModelsOfRun& models) {
  if (!start.data.held_out || models.teacher == nullptr || request.margin || options.target ||
      options.multiplier.recovery_from < 0)
    return;
  options.held_out_every = std::max<std::int64_t>(1, request.training.steps / kComparisons);
  options.held_out_gap = [&request, &start, &models,
                          taught = std::optional<double>()](Communicator& ranks) mutable {
    const auto loss = [&](const Model& model) {
      return evaluate(model, own_windows(request, start), {}, &ranks).loss();
    };
    if (!taught) taught = loss(*models.teacher);
    return loss(*models.student) - *taught;
  };
}

void adjust(const SparsifyRequest& request, const SparsifyStart& start, const ModelsOfRun& models,
            TrainingResult& result, const Context& context) {
  const auto windows = [&] { return own_windows(request, start); };
  Communicator& ranks = context.communicator();
  const Model& reference =
      request.budget_from == BudgetReference::kControl ? *models.teacher : *models.dense;
  const double most = evaluate(reference, windows(), {}, &ranks).loss() + request.loss_budget;
  result.gates = adjust_gates(*models.student, most, windows, &ranks);
  if (result.gates->chosen.edges == 0.0 && context.writes())
    warn("sparsify: no edge is open on held-out text once the gates are set to the loss budget");
}

TrainingResult train_sparse(const SparsifyRequest& request, const SparsifyStart& start,
                            ModelsOfRun& models, const Context& context) {
  Model& student = *models.student;
  student.set_gate(first_gate(request, start.config));
  adapt(student, request, context);
  ModelTrainable trained(
      student, {.gate_biases = !request.fixed_bias, .vectors_only = request.vectors_only});
  SparsificationOptions options = sparsification_of(request, context);
  follow_held_out(options, request, start, models);
  Sparsification objective(student, models.teacher, options);
  TrainingJob run = run_of(request, start, "sparsify", request.training.out);
  if (start.data.held_out && !request.keep_gates)
    run.before_saving = [&](TrainingResult& result) {
      adjust(request, start, models, result, context);
    };
  return train_model(run, trained, objective, request.training, start.data, context);
}

TrainingResult train_control(const SparsifyRequest& request, const SparsifyStart& start,
                             Model& control, const Context& context) {
  adapt(control, request, context);
  ModelTrainable trained(control, {.vectors_only = request.vectors_only});
  LanguageModelling objective(control);
  return train_model(run_of(request, start, "control", request.control_folder()), trained,
                     objective, request.training, start.data, context);
}

// Of a control that was trained first and is the teacher now.
void tell_of_control(const SparsifyRequest& request, const SparsifyStart& start,
                     const ModelsOfRun& models, const Context& context) {
  if (!start.data.held_out) return;
  const auto loss = [&](const Model& model) {
    return evaluate(model, own_windows(request, start), {}, &context.communicator()).loss();
  };
  const double change = loss(*models.teacher) - loss(*models.dense);
  context.say(fmt::format("control: held-out loss {:+.4f} nats from the dense model's{}", change,
                          -change > request.loss_budget
                              ? ", which had not converged; the budget is counted from the control"
                              : ""));
}

// What closing all gates costs, in nats; the student has none of its own afterwards.
double worth_of_attention(const SparsifyRequest& request, const SparsifyStart& start,
                          Model& student, const Context& context) {
  constexpr float kClosed = -1e4f;
  const auto loss = [&] {
    return evaluate(student, own_windows(request, start), {}, &context.communicator()).loss();
  };
  const double open = loss();
  GateConfig closed = student.config().gate;
  std::fill(closed.bias.begin(), closed.bias.end(), kClosed);
  student.set_gate(closed);
  return loss() - open;
}

// The student is of no more use afterwards.
void evaluate_and_judge(const SparsifyRequest& request, const SparsifyStart& start,
                        ModelsOfRun& models, const Model* control, TrainingResult& result,
                        const Context& context) {
  const auto add = [&](const Model& model, const char* label, const std::filesystem::path& folder) {
    result.held_out.push_back(evaluate_held_out(model, label, folder, start.length,
                                                request.training, start.data, context));
    return result.held_out.size() - 1;
  };
  const std::size_t dense = add(*models.dense, "dense", start.dense_folder());
  if (models.other != nullptr) add(*models.other, "teacher", start.teacher_folder);
  const std::size_t sparse = add(*models.student, "sparse", request.training.out);
  const std::size_t beside =
      control != nullptr ? add(*control, "control", request.control_folder()) : dense;
  const auto measured = [&](std::size_t model) -> const Evaluation& {
    return result.held_out[model].evaluation;
  };
  result.verdict = judge_sparsify(
      request.budget_from, request.loss_budget,
      {.dense = measured(dense),
       .sparse = measured(sparse),
       .control = control != nullptr ? &measured(beside) : nullptr,
       .worth_of_attention = worth_of_attention(request, start, *models.student, context)});
}

// As load_start() loads them.
TrainingSetup setup_of(const SparsifyRequest& request, const SparsifyStart& start,
                       const Context& context) {
  TrainingSetup setup = training_setup(start.config, start.length, request.training, context);
  setup.lora_rank = request.lora_rank;
  setup.adapters_possible = true;
  if (request.needs_teacher()) setup.teacher = start.teacher_config;
  setup.own_teacher = start.own_teacher() && !start.config.gate.on() &&
                      request.budget_from == BudgetReference::kDense;
  // The dense model where it is not the teacher, and the sparse one while the control is trained.
  const bool by_control = request.budget_from == BudgetReference::kControl;
  const bool taught_by_dense =
      request.needs_teacher() && !by_control && (start.own_teacher() || start.config.gate.on());
  const bool copied = request.lora_rank == 0 && (start.data.held_out || request.trains_control());
  const bool dense_there = start.config.gate.on() || copied;
  setup.idle_models =
      (dense_there && !taught_by_dense ? 1 : 0) + (request.trains_control() ? 1 : 0);
  return setup;
}

}  // namespace

std::int64_t default_batch(std::int64_t length) {
  constexpr std::int64_t kWindows = 16, kTokens = 8192;
  const std::int64_t tokens = kWindows * length;
  return kWindows * ((kTokens + tokens - 1) / tokens);
}

double default_learning_rate(std::int64_t width, std::int64_t lora_rank) {
  if (lora_rank > 0) return 5e-4;
  return std::min(2e-3, 0.2 / static_cast<double>(width));
}

DryRun plan_sparsify(const SparsifyRequest& asked, const Context& context) {
  const SparsifyStart start = open_start(asked, context);
  const SparsifyRequest request = completed(asked, start);
  return plan_training(setup_of(request, start, context), request.training, start.data, context);
}

TrainingResult run(const SparsifyRequest& asked, Models given, const Context& context) {
  const std::unique_ptr<OutputFolder> out = open_output(asked.training.out, context);
  const std::unique_ptr<OutputFolder> control_out =
      asked.trains_control() ? open_output(asked.control_folder(), context) : nullptr;
  const SparsifyStart start = open_start(asked, context);
  const SparsifyRequest request = completed(asked, start);
  tell_memory("sparsify", setup_of(request, start, context), context);
  ModelsOfRun models = load_start(request, start, given, context);
  std::unique_ptr<Model> control;
  const auto train_control_model = [&] {
    control = copy_model(*models.dense,
                         request.lora_rank > 0 ? CopiedWeights::kShared : CopiedWeights::kOwn);
    return train_control(request, start, *control, context);
  };
  if (request.budget_from == BudgetReference::kControl) {
    TrainingResult trained = train_control_model();
    if (trained.end != RunEnd::kFinished) {
      trained.out = request.training.out;
      return trained;
    }
    models.teacher = control.get();
    tell_of_control(request, start, models, context);
  }
  TrainingResult result = train_sparse(request, start, models, context);
  if (request.trains_control() && !control && result.end == RunEnd::kFinished) {
    if (train_control_model().interrupted()) result.end = RunEnd::kInterrupted;
  } else if (request.trains_control() && !control && !result.interrupted()) {
    context.say("no control was trained, because the sparse run stopped early");
  }
  if (!result.interrupted() && start.data.held_out)
    evaluate_and_judge(request, start, models, control.get(), result, context);
  write_result(result, context);
  return result;
}

}  // namespace filigree::study
