#include "study/bench/bench_cases.h"

#include <algorithm>
#include <functional>
#include <optional>

#include "base/stopwatch.h"
#include "filigree/autograd.h"
#include "filigree/error.h"
#include "filigree/ops.h"
#include "filigree/random.h"
#include "filigree/runtime.h"
#include "filigree/train.h"
#include "ops/output_loss/output_loss.h"

namespace filigree::study {
namespace {

void forward_with_maps(const Model& model, const Tensor& ids) {
  Taps taps;
  taps.observe("blocks.*.attn.hook_pattern");
  model.forward(ids, {.taps = &taps});
}

// Forward and backward; with gates the loss of sparse post-training without a teacher: cross
// entropy and expected edges.
void gradients(Model& model, const Tensor& ids, bool gated, std::uint64_t seed) {
  model.clear_grads();
  Tape tape;
  std::vector<GateReport> reports;
  ForwardOptions options;
  options.gates = gated ? GateMode::kSampled : GateMode::kIgnored;
  options.noise.seed = seed;
  options.reports = gated ? &reports : nullptr;
  Variable loss = output_loss(model.final_hidden(ids, options), model.output_layer(), ids,
                              {.soft_cap = model.config().logit_soft_cap})
                      .loss;
  for (const GateReport& report : reports) loss = add(loss, mean_all(report.expected));
  tape.backward(loss);
}

// One layer's attention on random q, k and v, forward and backward with random gradients.
class AttentionWork {
 public:
  AttentionWork(const Model& model, const BenchCase& one, std::uint64_t seed)
      : gated_(one.kind == BenchKind::kAttentionGated) {
    const ModelConfig& config = model.config();
    const Placement& placement = model.placement();
    const auto random = [&](std::int64_t heads) {
      Tensor x = Tensor::empty({one.batch, one.length, heads, config.head_width});
      fill_normal({x.mutable_f32(), static_cast<std::size_t>(x.elements())}, seed++, 0, 0);
      return x.to(placement.precision).to(placement.device);
    };
    q_ = Variable(random(config.heads), true);
    k_ = Variable(random(config.key_heads), true);
    v_ = Variable(random(config.key_heads), true);
    dz_ = random(config.heads);
    options_.gate.bias = Variable(Tensor::full({1}, 2.0f, placement.device));
    options_.gate.sample = true;
    dexpected_ = Tensor::full({one.batch, config.heads}, 0.01f, placement.device);
    one_ = Tensor::full({}, 1.0f, placement.device);
  }

  void run() {
    for (const Variable* x : {&q_, &k_, &v_}) x->clear_grad();
    Tape tape;
    if (!gated_) {
      const Variable z = attention(q_, k_, v_, {});
      tape.backward(z, dz_);
      return;
    }
    const GatedAttention result = gated_attention(q_, k_, v_, options_);
    const Variable z = result.z, expected = result.expected;
    tape.backward(make_result(one_, {&z, &expected}, [&](const Tensor&) {
      z.accumulate_grad(dz_);
      expected.accumulate_grad(dexpected_);
    }));
  }

 private:
  bool gated_;
  Variable q_, k_, v_;
  Tensor dz_, dexpected_, one_;
  GatedAttentionOptions options_;
};

double attention_operations(const ModelConfig& config, std::int64_t batch, std::int64_t length) {
  const auto T = static_cast<double>(length);
  return 2.0 * 2.0 * static_cast<double>(config.head_width * config.heads * batch) * T * (T + 1.0) /
         2.0;
}

bool is_gated(BenchKind kind) {
  return kind == BenchKind::kTrainGated || kind == BenchKind::kStepGated;
}

}  // namespace

Tensor random_ids(const ModelConfig& config, std::int64_t batch, std::int64_t length,
                  std::uint64_t seed) {
  Random random(seed);
  Tensor ids = Tensor::empty({batch, length}, DType::kI32);
  for (std::int64_t i = 0; i < batch * length; ++i)
    ids.mutable_i32()[i] =
        static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(config.vocabulary)));
  return ids;
}

double median_seconds(const std::function<void()>& work, DeviceKind device, int runs,
                      const Context& context) {
  const auto body = [&] {
    work();
    wait_for(device);
  };
  body();  // fills caches and the buffer pool
  body();  // and gives way to what was only done once
  std::vector<double> seconds;
  for (int run = 0; run < runs; ++run) {
    context.throw_if_stopped();
    const Stopwatch watch;
    body();
    seconds.push_back(watch.seconds());
  }
  std::sort(seconds.begin(), seconds.end());
  return seconds[seconds.size() / 2];
}

