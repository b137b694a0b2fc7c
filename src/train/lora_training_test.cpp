// Small runs that train adapters: what they change, what they leave, and how they resume.
#include <algorithm>

#include "filigree/sparsification.h"
#include "filigree/train.h"
#include "support/check_op.h"
#include "support/errors.h"
#include "support/temporary_folder.h"
#include "train/train_test_support.h"

namespace filigree {
namespace {

std::vector<float> values_of(const std::vector<NamedParameter>& parameters) {
  std::vector<float> all;
  for (const NamedParameter& p : parameters)
    all.insert(all.end(), p.variable.value().values().begin(), p.variable.value().values().end());
  return all;
}

struct LoraRun {
  std::unique_ptr<Model> model, teacher;
  std::unique_ptr<ModelTrainable> trained;
  std::unique_ptr<Objective> objective;
  std::unique_ptr<AdamW> optimizer;
  Arithmetic source;
  TrainerOptions options;

  explicit LoraRun(bool gated, const std::optional<LoraOptions>& lora = LoraOptions{.rank = 4},
                   std::unique_ptr<Model> base = nullptr)
      : model(std::move(base)) {
    if (model == nullptr) model = make_model(tiny_config(gated), 1);
    teacher = make_model(tiny_config(false), 1);
    for (std::size_t i = 0; i < model->parameters().size(); ++i)
      teacher->parameters()[i].variable.mutable_value() =
          model->parameters()[i].variable.value().clone();
    if (lora) model->add_lora(*lora, 7);
    // Made, not read: what the model holds when a run is resumed does not matter.
    trained = std::make_unique<ModelTrainable>(
        *model, ModelTraining{.gate_biases = gated, .drawn_from = 1});
    trained->set_requires_grad(true);
    if (gated)
      objective = std::make_unique<Sparsification>(*model, teacher.get(), SparsificationOptions{});
    else
      objective = std::make_unique<LanguageModelling>(*model);
    optimizer = std::make_unique<AdamW>(decay_groups(*trained, 0.01f), AdamWOptions{});
    options.schedule = {1e-2f, 5, 30, 0.1f};
    options.checkpoint_every = 8;
  }

  TrainerResult train(const std::filesystem::path& path, const TrainerCallbacks& callbacks = {}) {
    RunFolder folder(path);
    return filigree::train(*trained, *objective, source, *optimizer, folder, options, callbacks);
  }

