#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <new>
#include <string>

#include "filigree/error.h"
#include "filigree/train.h"
#include "support/errors.h"

namespace filigree {
namespace {

using ::testing::HasSubstr;

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

TEST(Settings, KeepTheirValuesAsJson) {
  const Settings settings({{"flag", true},
                           {"count", 3},
                           {"seed", std::uint64_t{1} << 63},
                           {"rate", 0.1},
                           {"single", decimal(0.1f)},
                           {"name", "log"},
                           {"absent", {}}});
  const nlohmann::json json = settings.to_json();
  EXPECT_EQ(json.dump(), R"({"absent":null,"count":3,"flag":true,"name":"log","rate":0.1,)"
                         R"("seed":9223372036854775808,"single":0.1})");
  require_same_settings(Settings::from_json(json, "test"), settings);
  EXPECT_THROW(Settings({{"a", 1}, {"a", 2}}), Error);
  EXPECT_THROW(Settings::from_json({{"a", {1, 2}}}, "test"), Error);
}

TEST(Settings, ADifferenceIsNamed) {
  const auto difference = [](const Settings& stored, const Settings& wanted) {
    return error_of([&] { require_same_settings(stored, wanted); });
  };
  EXPECT_EQ(difference({{"a", 1}, {"b", 2}}, {{"b", 2}, {"a", 1}}), "no error");
  EXPECT_EQ(difference({{"a", 1}}, {{"a", 1.0}}), "no error");
  EXPECT_THAT(difference({{"a", 1}}, {{"a", {}}}), HasSubstr("'a' was 1 when the run was started "
                                                             "and is null now"));
  EXPECT_THAT(difference({{"a", 1}}, {{"a", 1}, {"b", 2}}), HasSubstr("without the setting 'b'"));
  EXPECT_THAT(difference({{"a", 1}, {"b", 2}}, {{"a", 1}}), HasSubstr("with the setting 'b'"));
}

}  // namespace
}  // namespace filigree
