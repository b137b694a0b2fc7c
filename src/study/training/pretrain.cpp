#include <fmt/format.h>

#include <cmath>

#include "filigree/error.h"
#include "filigree/names.h"
#include "filigree/study.h"
#include "filigree/train.h"
#include "filigree/training_study.h"
#include "json/json.h"
#include "model/copy_model.h"
#include "study/output.h"

namespace filigree::study {
namespace {

nlohmann::json described_model(const std::filesystem::path& file, const ShardIndex& index) {
  nlohmann::json json = read_json(file);
  const std::string source = printable(file.string());
  require(json.is_object(), "{}: not a JSON object", source);
  require(!json.contains("gate"), "{}: has a gate; train the model dense, then make it sparse",
          source);
  if (!json.contains("vocab_size")) json["vocab_size"] = index.vocabulary;
  return json;
}

// The model to make; its vocabulary is that of the shards.
ModelConfig model_config(const PretrainRequest& request, const ShardIndex& index) {
  nlohmann::json json;
  std::string source = "the model's shape";
  if (const auto* file = std::get_if<std::filesystem::path>(&request.model)) {
    source = file->string();
    json = described_model(*file, index);
  } else {
    ModelShape shape = std::get<ModelShape>(request.model);
    shape.vocabulary = static_cast<std::int64_t>(index.vocabulary);
    json = shape.config().source;
  }
  json["bos_token_id"] = json["eos_token_id"] = index.end_of_text;
  ModelConfig config = parse_model_config(json, source);
  require(config.vocabulary >= static_cast<std::int64_t>(index.vocabulary),
          "{}: vocab_size {} is less than the {} tokens of the shards; leave it out to take theirs",
          printable(source), config.vocabulary, index.vocabulary);
  return config;
}

HeadDropout silent_heads(const PretrainRequest& request, std::uint64_t seed) {
  const auto batches = static_cast<double>(request.training.steps * request.training.accumulate);
  const auto end = static_cast<std::int64_t>(std::llround(request.drop_heads_end * batches));
  const auto fading = static_cast<std::int64_t>(std::llround(request.drop_heads_fade * batches));
  return {end > 0 ? request.drop_heads : 0.0, seed, end - fading, end};
}

void check_silent_heads(const PretrainRequest& request) {
  if (request.drop_heads > 0.0 && request.training.recompute)
    throw RequestError("silent heads and recomputed activations do not go together; leave out one");
  if (request.drop_heads_fade > request.drop_heads_end)
    throw RequestError(fmt::format(
        "silent heads cannot fade for a share of {} of the steps when none is silent after {}",
        request.drop_heads_fade, request.drop_heads_end));
}

struct PretrainStart {
  TrainingData data;
  ModelConfig config;
  std::filesystem::path folder;  // of the model to go on with; empty: from scratch
};

void open_trained(const std::string& name, const std::string& shards, PretrainStart& start) {
  start.folder = model_folder(name);
  start.config = read_model_config(start.folder);
  require(!start.config.gate.on(),
          "model '{}' is sparse; training without its gates' pressure would open them: make it "
          "sparser or train it further as a sparse model, with its dense model as the teacher",
          printable(name));
  check_shards_fit(start.data.index, shards, start.folder, start.config);
}

PretrainStart open_start(const PretrainRequest& request, const Context& context) {
  const TrainingRequest& training = request.training;
  check_training(training);
  check_silent_heads(request);
  check_run_folder(training.out, training.resume);
  PretrainStart start{open_training_data(request.shards, training.held_out), {}, {}};
  check_held_out(training, start.data, context);
  if (const auto* trained = std::get_if<TrainedModel>(&request.model))
    open_trained(trained->name, request.shards, start);
  else
    start.config = model_config(request, start.data.index);
  return start;
}

TrainingSetup setup_of(const PretrainRequest& request, const PretrainStart& start,
                       const Context& context) {
  return training_setup(start.config, start.config.context, request.training, context);
}

}  // namespace

namespace {

bool on_examples(const PretrainRequest& request) { return request.shards.ends_with(".jsonl"); }

// A toy model of the examples' extents, where the request leaves them open.
nlohmann::json toy_json(const PretrainRequest& request, const Examples& examples) {
  nlohmann::json json;
  if (const auto* file = std::get_if<std::filesystem::path>(&request.model)) {
    json = read_json(*file);
    require(json.is_object(), "{}: not a JSON object", printable(file->string()));
  } else {
    const auto& shape = std::get<ModelShape>(request.model);
    const std::int64_t heads = std::max<std::int64_t>(shape.heads, 1);
    json = {{"n_layers", shape.layers},      {"n_heads", shape.heads},   {"d_model", shape.width},
            {"d_head", shape.width / heads}, {"d_mlp", 4 * shape.width}, {"act_fn", "relu"}};
  }
  if (json.value("model_type", "hooked_transformer") != "hooked_transformer") return json;
  json["model_type"] = "hooked_transformer";
  const auto otherwise = [&](const char* key, std::int64_t value) {
    if (!json.contains(key) || json[key].is_null()) json[key] = value;
  };
  // Answers that are no tokens are classes.
  const std::int64_t ids = examples.largest_id() + 1, answers = examples.largest_target() + 1;
  otherwise("n_ctx", examples.length());
  otherwise("d_vocab", ids);
  otherwise(
      "d_vocab_out",
      std::max(json["d_vocab"].is_number_integer() ? json["d_vocab"].get<std::int64_t>() : ids,
               answers));
  return json;
}

void check_examples(const Examples& examples, const ModelConfig& config, const std::string& file) {
  require(examples.length() <= config.context,
          "'{}': examples of {} ids are longer than the model's context of {}", printable(file),
          examples.length(), config.context);
  require(examples.largest_id() < config.vocabulary, "'{}': id {} is beyond the model's {} tokens",
          printable(file), examples.largest_id(), config.vocabulary);
  require(examples.largest_target() < config.outputs(),
          "'{}': target {} is beyond the model's {} logits", printable(file),
          examples.largest_target(), config.outputs());
}

TrainingResult run_on_examples(const PretrainRequest& request, const Context& context) {
  const TrainingRequest& training = request.training;
  if (request.drop_heads > 0.0) throw RequestError("silent heads are for training on token shards");
  require(context.communicator().size() == 1, "examples are trained on by one process");
  const std::unique_ptr<OutputFolder> out = open_output(training.out, context);
  check_training(training);
  check_run_folder(training.out, training.resume);
  const Examples examples = read_examples(request.shards);
  std::optional<Examples> held_out;
  if (!training.held_out.empty()) held_out = read_examples(training.held_out);
  require(held_out || training.evaluate_every == 0,
          "there are no held-out examples to evaluate on; name a file of them");
  std::unique_ptr<Model> model;
  ModelTraining training_of;
  if (const auto* trained = std::get_if<TrainedModel>(&request.model)) {
    model = load_model(model_folder(trained->name), {.placement = context.placement});
  } else {
    const ModelConfig config = parse_model_config(toy_json(request, examples), "the model's shape");
    model = make_model(config, context.seed, context.placement);
    training_of.drawn_from = context.seed;
  }
  check_examples(examples, model->config(), request.shards);
  if (held_out) check_examples(*held_out, model->config(), training.held_out);
  ModelTrainable trained(*model, training_of);
  AnswerObjective objective(*model);
  ExampleSource source(examples, training.batch, context.seed);
  const std::int64_t rows = std::min(training.batch, examples.count());
  TrainingStream stream = {source,
                           {{"file", request.shards}, {"examples", examples.count()}},
                           rows * examples.length(),
                           {}};
  if (held_out)
    stream.evaluate = [&] {
      const Metrics found = answer_metrics(*model, *held_out);
      return Metrics{{"held_out_loss", metric(found, "loss")},
                     {"held_out_accuracy", metric(found, "accuracy")}};
    };
  const TrainingJob job{"pretrain", training.out, examples.length(), {}, recorded(request)};
  TrainingResult result = train_model(job, trained, objective, training, stream, context);
  write_result(result, context);
  return result;
}

}  // namespace

DryRun plan_pretrain(const PretrainRequest& request, const Context& context) {
  if (on_examples(request))
    throw RequestError("a plan is of training on token shards; examples need little");
  const PretrainStart start = open_start(request, context);
  return plan_training(setup_of(request, start, context), request.training, start.data, context);
}

TrainingResult run(const PretrainRequest& request, Models given, const Context& context) {
  if (on_examples(request)) return run_on_examples(request, context);
  const std::unique_ptr<OutputFolder> out = open_output(request.training.out, context);
  const PretrainStart start = open_start(request, context);
  const TrainingRequest& training = request.training;
  tell_memory("pretrain", setup_of(request, start, context), context);
  const bool from_scratch = start.folder.empty();
  const std::unique_ptr<Model> model =
      from_scratch    ? make_model(start.config, context.seed, context.placement)
      : given.empty() ? load_model(start.folder, {.placement = context.placement})
                      : copy_model(given.only().model());
  ModelTraining training_of;
  if (from_scratch) training_of.drawn_from = context.seed;
  ModelTrainable trained(*model, training_of);
  LanguageModelling objective(*model, silent_heads(request, context.seed));
  const TrainingJob run{"pretrain", training.out, start.config.context, start.data.folder,
                        recorded(request)};
  TrainingResult result = train_model(run, trained, objective, training, start.data, context);
  if (!result.interrupted() && start.data.held_out)
    result.held_out.push_back(evaluate_held_out(*model, short_names({training.out})[0],
                                                training.out, run.length, training, start.data,
                                                context));
  write_result(result, context);
  return result;
}

}  // namespace filigree::study
