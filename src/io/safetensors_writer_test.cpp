// The safetensors writer: its bytes are the reference implementation's, and a failure keeps the old
// file.
#include "io/safetensors_writer.h"

#include <gtest/gtest.h>

#include "io/io_test_support.h"
#include "io/safetensors.h"
#include "support/errors.h"
#include "support/file_size_limit.h"
#include "support/files.h"
#include "support/temporary_folder.h"

namespace filigree {
namespace {

namespace fs = std::filesystem;
using io_test::bytes_of;

TEST(SafetensorsWriter, RewritesTransformersFilesByteForByte) {
  const TemporaryFolder folder;
  for (const char* name : {"gpt2-tiny", "gpt2-tiny-bf16", "gpt2-tiny-f16"}) {
    for (const char* file : {"model.safetensors", "expected.safetensors"}) {
      const fs::path source = golden_folder() / name / file;
      const auto opened = SafetensorsFile::open(source);
      std::vector<TensorToWrite> tensors;
      for (const TensorView& view : opened.tensors())
        tensors.insert(tensors.begin(),
                       tensor_to_write(view.name, view.kind, view.shape, view.data));
      write_safetensors(folder / "copy.safetensors", std::move(tensors), opened.metadata());
      EXPECT_TRUE(read_file(folder / "copy.safetensors") == read_file(source)) << source;
    }
  }
}

TEST(SafetensorsWriter, SortsWidestFirstAndMarksTheFormat) {
  const TemporaryFolder folder;
  const fs::path path = folder / "m.safetensors";
  write_safetensors(path, {tensor_to_write("u", TensorKind::kU8, {3}, bytes_of("uuu")),
                           tensor_to_write("b", TensorKind::kF32, {}, bytes_of("bbbb")),
                           tensor_to_write("h", TensorKind::kF16, {1, 1}, bytes_of("hh")),
                           tensor_to_write("a\"\n", TensorKind::kF32, {1}, bytes_of("aaaa")),
                           tensor_to_write("none", TensorKind::kI64, {2, 0}, {})});
  const std::string text = read_file(path);
  const std::string header = R"({"__metadata__":{"format":"pt"},)"
                             R"("none":{"dtype":"I64","shape":[2,0],"data_offsets":[0,0]},)"
                             R"("a\"\n":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                             R"("b":{"dtype":"F32","shape":[],"data_offsets":[4,8]},)"
                             R"("h":{"dtype":"F16","shape":[1,1],"data_offsets":[8,10]},)"
                             R"("u":{"dtype":"U8","shape":[3],"data_offsets":[10,13]}})";
  ASSERT_GT(text.size(), 8 + header.size());
  EXPECT_EQ(text.substr(8, header.size()), header);
  EXPECT_EQ((text.size() - 13) % 8, 0u) << "the data must begin at a multiple of 8";
  EXPECT_EQ(text.substr(text.size() - 13), "aaaabbbbhhuuu");
  const auto opened = SafetensorsFile::open(path);
  EXPECT_EQ(opened.tensors().size(), 5u);
  EXPECT_EQ(opened.metadata(), kTransformersMetadata);
  EXPECT_EQ(opened.at("a\"\n").shape, (std::vector<std::int64_t>{1}));
}

TEST(SafetensorsWriter, WritesAnEmptyFile) {
  const TemporaryFolder folder;
  write_safetensors(folder / "m.safetensors", {}, {});
  EXPECT_EQ(read_file(folder / "m.safetensors"), std::string("\x08\0\0\0\0\0\0\0{}      ", 16));
}

TEST(SafetensorsWriter, AsksForOneTensorAtATime) {
  const TemporaryFolder folder;
  std::string buffer;  // reused, so only one tensor's bytes exist at any moment
  std::vector<std::string> order;
  std::vector<TensorToWrite> tensors;
  for (const char* name : {"c", "a", "b"})
    tensors.push_back({name, TensorKind::kU8, {4}, [&buffer, &order, name] {
                         order.emplace_back(name);
                         buffer.assign(4, name[0]);
                         return bytes_of(buffer);
                       }});
  write_safetensors(folder / "m.safetensors", std::move(tensors));
  EXPECT_EQ(order, (std::vector<std::string>{"a", "b", "c"}));
  const auto opened = SafetensorsFile::open(folder / "m.safetensors");
  for (const TensorView& view : opened.tensors())
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(view.data.data()), 4),
              std::string(4, view.name[0]));
}

class FailedWrite : public testing::Test {
 protected:
  FailedWrite() { write_file(path_, "previous"); }

