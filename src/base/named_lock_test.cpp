#include "base/named_lock.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <filesystem>
#include <optional>

#include "support/errors.h"
#include "support/files.h"
#include "support/temporary_folder.h"

namespace filigree {
namespace {

TEST(NamedLock, OneHasIt) {
  const TemporaryFolder path;
  const OpenFolder folder(path.path());
  std::optional<NamedLock> first = NamedLock::try_to_take(folder, "a.lock");
  ASSERT_TRUE(first);
  EXPECT_FALSE(NamedLock::try_to_take(folder, "a.lock"));
  EXPECT_TRUE(NamedLock::try_to_take(folder, "b.lock"));
  first.reset();
  EXPECT_TRUE(NamedLock::try_to_take(folder, "a.lock"));
  EXPECT_TRUE(std::filesystem::exists(path / "a.lock"));
}

// As Python's filelock takes it.
TEST(NamedLock, IsAFlock) {
  const TemporaryFolder path;
  const OpenFolder folder(path.path());
  const int other = ::open((path / "a.lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  ASSERT_GE(other, 0);
  ASSERT_EQ(::flock(other, LOCK_EX | LOCK_NB), 0);
  EXPECT_FALSE(NamedLock::try_to_take(folder, "a.lock"));
  ASSERT_EQ(::flock(other, LOCK_UN), 0);
  const std::optional<NamedLock> ours = NamedLock::try_to_take(folder, "a.lock");
  EXPECT_TRUE(ours);
  EXPECT_NE(::flock(other, LOCK_EX | LOCK_NB), 0);
  ::close(other);
}

TEST(NamedLock, IsNoLink) {
  const TemporaryFolder path;
  std::filesystem::create_symlink(path / "elsewhere", path / "a.lock");
  const OpenFolder folder(path.path());
  EXPECT_NE(error_of([&] { NamedLock::try_to_take(folder, "a.lock"); }).find("symbolic link"),
            std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(path / "elsewhere"));
}

}  // namespace
}  // namespace filigree
