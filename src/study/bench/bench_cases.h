// The work that `bench` times, and how many operations it is.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "filigree/model.h"
#include "filigree/study.h"

namespace filigree::study {

enum class BenchKind {
  kForwardMaps,  // forward pass with full logits, keeping every attention map
  kTrain,        // forward pass, loss, backward pass to every parameter; no optimiser step
  kTrainGated,   // the same with gates sampled on every edge, and the expected edges in the loss
  kStep,         // kTrain and the optimiser's step
  kStepGated,    // kTrainGated and the optimiser's step
  kStepLora,     // one step of `sparsify --lora-rank` with recomputation (lora_step.h)
  kAttention,    // one layer's attention, forward and backward, alone
  kAttentionGated,
  kLoad,  // reading the saved model from a folder that is in the page cache
};

struct BenchCase {
  std::string name;
  BenchKind kind = BenchKind::kForwardMaps;
  std::int64_t batch = 0, length = 0;
  int runs = 1;  // timed, after one that is not
};

// What is timed on a device: small things on a CPU, large ones on a GPU.
const std::vector<BenchCase>& bench_cases(DeviceKind device);

// Multiplications and additions of the matrix products and of attention in one forward pass over
// [B, T], the only parts that grow with more than one power of a size:
//
//   linear layers   2 B T (d (H + 2 G) D  +  H D d  +  2 d F)  a layer    q k v, output, MLP; 3 d F
//                                                                        where that has a gate
//   logits          2 B T d V
//   attention       2 * 2 D H B T (T + 1) / 2  a layer     q.k and A v, for the keys a query sees
double forward_operations(const ModelConfig& config, std::int64_t batch, std::int64_t length);

// A backward pass computes two products of the same size (the gradients of both factors) for each
// product of the forward pass; what attention computes a second time is not counted.
double train_operations(const ModelConfig& config, std::int64_t batch, std::int64_t length);

// Teacher and student forward; backward what reaches the adapters: through frozen linear layers the
// gradient of the input alone. Adapters are not counted, nor what is computed a second time.
double lora_operations(const ModelConfig& config, std::int64_t batch, std::int64_t length);

// Of a case; 0 where nothing is counted.
double operations_of(const BenchCase& one, const ModelConfig& config);

struct BenchTiming {
  double seconds = 0.0;  // the median
  // Most bytes of tensors on the model's device at any time, those of the weights not counted; with
  // kStepLora they are.
  std::uint64_t memory = 0;
};

// The median after two runs that are not timed.
double median_seconds(const std::function<void()>& work, DeviceKind device, int runs,
                      const Context& context);

// Tokens from anywhere in the vocabulary, i32 [batch, length].
Tensor random_ids(const ModelConfig& config, std::int64_t batch, std::int64_t length,
                  std::uint64_t seed);

// `folder` is where kLoad reads from. kStepLora has a model of its own and is not for this.
BenchTiming time_case(const BenchCase& one, Model& model, const std::filesystem::path& folder,
                      int runs, const Context& context);

}  // namespace filigree::study
