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

DryRun plan_pretrain(const PretrainRequest& request, const Context& context) {
  const PretrainStart start = open_start(request, context);
  return plan_training(setup_of(request, start, context), request.training, start.data, context);
}

TrainingResult run(const PretrainRequest& request, Models given, const Context& context) {
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