  std::string message(std::vector<TensorToWrite> tensors,
                      const SafetensorsMetadata& metadata = {}) {
    return error_of([&] { write_safetensors(path_, std::move(tensors), metadata); });
  }

  void TearDown() override {
    EXPECT_EQ(read_file(path_), "previous");
    EXPECT_EQ(folder_.file_count(), 1u) << "a partial file was left behind";
  }

  const TemporaryFolder folder_;
  const fs::path path_ = folder_ / "m.safetensors";
  const std::string prefix_ = "safetensors: cannot write '" + path_.string() + "': ";
};

TEST_F(FailedWrite, FullDiskInTheData) {
  const std::string data(100000, 'x');
  const FileSizeLimit limit(20000);
  EXPECT_EQ(message({tensor_to_write("a", TensorKind::kU8, {100000}, bytes_of(data))}),
            "cannot write '" + path_.string() + "': File too large");
}

TEST_F(FailedWrite, FullDiskInTheHeader) {
  const FileSizeLimit limit(10);
  EXPECT_EQ(message({tensor_to_write("a", TensorKind::kU8, {1}, bytes_of("x"))}),
            "cannot write '" + path_.string() + "': File too large");
}

TEST_F(FailedWrite, DataOfTheWrongSize) {
  EXPECT_EQ(message({tensor_to_write("a", TensorKind::kF32, {2, 3}, bytes_of("1234"))}),
            prefix_ + "tensor 'a' has 4 bytes of data, but its shape [2, 3] of F32 takes 24");
}

TEST_F(FailedWrite, DataThatCannotBeProduced) {
  std::vector<TensorToWrite> tensors = {
      tensor_to_write("a", TensorKind::kU8, {1}, bytes_of("x")),
      {"b", TensorKind::kU8, {1}, []() -> std::span<const std::byte> { fail("no data"); }}};
  EXPECT_EQ(message(std::move(tensors)), "no data");
}

TEST_F(FailedWrite, DoubledReservedOrInvalidNames) {
  const auto named = [](const char* name) {
    return tensor_to_write(name, TensorKind::kU8, {1}, bytes_of("x"));
  };
  EXPECT_EQ(message({named("a"), named("b"), named("a")}), prefix_ + "tensor 'a' is listed twice");
  EXPECT_EQ(message({named("__metadata__")}),
            prefix_ + "tensor '__metadata__': the name is reserved");
  EXPECT_EQ(message({named("a\xff")}), prefix_ + "'a\\xff' is not UTF-8");
  EXPECT_EQ(message({}, {{"k", "\xff"}}), prefix_ + "'\\xff' is not UTF-8");
}

TEST_F(FailedWrite, ImpossibleShapes) {
  const auto shaped = [](std::vector<std::int64_t> shape) {
    return tensor_to_write("a", TensorKind::kF32, std::move(shape), {});
  };
  EXPECT_EQ(message({shaped({2, -1})}),
            prefix_ + "tensor 'a': shape [2, -1] has a negative dimension");
  EXPECT_EQ(message({shaped({1LL << 40, 1LL << 40})}),
            prefix_ +
                "tensor 'a': shape [1099511627776, 1099511627776] of F32 is too large to be "
                "addressed");
  EXPECT_EQ(message({shaped(std::vector<std::int64_t>(65, 1))}),
            prefix_ + "tensor 'a' has 65 dimensions, the limit is 64");
}

TEST_F(FailedWrite, HeaderBeyondTheFormatsLimit) {
  EXPECT_EQ(message({}, {{"k", std::string(kMaxSafetensorsHeader, 'x')}}),
            prefix_ + "header of 100000032 bytes is longer than the format's limit of 100000000");
}

TEST_F(FailedWrite, MoreBytesThanAFileCanHave) {
  std::vector<TensorToWrite> tensors;
  for (int i = 0; i < 17; ++i)
    tensors.push_back(
        tensor_to_write(fmt::format("{:02}", i), TensorKind::kU8, {(1LL << 60) - 1}, {}));
  EXPECT_EQ(message(std::move(tensors)),
            prefix_ + "tensor '16' does not fit: the file would have more than 2^64 bytes");
}

TEST(SafetensorsWriter, MissingFolderIsAnError) {
  const TemporaryFolder folder;
  const fs::path path = folder / "none/m.safetensors";
  EXPECT_EQ(error_of([&] { write_safetensors(path, {}); }),
            "cannot create '" + path.string() + "': No such file or directory");
}

}  // namespace
}  // namespace filigree
