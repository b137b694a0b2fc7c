// Whole small runs as studies: what they leave behind, how often they read a model, interruption,
// and what they refuse.
#include "filigree/training_study.h"
#include "json/json.h"
#include "study/training/training_test_support.h"
#include "support/files.h"

namespace filigree::study {
namespace {

using ::testing::ElementsAre;

class TrainingStudies : public TrainingStudyTest {
 protected:
  TrainingRequest small(const std::string& out, std::int64_t steps) const {
    TrainingRequest training;
    training.out = path(out);
    training.steps = steps;
    training.batch = 2;
    training.learning_rate = 3e-3;
    training.held_out_tokens = 320;
    return training;
  }

  PretrainRequest pretrain(const std::string& out, std::int64_t steps = 6) const {
    PretrainRequest request;
    request.shards = path("shards");
    request.model = ModelShape{.layers = 2, .heads = 2, .width = 16, .context = 32};
    request.training = small(out, steps);
    return request;
  }

  SparsifyRequest sparsify(const std::string& model, const std::string& out,
                           std::int64_t steps = 6) const {
    SparsifyRequest request;
    request.model = path(model);
    request.shards = path("shards");
    request.training = small(out, steps);
    return request;
  }

  // Stops after so many steps of the run that is called `label`.
  struct StopAfter {
    Context context;
    bool stop = false;

    StopAfter(const std::string& label, std::int64_t steps) {
      context.stop = [this] { return stop; };
      context.watch = [this, label, steps](const Work& work) -> std::unique_ptr<WorkReport> {
        struct Report final : WorkReport {
          StopAfter& owner;
          std::int64_t last;
          Report(StopAfter& of, std::int64_t steps) : owner(of), last(steps) {}
          void update(std::int64_t done, std::string_view) override { owner.stop = done >= last; }
          void finish() override {}
        };
        if (work.label != label) return nullptr;
        return std::make_unique<Report>(*this, steps);
      };
    }
  };

  static std::vector<std::string> labels(const TrainingResult& result) {
    std::vector<std::string> all;
    for (const EvaluatedModel& model : result.held_out) all.push_back(model.label);
    return all;
  }

