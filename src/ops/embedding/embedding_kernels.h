#pragma once

#include <cstdint>

namespace filigree {

struct RowsArgs {
  std::int64_t count = 0, width = 0;
  const std::int32_t* ids = nullptr;  // [count], already checked
  const float* from = nullptr;
  float* to = nullptr;
};

namespace cpu {
void gather_rows(const RowsArgs& args);       // to[i] = from[ids[i]]
void scatter_add_rows(const RowsArgs& args);  // to[ids[i]] += from[i]
}  // namespace cpu
}  // namespace filigree