  // Weights, adapters and gate biases.
  std::vector<float> everything() const {
    std::vector<float> all = values_of(model->parameters());
    const std::vector<float> adapters = values_of(model->lora_parameters());
    all.insert(all.end(), adapters.begin(), adapters.end());
    for (const Variable& bias : model->gate_biases())
      all.insert(all.end(), bias.value().values().begin(), bias.value().values().end());
    return all;
  }
};

class LoraTraining : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(DenseAndSparse, LoraTraining, testing::Values(false, true));

TEST_P(LoraTraining, ChangesTheAdaptersAndNotABitOfTheWeights) {
  const TemporaryFolder folder;
  LoraRun run(GetParam());
  const std::vector<float> weights = values_of(run.model->parameters());
  std::vector<std::vector<float>> adapters;
  for (const NamedParameter& p : run.model->lora_parameters()) adapters.push_back(values_of({p}));
  run.train(folder.path());
  EXPECT_EQ(values_of(run.model->parameters()), weights);
  for (std::size_t i = 0; i < adapters.size(); ++i) {
    const NamedParameter& p = run.model->lora_parameters()[i];
    EXPECT_NE(values_of({p}), adapters[i]) << p.name;
  }
  for (const Variable& bias : run.model->gate_biases())
    for (const float value : bias.value().values()) EXPECT_NE(value, 2.0f);
}

TEST_P(LoraTraining, InterruptedAnywhereItEndsInTheSameBits) {
  const TemporaryFolder straight;
  LoraRun uninterrupted(GetParam());
  uninterrupted.train(straight.path());
  for (const std::int64_t stop : {1, 8, 19, 29}) {
    const TemporaryFolder folder;
    LoraRun first(GetParam());
    std::int64_t seen = 0;
    TrainerCallbacks callbacks;
    callbacks.progress = [&](std::int64_t step, const Metrics&) { seen = step; };
    callbacks.stop_requested = [&] { return seen == stop; };
    EXPECT_EQ(first.train(folder.path(), callbacks).end, TrainerResult::End::kInterrupted);
    LoraRun second(GetParam());
    // Whatever the model holds before, the checkpoint's weights and adapters replace it.
    for (const NamedParameter& p : second.model->parameters())
      p.variable.mutable_value() = random_tensor(p.variable.shape(), 1);
    for (const NamedParameter& p : second.model->lora_parameters())
      p.variable.mutable_value() = random_tensor(p.variable.shape(), 2);
    second.options.resume = true;
    EXPECT_EQ(second.train(folder.path()).resumed_from, stop);
    EXPECT_EQ(second.everything(), uninterrupted.everything()) << "stopped at " << stop;
  }
}

TEST_P(LoraTraining, TheThreadCountDoesNotMatter) {
  const int before = num_threads();
  std::vector<std::vector<float>> ends;
  for (const int threads : {1, 2}) {
    const TemporaryFolder folder;
    set_num_threads(threads);
    LoraRun run(GetParam());
    run.train(folder.path());
    ends.push_back(run.everything());
  }
  set_num_threads(before);
  EXPECT_EQ(ends[0], ends[1]);
}

TEST_P(LoraTraining, ACheckpointIsTheModelWithItsAdapters) {
  const TemporaryFolder folder;
  LoraRun run(GetParam());
  run.train(folder.path());
  const auto stored = load_model(RunFolder(folder.path()).checkpoints().back());
  EXPECT_EQ(stored->lora(), run.model->lora());
  const Tensor ids = Arithmetic().next().ids;
  EXPECT_EQ(to_doubles(stored->forward(ids).value()), to_doubles(run.model->forward(ids).value()));
}

TEST(LoraResume, OtherAdaptersAreRefused) {
  const TemporaryFolder folder;
  LoraRun(false).train(folder.path());
  const auto resume = [](const std::filesystem::path& path,
                         const std::optional<LoraOptions>& lora) {
    return error_of([&] {
      LoraRun run(false, lora);
      run.options.resume = true;
      run.train(path);
    });
  };
  const auto restore = [](const std::filesystem::path& path,
                          const std::optional<LoraOptions>& lora) {
    return error_of([&] {
      LoraRun run(false, lora);
      restore_training(RunFolder(path).checkpoints().back(), *run.trained, *run.optimizer,
                       *make_single_process());
    });
  };
  const auto expect = [](const std::string& message, const std::string& part) {
    EXPECT_NE(message.find(part), std::string::npos) << "'" << part << "' in: " << message;
  };
  // The settings differ already; and so do the files.
  expect(resume(folder.path(), LoraOptions{.rank = 4, .alpha = 8}), "'lora_alpha' was 16.0");
  const std::string stored = "has LoRA adapters of rank 4 and alpha 16 and the model ";
  expect(restore(folder.path(), LoraOptions{.rank = 2}), stored + "LoRA adapters of rank 2");
  expect(restore(folder.path(), LoraOptions{.rank = 4, .alpha = 8}),
         stored + "LoRA adapters of rank 4 and alpha 8");
  expect(restore(folder.path(), std::nullopt), stored + "no LoRA adapters");
  EXPECT_EQ(resume(folder.path(), LoraOptions{.rank = 4}), "no error");
  const TemporaryFolder dense;
  LoraRun(false, std::nullopt).train(dense.path());
  expect(restore(dense.path(), LoraOptions{.rank = 4}),
         "has no LoRA adapters and the model LoRA adapters of rank 4");
}

TEST(LoraSparsification, ClosesEdgesAndMergesIntoAnOrdinaryModel) {
  const TemporaryFolder pretrained, sparse, merged;
  LoraRun dense(false, std::nullopt);
  dense.options.schedule = {1e-2f, 10, 300, 0.1f};
  dense.options.checkpoint_every = 300;
  const double learned = metric(dense.train(pretrained.path()).last, "loss");
  ASSERT_LT(learned, 1.0);  // from log 20 = 3.0: what is made sparse can do something

  dense.model->set_gate(tiny_config(true).gate);
  LoraRun run(true, LoraOptions{.rank = 4}, std::move(dense.model));
  run.options.schedule = {1e-2f, 10, 1500, 0.1f};
  run.options.checkpoint_every = 1500;
  // What happens is the adapters' doing alone.
  for (const Variable& bias : run.model->gate_biases()) bias.set_requires_grad(false);
  std::vector<double> active, loss;
  TrainerCallbacks callbacks;
  callbacks.progress = [&](std::int64_t, const Metrics& metrics) {
    active.push_back(metric(metrics, "active_edges"));
    loss.push_back(metric(metrics, "loss"));
  };
  run.train(sparse.path(), callbacks);
  const auto mean = [](auto begin, auto end) {
    double total = 0.0;
    for (auto i = begin; i != end; ++i) total += *i;
    return total / static_cast<double>(end - begin);
  };
  // Fewer edges, and the loss recovers from the first closed ones.
  EXPECT_LT(mean(active.end() - 50, active.end()), 0.9 * mean(active.begin(), active.begin() + 10));
  EXPECT_LT(mean(loss.end() - 50, loss.end()), 0.6 * mean(loss.begin(), loss.begin() + 10));

  const auto report = [](const Model& model) {
    std::vector<GateReport> reports;
    const Tensor logits = model.forward(Arithmetic().next().ids, {.reports = &reports}).value();
    Doubles numbers = to_doubles(logits);
    for (const GateReport& r : reports)
      for (const float share : r.active.values()) numbers.push_back(static_cast<double>(share));
    return numbers;
  };
  run.model->merge_lora();
  save_model(*run.model, merged.path());
  EXPECT_EQ(report(*load_model(merged.path())), report(*run.model));
}

}  // namespace
}  // namespace filigree
