// One holder at a time, named to the others; what a killed one left is no obstacle.
#include "filigree/base/folder_lock.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <optional>

#include "filigree/base/folders.h"
#include "support/errors.h"
#include "support/files.h"
#include "support/temporary_folder.h"

namespace filigree {
namespace {

TEST(FolderLock, TheSecondLearnsWhoHoldsIt) {
  const TemporaryFolder folder;
  std::optional<FolderLock> lock(folder.path());
  const std::string message = error_of([&] { FolderLock second(folder.path()); });
  EXPECT_NE(message.find("is in use by process " + std::to_string(::getpid()) + " on "),
            std::string::npos)
      << message;
  EXPECT_NE(message.find(", since 2"), std::string::npos) << message;
  lock.reset();
  EXPECT_EQ(folder.file_count(), 0u);
  FolderLock third(folder.path());
}

TEST(FolderLock, OneOfAKilledProcessIsTakenOver) {
  const TemporaryFolder folder;
  int pipe[2];
  ASSERT_EQ(::pipe(pipe), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    FolderLock lock(folder.path());
    if (::write(pipe[1], "x", 1) != 1) ::_exit(1);
    ::pause();
  }
  char ready = 0;
  ASSERT_EQ(::read(pipe[0], &ready, 1), 1);
  EXPECT_NE(error_of([&] { FolderLock lock(folder.path()); }).find("is in use by process"),
            std::string::npos);
  ::kill(child, SIGKILL);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  ::close(pipe[0]);
  ::close(pipe[1]);
  EXPECT_TRUE(std::filesystem::exists(folder / "lock"));
  FolderLock lock(folder.path());
}

TEST(FolderLock, IsNotWrittenThroughALink) {
  const TemporaryFolder folder;
  write_file(folder / "precious", "text");
  std::filesystem::create_symlink("precious", folder / "lock");
  EXPECT_NE(error_of([&] { FolderLock lock(folder.path()); }).find("symbolic link"),
            std::string::npos);
  EXPECT_EQ(read_file(folder / "precious"), "text");
}

TEST(Folders, AreMadeWithThoseAboveThem) {
  const TemporaryFolder folder;
  make_folders(folder / "a/b/c/");
  make_folders(folder / "a/b/c");
  EXPECT_TRUE(std::filesystem::is_directory(folder / "a/b/c"));
  write_file(folder / "file", "");
  EXPECT_NE(error_of([&] { make_folders(folder / "file"); }).find("a file of that name exists"),
            std::string::npos);
  EXPECT_NE(error_of([&] { make_folders(folder / "file/below"); }).find("cannot create the folder"),
            std::string::npos);
  EXPECT_NE(error_of([&] { flush_folder(folder / "missing"); }).find("cannot flush the folder"),
            std::string::npos);
}

}  // namespace
}  // namespace filigree
