#include "io/npz.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <numeric>

#include "io/io_test_support.h"
#include "support/errors.h"
#include "support/files.h"
#include "support/npz_reader.h"
#include "support/temporary_folder.h"

namespace filigree {
namespace {

using ::testing::HasSubstr;

std::vector<float> counting(std::size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 0.5f);
  return values;
}

std::span<const std::byte> bytes_of(const std::vector<float>& values) {
  return std::as_bytes(std::span(values));
}

// The reader compares every checksum of an archive with slow_crc32().
TEST(Npz, ChecksumsDoNotDependOnHowTheDataCame) {
  EXPECT_EQ(slow_crc32("123456789"), 0xCBF43926u);  // the standard's own example
  const TemporaryFolder folder;
  const std::vector<float> values = counting(1000);
  for (const std::size_t cut : {0, 1, 7, 8, 9, 500, 3999}) {
    NpzWriter npz(folder / "a.npz");
    npz.begin("weights", TensorKind::kF32, {1000});
    npz.write(bytes_of(values).first(cut));
    npz.write(bytes_of(values).subspan(cut));
    npz.add_text("empty.txt", "");
    npz.add_text("digits.txt", "123456789");
    npz.commit();
    EXPECT_EQ(read_zip(folder / "a.npz").at("digits.txt"), "123456789") << cut;
  }
}

TEST(Npy, HeadersAreNumPys) {
  const std::vector<std::int64_t> shape = {2, 3};
  const std::string header = npy_header(TensorKind::kF32, shape);
  std::string expected("\x93NUMPY\x01\x00\x76\x00", 10);
  expected += "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";
  expected.resize(127, ' ');
  EXPECT_EQ(header, expected + "\n");
  EXPECT_THAT(npy_header(TensorKind::kI32, std::vector<std::int64_t>{5}),
              HasSubstr("'descr': '<i4', 'fortran_order': False, 'shape': (5,), }"));
  EXPECT_THAT(npy_header(TensorKind::kI64, {}), HasSubstr("'shape': (), }"));
  EXPECT_THAT(error_of([] { npy_header(TensorKind::kBf16, {}); }), HasSubstr("no type for BF16"));
}

TEST(Npz, IsReadBackWithEveryChecksum) {
  for (const std::uint64_t zip64_from : {std::uint64_t{0xFFFFFFFF}, std::uint64_t{300}}) {
    const TemporaryFolder folder;
    const std::vector<float> values = counting(24);
    NpzWriter npz(folder / "a.npz", zip64_from);
    npz.begin("weights", TensorKind::kF32, {2, 3, 4});
    npz.write(bytes_of(values).first(40));
    npz.write({});
    npz.write(bytes_of(values).subspan(40));
    npz.add("empty", TensorKind::kI32, {0, 4}, {});
    npz.add("one", TensorKind::kF32, {}, bytes_of(values).first(4));
    npz.add_text("meta.json", "{\"a\": 1}");
    npz.add_text("nothing", "");
    npz.add("more", TensorKind::kF32, {24}, bytes_of(values));
    npz.commit();
    const auto files = read_zip(folder / "a.npz");
    EXPECT_EQ(files.size(), 6u);
    EXPECT_EQ(files.at("meta.json"), "{\"a\": 1}");
    EXPECT_EQ(files.at("nothing"), "");
    const NpyArray weights = parse_npy(files.at("weights.npy"));
    EXPECT_EQ(weights.type, "<f4");
    EXPECT_EQ(weights.shape, (std::vector<std::int64_t>{2, 3, 4}));
    EXPECT_EQ(weights.values<float>(), values);
    EXPECT_EQ(parse_npy(files.at("more.npy")).values<float>(), values);
    EXPECT_EQ(parse_npy(files.at("empty.npy")).shape, (std::vector<std::int64_t>{0, 4}));
    EXPECT_EQ(parse_npy(files.at("one.npy")).shape, std::vector<std::int64_t>());
  }
}

TEST(Npz, RefusesWhatIsIncompleteAndLeavesNoFile) {
  const TemporaryFolder folder;
  {
    NpzWriter npz(folder / "a.npz");
    npz.begin("x", TensorKind::kF32, {4});
    const std::vector<float> values = counting(5);
    EXPECT_THAT(error_of([&] { npz.write(bytes_of(values)); }), HasSubstr("4 bytes more"));
    npz.write(bytes_of(values).first(12));
    EXPECT_THAT(error_of([&] { npz.commit(); }), HasSubstr("'x.npy' lacks 4 of its bytes"));
    EXPECT_THAT(error_of([&] { npz.begin("y", TensorKind::kF32, {1}); }), HasSubstr("lacks 4"));
    npz.write(bytes_of(values).first(4));
    EXPECT_THAT(error_of([&] { npz.begin("x", TensorKind::kF32, {1}); }), HasSubstr("twice"));
    for (const char* name : {"a/b", "a\\b", "\xFF", ""})
      EXPECT_THAT(error_of([&] { npz.begin(name, TensorKind::kF32, {1}); }), HasSubstr("name"));
    EXPECT_THAT(error_of([&] { npz.begin("z", TensorKind::kF32, {-1}); }), HasSubstr("'z'"));
  }
  EXPECT_EQ(folder.file_count(), 0u);
}

// NumPy's own word, where a Python with NumPy is installed.
TEST(Npz, NumPyReadsIt) {
  std::string python;
  for (const char* candidate : {"python3", "/usr/bin/python3"})
    if (std::system(fmt::format("{} -c 'import numpy' 2>/dev/null", candidate).c_str()) == 0) {
      python = candidate;
      break;
    }
  if (python.empty()) GTEST_SKIP() << "no python3 with numpy";
  for (const std::uint64_t zip64_from : {std::uint64_t{0xFFFFFFFF}, std::uint64_t{200}}) {
    const TemporaryFolder folder;
    const std::vector<float> values = counting(24);
    const std::vector<std::int32_t> ids = {7, -1};
    NpzWriter npz(folder / "a.npz", zip64_from);
    npz.add("model0.prompt0.weights", TensorKind::kF32, {2, 3, 4}, bytes_of(values));
    npz.add("ids", TensorKind::kI32, {2}, std::as_bytes(std::span(ids)));
    npz.add_text("meta.json", "{\"a\": \"\xC3\xA9\"}");
    npz.commit();
    write_file(folder / "check.py", R"(import json, sys, zipfile
import numpy as np
path = sys.argv[1]
assert zipfile.ZipFile(path).testzip() is None
npz = np.load(path)
w = npz["model0.prompt0.weights"]
assert w.shape == (2, 3, 4) and w.dtype == np.float32, (w.shape, w.dtype)
assert (w.ravel() == np.arange(24) + 0.5).all()
assert npz["ids"].tolist() == [7, -1] and npz["ids"].dtype == np.int32
assert json.loads(npz["meta.json"])["a"] == "é"
)");
    EXPECT_EQ(std::system(fmt::format("PYTHONIOENCODING=utf-8 {} {} {}", python,
                                      (folder / "check.py").string(), (folder / "a.npz").string())
                              .c_str()),
              0);
  }
}

}  // namespace
}  // namespace filigree
