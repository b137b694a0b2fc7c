#include "io/stored_checksums.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/folder_checksums.h"
#include "support/errors.h"
#include "support/files.h"
#include "support/temporary_folder.h"

namespace filigree {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::size_t kBlock = 1 << 16;

std::string numbered_bytes(std::size_t count) {
  std::string bytes(count, 0);
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<char>(i * 7 + i / 251);
  return bytes;
}

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

std::shared_ptr<const MappedFile> open(const std::filesystem::path& path) {
  return MappedFile::open(path);
}

class StoredChecksumsTest : public ::testing::Test {
 protected:
  // A file of three blocks and a bit, damaged in one byte.
  void write(ChecksumGrain grain, std::size_t damaged_at) {
    std::string bytes = numbered_bytes(3 * kBlock + 100);
    write_file(folder_ / "weights", bytes);
    write_checksums(folder_.path(), {"weights"}, {}, grain);
    bytes[damaged_at] ^= 1;
    write_file(folder_ / "weights", bytes);
    file_ = open(folder_ / "weights");
    check_ = StoredChecksums().of(file_);
  }
  std::string problem(std::size_t begin, std::size_t size) const {
    return error_of([&] { check_->require(file_->bytes().subspan(begin, size)); });
  }

  const TemporaryFolder folder_;
  std::shared_ptr<const MappedFile> file_;
  std::shared_ptr<const FileCheck> check_;
};

TEST_F(StoredChecksumsTest, ComparesTheBlocksThatAreUsed) {
  write(ChecksumGrain::kBlocks, 2 * kBlock + 5);
  ASSERT_TRUE(check_->by_block());
  EXPECT_EQ(problem(0, 2 * kBlock), "no error");
  EXPECT_EQ(problem(3 * kBlock, 100), "no error");
  EXPECT_EQ(problem(2 * kBlock + 9, 0), "no error");
  for (const auto& [begin, size] : {std::pair{2 * kBlock - 1, std::size_t{2}},
                                    {2 * kBlock + 900, std::size_t{1}},
                                    {std::size_t{0}, 3 * kBlock + 100}})
    EXPECT_THAT(problem(begin, size), AllOf(HasSubstr("weights' has the checksum "),
                                            HasSubstr("in bytes 131072 to 196608 and should have"),
                                            HasSubstr("remove checksums.json beside it")));
  EXPECT_THAT(check_files(folder_.path(), ChecksumDepth::kContents)[0].problem,
              HasSubstr("in bytes 131072 to 196608"));
}

TEST_F(StoredChecksumsTest, ComparesTheWholeFileWhereItHasNoBlocks) {
  write(ChecksumGrain::kFiles, 2 * kBlock + 5);
  EXPECT_FALSE(check_->by_block());
  EXPECT_THAT(problem(0, 1), HasSubstr("weights' has the checksum "));
  EXPECT_EQ(problem(0, 0), "no error");
}

TEST_F(StoredChecksumsTest, SmallFilesHaveNoBlocks) {
  const std::string small = numbered_bytes(kBlock), larger = numbered_bytes(kBlock + 1);
  EXPECT_EQ(checksum_of(bytes_of(small), ChecksumGrain::kBlocks).block_bytes, 0u);
  const FileChecksum sum = checksum_of(bytes_of(larger), ChecksumGrain::kBlocks);
  EXPECT_EQ(sum.blocks.size(), 32u);
  EXPECT_THAT(difference(bytes_of(larger), sum), IsEmpty());
}

TEST_F(StoredChecksumsTest, ComparesSizesOfAllFilesOnce) {
  write_file(folder_ / "a", "a");
  write_file(folder_ / "b", "b");
  write_file(folder_ / "c", "c");
  EXPECT_EQ(StoredChecksums().of(open(folder_ / "a")), nullptr);
  write_checksums(folder_.path(), {"a", "b"});
  EXPECT_NE(StoredChecksums().of(open(folder_ / "a")), nullptr);
  EXPECT_EQ(StoredChecksums().of(open(folder_ / "c")), nullptr);
  std::filesystem::remove(folder_ / "b");
  EXPECT_THAT(error_of([&] { StoredChecksums().of(open(folder_ / "a")); }),
              HasSubstr("b' is missing"));
}

TEST_F(StoredChecksumsTest, RefusesBlocksThatDoNotFit) {
  write(ChecksumGrain::kBlocks, 0);
  const std::string whole = read_file(folder_ / "checksums.json");
  const auto opening = [&](const std::string& from, const std::string& to) {
    std::string text = whole;
    write_file(folder_ / "checksums.json", text.replace(text.find(from), from.size(), to));
    return error_of([&] { StoredChecksums().of(open(folder_ / "weights")); });
  };
  EXPECT_THAT(opening("65536", "65537000"), HasSubstr("has 64 digits for the 1 blocks"));
  EXPECT_THAT(opening("65536", "1"), HasSubstr("has 64 digits for the 196708 blocks"));
  EXPECT_THAT(opening("65536", "0"), HasSubstr("block_bytes' is 0"));
  EXPECT_THAT(opening("\"block_bytes\"", "\"bytes_a_block\""),
              HasSubstr("block_bytes' is missing"));
}

}  // namespace
}  // namespace filigree
