// What a log holds after a run is taken up again.
#include "train/run_log.h"

#include <gtest/gtest.h>

#include "support/errors.h"
#include "support/files.h"
#include "support/temporary_folder.h"

namespace filigree {
namespace {

TEST(RunLog, KeepsTheStepsBeforeTheOneThatIsResumed) {
  const TemporaryFolder folder;
  const auto path = folder / "log.jsonl";
  RunLog::start(path, {{"run", "test"}}).write({{"step", 1}});
  write_file(path, read_file(path) + "{\"event\":\"saved\"}\n{\"step\":2}\n{\"step\":3}\n{\"st");
  RunLog::resume(path, 2, {{"run", "other"}}).write({{"step", 3}});
  EXPECT_EQ(
      read_file(path),
      "{\"run\":\"test\"}\n{\"step\":1}\n{\"event\":\"saved\"}\n{\"step\":2}\n{\"step\":3}\n");
}

TEST(RunLog, BeginsAnewWhereThereIsNone) {
  const TemporaryFolder folder;
  RunLog::resume(folder / "log.jsonl", 5, {{"run", "test"}});
  EXPECT_EQ(read_file(folder / "log.jsonl"), "{\"run\":\"test\"}\n");
}

// A damaged log is not thrown away in silence.
TEST(RunLog, RefusesWhatNoRunWrites) {
  using namespace std::string_view_literals;
  const TemporaryFolder folder;
  const auto path = folder / "log.jsonl";
  for (const std::string_view text :
       {"{\"run\":\"test\"}\n{\"step\":1\n{\"step\":2}\n"sv,
        "{\"run\":\"test\"}\n{\"step\":1}\0\0"sv, "{\"run\":\"test\"}\njunk\n"sv,
        "{\"run\":\"test\"}\n{\"step\":1,\"step\":2}\n"sv}) {
    write_file(path, text);
    const std::string message = error_of([&] { RunLog::resume(path, 1, {{"run", "test"}}); });
    EXPECT_TRUE(message.starts_with("json: '" + path.string() + ", line 2': byte ")) << message;
    EXPECT_EQ(read_file(path), text);
  }
}

}  // namespace
}  // namespace filigree
