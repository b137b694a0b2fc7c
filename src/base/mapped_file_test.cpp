// Mapping of regular files, and clear errors for everything else.
#include "filigree/base/mapped_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>

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

}  // namespace
}  // namespace filigree
