#include "io/npz_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/io_test_support.h"
#include "io/npz.h"
#include "support/temporary_folder.h"

namespace filigree {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string written(const fs::path& path, std::uint64_t zip64_from = 0xFFFFFFFF) {
  const std::vector<float> values = {1, 2, 3, 4, 5, 6};
  NpzWriter npz(path, zip64_from);
  npz.add("W_enc", TensorKind::kF32, {2, 3}, std::as_bytes(std::span(values)));
  npz.add_text("meta.json", "{}");
  npz.add("one", TensorKind::kF32, {}, std::as_bytes(std::span(values)).first(4));
  npz.commit();
  return read_file(path);
}

std::string with(std::string bytes, std::string_view from, std::string_view to) {
  for (std::size_t at = 0; (at = bytes.find(from, at)) != std::string::npos; at += to.size())
    bytes.replace(at, from.size(), to);
  return bytes;
}

std::string opening(const std::string& bytes) {
  return error_of([&] { NpzFile::from_bytes(io_test::bytes_of(bytes), "a.npz"); });
}

TEST(NpzFile, GivesWhatTheWriterWrote) {
  const TemporaryFolder folder;
  for (const std::uint64_t zip64_from : {0xFFFFFFFFull, 0ull}) {
    written(folder / "a.npz", zip64_from);
    const NpzFile file = NpzFile::open(folder / "a.npz");
    ASSERT_EQ(file.tensors().size(), 2u);
    std::vector<float> values(6);
    read_f32(file.at("W_enc"), values);
    EXPECT_THAT(values, ElementsAre(1, 2, 3, 4, 5, 6));
    EXPECT_THAT(file.at("W_enc").shape, ElementsAre(2, 3));
    EXPECT_TRUE(file.at("one").shape.empty());
    EXPECT_THAT(error_of([&] { file.at("W_dec"); }), HasSubstr("nearest: 'W_enc'"));
  }
}

TEST(NpzFile, NamesTheArrayThatIsDamaged) {
  const TemporaryFolder folder;
  const std::string good = written(folder / "a.npz");
  // 6.0f is in W_enc alone; extents that take as many bytes are found with the numbers.
  for (const auto& [from, to] : {std::pair{"\xc0\x40", "\xc1\x40"}, {"(2, 3)", "(3, 2)"}}) {
    const std::string bytes = with(good, from, to);
    ASSERT_NE(bytes, good);
    const NpzFile file = NpzFile::from_bytes(io_test::bytes_of(bytes), "a.npz");
    std::vector<float> values(6), one(1);
    EXPECT_THAT(error_of([&] { read_f32(file.at("W_enc"), values); }),
                HasSubstr("npz: 'a.npz': array 'W_enc' has the CRC-32"));
    read_f32(file.at("one"), one);
    EXPECT_THAT(one, ElementsAre(1));
  }
}

TEST(NpzFile, RefusesWhatItCannotRead) {
  const TemporaryFolder folder;
  const std::string good = written(folder / "a.npz");
  EXPECT_THAT(opening(""), HasSubstr("too short"));
  EXPECT_THAT(opening(std::string(500, 'x')), HasSubstr("not a zip archive"));
  EXPECT_THAT(opening(good.substr(0, 60) + good.substr(100)), HasSubstr("npz: 'a.npz'"));
  EXPECT_THAT(opening(with(good, "'<f4'", "'>f4'")), HasSubstr("type '>f4'"));
  EXPECT_THAT(opening(with(good, "(2, 3)", "(2, 4)")), HasSubstr("takes 32 bytes"));
  EXPECT_THAT(opening(with(good, "False, 'shape': (2", "True , 'shape': (2")),
              HasSubstr("Fortran"));
  EXPECT_THAT(opening(with(good, "'descr'", "'desc' ")), HasSubstr("as NumPy writes it"));
  EXPECT_THAT(opening(with(good, "one", "two")), "no error");
  std::string compressed = good;
  compressed[compressed.find("PK\x01\x02") + 10] = 8;
  EXPECT_THAT(opening(compressed), HasSubstr("numpy.savez"));
}

}  // namespace
}  // namespace filigree
