#include "filigree/train/settings.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <new>
#include <string>

namespace filigree {
namespace {

// Ends the process with 0 where the copy of a long text fails as it should.
void copy_a_text_that_does_not_fit() {
  const SettingValue value = std::string(64 << 20, 'x');
  std::int64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlim_t bytes = static_cast<rlim_t>(pages * sysconf(_SC_PAGESIZE)) + (16 << 20);
  const rlimit limit{bytes, bytes};
  if (setrlimit(RLIMIT_AS, &limit) != 0) _exit(2);
  try {
    const SettingValue copy = value;
    _exit(copy.index() == value.index() ? 3 : 4);
  } catch (const std::bad_alloc&) {
    _exit(0);
  }
}

TEST(Settings, ACopyThatLacksMemoryIsAnError) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers reserve more memory than any limit";
#endif
  EXPECT_EXIT(copy_a_text_that_does_not_fit(), testing::ExitedWithCode(0), "");
}

TEST(Settings, WithoutAValueAreNull) {
  const Settings settings({{"rank", SettingValue()}, {"objective", "log"}, {"steps", 3}});
  EXPECT_EQ(settings.to_json().dump(), R"({"objective":"log","rank":null,"steps":3})");
}

}  // namespace
}  // namespace filigree
