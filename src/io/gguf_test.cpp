#include "io/gguf.h"

#include <gtest/gtest.h>

#include "filigree/error.h"
#include "io/dequantize.h"
#include "io/gguf_writer.h"
#include "io/io_test_support.h"
#include "support/temporary_folder.h"

namespace filigree {
namespace {

using io_test::bytes_of;

template <typename Number>
void put(std::string& bytes, Number value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void put_text(std::string& bytes, std::string_view text) {
  put(bytes, static_cast<std::uint64_t>(text.size()));
  bytes += text;
}

std::string beginning(std::uint64_t tensors, std::uint64_t entries, std::uint32_t version = 3) {
  std::string bytes = "GGUF";
  put(bytes, version);
  put(bytes, tensors);
  put(bytes, entries);
  return bytes;
}

std::string entry_u32(std::string_view key, std::uint32_t value) {
  std::string bytes;
  put_text(bytes, key);
  put(bytes, std::uint32_t{4});
  put(bytes, value);
  return bytes;
}

std::string info(std::string_view name, const std::vector<std::uint64_t>& extents,
                 std::uint32_t type, std::uint64_t offset) {
  std::string bytes;
  put_text(bytes, name);
  put(bytes, static_cast<std::uint32_t>(extents.size()));
  for (const std::uint64_t extent : extents) put(bytes, extent);
  put(bytes, type);
  put(bytes, offset);
  return bytes;
}

// The infos and so many bytes of data.
std::string with_data(std::string head, std::size_t size, std::size_t alignment = 32) {
  head.resize((head.size() + alignment - 1) / alignment * alignment, '\0');
  return head + std::string(size, 'x');
}

std::string refusal(const std::string& bytes) {
  return error_of([&] { GgufFile::from_bytes(bytes_of(bytes), "f"); });
}

void expect_refused(const std::string& bytes, const std::string& part) {
  const std::string message = refusal(bytes);
  EXPECT_NE(message.find(part), std::string::npos) << message;
}

TEST(Gguf, WhatIsWrittenIsReadAgain) {
  const TemporaryFolder folder;
  const std::vector<float> matrix = {1, 2, 3, 4, 5, 6}, vector = {0.5f};
  GgufEntries entries;
  entries.integer("a.count", 7);
  entries.number("a.epsilon", 1e-5);
  entries.boolean("a.yes", true);
  entries.text("a.name", "caf\xC3\xA9");
  const std::vector<std::string> texts = {"x", "", "yz"};
  const std::vector<std::int32_t> integers = {3, -1};
  const std::vector<float> numbers = {0.25f, -2.0f};
  entries.texts("a.texts", texts);
  entries.integers("a.integers", integers);
  entries.numbers("a.numbers", numbers);
  const std::vector<TensorToWrite> tensors = {
      tensor_to_write("m", TensorKind::kF32, {2, 3}, std::as_bytes(std::span(matrix))),
      tensor_to_write("v", TensorKind::kF32, {1}, std::as_bytes(std::span(vector)))};
  write_gguf(folder.path() / "x.gguf", entries, tensors);

  const GgufFile file = GgufFile::open(folder.path() / "x.gguf");
  const GgufMetadata& metadata = file.metadata();
  EXPECT_EQ(metadata.size(), 7u);
  EXPECT_EQ(metadata.integer("a.count", 0, 10), 7);
  EXPECT_EQ(metadata.number("a.epsilon"), 1e-5);  // not the f32 beside it
  EXPECT_TRUE(metadata.boolean_or("a.yes", false));
  EXPECT_EQ(metadata.text("a.name"), "caf\xC3\xA9");
  EXPECT_EQ(metadata.texts("a.texts"), std::vector<std::string_view>({"x", "", "yz"}));
  EXPECT_EQ(metadata.integers("a.integers"), std::vector<std::int64_t>({3, -1}));
  EXPECT_EQ(metadata.numbers("a.numbers"), std::vector<double>({0.25, -2.0}));
  ASSERT_EQ(file.tensors().size(), 2u);
  EXPECT_EQ(file.tensors()[0].shape, std::vector<std::int64_t>({2, 3}));
  std::vector<float> found(6);
  read_f32(file.tensors()[0], found);
  EXPECT_EQ(found, matrix);
}

TEST(Gguf, MetadataOfAnotherTypeIsAnErrorThatSaysSo) {
  const std::string bytes = beginning(0, 1) + entry_u32("k", 5);
  const GgufFile file = GgufFile::from_bytes(bytes_of(bytes), "f");
  const GgufMetadata& metadata = file.metadata();
  EXPECT_EQ(error_of([&] { metadata.text("k"); }), "gguf: 'f': 'k' is a number, should be a text");
  EXPECT_EQ(error_of([&] { metadata.texts("k"); }),
            "gguf: 'f': 'k' is a number, should be an array");
  EXPECT_EQ(error_of([&] { metadata.integer("k", 0, 4); }),
            "gguf: 'f': 'k' is 5, should be from 0 to 4");
  EXPECT_EQ(error_of([&] { metadata.integer("l", 0, 4); }), "gguf: 'f': the metadata has no 'l'");
  EXPECT_EQ(metadata.integer_or("l", 3, 0, 4), 3);
}

TEST(Gguf, CountsAndSizesAreCheckedBeforeMemoryIsTaken) {
  expect_refused("GGU", "ends inside the four letters GGUF");
  expect_refused("GGML    ", "does not begin with GGUF");
  expect_refused(beginning(0, 0, 1), "version 1 of GGUF is not supported");
  expect_refused(beginning(0, 0, 0x03000000), "big endian");
  expect_refused(beginning(1000000, 0), "1000000 tensors do not fit");
  expect_refused(beginning(0, UINT64_MAX), "the limit is");
  std::string array = beginning(0, 1);
  put_text(array, "k");
  put(array, std::uint32_t{9});
  std::string texts = array;
  put(array, std::uint32_t{10});
  put(array, std::uint64_t{1} << 61);
  expect_refused(array + "12345678", "more than the 8 bytes that follow hold");
  put(texts, std::uint32_t{8});
  put(texts, std::uint64_t{1} << 40);
  expect_refused(texts + "12345678", "texts, more than the 8 bytes");
  std::string nested = beginning(0, 1);
  put_text(nested, "k");
  put(nested, std::uint32_t{9});
  put(nested, std::uint32_t{9});
  put(nested, std::uint64_t{1});
  expect_refused(nested, "arrays of arrays");
}

TEST(Gguf, TensorsLieInsideTheDataAndApart) {
  const auto file = [](const std::vector<std::string>& infos, std::size_t data) {
    std::string head = beginning(infos.size(), 0);
    for (const std::string& each : infos) head += each;
    return with_data(head, data);
  };
  EXPECT_EQ(refusal(file({info("a", {8}, 0, 0), info("b", {8}, 0, 32)}, 64)), "no error");
  expect_refused(file({info("a", {8}, 0, 0), info("a", {8}, 0, 32)}, 64), "'a' appears twice");
  expect_refused(file({info("a", {9}, 0, 0), info("b", {8}, 0, 32)}, 64),
                 "tensor 'b' begins inside tensor 'a'");
  expect_refused(file({info("a", {8}, 0, 4)}, 64), "no multiple of 32");
  expect_refused(file({info("a", {8}, 0, 64)}, 64), "was the file cut short?");
  expect_refused(file({info("a", {1ull << 40, 1ull << 40}, 0, 0)}, 64), "too large");
  expect_refused(file({info("a", {UINT64_MAX}, 0, 0)}, 64), "has an extent of");
  expect_refused(file({info("a", {1, 1, 1, 1, 1}, 0, 0)}, 64), "the limit is 4");
  expect_refused(file({info("a", {33}, 2, 0)}, 64), "not whole blocks of Q4_0");
  expect_refused(file({info("a", {256}, 16, 0)}, 256), "type 16 (IQ2_XXS), which is not supported");
  expect_refused(file({info("a\xFF", {8}, 0, 0)}, 64), "not UTF-8");
}

TEST(Gguf, AlignmentIsTheFiles) {
  std::string head = beginning(1, 1) + entry_u32("general.alignment", 8) + info("a", {2}, 0, 8);
  EXPECT_EQ(refusal(with_data(head, 16, 8)), "no error");
  head = beginning(1, 1) + entry_u32("general.alignment", 24) + info("a", {2}, 0, 0);
  expect_refused(with_data(head, 16, 8), "should be a power of two");
}

TEST(Gguf, KeysAreUniqueAndTextsCheckedWhenTheyAreAskedFor) {
  expect_refused(beginning(0, 2) + entry_u32("k", 1) + entry_u32("k", 2), "key 'k' appears twice");
  std::string bytes = beginning(0, 1);
  put_text(bytes, "k");
  put(bytes, std::uint32_t{8});
  put_text(bytes, "a\xFF");
  const GgufFile file = GgufFile::from_bytes(bytes_of(bytes), "f");
  EXPECT_EQ(error_of([&] { file.metadata().text("k"); }),
            "gguf: 'f': text 0 of 'k' is not UTF-8 at its byte 1");
}

TEST(Gguf, RowsOutsideATensorAreRefused) {
  const std::vector<std::byte> blocks(36);
  const TensorView view{"a", TensorKind::kQ4_0, {2, 32}, blocks, nullptr};
  std::vector<float> row(32);
  EXPECT_NE(error_of([&] { read_f32_rows(view, 2, 1, row); }).find("has 2 rows"),
            std::string::npos);
  EXPECT_EQ(error_of([&] { dequantize(TensorKind::kF32, blocks, row); }),
            "F32 is not a quantised type");
}

}  // namespace
}  // namespace filigree
