// One model, several threads: the guarantee of model.h. Run under ThreadSanitizer (make tsan), this
// also shows that there are no races.
#include "filigree/runtime.h"
#include "model/concurrent_runs_test_support.h"
#include "model/family_samples_test_support.h"

namespace filigree {
namespace {

class Concurrency : public testing::TestWithParam<std::string> {
 protected:
  Concurrency() { set_num_threads(3); }
  ~Concurrency() override { set_num_threads(before_); }

 private:
  int before_ = num_threads();
};

TEST_P(Concurrency, RunsGiveTheBitsOfASingleThread) {
  check_concurrent_runs([] { return sample_model(GetParam()); }, true);
}

TEST_P(Concurrency, RunsGoOnBesideOneThatTrains) {
  check_concurrent_runs([] { return sample_model(GetParam()); }, false);
}

INSTANTIATE_TEST_SUITE_P(Models, Concurrency,
                         testing::Values("gpt2", "gpt2+gated", "llama", "llama+gated",
                                         "llama+adapted", "family-gemma3_text", "family-olmoe"),
                         [](const auto& sample) { return sample_test_name(sample.param); });

}  // namespace
}  // namespace filigree
