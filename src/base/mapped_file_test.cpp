// Mapping of regular files, and clear errors for everything else.
#include "base/mapped_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <string>

#include "base/lack_of_memory.h"
#include "support/errors.h"
#include "support/files.h"
#include "support/temporary_folder.h"

namespace filigree {
namespace {

namespace fs = std::filesystem;

class MappedFileTest : public testing::Test {
 protected:
  fs::path write(const std::string& text) const { return write_file(folder_ / "file", text); }

  static std::string error_of(const fs::path& path) {
    return filigree::error_of([&] { MappedFile::open(path); });
  }

  TemporaryFolder temporary_;
  const fs::path folder_ = temporary_.path();
};

std::string text_of(const MappedFile& file) {
  const auto bytes = file.bytes();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// A map of the process' whole address space is refused as one for which there is no memory.
TEST_F(MappedFileTest, TellsLackOfMemoryFromAnUnreadableFile) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers take more address space than the limit leaves";
#endif
  const fs::path path = write("");
  fs::resize_file(path, std::uintmax_t{1} << 42);
  struct rlimit before = {}, small = {};
  ASSERT_EQ(::getrlimit(RLIMIT_AS, &before), 0);
  small = before;
  small.rlim_cur = rlim_t{1} << 40;
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &small), 0);
  std::string message;
  try {
    MappedFile::open(path);
  } catch (const LackOfMemory& lack) {
    message = lack.what();
  }
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &before), 0);
  EXPECT_EQ(message, "cannot map '" + path.string() + "' (4398046511104 bytes): not enough memory");
}

TEST_F(MappedFileTest, ShowsTheBytes) {
  const std::string text = std::string("a\0b", 3) + std::string(100'000, 'x');
  const fs::path path = write(text);
  const auto file = MappedFile::open(path);
  EXPECT_EQ(text_of(*file), text);
  EXPECT_EQ(file->path(), path);
}

TEST_F(MappedFileTest, StaysReadableAfterTheFileIsReplaced) {
  const fs::path path = write("old");
  const auto file = MappedFile::open(path);
  fs::remove(path);
  EXPECT_EQ(text_of(*file), "old");
}

TEST_F(MappedFileTest, AnEmptyFileIsAnEmptySpan) {
  EXPECT_TRUE(MappedFile::open(write(""))->bytes().empty());
}

TEST_F(MappedFileTest, NamesWhatIsWrong) {
  const std::string missing = (folder_ / "missing").string();
  EXPECT_EQ(error_of(missing), "cannot open '" + missing + "': No such file or directory");
  EXPECT_EQ(error_of(folder_), "cannot read '" + folder_.string() + "': not a regular file");
}

TEST_F(MappedFileTest, ANamedPipeIsAnErrorAndDoesNotHang) {
  const fs::path pipe = folder_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(error_of(pipe), "cannot read '" + pipe.string() + "': not a regular file");
}

TEST_F(MappedFileTest, WhatIsReleasedIsReadAgain) {
  const std::string text(100'000, 'y');
  const auto file = MappedFile::open(write(text));
  EXPECT_EQ(text_of(*file), text);
  file->release(file->bytes());
  file->release(file->bytes().subspan(5000, 60'000));
  EXPECT_EQ(text_of(*file), text);
  file->release(std::as_bytes(std::span(text)));  // not of this file: left alone
  EXPECT_EQ(text, std::string(100'000, 'y'));
}

TEST_F(MappedFileTest, AFileThatWasWrittenToWhileItWasReadIsNamedOnce) {
  const fs::path path = write("as it was");
  const auto backdate = [&] {  // clocks of file systems are coarse
    fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::hours(1));
  };
  backdate();
  auto file = MappedFile::open(path, WhileMapped::kMustNotChange);
  EXPECT_NO_THROW(require_unchanged_files());
  write("otherwise");
  const std::string message = filigree::error_of([] { require_unchanged_files(); });
  EXPECT_NE(message.find("'" + path.string() + "' was written to while it was read"),
            std::string::npos)
      << message;
  EXPECT_NO_THROW(require_unchanged_files());
  // Also when it is no longer mapped.
  backdate();
  file = MappedFile::open(path, WhileMapped::kMustNotChange);
  write("shorter");
  file.reset();
  EXPECT_THROW(require_unchanged_files(), Error);
  // One that was replaced is still what it was.
  file = MappedFile::open(path, WhileMapped::kMustNotChange);
  fs::remove(path);
  EXPECT_NO_THROW(require_unchanged_files());
  write("another file");
  EXPECT_EQ(text_of(*file), "shorter");
}

TEST_F(MappedFileTest, AHandlerLearnsWhichFileLiesAtAnAddress) {
  const fs::path path = write(std::string(10'000, 'x'));
  auto file = MappedFile::open(path);
  const std::byte* inside = file->bytes().data() + 9'999;
  ASSERT_NE(mapped_file_at(inside), nullptr);
  EXPECT_EQ(mapped_file_at(inside), path.string());
  EXPECT_EQ(mapped_file_at(&file), nullptr);
  file.reset();
  EXPECT_EQ(mapped_file_at(inside), nullptr);
}

}  // namespace
}  // namespace filigree
