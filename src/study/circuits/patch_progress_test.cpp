#include "study/circuits/patch_progress.h"

#include <gtest/gtest.h>

#include <vector>

namespace filigree::study {
namespace {

class Recorder final : public WorkReport {
 public:
  explicit Recorder(std::vector<std::string>& seen) : seen_(seen) {}
  void update(std::int64_t done, std::string_view) override {
    seen_.push_back(std::to_string(done));
  }
  void finish() override { seen_.emplace_back("finished"); }

 private:
  std::vector<std::string>& seen_;
};

TEST(PatchProgress, ReportsSweepsOneAfterTheOtherAndLeavesOutTheShortOnes) {
  std::vector<std::string> seen;
  Context context;
  context.watch = [&](const Work& work) {
    seen.push_back(work.label + " of " + std::to_string(work.total) + " " + work.unit);
    return std::make_unique<Recorder>(seen);
  };
  const PatchOptions options = watched({}, "dense curve", context);
  EXPECT_EQ(options.ranks, &context.communicator());
  options.progress(8, 16);
  options.progress(16, 16);
  options.progress(1, 1);  // a sweep of one run within the search for a size
  options.progress(4, 12);
  options.progress(2, 10);  // prompts of another length
  EXPECT_EQ(seen, (std::vector<std::string>{"dense curve of 16 runs", "8", "16", "finished",
                                            "dense curve of 12 runs", "4", "dense curve of 10 runs",
                                            "2"}));
}

TEST(PatchProgress, EndsTheWorkWhenAsked) {
  bool stop = false;
  Context context;
  context.stop = [&] { return stop; };
  const PatchOptions options = watched({}, "x", context);
  EXPECT_NO_THROW(options.progress(1, 2));
  stop = true;
  EXPECT_THROW(options.progress(2, 2), Stopped);
}

}  // namespace
}  // namespace filigree::study
