// Training through the ranks' sums on the GPU, as far as one GPU can show it.
#include "dist/has_mpi.h"
#include "dist/nccl/nccl_communicator.h"
#include "support/check_cuda.h"
#include "support/temporary_folder.h"
#include "train/train_test_support.h"

namespace filigree {
namespace {

std::vector<float> trained_weights(bool gated, DType precision, Communicator* ranks) {
  const TemporaryFolder temporary;
  SmallTraining training(gated, 12, {DeviceKind::kCuda, precision});
  training.options.ranks = ranks;
  RunFolder folder(temporary.path());
  train(*training.trained, *training.objective, training.source, *training.optimizer, folder,
        training.options);
  std::vector<float> all;
  for (const NamedParameter& parameter : training.model->parameters()) {
    const Tensor value = parameter.variable.value().on_host();
    all.insert(all.end(), value.values().begin(), value.values().end());
  }
  return all;
}

// One rank's sums are its own values: every gradient goes through a bucket and NCCL's stream and
// must be there, whole, when the optimiser reads it.
TEST(DataParallelOnTheGpu, OneRankThroughNcclTrainsTheBitsOfNoRanks) {
  FILIGREE_NEEDS_GPU();
  if constexpr (kHasNccl) {
    const std::unique_ptr<Communicator> ranks = nccl::make_communicator(make_single_process());
    for (const bool gated : {false, true})
      for (const DType precision : {DType::kF32, DType::kBf16})
        EXPECT_EQ(trained_weights(gated, precision, ranks.get()),
                  trained_weights(gated, precision, nullptr))
            << "gated " << gated << ", " << name_of(precision);
  } else {
    GTEST_SKIP() << "this build has no NCCL";
  }
}

}  // namespace
}  // namespace filigree
