#include <gtest/gtest.h>

#include <vector>

#include "filigree/study.h"

namespace filigree::study {
namespace {

TEST(Context, ByItselfIsAQuietRunOfOneProcess) {
  const Context context;
  EXPECT_TRUE(context.writes());
  EXPECT_EQ(context.communicator().size(), 1);
  EXPECT_FALSE(context.stopping());
  EXPECT_NO_THROW(context.throw_if_stopped());
  const std::unique_ptr<WorkReport> report = context.begin({"work", "steps", 3});
  ASSERT_NE(report, nullptr);
  report->update(1);
  report->finish();
  context.say("nobody listens");
}

TEST(Context, TellsWhoWatchesAndStopsWhenAsked) {
  class Recorder final : public WorkReport {
   public:
    explicit Recorder(std::vector<std::string>& seen) : seen_(seen) {}
    void update(std::int64_t done, std::string_view metric) override {
      seen_.push_back(std::to_string(done) + " " + std::string(metric));
    }
    void finish() override { seen_.emplace_back("finished"); }

   private:
    std::vector<std::string>& seen_;
  };
  std::vector<std::string> seen;
  bool stop = false;
  Context context;
  context.watch = [&](const Work& work) {
    seen.push_back(work.label);
    return std::make_unique<Recorder>(seen);
  };
  context.note = [&](const std::string& sentence) { seen.push_back(sentence); };
  context.stop = [&] { return stop; };
  const std::unique_ptr<WorkReport> report = context.begin({"work", "steps", 3});
  report->update(2, "loss 1");
  report->finish();
  context.say("a note");
  EXPECT_EQ(seen, (std::vector<std::string>{"work", "2 loss 1", "finished", "a note"}));
  EXPECT_NO_THROW(context.throw_if_stopped());
  stop = true;
  EXPECT_THROW(context.throw_if_stopped(), Stopped);
}

}  // namespace
}  // namespace filigree::study
