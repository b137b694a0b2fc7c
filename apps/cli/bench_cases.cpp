#include "apps/cli/bench_cases.h"

#include <algorithm>
#include <functional>

#include "apps/cli/session.h"
#include "apps/cli/stopwatch.h"
#include "autograd/tape.h"
#include "base/random.h"
#include "ops/cross_entropy/cross_entropy.h"
#include "ops/elementwise/elementwise.h"
#include "ops/reduce/reduce.h"
#include "runtime/buffer.h"

namespace filigree::cli {
namespace {

Tensor random_ids(const ModelConfig& config, std::int64_t batch, std::int64_t length,
                  std::uint64_t seed) {
  Random random(seed);
  Tensor ids = Tensor::empty({batch, length}, DType::kI32);
  for (std::int64_t i = 0; i < batch * length; ++i)
    ids.mutable_i32()[i] =
        static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(config.vocabulary)));
  return ids;
}

double median_seconds(const std::function<void()>& body, int runs) {
  body();  // fills caches and the buffer pool
  std::vector<double> seconds;
  for (int run = 0; run < runs; ++run) {
    throw_if_interrupted();
    const Stopwatch watch;
    body();
    seconds.push_back(watch.seconds());
  }
  std::sort(seconds.begin(), seconds.end());
  return seconds[seconds.size() / 2];
}

void forward_with_maps(const Model& model, const Tensor& ids) {
  Taps taps;
  taps.observe("blocks.*.attn.hook_pattern");
  model.forward(ids, {.taps = &taps});
}

void train_step(Model& model, const Tensor& ids) {
  model.clear_grads();
  Tape tape;
  tape.backward(cross_entropy(model.forward(ids), ids));
}

// The loss of sparse post-training without a teacher: cross entropy and expected edges.
void gated_train_step(Model& model, const Tensor& ids, std::uint64_t seed) {
  model.clear_grads();
  Tape tape;
  std::vector<GateReport> reports;
  ForwardOptions options;
  options.gates = GateMode::kSampled;
  options.noise.seed = seed;
  options.reports = &reports;
  Variable loss = cross_entropy(model.forward(ids, options), ids);
  for (const GateReport& report : reports) loss = add(loss, mean_all(report.expected));
  tape.backward(loss);
}

}  // namespace

const std::vector<BenchCase>& bench_cases() {
  static const std::vector<BenchCase> cases = {
      {"forward_maps_B1_T16", BenchKind::kForwardMaps, 1, 16, 10},
      {"forward_maps_B1_T128", BenchKind::kForwardMaps, 1, 128, 5},
      {"forward_maps_B1_T1024", BenchKind::kForwardMaps, 1, 1024, 3},
      {"train_dense_B4_T256", BenchKind::kTrain, 4, 256, 3},
      {"train_gated_B4_T256", BenchKind::kTrainGated, 4, 256, 3},
      {"load_warm", BenchKind::kLoad, 0, 0, 5},
  };
  return cases;
}

double forward_operations(const ModelConfig& config, std::int64_t batch, std::int64_t length) {
  const auto B = static_cast<double>(batch), T = static_cast<double>(length);
  const auto L = static_cast<double>(config.layers), d = static_cast<double>(config.width);
  const auto H = static_cast<double>(config.heads), G = static_cast<double>(config.key_heads);
  const auto D = static_cast<double>(config.head_width), F = static_cast<double>(config.mlp_width);
  const auto V = static_cast<double>(config.vocabulary);
  const double linear = 2.0 * B * T * (d * (H + 2.0 * G) * D + H * D * d + 2.0 * d * F);
  const double attention = 2.0 * 2.0 * D * H * B * T * (T + 1.0) / 2.0;
  return L * (linear + attention) + 2.0 * B * T * d * V;
}

double train_operations(const ModelConfig& config, std::int64_t batch, std::int64_t length) {
  return 3.0 * forward_operations(config, batch, length);
}

BenchTiming time_case(const BenchCase& one, Model& model, const std::filesystem::path& folder,
                      int runs, std::uint64_t seed) {
  const bool gated = one.kind == BenchKind::kTrainGated;
  const bool train = one.kind == BenchKind::kTrain || gated;
  model.set_requires_grad(train);
  if (gated) model.set_gate({{2.0f}});
  model.clear_grads();
  const std::uint64_t before = pool_statistics().bytes_in_use;
  reset_pool_peak();
  BenchTiming timing;
  if (one.kind == BenchKind::kLoad) {
    timing.seconds = median_seconds([&] { load_model(folder); }, runs);
  } else {
    const Tensor ids = random_ids(model.config(), one.batch, one.length, seed);
    timing.seconds = median_seconds(
        [&] {
          if (gated)
            gated_train_step(model, ids, seed);
          else if (train)
            train_step(model, ids);
          else
            forward_with_maps(model, ids);
        },
        runs);
  }
  timing.memory = pool_statistics().peak_bytes_in_use - before;
  model.clear_grads();
  if (gated) model.set_gate({});
  return timing;
}

}  // namespace filigree::cli
