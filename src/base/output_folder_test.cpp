// One holder at a time, named to the others; what a killed one left is no obstacle; below it no
// link leads out.
#include "base/output_folder.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <functional>
#include <optional>

#include "base/atomic_file.h"
#include "base/folders.h"
#include "support/errors.h"
#include "support/files.h"
#include "support/temporary_folder.h"

namespace filigree {
namespace {

TEST(OutputFolder, TheSecondLearnsWhoHoldsIt) {
  const TemporaryFolder folder;
  std::optional<OutputFolder> held(folder.path());
  const std::string message = error_of([&] { OutputFolder second(folder.path()); });
  EXPECT_NE(message.find("is in use by process " + std::to_string(::getpid()) + " on "),
            std::string::npos)
      << message;
  EXPECT_NE(message.find(", since 2"), std::string::npos) << message;
  held.reset();
  EXPECT_EQ(folder.file_count(), 0u);
  OutputFolder third(folder.path());
}

TEST(OutputFolder, OneOfAKilledProcessIsTakenOver) {
  const TemporaryFolder folder;
  int pipe[2];
  ASSERT_EQ(::pipe(pipe), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    OutputFolder held(folder.path());
    if (::write(pipe[1], "x", 1) != 1) ::_exit(1);
    ::pause();
  }
  char ready = 0;
  ASSERT_EQ(::read(pipe[0], &ready, 1), 1);
  EXPECT_NE(error_of([&] { OutputFolder held(folder.path()); }).find("is in use by process"),
            std::string::npos);
  ::kill(child, SIGKILL);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  ::close(pipe[0]);
  ::close(pipe[1]);
  EXPECT_TRUE(std::filesystem::exists(folder / "lock"));
  OutputFolder held(folder.path());
}

TEST(OutputFolder, IsNotWrittenThroughALink) {
  const TemporaryFolder folder;
  write_file(folder / "precious", "text");
  std::filesystem::create_symlink("precious", folder / "lock");
  EXPECT_NE(error_of([&] { OutputFolder held(folder.path()); }).find("symbolic link"),
            std::string::npos);
  EXPECT_EQ(read_file(folder / "precious"), "text");
}

TEST(OutputFolder, NothingBelowItIsWrittenThroughLinks) {
  const TemporaryFolder folder, elsewhere;
  write_file(elsewhere / "precious", "text");
  std::filesystem::create_directory_symlink(elsewhere.path(), folder / "linked");
  std::filesystem::create_symlink(elsewhere / "precious", folder / "file");
  const OutputFolder held(folder.path());
  for (const auto& write : {std::function<void()>([&] { make_folders(folder / "linked"); }),
                            std::function<void()>([&] { make_folders(folder / "linked/below"); }),
                            std::function<void()>([&] {
                              write_file_atomically(folder / "./linked//precious", "new");
                            })})
    EXPECT_NE(error_of([&] {
                write();
              }).find("linked' is a symbolic link, and nothing is written through"),
              std::string::npos);
  write_file_atomically(folder / "file", "new");
  EXPECT_EQ(read_file(folder / "file"), "new");
  EXPECT_EQ(read_file(elsewhere / "precious"), "text");
  EXPECT_EQ(elsewhere.file_count(), 1u);
}

TEST(OutputFolder, NothingBelowItIsWrittenToADeviceOrAPipe) {
  const TemporaryFolder folder;
  ASSERT_EQ(::mkfifo((folder / "file").c_str(), 0600), 0);
  const OutputFolder held(folder.path());
  EXPECT_NE(error_of([&] {
              write_file_atomically(folder / "file", "new");
            }).find("is a device or a pipe in an output folder"),
            std::string::npos);
}

TEST(OutputFolder, MayBeNamedByALink) {
  const TemporaryFolder folder, real;
  std::filesystem::create_directory_symlink(real.path(), folder / "link");
  {
    const OutputFolder held(folder / "link");
    EXPECT_NE(error_of([&] { OutputFolder second(real.path()); }).find("is in use"),
              std::string::npos);
    make_folders(folder / "link/below");
    write_file_atomically(folder / "link/below/file", "text");
  }
  EXPECT_EQ(read_file(real / "below/file"), "text");
  EXPECT_EQ(real.file_count(), 1u);
}

TEST(OutputFolder, StaysTheOneThatWasOpened) {
  const TemporaryFolder folder, elsewhere;
  std::filesystem::create_directory(folder / "out");
  {
    const OutputFolder held(folder / "out");
    std::filesystem::rename(folder / "out", folder / "moved");
    std::filesystem::create_directory_symlink(elsewhere.path(), folder / "out");
    write_file_atomically(folder / "out/file", "text");
  }
  EXPECT_EQ(read_file(folder / "moved/file"), "text");
  EXPECT_EQ(elsewhere.file_count(), 0u);
  EXPECT_FALSE(std::filesystem::exists(folder / "moved/lock"));
}

TEST(OutputFolder, IsRemovedWhereItWasMadeAndNothingWasWritten) {
  const TemporaryFolder folder;
  { const OutputFolder held(folder / "made/inside"); }
  EXPECT_FALSE(std::filesystem::exists(folder / "made/inside"));
  std::filesystem::create_directory(folder / "there");
  { const OutputFolder held(folder / "there"); }
  EXPECT_TRUE(std::filesystem::exists(folder / "there"));
  {
    const OutputFolder held(folder / "made");
    write_file_atomically(folder / "made/file", "text");
  }
  EXPECT_TRUE(std::filesystem::exists(folder / "made/file"));
}

TEST(OutputFolder, OfManyUsersIsNotLocked) {
  const TemporaryFolder folder;
  const OutputFolder one(folder.path(), OutputFolder::Users::kMany);
  const OutputFolder other(folder.path(), OutputFolder::Users::kMany);
  EXPECT_EQ(folder.file_count(), 0u);
}

TEST(OutputFolder, MustHaveAName) {
  EXPECT_EQ(error_of([] { OutputFolder held(""); }), "the name of the folder to write is empty");
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
  EXPECT_NE(error_of([&] { flush_folder(folder / "missing"); }).find("cannot open the folder"),
            std::string::npos);
}

}  // namespace
}  // namespace filigree
