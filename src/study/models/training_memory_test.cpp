// What a run is said to need, against what its steps take.
#include <gmock/gmock.h>

#include "filigree/autograd.h"
#include "filigree/model.h"
#include "filigree/runtime.h"
#include "filigree/sparsification.h"
#include "filigree/train.h"
#include "filigree/training_study.h"
#include "model/copy_model.h"
#include "support/errors.h"

namespace filigree::study {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

ModelConfig config_of(const std::string& family, std::int64_t layers, std::int64_t width,
                      std::int64_t vocabulary) {
  nlohmann::json json = {{"model_type", family},           {"num_hidden_layers", layers},
                         {"num_attention_heads", 4},       {"num_key_value_heads", 2},
                         {"hidden_size", width},           {"intermediate_size", 3 * width},
                         {"max_position_embeddings", 128}, {"vocab_size", vocabulary}};
  if (family == "gpt2")
    json = {{"model_type", "gpt2"}, {"n_layer", layers},  {"n_head", 4},
            {"n_embd", width},      {"n_positions", 128}, {"vocab_size", vocabulary}};
  if (family == "gemma2")
    json.update({{"head_dim", width / 4},
                 {"sliding_window", 32},
                 {"query_pre_attn_scalar", 16},
                 {"attn_logit_softcapping", 20.0},
                 {"final_logit_softcapping", 30.0}});
  if (family == "olmo") json["clip_qkv"] = 8.0;
  if (family == "gpt_neox") json["rotary_pct"] = 0.25;
  return parse_model_config(json, "test");
}

// The peak of two steps of a run, from before its models are made.
std::uint64_t peak_of(const TrainingSetup& setup) {
  const std::uint64_t before = pool_statistics().bytes_in_use;
  reset_pool_peak();
  const auto model = make_model(setup.config, 1);
  const bool sparse = setup.teacher.has_value();
  const bool shared = setup.lora_rank > 0 && setup.own_teacher;
  const std::unique_ptr<Model> teacher =
      sparse ? copy_model(*model, shared ? CopiedWeights::kShared : CopiedWeights::kOwn) : nullptr;
  if (sparse)
    model->set_gate({std::vector<float>(
        static_cast<std::size_t>(setup.config.layers * setup.config.heads), 2.0f)});
  if (setup.lora_rank > 0) model->add_lora({.rank = setup.lora_rank, .alpha = 8.0}, 1);
  model->set_recompute(setup.recompute);
  ModelTrainable trained(*model, {.gate_biases = sparse});
  trained.set_requires_grad(true);
  std::unique_ptr<Objective> objective;
  if (sparse)
    objective = std::make_unique<Sparsification>(*model, teacher.get(), SparsificationOptions{});
  else
    objective = std::make_unique<LanguageModelling>(*model);
  AdamW optimizer(decay_groups(trained, 0.1f), {});
  const auto alone = make_single_process();
  const Tensor ids = Tensor::zeros({setup.batch, setup.length}, DType::kI32);
  for (int step = 0; step < 2; ++step) {
    trained.clear_grads();
    for (int i = 0; i < (setup.accumulates ? 2 : 1); ++i) {
      Tape tape;
      Metrics metrics;
      tape.backward(objective->loss({ids, ids}, step, *alone, metrics));
    }
    optimizer.step(1e-4f, 1.0);
  }
  return pool_statistics().peak_bytes_in_use - before;
}

void expect_told(const TrainingSetup& setup, const std::string& what) {
  const TrainingMemory told = training_memory(setup);
  const auto peak = static_cast<double>(peak_of(setup));
  const double ratio = static_cast<double>(told.total) / peak;
  EXPECT_GT(ratio, 0.87) << what << ": " << memory_text(told) << ", took " << peak;
  EXPECT_LT(ratio, 1.15) << what << ": " << memory_text(told) << ", took " << peak;
}

class TrainingMemoryOf : public testing::TestWithParam<const char*> {};

TEST_P(TrainingMemoryOf, IsNearlyWhatStepsTake) {
  // More activations than weights, and the other way round.
  for (const bool wide : {false, true})
    for (const bool sparse : {false, true})
      for (const bool recompute : {false, true})
        for (const std::int64_t rank : {0, 4})
          for (const bool accumulates : {false, true}) {
            if (accumulates && recompute) continue;  // no other case than without
            TrainingSetup setup{.config = wide ? config_of(GetParam(), 3, 128, 600)
                                               : config_of(GetParam(), 4, 64, 300)};
            if (sparse) setup.teacher = setup.config;
            setup.own_teacher = sparse;
            setup.batch = wide ? 1 : 8;
            setup.length = wide ? 32 : 128;
            setup.recompute = recompute;
            setup.lora_rank = rank;
            setup.accumulates = accumulates;
            expect_told(setup,
                        fmt::format("{}{}{}{}, rank {}", wide ? "wide" : "long",
                                    sparse ? ", sparse" : "", recompute ? ", recomputed" : "",
                                    accumulates ? ", accumulated" : "", rank));
          }
}

INSTANTIATE_TEST_SUITE_P(, TrainingMemoryOf,
                         testing::Values("gpt2", "gpt_neox", "llama", "qwen3", "olmo", "olmo2",
                                         "gemma2"),
                         [](const auto& test) { return std::string(test.param); });

TrainingSetup large() {
  TrainingSetup setup{.config = config_of("llama", 32, 4096, 32000)};
  setup.teacher = setup.config;
  setup.batch = 128, setup.length = 128;
  setup.adapters_possible = true;
  return setup;
}

TEST(TrainingMemory, ProcessesThatShareTheOptimizerHaveAPartOfItEach) {
  TrainingSetup setup = large();
  const TrainingMemory alone = training_memory(setup);
  setup.processes = 4;
  EXPECT_EQ(training_memory(setup).optimizer, alone.optimizer);
  setup.shard_optimizer = true;
  const TrainingMemory shared = training_memory(setup);
  EXPECT_EQ(shared.optimizer, alone.optimizer / 4);
  EXPECT_EQ(alone.total - shared.total, alone.optimizer - shared.optimizer);
}

TEST(TrainingMemory, WeightsUnderAdaptersAreKeptOnceAndInBf16Alone) {
  TrainingSetup setup = large();
  setup.lora_rank = 8;
  setup.placement = {DeviceKind::kCuda, DType::kBf16};
  const auto parameters = static_cast<double>(parameter_count(setup.config));
  const TrainingMemory two = training_memory(setup);
  EXPECT_NEAR(static_cast<double>(two.weights) / parameters, 2.0, 0.1);
  EXPECT_NEAR(static_cast<double>(two.teacher) / parameters, 2.0, 0.1);
  setup.own_teacher = true;
  EXPECT_EQ(training_memory(setup).teacher, 0u);
}

TEST(TrainingMemory, AnImpossibleRunIsRefusedWithWhatWouldHelp) {
  const TrainingSetup setup = large();
  const TrainingMemory memory = training_memory(setup);
  EXPECT_NO_THROW(require_memory(setup, 0));  // unknown
  EXPECT_NO_THROW(require_memory(setup, memory.total));
  const std::uint64_t before = pool_statistics().system_allocations;
  const std::string error = error_of([&] { require_memory(setup, memory.total - 1); });
  EXPECT_EQ(pool_statistics().system_allocations, before);
  EXPECT_THAT(error,
              AllOf(HasSubstr("weights"), HasSubstr("--recompute ("), HasSubstr("--batch 1 ("),
                    HasSubstr("--set shard-optimizer=true"), HasSubstr("--lora-rank 16 ("),
                    HasSubstr("all of these together"), HasSubstr("which fits")));
  EXPECT_THAT(error, Not(HasSubstr("bf16")));  // which the CPU does not compute in
  for (const MemorySaving& saving : memory_savings(setup)) EXPECT_LT(saving.total, memory.total);
}

TEST(TrainingMemory, OnlyWhatIsNotDoneYetIsProposed) {
  TrainingSetup setup = large();
  setup.placement = {DeviceKind::kCuda, DType::kF32};
  EXPECT_EQ(memory_savings(setup)[0].option, "--precision bf16");
  setup.placement.precision = DType::kBf16;
  EXPECT_EQ(memory_savings(setup)[0].option, "--recompute");
  setup.recompute = true, setup.lora_rank = 8, setup.batch = 1;
  setup.processes = 2, setup.shard_optimizer = true;
  EXPECT_TRUE(memory_savings(setup).empty());
  EXPECT_THAT(error_of([&] { require_memory(setup, 1); }), HasSubstr("a smaller model"));
}

}  // namespace
}  // namespace filigree::study
