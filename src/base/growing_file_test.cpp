#include "base/growing_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "support/errors.h"
#include "support/file_size_limit.h"
#include "support/files.h"
#include "support/temporary_folder.h"

namespace filigree {
namespace {

TEST(GrowingFile, GoesOnWhereItEnded) {
  const TemporaryFolder path;
  const OpenFolder folder(path.path());
  { GrowingFile(folder, "a.part").append("one "); }
  GrowingFile file(folder, "a.part");
  EXPECT_EQ(file.bytes(), 4u);
  file.append("two");
  std::string read(5, ' ');
  file.read(2, read);
  EXPECT_EQ(read, "e two");
  write_file(path / "a", "before");
  file.commit_as("a");
  EXPECT_EQ(read_file(path / "a"), "one two");
  EXPECT_FALSE(std::filesystem::exists(path / "a.part"));
}

TEST(GrowingFile, StartsAgainAndGoes) {
  const TemporaryFolder path;
  const OpenFolder folder(path.path());
  GrowingFile file(folder, "a.part");
  file.append("wrong and long");
  file.restart();
  file.append("right");
  EXPECT_EQ(read_file(path / "a.part"), "right");
  std::string beyond(6, ' ');
  EXPECT_NE(error_of([&] { file.read(0, beyond); }), "no error");
  file.remove();
  EXPECT_EQ(path.file_count(), 0u);
}

TEST(GrowingFile, AFullDiskIsAnError) {
  const TemporaryFolder path;
  const OpenFolder folder(path.path());
  GrowingFile file(folder, "a.part");
  const FileSizeLimit full(1000);
  EXPECT_NE(error_of([&] { file.append(std::string(2000, 'x')); }).find("cannot write"),
            std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(path / "a"));
}

TEST(GrowingFile, IsNeitherALinkNorAFolder) {
  const TemporaryFolder path;
  write_file(path / "other", "x");
  std::filesystem::create_symlink("other", path / "link");
  std::filesystem::create_directory(path / "folder");
  const OpenFolder folder(path.path());
  EXPECT_NE(error_of([&] { GrowingFile(folder, "link"); }).find("symbolic link"),
            std::string::npos);
  EXPECT_NE(error_of([&] { GrowingFile(folder, "folder"); }).find("cannot open"),
            std::string::npos);
  EXPECT_EQ(read_file(path / "other"), "x");
}

TEST(OpenFolder, MakesAndReadsLinks) {
  const TemporaryFolder path;
  const OpenFolder folder(path.path());
  EXPECT_TRUE(folder.make_link("a", "../b/c"));
  EXPECT_FALSE(folder.make_link("a", "other"));
  EXPECT_EQ(folder.link_target("a"), "../b/c");
  EXPECT_EQ(std::filesystem::read_symlink(path / "a"), "../b/c");
  write_file(path / "file", "x");
  EXPECT_EQ(folder.link_target("file"), std::nullopt);
  EXPECT_EQ(folder.link_target("absent"), std::nullopt);
}

}  // namespace
}  // namespace filigree
