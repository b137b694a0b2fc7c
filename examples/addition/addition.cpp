// Two-digit addition, dense and sparse: the smallest run of the whole method.
//
// A 4-layer GPT-2 learns "47+38=00085" (digits, '+' and '=' are the tokens; the answer has five
// digits, zero-padded), then sparse post-training closes attention edges while the loss stays. Sums
// held out by a hash of the operands are never trained on. Prints a table and leaves the models and
// their logs in the output folder; a run that was interrupted goes on where it stopped, with the
// settings that it was started with.
//
//   addition OUT [--objective log|linear] [--control] [--dense-steps N] [--sparse-steps N]
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <chrono>
#include <cstdio>

#include "filigree/autograd.h"
#include "filigree/error.h"
#include "filigree/random.h"
#include "filigree/version.h"
#include "filigree/ops.h"
#include "filigree/runtime.h"
#include "filigree/train.h"
#include "filigree/sparsification.h"

using namespace filigree;

namespace {

constexpr std::int32_t kPlus = 10, kEquals = 11, kVocabulary = 12;
constexpr std::int64_t kTokens = 11;           // d d + d d = a a a a a
constexpr std::int64_t kLength = kTokens - 1;  // inputs; each predicts the next token
constexpr std::int64_t kFirstAnswer = 6;       // place of the first answer digit
constexpr int kSums = 100 * 100;

// About one sum in ten, chosen by its operands alone.
bool held_out(int sum_index) {
  return random_block(2024, 1, static_cast<std::uint64_t>(sum_index)).words[0] % 10 == 0;
}

std::vector<int> sums(bool wanted_held_out) {
  std::vector<int> chosen;
  for (int i = 0; i < kSums; ++i)
    if (held_out(i) == wanted_held_out) chosen.push_back(i);
  return chosen;
}

void write_sum(int index, std::int32_t* tokens) {
  const int a = index / 100, b = index % 100;
  int answer = a + b;
  const std::int32_t question[] = {a / 10, a % 10, kPlus, b / 10, b % 10, kEquals};
  std::copy(std::begin(question), std::end(question), tokens);
  for (std::int64_t place = kTokens - 1; place >= kFirstAnswer; --place, answer /= 10)
    tokens[place] = answer % 10;
}

// Inputs and targets of some sums. Only answer digits are predicted: the operands are random.
Batch make_batch(const std::vector<int>& indices) {
  const auto B = static_cast<std::int64_t>(indices.size());
  Batch batch{Tensor::empty({B, kLength}, DType::kI32), Tensor::empty({B, kLength}, DType::kI32)};
  for (std::int64_t b = 0; b < B; ++b) {
    std::int32_t tokens[kTokens];
    write_sum(indices[static_cast<std::size_t>(b)], tokens);
    for (std::int64_t t = 0; t < kLength; ++t) {
      batch.ids.mutable_i32()[b * kLength + t] = tokens[t];
      batch.targets.mutable_i32()[b * kLength + t] =
          t + 1 >= kFirstAnswer ? tokens[t + 1] : kIgnoredTarget;
    }
  }
  return batch;
}

// Random training sums; batch n is a function of the seed and n, so that a run can be resumed.
class SumSource : public BatchSource {
 public:
  SumSource(std::int64_t batch, std::uint64_t seed)
      : sums_(sums(false)), batch_(batch), seed_(seed) {}

  Batch next() override {
    Random random(seed_, static_cast<std::uint64_t>(served_++));
    std::vector<int> chosen;
    for (std::int64_t i = 0; i < batch_; ++i) chosen.push_back(sums_[random.below(sums_.size())]);
    return make_batch(chosen);
  }
  Settings settings() const override { return {{"batch", batch_}, {"seed", seed_}}; }
  nlohmann::json state() const override { return {{"served", served_}}; }
  void restore(const nlohmann::json& state) override { served_ = state.at("served"); }

