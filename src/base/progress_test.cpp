// What each style writes, and when, under a clock that the test moves.
#include "base/progress.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>

namespace filigree {
namespace {

class ProgressTest : public testing::Test {
 protected:
  ProgressOptions options(ProgressStyle style, std::int64_t total) {
    ProgressOptions options;
    options.label = "train";
    options.total = total;
    options.style = style;
    options.columns = 120;
    options.clock = [this] { return now_; };
    return options;
  }

  // What was written since the last call.
  std::string written() {
    std::string text = out_.str();
    out_.str("");
    return text;
  }

  double now_ = 1000.0;
  std::ostringstream out_;
};

TEST_F(ProgressTest, LinesComeAtIntervalsAndAtTheEnd) {
  Progress progress(out_, options(ProgressStyle::kLines, 100));
  progress.update(1);
  now_ += 9.9;
  progress.update(10);
  EXPECT_EQ(written(), "");
  now_ += 0.1;
  progress.update(20, "loss 3.2");
  EXPECT_EQ(written(), "train   20%  20/100 steps  2.00 steps/s  0:40 left  loss 3.2\n");
  now_ += 5.0;
  progress.update(40);
  EXPECT_EQ(written(), "");
  now_ += 5.0;
  progress.update(100, "loss 2.9");
  EXPECT_EQ(written(), "train  100%  100/100 steps  5.00 steps/s  loss 2.9\n");
  progress.finish();
  EXPECT_EQ(written(), "train  100%  100/100 steps  5.00 steps/s  in 0:20  loss 2.9\n");
  progress.finish();
  progress.update(100);
  EXPECT_EQ(written(), "");
}

TEST_F(ProgressTest, TheBarIsRedrawnInPlace) {
  Progress progress(out_, options(ProgressStyle::kBar, 8));
  progress.update(0);
  EXPECT_EQ(written(), "\rtrain  [>                       ]    0%  0/8 steps\x1b[K");
  now_ += 0.05;
  progress.update(1);
  EXPECT_EQ(written(), "");
  now_ += 1.95;
  progress.update(4, "loss 1.5");
  EXPECT_EQ(written(),
            "\rtrain  [============>           ]   50%  4/8 steps  2.00 steps/s  0:02 left  "
            "loss 1.5\x1b[K");
  now_ += 2.0;
  progress.update(8, "loss 1.0");
  progress.finish();
  EXPECT_EQ(written(),
            "\rtrain  [========================]  100%  8/8 steps  2.00 steps/s  loss 1.0\x1b[K"
            "\rtrain  [========================]  100%  8/8 steps  2.00 steps/s  in 0:04  "
            "loss 1.0\x1b[K\n");
}

TEST_F(ProgressTest, AnAbandonedBarEndsItsLine) {
  {
    Progress progress(out_, options(ProgressStyle::kBar, 8));
    progress.update(1);
    written();
  }
  EXPECT_EQ(written(), "\n");
}

TEST_F(ProgressTest, ABarThatNeverShowedWritesNothing) {
  { Progress progress(out_, options(ProgressStyle::kBar, 8)); }
  EXPECT_EQ(written(), "");
}

TEST_F(ProgressTest, TheBarIsCutToTheTerminal) {
  ProgressOptions narrow = options(ProgressStyle::kBar, 8);
  narrow.columns = 10;
  Progress progress(out_, narrow);
  progress.update(1);
  EXPECT_EQ(written(), "\rtrain   1\x1b[K");
}

TEST_F(ProgressTest, TheBarShrinksBeforeANumberIsCut) {
  ProgressOptions narrow = options(ProgressStyle::kBar, 1000000);
  narrow.columns = 88;
  Progress progress(out_, narrow);
  now_ += 60.0;
  progress.update(250000, "loss 3.214");
  const std::string line = written();
  EXPECT_NE(line.find(" left  loss 3.214\x1b[K"), std::string::npos) << line;
  EXPECT_NE(line.find("[===>         ]"), std::string::npos) << line;
  EXPECT_LE(line.size(), 88 + std::string("\r\x1b[K").size());
}

TEST_F(ProgressTest, SilentWritesNothing) {
  {
    Progress progress(out_, options(ProgressStyle::kSilent, 8));
    now_ += 100.0;
    progress.update(4);
    progress.finish();
  }
  EXPECT_EQ(written(), "");
}

TEST_F(ProgressTest, AnUnknownTotalShowsCountAndRate) {
  ProgressOptions unknown = options(ProgressStyle::kLines, 0);
  unknown.unit = "tokens";
  Progress progress(out_, unknown);
  now_ += 10.0;
  progress.update(123456);
  EXPECT_EQ(written(), "train  123456 tokens  12346 tokens/s\n");
}

TEST_F(ProgressTest, ResumedWorkDoesNotCountIntoTheRate) {
  ProgressOptions resumed = options(ProgressStyle::kLines, 100);
  resumed.already_done = 50;
  Progress progress(out_, resumed);
  now_ += 10.0;
  progress.update(60);
  EXPECT_EQ(written(), "train   60%  60/100 steps  1.00 steps/s  0:40 left\n");
}

TEST_F(ProgressTest, LongTimesShowHours) {
  Progress progress(out_, options(ProgressStyle::kLines, 1000));
  now_ += 100.0;
  progress.update(1);
  EXPECT_EQ(written(), "train    0%  1/1000 steps  0.010 steps/s  27:45:00 left\n");
  now_ += 1e9;
  progress.update(2);
  EXPECT_EQ(written(), "train    0%  2/1000 steps  0.000 steps/s  more than 1000 h left\n");
}

TEST(ProgressStyleOf, FollowsTheDescriptor) {
  EXPECT_EQ(progress_style(-1, false), ProgressStyle::kLines);
  EXPECT_EQ(progress_style(-1, true), ProgressStyle::kSilent);
  EXPECT_EQ(terminal_columns(-1), 80);
}

}  // namespace
}  // namespace filigree