  std::string weights(const std::string& folder) const {
    return read_file(folder_ / folder / "model.safetensors");
  }
};

TEST_F(TrainingStudies, PretrainingLeavesAModelAndItsResult) {
  const std::int64_t before = models_loaded();
  const TrainingResult result = run(pretrain("run"), {}, {});
  EXPECT_EQ(models_loaded(), before);
  EXPECT_EQ(result.end, RunEnd::kFinished);
  EXPECT_EQ(result.steps, 6);
  EXPECT_EQ(result.tokens, 6 * 2 * 32);
  EXPECT_THAT(labels(result), ElementsAre("run"));
  const LoadedModel model(path("run"), "run");
  EXPECT_EQ(evaluate_shards(model, open_evaluation_shards(path("shards")), {.max_tokens = 320}, {})
                .evaluation.loss(),
            result.held_out[0].evaluation.loss());
  Json json = to_json(result);
  EXPECT_TRUE(json["reason"].is_null());
  EXPECT_EQ(json["end"], "finished");
  EXPECT_EQ(json["last_step"]["loss"], metric(result.last_step, "loss"));
  EXPECT_EQ(nlohmann::json(json), read_json(path("run/result.json")));
}

// A dense model trained on is what the control of a sparse run of the same length is.
TEST_F(TrainingStudies, PretrainingGoesOnWithATrainedModel) {
  run(pretrain("dense"), {}, {});
  SparsifyRequest sparse = sparsify("dense", "sparse");
  sparse.control = true;
  run(sparse, {}, {});
  PretrainRequest further = pretrain("further");
  further.model = TrainedModel{path("dense")};
  run(further, {}, {});
  EXPECT_TRUE(weights("further") == weights("sparse/control"));
  EXPECT_FALSE(weights("further") == weights("dense"));

  further.training.out = path("other");
  further.model = TrainedModel{path("sparse")};
  EXPECT_THROWS(Error, run(further, {}, {}), "is sparse");
  further.model = TrainedModel{path("dense")};
  further.drop_heads = 0.5;
  further.drop_heads_end = 0.2;
  further.drop_heads_fade = 0.3;
  EXPECT_THROWS(study::RequestError, run(further, {}, {}), "cannot fade");
}

TEST_F(TrainingStudies, StoppedAndResumedTheyEndInTheSameBits) {
  run(pretrain("straight", 9), {}, {});
  StopAfter four("pretrain", 4);
  const TrainingResult stopped = run(pretrain("run", 9), {}, four.context);
  EXPECT_TRUE(stopped.interrupted());
  EXPECT_EQ(stopped.steps, 4);
  EXPECT_TRUE(stopped.held_out.empty());
  EXPECT_FALSE(std::filesystem::exists(path("run/model.safetensors")));
  EXPECT_FALSE(std::filesystem::exists(path("run/result.json")));
  PretrainRequest again = pretrain("run", 9);
  EXPECT_THROWS(Error, run(again, {}, {}), "holds a run already");
  again.training.resume = true;
  EXPECT_EQ(run(again, {}, {}).resumed_from, 4);
  EXPECT_TRUE(weights("run") == weights("straight"));

  again.training.beta2 = 0.9;
  EXPECT_THROWS(Error, run(again, {}, {}), "'beta2' was 0.95");
}

TEST_F(TrainingStudies, SparsifyingReadsTheDenseModelOnce) {
  make_model_folder("dense");
  SparsifyRequest request = sparsify("dense", "sparse");
  request.control = true;
  const std::int64_t before = models_loaded();
  const TrainingResult result = run(request, {}, {});
  EXPECT_EQ(models_loaded() - before, 1);
  EXPECT_THAT(labels(result), ElementsAre("dense", "sparse", "control"));
  EXPECT_EQ(result.held_out[0].model, path("dense"));
  EXPECT_EQ(result.held_out[2].model, path("sparse/control"));
  // Training changed none of the weights that the models shared at first.
  const LoadedModel dense(path("dense"), "dense");
  const EvaluatedModel fresh =
      evaluate_shards(dense, open_evaluation_shards(path("shards")), {.max_tokens = 320}, {});
  EXPECT_EQ(result.held_out[0].evaluation.loss(), fresh.evaluation.loss());
  EXPECT_NE(result.held_out[2].evaluation.loss(), fresh.evaluation.loss());
  EXPECT_EQ(load_model(path("sparse"))->config().gate.bias.size(), 4u);  // each head its own
  EXPECT_FALSE(load_model(path("sparse/control"))->config().gate.on());
}

TEST_F(TrainingStudies, SparsifyingReadsATeacherOnceToo) {
  make_model_folder("dense");
  make_model_folder("sparse", {{0.5f}});
  make_model_folder("teacher", {}, 32, 2);
  SparsifyRequest request = sparsify("dense", "taught");
  request.teacher = path("teacher");
  std::int64_t before = models_loaded();
  EXPECT_THAT(labels(run(request, {}, {})), ElementsAre("dense", "teacher", "sparse"));
  EXPECT_EQ(models_loaded() - before, 2);
  // A sparse model goes on with its gates, and its teacher is the dense model.
  SparsifyRequest further = sparsify("sparse", "further");
  further.teacher = path("dense");
  further.control = true;
  further.fixed_bias = further.keep_gates = true;
  before = models_loaded();
  const TrainingResult result = run(further, {}, {});
  EXPECT_EQ(models_loaded() - before, 2);
  EXPECT_THAT(labels(result), ElementsAre("dense", "sparse", "control"));
  EXPECT_EQ(result.held_out[0].model, path("dense"));
  EXPECT_EQ(load_model(path("further"))->config().gate.bias, std::vector<float>{0.5f});
}

TEST_F(TrainingStudies, AStoppedControlIsResumedWithItsRun) {
  make_model_folder("dense");
  SparsifyRequest request = sparsify("dense", "straight", 5);
  request.control = true;
  run(request, {}, {});
  request.training.out = path("run");
  StopAfter three("control", 3);
  EXPECT_TRUE(run(request, {}, three.context).interrupted());
  EXPECT_FALSE(std::filesystem::exists(path("run/control/model.safetensors")));
  request.training.resume = true;
  EXPECT_EQ(run(request, {}, {}).end, RunEnd::kFinished);
  EXPECT_TRUE(weights("run") == weights("straight"));
  EXPECT_TRUE(weights("run/control") == weights("straight/control"));
}

TEST_F(TrainingStudies, ADryRunReadsNoWeightsAndWritesNothing) {
  make_model_folder("dense");
  const std::int64_t before = models_loaded();
  const DryRun plan = plan_sparsify(sparsify("dense", "run"), {});
  EXPECT_EQ(plan.parameters, parameter_count(read_model_config(path("dense"))));
  EXPECT_EQ(plan.tokens(), 6 * 2 * 32);
  EXPECT_EQ(plan.memory.optimizer, 8u * static_cast<std::uint64_t>(plan.parameters));
  EXPECT_GT(plan.memory.teacher, 0u);
  const Json json = to_json(plan);
  EXPECT_EQ(json["memory_bytes"]["total"], plan.memory.total);
  const DryRun dense = plan_pretrain(pretrain("run"), {});
  EXPECT_EQ(dense.memory.teacher, 0u);
  EXPECT_TRUE(to_json(dense)["memory_bytes"]["teacher"].is_null());
  EXPECT_EQ(dense.parameters, plan.parameters);
  EXPECT_EQ(models_loaded(), before);
  EXPECT_FALSE(std::filesystem::exists(path("run")));
}

TEST_F(TrainingStudies, SparsifyingTakesTheBatchAndTheRateThatSuitTheModel) {
  make_model_folder("dense");  // of width 16 and context 32
  SparsifyRequest request;
  request.model = path("dense");
  request.shards = path("shards");
  request.training.out = path("run");
  request.training.steps = 1;
  EXPECT_EQ(plan_sparsify(request, {}).tokens_a_step, 8192);
  run(request, {}, {});
  const std::string log = read_file(folder_ / "run/log.jsonl");
  const Json header = Json::parse(log.substr(0, log.find('\n')));
  EXPECT_EQ(header["settings"]["batch"], 256);
  EXPECT_FLOAT_EQ(header["settings"]["learning_rate"].get<float>(), 2e-3F);

  EXPECT_EQ(default_batch(2048), 16);
  EXPECT_EQ(default_batch(100), 96);  // not 82, which few numbers of processes can share
  EXPECT_DOUBLE_EQ(default_learning_rate(400, 0), 5e-4);
  EXPECT_DOUBLE_EQ(default_learning_rate(4096, 8), 5e-4);
}

// Two rules of a tokenizer.json in the other order: the same tokens, but other ones for a text.
void swap_two_rules(const std::filesystem::path& file) {
  nlohmann::json tokenizer = read_json(file);
  nlohmann::json& rules = tokenizer["model"]["merges"];
  std::swap(rules[0], rules[1]);
  write_json(file, tokenizer);
}

TEST_F(TrainingStudies, ShardsOfAnotherTokenizerAreRefusedBeforeTheFirstStep) {
  make_model_folder("dense");
  std::filesystem::remove(path("dense/checksums.json"));
  swap_two_rules(path("dense/tokenizer.json"));
  EXPECT_THROWS(Error, run(sparsify("dense", "out"), {}, {}),
                "shards' was made with another tokenizer than that of the model");
  PretrainRequest further = pretrain("out");
  further.model = TrainedModel{path("dense")};
  EXPECT_THROWS(Error, run(further, {}, {}), "another tokenizer");
  EXPECT_FALSE(std::filesystem::exists(path("out")));
  // That of the shards goes into the models that are made from them.
  swap_two_rules(path("shards/tokenizer.json"));
  EXPECT_THROWS(Error, run(pretrain("out"), {}, {}), "shards/tokenizer.json' has ");
  EXPECT_FALSE(std::filesystem::exists(path("out")));
}

TEST_F(TrainingStudies, WhatMakesNoSenseIsRefusedBeforeAnythingIsWritten) {
  make_model_folder("dense");
  PretrainRequest warm = pretrain("run");
  warm.training.warmup = 7;
  EXPECT_THROWS(study::RequestError, run(warm, {}, {}), "a warm-up of 7 steps");
  PretrainRequest uneven = pretrain("run");
  uneven.model = ModelShape{.layers = 1, .heads = 3, .width = 16, .context = 32};
  EXPECT_THROWS(study::RequestError, run(uneven, {}, {}), "not a multiple");
  SparsifyRequest open = sparsify("dense", "run");
  open.max_open = 0.9;
  open.fixed_bias = true;
  EXPECT_THROWS(study::RequestError, run(open, {}, {}), "every head needs its own bias");
  SparsifyRequest long_windows = sparsify("dense", "run");
  long_windows.length = 33;
  EXPECT_THROWS(Error, run(long_windows, {}, {}), "context of 32");
  SparsifyRequest idle = sparsify("dense", "run");
  idle.teacher = path("dense");
  idle.sparsification.target = 3.0;
  idle.sparsification.distillation = 0.0;
  EXPECT_THROWS(Error, run(idle, {}, {}), "nothing to teach");
  EXPECT_FALSE(std::filesystem::exists(path("run")));
}

}  // namespace
}  // namespace filigree::study
