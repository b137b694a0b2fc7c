// One model on the GPU, several threads: their operations go through its one stream in turn.
#include <tuple>

#include "model/concurrent_runs_test_support.h"
#include "model/family_samples_test_support.h"
#include "support/check_cuda.h"

namespace filigree {
namespace {

class CudaConcurrency : public testing::TestWithParam<std::tuple<const char*, DType>> {
 protected:
  void SetUp() override { FILIGREE_NEEDS_GPU(); }

  static std::unique_ptr<Model> model() {
    auto model = sample_model(std::string(std::get<0>(GetParam())));
    model->place({DeviceKind::kCuda, std::get<1>(GetParam())});
    return model;
  }
};

TEST_P(CudaConcurrency, RunsGiveTheBitsOfASingleThread) {
  check_concurrent_runs(model, true, 6, 5);
}

TEST_P(CudaConcurrency, RunsGoOnBesideOneThatTrains) { check_concurrent_runs(model, false, 6, 5); }

INSTANTIATE_TEST_SUITE_P(Models, CudaConcurrency,
                         testing::Combine(testing::Values("gpt2", "gpt2+gated", "llama",
                                                          "llama+gated"),
                                          testing::Values(DType::kF32, DType::kBf16)),
                         [](const auto& sample) {
                           return sample_test_name(std::get<0>(sample.param)) + "_" +
                                  std::string(name_of(std::get<1>(sample.param)));
                         });

}  // namespace
}  // namespace filigree
