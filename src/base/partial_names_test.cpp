#include "base/partial_names.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <vector>

#include "base/atomic_file.h"
#include "support/files.h"
#include "support/temporary_folder.h"

namespace filigree {
namespace {

TEST(PartialNames, AreRemovedWhileTheyLive) {
  const TemporaryFolder folder;
  for (const char* name : {"a", "b", "c"}) write_file(folder / name, name);
  const PartialName a(AT_FDCWD, folder / "a");
  PartialName b(AT_FDCWD, folder / "b");
  PartialName moved = std::move(b);
  { const PartialName c(AT_FDCWD, folder / "c"); }
  remove_partial_files();
  EXPECT_FALSE(std::filesystem::exists(folder / "a"));
  EXPECT_FALSE(std::filesystem::exists(folder / "b"));
  EXPECT_TRUE(std::filesystem::exists(folder / "c"));
  write_file(folder / "a", "of somebody else");  // the name was used once
  remove_partial_files();
  EXPECT_TRUE(std::filesystem::exists(folder / "a"));
}

TEST(PartialNames, HavePlacesThatAreGivenBack) {
  const TemporaryFolder folder;
  for (int i = 0; i < 200; ++i) {
    std::vector<PartialName> many;
    for (int j = 0; j < 70; ++j) many.emplace_back(AT_FDCWD, folder / std::to_string(j));
    many.emplace_back(AT_FDCWD, std::string(5000, 'x'));
  }
  write_file(folder / "last", "");
  const PartialName last(AT_FDCWD, folder / "last");
  remove_partial_files();
  EXPECT_FALSE(std::filesystem::exists(folder / "last"));
}

TEST(PartialNames, AreThoseOfFilesThatAreWritten) {
  const TemporaryFolder folder;
  {
    AtomicFile file(folder / "half");
    file.write("text");
    EXPECT_EQ(folder.file_count(), 1u);
    remove_partial_files();
    EXPECT_EQ(folder.file_count(), 0u);
  }
  AtomicFile whole(folder / "whole");
  whole.commit();
  remove_partial_files();
  EXPECT_EQ(folder.file_count(), 1u);
}

}  // namespace
}  // namespace filigree
