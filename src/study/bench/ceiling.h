// What this machine can do at most, measured: the yardstick for everything `bench` times.
#pragma once

#include <cstdint>

#include "filigree/study.h"

namespace filigree::study {

struct Ceiling {
  double multiply_add_gflops = 0.0;  // fused multiply-adds on registers, on all threads; 0 on a GPU
  double matrix_gflops = 0.0;        // a large square matrix product
  std::int64_t matrix_size = 0;
  double read_gbs = 0.0;  // memory read by all threads, in 1e9 bytes a second
};

// Of the device where the context's models compute, products in their precision. `matrix_size` is
// the side of the square matrices.
Ceiling measure_ceiling(const Context& context, std::int64_t matrix_size);

// The higher of two measurements in each respect: what a machine has done once it can do.
Ceiling highest(const Ceiling& a, const Ceiling& b);

}  // namespace filigree::study
