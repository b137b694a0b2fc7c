// Nothing is there only when the system says so; everything else that goes wrong is an error.
#include "base/file_status.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>

#include "base/folders.h"
#include "support/errors.h"
#include "support/files.h"
#include "support/temporary_folder.h"

namespace filigree {
namespace {

namespace fs = std::filesystem;

TEST(FileStatus, SaysWhatIsThere) {
  const TemporaryFolder folder;
  write_file(folder / "file", "text");
  fs::create_symlink("file", folder / "link");
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_TRUE(is_file(folder / "file"));
  EXPECT_FALSE(is_folder(folder / "file"));
  EXPECT_TRUE(is_folder(folder.path()));
  EXPECT_TRUE(is_file(folder / "link"));
  EXPECT_EQ(entry_status_of(folder / "link")->kind, FileKind::kLink);
  EXPECT_EQ(status_of(folder / "pipe")->kind, FileKind::kOther);
  EXPECT_EQ(bytes_of_file(folder / "link"), 4u);
  EXPECT_EQ(error_of([&] { bytes_of_file(folder.path()); }),
            "cannot read '" + folder.path().string() + "': not a regular file");
}

TEST(FileStatus, WhatIsNotThereOrLiesInAFileIsAbsent) {
  const TemporaryFolder folder;
  write_file(folder / "file", "text");
  for (const fs::path& path :
       {folder / "missing", folder / "missing/below", folder / "file/below"}) {
    EXPECT_FALSE(is_there(path));
    EXPECT_FALSE(is_file(path));
    EXPECT_FALSE(is_folder(path));
    EXPECT_FALSE(remove_file(path));
  }
  // A link that leads nowhere is there, and no file.
  fs::create_symlink("missing", folder / "link");
  EXPECT_TRUE(is_there(folder / "link"));
  EXPECT_FALSE(is_file(folder / "link"));
  EXPECT_TRUE(remove_file(folder / "link"));
  EXPECT_EQ(error_of([&] { bytes_of_file(folder / "missing"); }),
            "cannot read '" + (folder / "missing").string() + "': No such file or directory");
}

TEST(FileStatus, AnyOtherFailureIsAnErrorAndNoAbsence) {
  const TemporaryFolder folder;
  fs::create_symlink("loop", folder / "loop");
  const std::string loop = (folder / "loop/file").string(),
                    longer = (folder / std::string(300, 'x')).string();
  EXPECT_EQ(error_of([&] { is_there(loop); }),
            "cannot look at '" + loop + "': Too many levels of symbolic links");
  EXPECT_NE(error_of([&] { is_file(folder / "loop"); }), "no error");
  EXPECT_NE(error_of([&] { is_folder(loop); }), "no error");
  EXPECT_NE(error_of([&] { remove_file(loop); }), "no error");
  EXPECT_EQ(error_of([&] { is_file(longer); }),
            "cannot look at '" + longer + "': File name too long");
  EXPECT_NE(error_of([&] { is_there(std::string("a\0b", 3)); }).find("zero byte"),
            std::string::npos);
}

TEST(FileStatus, EntriesAreSortedAndOfTheirKind) {
  const TemporaryFolder folder;
  fs::create_directory(folder / "b");
  write_file(folder / "a", "");
  fs::create_symlink("nowhere", folder / "c");
  const std::vector<FolderEntry> entries = entries_of(folder.path());
  ASSERT_EQ(entries.size(), 3u);
  EXPECT_EQ(entries[0].name, "a");
  EXPECT_EQ(entries[0].kind, FileKind::kFile);
  EXPECT_EQ(entries[1].kind, FileKind::kFolder);
  EXPECT_EQ(entries[2].kind, FileKind::kLink);
  EXPECT_NE(error_of([&] { entries_of(folder / "a"); }), "no error");
  EXPECT_NE(error_of([&] { entries_of(folder / "missing"); }), "no error");
}

}  // namespace
}  // namespace filigree
