// One step of `sparsify --lora-rank` as `bench` times it: the objective, the adapters and the
// optimiser of such a run on a model with random weights and on random tokens.
#pragma once

#include "study/bench/bench_cases.h"

namespace filigree::study {

inline constexpr std::int64_t kLoraRank = 16;

// Makes a model of `config` whose frozen weights are in bf16 alone where the context computes in
// it, with gates and adapters, and its dense twin as teacher, which shares the weights. The memory
// is all that the step needs: weights, adapters, optimiser, activations.
BenchTiming time_lora_step(const BenchCase& one, const ModelConfig& config, int runs,
                           const Context& context);

}  // namespace filigree::study
