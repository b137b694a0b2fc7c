#include "filigree/ops/elementwise/elementwise.h"
#include "filigree/ops/reduce/reduce.h"
#include "filigree/ops/sparse_decode/sparse_decode.h"
#include "filigree/ops/sparse_encode/sparse_encode.h"
#include "support/check_cuda.h"

namespace filigree {
namespace {

// Encode, decode into two targets, and how much is active: all three have gradients.
Variable through_features(const std::vector<Variable>& in, const SparseEncodeOptions& options,
                          bool threshold) {
  const EncoderWeights encoder{in[1], in[2], threshold ? in[4] : Variable()};
  SparseEncodeOptions with = options;
  with.precision = in[0].value().dtype();
  const Encoded encoded = sparse_encode(in[0], encoder, with, true);
  const DecoderSource source{encoded.code, in[3], 0, 2};
  const std::int64_t width = in[3].size(1) / 2;
  const Variable y = sparse_decode({&source, 1}, 2, width, with.precision);
  const Variable active = sum_all(saturated_activity(encoded.code, in[4], 0.7f));
  return add(y, scale(add(active, sum_all(encoded.below)), 0.01f));
}

TEST(CudaSparseEncode, ValuesAndGradients) {
  FILIGREE_NEEDS_GPU();
  struct Case {
    const char* name;
    SparseEncodeOptions options;
    bool threshold;
  };
  const std::vector<Case> cases = {
      {"relu", {}, false},
      {"jumprelu", {.bandwidth = 0.3f}, true},
      {"top-k", {.selection = Selection::kTopK, .k = 6}, false},
      {"top-k of all", {.selection = Selection::kTopK, .k = 1000}, false},
      {"batch-top-k", {.selection = Selection::kBatchTopK, .k = 6}, false}};
  for (const Case& c : cases)
    for (const std::int64_t features : {1, 37, 700})
      check_cuda({.name = std::string(c.name) + " of " + std::to_string(features),
                  .inputs = {random_tensor({50, 24}, 1), random_tensor({features, 24}, 2),
                             random_tensor({features}, 3, -0.3f, 0.3f),
                             // More columns than the threads of a block have at once.
                             random_tensor({features, 2 * (features == 37 ? 150 : 20)}, 4),
                             random_tensor({features}, 5, 0.2f, 0.6f)},
                  .op =
                      [&](const std::vector<Variable>& in) {
                        return through_features(in, c.options, c.threshold);
                      },
                  .parameter = {false, true, true, true, true},
                  // Rounding moves values across bounds, which is no error of the kernels.
                  .with_bf16 = false});
}

TEST(CudaSparseEncode, Bf16ReadsTheRoundedWeights) {
  FILIGREE_NEEDS_GPU();
  check_cuda(
      {.name = "relu",
       .inputs = {random_tensor({50, 24}, 1), random_tensor({64, 24}, 2),
                  random_tensor({64}, 3, -0.3f, 0.3f), random_tensor({64, 40}, 4),
                  random_tensor({64}, 5, 0.2f, 0.6f)},
       .op = [&](const std::vector<Variable>& in) { return through_features(in, {}, false); },
       .parameter = {false, true, true, true, true},
       .bf16_tolerance = 5e-2});
}

}  // namespace
}  // namespace filigree