const std::vector<BenchCase>& bench_cases(DeviceKind device) {
  static const std::vector<BenchCase> gpu_cases = {
      {"attention-dense-b16-t1024", BenchKind::kAttention, 16, 1024, 20},
      {"attention-gated-b16-t1024", BenchKind::kAttentionGated, 16, 1024, 20},
      {"attention-gated-b2-t8192", BenchKind::kAttentionGated, 2, 8192, 10},
      {"forward-maps-b1-t1024", BenchKind::kForwardMaps, 1, 1024, 10},
      {"step-dense-b32-t1024", BenchKind::kStep, 32, 1024, 10},
      {"step-gated-b32-t1024", BenchKind::kStepGated, 32, 1024, 10},
      {"step-lora-b4-t2048", BenchKind::kStepLora, 4, 2048, 5},
  };
  if (device == DeviceKind::kCuda) return gpu_cases;
  static const std::vector<BenchCase> cases = {
      {"forward-maps-b1-t16", BenchKind::kForwardMaps, 1, 16, 10},
      {"forward-maps-b1-t128", BenchKind::kForwardMaps, 1, 128, 5},
      {"forward-maps-b1-t1024", BenchKind::kForwardMaps, 1, 1024, 3},
      {"train-dense-b4-t256", BenchKind::kTrain, 4, 256, 3},
      {"train-gated-b4-t256", BenchKind::kTrainGated, 4, 256, 3},
      {"load-warm", BenchKind::kLoad, 0, 0, 5},
  };
  return cases;
}

double forward_operations(const ModelConfig& config, std::int64_t batch, std::int64_t length) {
  const auto B = static_cast<double>(batch), T = static_cast<double>(length);
  const auto L = static_cast<double>(config.layers), d = static_cast<double>(config.width);
  const auto H = static_cast<double>(config.heads), G = static_cast<double>(config.key_heads);
  const auto D = static_cast<double>(config.head_width),
             F = static_cast<double>(config.hidden_width());
  const auto V = static_cast<double>(config.vocabulary);
  const double mlp = (config.gated_mlp() ? 3.0 : 2.0) * d * F;
  const double linear = 2.0 * B * T * (d * (H + 2.0 * G) * D + H * D * d + mlp);
  return L * (linear + attention_operations(config, batch, length)) + 2.0 * B * T * d * V;
}

double train_operations(const ModelConfig& config, std::int64_t batch, std::int64_t length) {
  return 3.0 * forward_operations(config, batch, length);
}

double lora_operations(const ModelConfig& config, std::int64_t batch, std::int64_t length) {
  // Backward, attention has two products for each of the forward pass, a frozen layer one.
  return 3.0 * forward_operations(config, batch, length) +
         static_cast<double>(config.layers) * attention_operations(config, batch, length);
}

double operations_of(const BenchCase& one, const ModelConfig& config) {
  switch (one.kind) {
    case BenchKind::kForwardMaps: return forward_operations(config, one.batch, one.length);
    case BenchKind::kAttention:
    case BenchKind::kAttentionGated:
      return 3.0 * attention_operations(config, one.batch, one.length);
    case BenchKind::kLoad: return 0.0;
    case BenchKind::kStepLora: return lora_operations(config, one.batch, one.length);
    default: return train_operations(config, one.batch, one.length);
  }
}

BenchTiming time_case(const BenchCase& one, Model& model, const std::filesystem::path& folder,
                      int runs, const Context& context) {
  require(one.kind != BenchKind::kStepLora, "bench: '{}' makes its own model", one.name);
  const bool gated = is_gated(one.kind);
  const bool step = one.kind == BenchKind::kStep || one.kind == BenchKind::kStepGated;
  const bool train = one.kind == BenchKind::kTrain || gated || step;
  const DeviceKind device = model.placement().device;
  model.set_requires_grad(train);
  if (gated) model.set_gate({{2.0f}});
  model.clear_grads();
  const std::uint64_t before = pool_statistics(device).bytes_in_use;
  reset_pool_peak(device);
  BenchTiming timing;
  const auto time = [&](const std::function<void()>& work) {
    timing.seconds = median_seconds(work, device, runs, context);
  };
  if (one.kind == BenchKind::kLoad) {
    time([&] { load_model(folder); });
  } else if (one.kind == BenchKind::kAttention || one.kind == BenchKind::kAttentionGated) {
    // Several at a time, so that the launch of the first and the wait for the last do not count.
    constexpr int kAtOnce = 10;
    AttentionWork work(model, one, context.seed);
    time([&] {
      for (int i = 0; i < kAtOnce; ++i) work.run();
    });
    timing.seconds /= kAtOnce;
  } else {
    const Tensor ids = random_ids(model.config(), one.batch, one.length, context.seed);
    std::optional<AdamW> optimizer;
    if (step) optimizer.emplace(decay_groups(model.parameters(), 0.1f), AdamWOptions{});
    time([&] {
      if (!train) return forward_with_maps(model, ids);
      gradients(model, ids, gated, context.seed);
      if (optimizer) optimizer->step(1e-4f, 1.0);
    });
  }
  timing.memory = pool_statistics(device).peak_bytes_in_use - before;
  model.clear_grads();
  if (gated) model.set_gate({});
  return timing;
}

}  // namespace filigree::study