 private:
  std::vector<int> sums_;
  std::int64_t batch_;
  std::uint64_t seed_;
  std::int64_t served_ = 0;
};

struct Quality {
  double loss = 0.0;
  double exact = 0.0;   // share of held-out sums with every digit right
  double active = 1.0;  // share of causal edges that are open
};

// On the held-out sums, with deterministic gates. Digits are taken from the true prefix, which for
// exact matches is the same as generating them.
Quality evaluate(const Model& model) {
  const Batch batch = make_batch(sums(true));
  std::vector<GateReport> reports;
  const Variable logits = model.forward(batch.ids, {.reports = &reports});
  Quality quality;
  quality.loss = static_cast<double>(cross_entropy(logits, batch.targets).value().item());
  const Tensor best = argmax(logits.value());
  const std::int64_t B = batch.ids.size(0);
  std::int64_t right = 0;
  for (std::int64_t b = 0; b < B; ++b) {
    bool all = true;
    for (std::int64_t t = kFirstAnswer - 1; t < kLength; ++t)
      all = all && best.i32()[b * kLength + t] == batch.targets.i32()[b * kLength + t];
    right += all;
  }
  quality.exact = static_cast<double>(right) / static_cast<double>(B);
  if (!reports.empty()) {
    quality.active = 0.0;
    for (const GateReport& report : reports)
      quality.active += static_cast<double>(mean_all(report.active).value().item()) /
                        static_cast<double>(reports.size());
  }
  return quality;
}

struct Options {
  std::string out;
  std::int64_t dense_steps = 1500, sparse_steps = 2000, batch = 128;
  std::uint64_t seed = 1;
  EdgeObjective objective = EdgeObjective::kLog;
  double gate_bias = 2.0, margin = 0.005, budget = 0.0;
  double dense_rate = 2e-3, sparse_rate = 3e-3;
  // The loss is a few thousandths here, so the multiplier must answer to gaps of that size.
  double lambda_max = 20, gain = 50;
  int threads = 0;
  bool control = false, quiet = false;
};

void run(const char* name, ModelTrainable trained, Objective& objective, std::int64_t steps,
         double peak, const Options& settings) {
  SumSource source(settings.batch, settings.seed + (steps == settings.dense_steps ? 0 : 1));
  trained.set_requires_grad(true);
  AdamW optimizer(decay_groups(trained, 0.05f), {});
  RunFolder folder(std::filesystem::path(settings.out) / name);
  TrainerOptions options;
  options.schedule = {static_cast<float>(peak), steps / 20, steps, 0.1f};
  options.checkpoint_every = steps;
  options.keep = 1;
  options.resume = true;
  options.header = {{"run", name}, {"version", version_string()}};
  TrainerCallbacks callbacks;
  callbacks.progress = [&](std::int64_t step, const Metrics& metrics) {
    if (settings.quiet || step % 250 != 0) return;
    std::string text = fmt::format("loss {:.4f}", metric(metrics, "loss"));
    for (const auto& [key, value] : metrics)
      if (key == "active_edges") text += fmt::format("  edges {:.2f}%", 100 * value);
    fmt::print(stderr, "{:<8} {:>5} of {} steps  {}\n", name, step, steps, text);
  };
  const TrainerResult result =
      train(trained, objective, source, optimizer, folder, options, callbacks);
  if (result.end == TrainerResult::End::kStoppedEarly) fmt::print(stderr, "{}\n", result.reason);
  trained.set_requires_grad(false);
  save_model(trained.model(), folder.path());
}

void print_row(const char* name, const Quality& q) {
  fmt::print("{:<8} {:>9.2f}% {:>10.4f} {:>12.2f}% {:>14.2f}\n", name, 100 * q.exact, q.loss,
             100 * q.active, q.active * static_cast<double>(kLength + 1) / 2.0);
}

int work(const Options& settings) {
  const auto start = std::chrono::steady_clock::now();
  const nlohmann::json json = {{"model_type", "gpt2"}, {"n_layer", 4},
                               {"n_head", 4},          {"n_embd", 64},
                               {"n_positions", 16},    {"vocab_size", kVocabulary}};
  const auto dense = make_model(parse_model_config(json, "addition"), settings.seed);
  LanguageModelling language(*dense);
  run("dense", ModelTrainable(*dense, {.drawn_from = settings.seed}), language,
      settings.dense_steps, settings.dense_rate, settings);

  const auto sparse = load_model(std::filesystem::path(settings.out) / "dense");
  sparse->set_gate({{static_cast<float>(settings.gate_bias)}});
  const bool defaults = settings.budget > 0.0;
  SparsificationOptions options;
  if (defaults) {
    options = SparsificationOptions::of_budget(settings.budget, settings.sparse_steps);
    sparse->set_gate({std::vector<float>(16, static_cast<float>(settings.gate_bias))});
  } else {
    options.margin = settings.margin;
    options.multiplier.max = settings.lambda_max;
    options.multiplier.gain = settings.gain;
  }
  options.objective = settings.objective;
  options.seed = settings.seed;
  Sparsification sparsification(*sparse, dense.get(), options);
  run("sparse", ModelTrainable(*sparse, {.gate_biases = defaults}), sparsification,
      settings.sparse_steps, settings.sparse_rate, settings);

  std::unique_ptr<Model> control;
  if (settings.control) {
    control = load_model(std::filesystem::path(settings.out) / "dense");
    LanguageModelling again(*control);
    run("control", ModelTrainable(*control), again, settings.sparse_steps, settings.sparse_rate,
        settings);
  }

  fmt::print("\n{:<8} {:>10} {:>10} {:>13} {:>14}\n", "model", "exact", "loss", "active edges",
             "keys per query");
  print_row("dense", evaluate(*dense));
  print_row("sparse", evaluate(*sparse));
  if (control) print_row("control", evaluate(*control));
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  fmt::print("\n{} held-out sums; {:.0f} s; models and logs in {}\n", sums(true).size(), seconds,
             settings.out);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options settings;
  CLI::App app("Two-digit addition, dense and sparse.");
  app.add_option("out", settings.out, "folder for models and logs")->required();
  app.add_option("--dense-steps", settings.dense_steps, "steps of dense training");
  app.add_option("--sparse-steps", settings.sparse_steps, "steps of sparse post-training");
  app.add_option("--batch", settings.batch, "sums a step");
  app.add_option("--seed", settings.seed, "seed of weights, batches and gates");
  app.add_option_function<std::string>(
         "--objective",
         [&](const std::string& name) { settings.objective = *find_name<EdgeObjective>(name); },
         any_of_text(names_of<EdgeObjective>()))
      ->check(CLI::IsMember(names_of<EdgeObjective>()));
  app.add_option("--gate-bias", settings.gate_bias, "gate bias");
  app.add_option("--budget", settings.budget,
                 "nats that it may lose, with the defaults of filigree sparsify instead of the "
                 "settings below");
  app.add_option("--margin", settings.margin, "nats that the sparse model may lose");
  app.add_option("--dense-rate", settings.dense_rate, "learning rate of dense training");
  app.add_option("--sparse-rate", settings.sparse_rate, "learning rate of sparse post-training");
  app.add_option("--lambda-max", settings.lambda_max, "upper bound of the multiplier");
  app.add_option("--gain", settings.gain, "how fast the multiplier follows the gap");
  app.add_option("--threads", settings.threads, "0: all cores");
  app.add_flag("--control", settings.control, "also fine-tune the dense model as long");
  app.add_flag("--quiet", settings.quiet, "no progress");
  CLI11_PARSE(app, argc, argv);
  try {
    if (settings.threads > 0) set_num_threads(settings.threads);
    return work(settings);
  } catch (const std::exception& error) {
    fmt::print(stderr, "addition: {}\n", error.what());
    return 1;
  }
}
