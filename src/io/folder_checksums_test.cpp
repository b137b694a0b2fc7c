// Every change of a file shows, and what the list itself may say is checked.
#include "io/folder_checksums.h"

#include <gtest/gtest.h>

#include "io/io_test_support.h"
#include "support/temporary_folder.h"

namespace filigree {
namespace {

class FolderChecksumsTest : public testing::Test {
 protected:
  FolderChecksumsTest() {
    write_file(folder_ / "config.json", "{}");
    write_file(folder_ / "model.safetensors", std::string(5000, 'x'));
    write_file(folder_ / "notes.txt", "mine");
    write_checksums(folder_.path(), model_files_in(folder_.path()));
  }

  std::string problem(ChecksumDepth depth = ChecksumDepth::kContents) const {
    return error_of([&] { require_whole(folder_.path(), depth); });
  }

  const TemporaryFolder folder_;
};

TEST_F(FolderChecksumsTest, CoverWhatAModelConsistsOf) {
  const std::vector<CheckedFile> files = check_files(folder_.path(), ChecksumDepth::kContents);
  ASSERT_EQ(files.size(), 2u);
  EXPECT_EQ(files[0].name, "config.json");
  EXPECT_EQ(files[1].name, "model.safetensors");
  EXPECT_EQ(files[1].bytes, 5000u);
  EXPECT_EQ(problem(), "no error");
  EXPECT_EQ(files_in(folder_.path()).size(), 3u);
}

TEST_F(FolderChecksumsTest, ASingleBitShowsInTheContents) {
  std::string text(5000, 'x');
  text[4321] ^= 1;
  write_file(folder_ / "model.safetensors", text);
  EXPECT_EQ(problem(ChecksumDepth::kSizes), "no error");
  EXPECT_NE(problem().find("model.safetensors' has the checksum"), std::string::npos) << problem();
}

TEST_F(FolderChecksumsTest, ALengthAndAnAbsenceShowAtOnce) {
  write_file(folder_ / "model.safetensors", "x");
  EXPECT_NE(problem(ChecksumDepth::kSizes).find("has 1 bytes and should have 5000"),
            std::string::npos);
  std::filesystem::remove(folder_ / "config.json");
  EXPECT_NE(problem(ChecksumDepth::kSizes).find("config.json' is missing"), std::string::npos);
}

TEST_F(FolderChecksumsTest, NamesOutsideTheFolderAreRefused) {
  for (const char* name : {"../secret", "/etc/passwd", "..", ""}) {
    write_file(folder_ / kChecksumsFile,
               std::string(R"({"format": "filigree checksums", "version": 1, "files": {")") + name +
                   R"(": {"bytes": 1, "xxh64": "0"}}})");
    EXPECT_NE(problem().find("is no name of a file in the folder"), std::string::npos) << name;
  }
  write_file(folder_ / kChecksumsFile, "{}");
  EXPECT_NE(problem().find("format"), std::string::npos) << problem();
}

}  // namespace
}  // namespace filigree
