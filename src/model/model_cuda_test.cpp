// The same model on both devices: taps, interventions, caches, adapters, gates, files.

#include "filigree/model.h"
#include "filigree/ops.h"
#include "model/lora_test_support.h"
#include "support/check_cuda.h"
#include "support/files.h"
#include "support/temporary_folder.h"

namespace filigree {
namespace {

constexpr Placement kGpu{DeviceKind::kCuda, DType::kF32};

Tensor some_ids(std::int64_t B, std::int64_t T) {
  Random random(17);
  Tensor ids = Tensor::empty({B, T}, DType::kI32);
  for (std::int64_t i = 0; i < B * T; ++i)
    ids.mutable_i32()[i] = static_cast<std::int32_t>(random.below(50));
  return ids;
}

double error(const Tensor& found, const Tensor& wanted) {
  return relative_error(found.on_host().values(), to_doubles(wanted.on_host()));
}

TEST(CudaModel, EveryTapHasTheValueOfTheCpu) {
  FILIGREE_NEEDS_GPU();
  for (const nlohmann::json& changes : {nlohmann::json::object(), kGated}) {
    const auto here = tiny_model(changes), there = tiny_model(changes);
    there->place(kGpu);
    const Tensor ids = some_ids(2, 9);
    // One at a time: each makes the model take its own path.
    for (const std::string& name : here->tap_names()) {
      Taps a, b;
      a.observe(name), b.observe(name);
      std::string watched;
      b.watch(name, [&](std::string_view tap, const Tensor& value) {
        watched = tap;
        EXPECT_FALSE(value.on_gpu());
      });
      const Tensor logits = here->forward(ids, {.taps = &a}).value();
      EXPECT_LT(error(there->forward(ids, {.taps = &b}).value(), logits), 1e-4) << name;
      EXPECT_LT(error(b.value(name), a.value(name)), 1e-4) << name;
      EXPECT_EQ(watched, name);
    }
  }
}

TEST(CudaModel, InterventionsAndGradientsAtTaps) {
  FILIGREE_NEEDS_GPU();
  const auto here = tiny_model(kGated), there = tiny_model(kGated);
  there->place(kGpu);
  const Tensor ids = some_ids(2, 7);
  for (const char* name : {"blocks.0.attn.hook_pattern", "blocks.1.attn.hook_z",
                           "blocks.1.hook_resid_mid", "blocks.0.mlp.hook_pre", "hook_embed"}) {
    const auto run = [&](Model& model, bool on_gpu) {
      Taps taps;
      taps.intervene(name, [&](const Variable& value) {
        EXPECT_FALSE(value.value().on_gpu());
        // Either device may be given back.
        return placed(scale(value, 0.7f), on_gpu ? DeviceKind::kCuda : DeviceKind::kCpu);
      });
      taps.observe_gradient("blocks.1.hook_resid_pre");
      Tape tape;
      const Variable logits = model.forward(ids, {.taps = &taps});
      EXPECT_FALSE(logits.value().on_gpu());
      tape.backward(sum_all(square(logits)));
      const Tensor gradient = taps.gradient("blocks.1.hook_resid_pre");
      EXPECT_FALSE(gradient.on_gpu());
      return std::pair(logits.value(), gradient);
    };
    const auto [logits, gradient] = run(*here, false);
    for (const bool on_gpu : {false, true}) {
      const auto [there_logits, there_gradient] = run(*there, on_gpu);
      EXPECT_LT(error(there_logits, logits), 1e-4) << name;
      EXPECT_LT(error(there_gradient, gradient), 2e-4) << name;
    }
  }
}

TEST(CudaModel, TapsMayStayOnTheDeviceInItsPrecision) {
  FILIGREE_NEEDS_GPU();
  const auto here = tiny_model(), there = tiny_model();
  const Tensor ids = some_ids(2, 7);
  const char *changed = "blocks.0.attn.hook_z", *seen = "blocks.1.hook_resid_pre",
             *passed = "blocks.1.hook_mlp_out";
  struct Seen {
    Tensor logits, value, watched, gradient, watched_gradient;
  };
  const auto run = [&](Model& model) {
    const Placement& placement = model.placement();
    Seen found;
    Taps taps;
    taps.stay_on_device();
    taps.intervene(changed, [&](const Variable& value) {
      EXPECT_EQ(value.value().device(), placement.device);
      EXPECT_EQ(value.value().dtype(), placement.precision);
      return scale(value, 0.7f);
    });
    taps.observe_gradient(seen);
    taps.watch(seen, [&](std::string_view, const Tensor& value) { found.watched = value; });
    taps.watch_gradient(
        passed, [&](std::string_view, const Tensor& grad) { found.watched_gradient = grad; });
    Tape tape;
    const Variable logits =
        model.forward(ids, {.taps = &taps, .logits_on_device = true, .precise_logits = true});
    EXPECT_EQ(logits.value().dtype(), DType::kF32);  // also where the rest is bf16
    tape.backward(sum_all(square(logits)));
    found.logits = logits.value();
    found.value = taps.value(seen), found.gradient = taps.gradient(seen);
    for (const Tensor* tensor :
         {&found.value, &found.watched, &found.gradient, &found.watched_gradient}) {
      EXPECT_EQ(tensor->device(), placement.device);
      EXPECT_EQ(tensor->dtype(), placement.precision);
    }
    return found;
  };
  const Seen wanted = run(*here);
  for (const DType dtype : {DType::kF32, DType::kBf16}) {
    there->place({DeviceKind::kCuda, dtype});
    const Seen found = run(*there);
    const double most = dtype == DType::kF32 ? 1e-4 : 5e-2;
    EXPECT_LT(error(found.logits, wanted.logits), most);
    EXPECT_LT(error(found.value, wanted.value), most);
    EXPECT_LT(error(found.watched, wanted.watched), most);
    EXPECT_LT(error(found.gradient, wanted.gradient), most);
    EXPECT_LT(error(found.watched_gradient, wanted.watched_gradient), most);
  }
}

TEST(CudaModel, AdaptersGatesAndReports) {
  FILIGREE_NEEDS_GPU();
  const auto here = adapted_model(kGated), there = adapted_model(kGated);
  there->place(kGpu);
  const Tensor ids = some_ids(3, 10), targets = some_ids(3, 10);
  const auto run = [&](Model& model) {
    model.set_requires_grad(true);
    for (const Variable& bias : model.gate_biases()) bias.set_requires_grad(true);
    model.clear_grads();
    std::vector<GateReport> reports;
    ForwardOptions options;
    options.gates = GateMode::kSampled;
    options.noise = {5, 6};
    options.reports = &reports;
    options.logits_on_device = true;
    Tape tape;
    const Variable cross = cross_entropy(model.forward(ids, options), targets);
    const Variable loss =
        add(cross, add(mean_all(reports[0].expected), mean_all(reports[1].expected)));
    tape.backward(loss);
    return std::pair(loss.value().item(), reports[1].active.on_host());
  };
  const auto [loss, active] = run(*here);
  const auto [there_loss, there_active] = run(*there);
  EXPECT_NEAR(there_loss, loss, 1e-4);
  EXPECT_LT(error(there_active, active), 1e-5);
  for (std::size_t i = 0; i < here->lora_parameters().size(); ++i)
    EXPECT_LT(error(there->lora_parameters()[i].variable.grad(),
                    here->lora_parameters()[i].variable.grad()),
              5e-4)
        << here->lora_parameters()[i].name;
  for (std::size_t i = 0; i < here->gate_biases().size(); ++i)
    EXPECT_LT(error(there->gate_biases()[i].grad(), here->gate_biases()[i].grad()), 5e-4);
  here->merge_lora();
  there->merge_lora();
  EXPECT_LT(error(there->forward(ids).value(), here->forward(ids).value()), 1e-4);
}

TEST(CudaModel, GeneratesWithItsCacheAndStartsAtALayer) {
  FILIGREE_NEEDS_GPU();
  const auto here = tiny_model(), there = tiny_model();
  for (const DType precision : {DType::kF32, DType::kBf16}) {
    there->place({DeviceKind::kCuda, precision});
    const double tolerance = precision == DType::kF32 ? 1e-4 : 5e-2;
    const Tensor ids = some_ids(1, 9);
    Taps taps;
    taps.observe("blocks.1.hook_resid_pre");
    const Tensor whole = here->forward(ids, {.taps = &taps}).value();
    const auto cache = there->make_cache(1, 9);
    Tensor last;
    for (std::int64_t t = 0; t < 9; ++t)
      last = there->forward(Tensor::from_ids({1, 1}, {ids.i32() + t, 1}), {.cache = cache.get()})
                 .value();
    EXPECT_LT(error(last.reshape({50}), whole.reshape({9, 50}).rows(8, 9)), tolerance);
    const ForwardStart start{1, false, taps.value("blocks.1.hook_resid_pre")};
    EXPECT_LT(error(there->forward(ids, {.start = &start}).value(), whole), tolerance);
  }
}

TEST(CudaModel, IsSavedAsTheSameFiles) {
  FILIGREE_NEEDS_GPU();
  const TemporaryFolder folder;
  const auto model = adapted_model(kGated);
  save_model(*model, folder.path() / "cpu", {.keep_adapters = true});
  model->place({DeviceKind::kCuda, DType::kBf16});
  model->forward(some_ids(1, 4));  // makes the bf16 copies, which must not be what is saved
  model->store_gate();
  save_model(*model, folder.path() / "gpu", {.keep_adapters = true});
  for (const char* name : {"config.json", "model.safetensors", "adapters.safetensors"}) {
    EXPECT_FALSE(read_file(folder.path() / "cpu" / name).empty()) << name;
    EXPECT_EQ(read_file(folder.path() / "cpu" / name), read_file(folder.path() / "gpu" / name))
        << name;
  }
}

}  // namespace
}  // namespace filigree
