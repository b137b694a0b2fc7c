// The target is either the old file or the whole new one, and nothing is left beside it.
#include "base/atomic_file.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "filigree/error.h"
#include "support/errors.h"
#include "support/file_size_limit.h"
#include "support/files.h"
#include "support/temporary_folder.h"

namespace filigree {
namespace {

namespace fs = std::filesystem;

class AtomicFileTest : public testing::Test {
 protected:
  std::ptrdiff_t files() const {
    return std::distance(fs::directory_iterator(folder_), fs::directory_iterator());
  }

  TemporaryFolder temporary_;
  const fs::path folder_ = temporary_.path();
  const fs::path path_ = folder_ / "file";
};

TEST_F(AtomicFileTest, WritesAndReplaces) {
  write_file_atomically(path_, "first");
  EXPECT_EQ(read_file(path_), "first");
  write_file_atomically(path_, "second, longer");
  EXPECT_EQ(read_file(path_), "second, longer");
  write_file_atomically(path_, "");
  EXPECT_EQ(read_file(path_), "");
  EXPECT_EQ(files(), 1);
}

TEST_F(AtomicFileTest, TheTargetChangesOnlyOnCommit) {
  write_file_atomically(path_, "old");
  AtomicFile file(path_);
  file.write("ne");
  EXPECT_EQ(read_file(path_), "old");
  file.write("w");
  file.commit();
  EXPECT_EQ(read_file(path_), "new");
}

TEST_F(AtomicFileTest, WithoutCommitNothingHappens) {
  write_file_atomically(path_, "old");
  {
    AtomicFile file(path_);
    file.write("new");
    EXPECT_EQ(files(), 2);
  }
  EXPECT_EQ(read_file(path_), "old");
  EXPECT_EQ(files(), 1);
}

TEST_F(AtomicFileTest, AFullDiskLeavesTheOldFileAndNoPartialOne) {
  write_file_atomically(path_, "old");
  const std::string large(100'000, 'x');
  std::string message;
  {
    FileSizeLimit limit(4096);
    message = error_of([&] { write_file_atomically(path_, large); });
  }
  EXPECT_EQ(message, "cannot write '" + path_.string() + "': File too large");
  EXPECT_EQ(read_file(path_), "old");
  EXPECT_EQ(files(), 1);
}

TEST_F(AtomicFileTest, CommitAfterAFailedWriteIsRefused) {
  write_file_atomically(path_, "old");
  {
    AtomicFile file(path_);
    {
      FileSizeLimit limit(10);
      EXPECT_THROW(file.write(std::string(100, 'x')), Error);
    }
    EXPECT_EQ(error_of([&] { file.commit(); }),
              "cannot commit '" + path_.string() + "': an earlier write failed");
  }
  EXPECT_EQ(read_file(path_), "old");
  EXPECT_EQ(files(), 1);
}

TEST_F(AtomicFileTest, CommitTwiceIsRefused) {
  AtomicFile file(path_);
  file.write("text");
  file.commit();
  EXPECT_EQ(error_of([&] { file.commit(); }),
            "cannot commit '" + path_.string() + "': already committed");
  EXPECT_EQ(read_file(path_), "text");
}

TEST_F(AtomicFileTest, NamesWhatIsWrong) {
  const fs::path nowhere = folder_ / "missing" / "file";
  EXPECT_EQ(error_of([&] { AtomicFile file(nowhere); }),
            "cannot create '" + nowhere.string() + "': No such file or directory");
  EXPECT_EQ(error_of([&] { AtomicFile file(folder_); }),
            "cannot write '" + folder_.string() + "': Is a directory");
  EXPECT_EQ(error_of([&] { AtomicFile file{fs::path()}; }), "cannot write '': it names no file");
}

TEST_F(AtomicFileTest, APartialFileOfACrashedProcessIsNoObstacle) {
  // Process numbers repeat, above all in containers. Occupy the next names.
  AtomicFile probe(path_);
  std::string name;
  for (const auto& entry : fs::directory_iterator(folder_)) name = entry.path().filename().string();
  const std::size_t dash = name.rfind('-');
  const int number = std::stoi(name.substr(dash + 1));
  for (int i = 1; i <= 3; ++i)
    std::ofstream(folder_ / fmt::format("{}-{}.partial", name.substr(0, dash), number + i)) << "x";
  write_file_atomically(path_, "text");
  EXPECT_EQ(read_file(path_), "text");
}

TEST_F(AtomicFileTest, WhatAKilledProcessLeftIsRemovedAndWhatALivingOneWritesIsNot) {
  write_file(folder_ / "file.123-4.partial", "left behind");
  write_file(folder_ / "file.notes.partial", "of somebody else");
  write_file(folder_ / "other.123-4.partial", "of another file");
  AtomicFile living(path_);
  living.write("li");
  write_file_atomically(path_, "text");
  living.write("ving");
  living.commit();
  EXPECT_EQ(read_file(path_), "living");
  EXPECT_FALSE(fs::exists(folder_ / "file.123-4.partial"));
  EXPECT_TRUE(fs::exists(folder_ / "file.notes.partial"));
  EXPECT_TRUE(fs::exists(folder_ / "other.123-4.partial"));
  EXPECT_EQ(files(), 3);
}

TEST_F(AtomicFileTest, ASymbolicLinkIsReplacedAndWhatItLedToStays) {
  const fs::path link = folder_ / "link";
  write_file(path_, "precious");
  fs::create_symlink("file", link);
  write_file_atomically(link, "new");
  EXPECT_EQ(read_file(link), "new");
  EXPECT_FALSE(fs::is_symlink(link));
  EXPECT_EQ(read_file(path_), "precious");
  fs::remove(link);
  fs::create_symlink("nowhere", link);
  write_file_atomically(link, "new");
  EXPECT_EQ(read_file(link), "new");
  EXPECT_EQ(files(), 2);
}

TEST_F(AtomicFileTest, TheFolderMayBeALink) {
  const TemporaryFolder real;
  fs::create_directory_symlink(real.path(), folder_ / "link");
  write_file_atomically(folder_ / "link/file", "text");
  EXPECT_EQ(read_file(real / "file"), "text");
}

TEST_F(AtomicFileTest, IsRenamedInTheFolderThatWasOpened) {
  const TemporaryFolder elsewhere;
  write_file(elsewhere / "file", "precious");
  fs::create_directory(folder_ / "out");
  AtomicFile file(folder_ / "out/file");
  file.write("text");
  fs::rename(folder_ / "out", folder_ / "moved");
  fs::create_directory_symlink(elsewhere.path(), folder_ / "out");
  file.commit();
  EXPECT_EQ(read_file(folder_ / "moved/file"), "text");
  EXPECT_EQ(read_file(elsewhere / "file"), "precious");
  EXPECT_EQ(elsewhere.file_count(), 1u);
}

TEST_F(AtomicFileTest, WhatAProcessHasOpenIsWrittenToUnderTheNamesOfTheSystem) {
  write_file(path_, "earlier ");
  const int open = ::open(path_.c_str(), O_WRONLY | O_APPEND);
  ASSERT_GE(open, 0);
  write_file_atomically(fmt::format("/dev/fd/{}", open), "text");
  EXPECT_EQ(read_file(path_), "earlier text");
  write_file_atomically(fmt::format("/proc/self/fd/{}", open), " more");
  EXPECT_EQ(read_file(path_), "earlier text more");
  ::close(open);
  EXPECT_EQ(files(), 1);
}

TEST_F(AtomicFileTest, APipeIsWrittenToAndNotReplaced) {
  const fs::path pipe = folder_ / "pipe";  // stands for devices as well: /dev/null, /dev/stdout
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const int reader = ::open(pipe.c_str(), O_RDWR);  // also for writing, so that it never blocks
  ASSERT_GE(reader, 0);
  write_file_atomically(pipe, "text");
  char received[4] = {};
  EXPECT_EQ(::read(reader, received, sizeof(received)), 4);
  EXPECT_EQ(std::string(received, 4), "text");
  ::close(reader);
  EXPECT_TRUE(fs::is_fifo(pipe));
  EXPECT_EQ(files(), 1);
}

TEST_F(AtomicFileTest, TheUmaskDecidesThePermissions) {
  const mode_t previous = ::umask(0027);
  write_file_atomically(path_, "text");
  ::umask(previous);
  EXPECT_EQ(fs::status(path_).permissions(),
            fs::perms::owner_read | fs::perms::owner_write | fs::perms::group_read);
}

}  // namespace
}  // namespace filigree
