#include "filigree/ops.h"
#include "ops/activation/activation_test_support.h"
#include "support/check_cuda.h"

namespace filigree {
namespace {

TEST(CudaActivation, ValuesAndGradients) {
  FILIGREE_NEEDS_GPU();
  for (const Activation f : kActivations)
    for (const std::int64_t count : {0, 1, 8, 1001})
      check_cuda({.name = std::string(text_of(f)) + " of " + std::to_string(count),
                  .inputs = {random_tensor({count}, 1, -4.0f, 4.0f)},
                  .op = [&](const std::vector<Variable>& in) { return activate(in[0], f); }});
}

TEST(CudaActivation, GatedProducts) {
  FILIGREE_NEEDS_GPU();
  for (const Activation f : kActivations)
    for (const std::int64_t count : {0, 1, 8, 1001})
      check_cuda(
          {.name = std::string(text_of(f)) + " gate of " + std::to_string(count),
           .inputs = {random_tensor({count}, 1, -4.0f, 4.0f), random_tensor({count}, 2)},
           .op = [&](const std::vector<Variable>& in) { return gated_product(in[0], in[1], f); }});
}

TEST(CudaActivation, FarValuesHaveFiniteResultsAndSlopes) {
  FILIGREE_NEEDS_GPU();
  for (const Activation f : kActivations)
    check_cuda({.name = text_of(f),
                .inputs = {random_tensor({64}, 1, -2000.0f, 2000.0f)},
                .op = [&](const std::vector<Variable>& in) { return activate(in[0], f); }});
}

}  // namespace
}  // namespace filigree
