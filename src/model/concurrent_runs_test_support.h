// Runs of one model from several threads at once, for tests on either device.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "filigree/autograd.h"
#include "filigree/model.h"
#include "filigree/ops.h"

namespace filigree {

// What one run gave, f32 on the CPU.
using RunResult = std::vector<Tensor>;
using RunOfModel = std::function<RunResult(const Model&)>;

inline Tensor concurrent_ids(std::int64_t B, std::int64_t T, std::int64_t seed,
                             std::int64_t vocabulary) {
  Tensor ids = Tensor::empty({B, T}, DType::kI32);
  for (std::int64_t i = 0; i < B * T; ++i)
    ids.mutable_i32()[i] = static_cast<std::int32_t>((i * 17 + 5 + seed * 11) % vocabulary);
  return ids;
}

// Kinds of runs that may go on together; `seed` makes them differ. Those on a tape differentiate
// with respect to taps alone, where the parameters are frozen.
inline std::vector<RunOfModel> concurrent_runs(std::int64_t seed, bool frozen) {
  const auto ids = [seed](const Model& model, std::int64_t B, std::int64_t T) {
    return concurrent_ids(B, T, seed, model.config().vocabulary);
  };
  const RunOfModel plain = [=](const Model& model) -> RunResult {
    return {model.forward(ids(model, 2, 9 + seed)).value(),
            model.forward(ids(model, 3, 11), {.last_position_only = true}).value()};
  };
  const RunOfModel tapped = [=](const Model& model) -> RunResult {
    RunResult found;
    Taps taps;
    taps.observe("blocks.*.attn.hook_pattern");
    taps.observe("blocks.*.ln1.hook_scale");
    taps.intervene("blocks.0.attn.hook_z", [&](const Variable& z) { return scale(z, 0.5f); });
    taps.watch("blocks.*.hook_mlp_out",
               [&](std::string_view, const Tensor& value) { found.push_back(value); });
    found.push_back(model.forward(ids(model, 2, 8), {.taps = &taps}).value());
    for (const std::string& name : taps.passed()) found.push_back(taps.value(name));
    return found;
  };
  const RunOfModel generating = [=](const Model& model) -> RunResult {
    const Tensor all = ids(model, 1, 12);
    const auto cache = model.make_cache(1, 12);
    RunResult found;
    for (std::int64_t t = 0; t < 12; ++t)
      found.push_back(
          model.forward(all.reshape({12, 1}).rows(t, t + 1), {.cache = cache.get()}).value());
    return found;
  };
  const RunOfModel differentiated = [=](const Model& model) -> RunResult {
    const Tensor tokens = ids(model, 2, 7);
    Taps taps;
    taps.observe_gradient("blocks.0.hook_resid_pre");
    taps.observe_gradient("blocks.1.attn.hook_pattern");
    Tape tape;
    const Variable loss = cross_entropy(model.forward(tokens, {.taps = &taps}), tokens);
    tape.backward(loss);
    return {loss.value().on_host(), taps.gradient("blocks.0.hook_resid_pre"),
            taps.gradient("blocks.1.attn.hook_pattern")};
  };
  return frozen ? std::vector{plain, tapped, generating, differentiated}
                : std::vector{plain, tapped, generating};
}

// Gradients of all that is trained: one thread alone may ask for them, but others may run beside
// it.
inline RunResult trained_run(const Model& model) {
  const Tensor tokens = concurrent_ids(2, 9, 1, model.config().vocabulary);
  const auto& trained = model.lora() ? model.lora_parameters() : model.parameters();
  for (const NamedParameter& parameter : trained) parameter.variable.clear_grad();
  Tape tape;
  const Variable loss = cross_entropy(model.forward(tokens, {.logits_on_device = true}), tokens);
  tape.backward(loss);
  RunResult found = {loss.value().on_host()};
  for (const NamedParameter& parameter : trained)
    found.push_back(parameter.variable.grad().on_host());
  return found;
}

inline bool same_results(const RunResult& a, const RunResult& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Tensor& x, const Tensor& y) {
    return x.shape() == y.shape() && std::ranges::equal(x.values(), y.values());
  });
}

// `make` gives the same model each time. One of them runs everything in one thread; another, in
// which nothing has been prepared by a first run, from several at once, with one more that trains
// unless the parameters are frozen.
inline void check_concurrent_runs(const std::function<std::unique_ptr<Model>()>& make, bool frozen,
                                  int threads = 4, int rounds = 3) {
  const auto alone = make(), shared = make();
  alone->set_requires_grad(!frozen);
  shared->set_requires_grad(!frozen);
  std::vector<std::vector<RunOfModel>> runs;  // by thread
  for (int t = 0; t < threads; ++t) runs.push_back(concurrent_runs(t, frozen));
  if (!frozen) runs.push_back({trained_run});
  std::vector<std::vector<RunResult>> wanted;
  for (const std::vector<RunOfModel>& of_thread : runs) {
    wanted.emplace_back();
    for (const RunOfModel& run : of_thread) wanted.back().push_back(run(*alone));
  }

  std::atomic<std::size_t> waiting = runs.size();
  std::atomic<int> wrong = 0;
  std::vector<std::thread> all;
  for (std::size_t t = 0; t < runs.size(); ++t)
    all.emplace_back([&, t] {
      --waiting;
      while (waiting.load() > 0) std::this_thread::yield();
      try {
        for (int round = 0; round < rounds; ++round)
          for (std::size_t i = 0; i < runs[t].size(); ++i) {
            // Each thread begins with another kind.
            const std::size_t kind = (i + t) % runs[t].size();
            if (!same_results(runs[t][kind](*shared), wanted[t][kind])) ++wrong;
          }
      } catch (const std::exception& error) {
        ADD_FAILURE() << error.what();
      }
    });
  for (std::thread& thread : all) thread.join();
  EXPECT_EQ(wrong.load(), 0) << "runs gave other bits than alone";
}

}  // namespace filigree
