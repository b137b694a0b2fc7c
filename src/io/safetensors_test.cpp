// The safetensors reader: what it shows of good files, and its message for every kind of bad one.
#include "io/safetensors.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "io/io_test_support.h"
#include "support/errors.h"

namespace filigree {
namespace {

using io_test::bytes_of;
using io_test::safetensors_bytes;

std::string open_message(std::string_view file) {
  return error_of([&] { SafetensorsFile::from_bytes(bytes_of(file), "m"); });
}

// Of a file with this header and `data_size` bytes of data.
std::string header_message(std::string_view header, std::size_t data_size) {
  return open_message(safetensors_bytes(header, std::string(data_size, 'x')));
}

TEST(Safetensors, ShowsNamesShapesDataAndMetadata) {
  const std::string file = safetensors_bytes(
      R"({"__metadata__":{"format":"pt","note":""},"b":{"dtype":"U8","shape":[3],)"
      R"("data_offsets":[8,11]},"a":{"shape":[2,1],"data_offsets":[0,8],"dtype":"F32"}}   )",
      "01234567abc");
  const auto opened = SafetensorsFile::from_bytes(bytes_of(file), "m");
  ASSERT_EQ(opened.tensors().size(), 2u);
  const TensorView& a = opened.tensors()[0];
  EXPECT_EQ(a.name, "a");
  EXPECT_EQ(a.kind, TensorKind::kF32);
  EXPECT_EQ(a.dtype(), DType::kF32);
  EXPECT_EQ(a.shape, (std::vector<std::int64_t>{2, 1}));
  EXPECT_EQ(a.element_count(), 2);
  EXPECT_EQ(std::memcmp(a.data.data(), "01234567", 8), 0);
  EXPECT_EQ(a.data.data(), bytes_of(file).data() + file.size() - 11) << "a view, not a copy";
  const TensorView* b = opened.find("b");
  ASSERT_EQ(b, &opened.tensors()[1]);
  EXPECT_EQ(b->data.size(), 3u);
  EXPECT_EQ(std::memcmp(b->data.data(), "abc", 3), 0);
  EXPECT_EQ(opened.find("c"), nullptr);
  EXPECT_EQ(opened.metadata(),
            (std::map<std::string, std::string>{{"format", "pt"}, {"note", ""}}));
}

TEST(Safetensors, AcceptsAFileWithoutTensors) {
  EXPECT_TRUE(
      SafetensorsFile::from_bytes(bytes_of(safetensors_bytes("{}", "")), "m").tensors().empty());
}

TEST(Safetensors, AcceptsScalarsAndEmptyTensors) {
  const std::string file =
      safetensors_bytes(R"({"s":{"dtype":"F32","shape":[],"data_offsets":[0,4]},)"
                        R"("first":{"dtype":"F32","shape":[0,5],"data_offsets":[0,0]},)"
                        R"("last":{"dtype":"F32","shape":[5,0],"data_offsets":[4,4]}})",
                        "1234");
  const auto opened = SafetensorsFile::from_bytes(bytes_of(file), "m");
  EXPECT_EQ(opened.at("s").element_count(), 1);
  EXPECT_EQ(opened.at("first").element_count(), 0);
  EXPECT_EQ(opened.at("last").element_count(), 0);
  EXPECT_TRUE(opened.at("last").data.empty());
}

TEST(Safetensors, OpensEveryKindButComputesWithFour) {
  const std::array<std::pair<std::string, std::size_t>, 20> kinds = {{
      {"BOOL", 1}, {"F4", 0},      {"F6_E2M3", 0}, {"F6_E3M2", 0}, {"U8", 1},
      {"I8", 1},   {"F8_E5M2", 1}, {"F8_E4M3", 1}, {"F8_E8M0", 1}, {"I16", 2},
      {"U16", 2},  {"F16", 2},     {"BF16", 2},    {"I32", 4},     {"U32", 4},
      {"F32", 4},  {"C64", 8},     {"F64", 8},     {"I64", 8},     {"U64", 8},
  }};
  for (const auto& [name, size] : kinds) {
    // Elements below a byte come in eights.
    const std::size_t count = size == 0 ? 8 : 3;
    const std::size_t bytes = size == 0 ? (name == "F4" ? 4 : 6) : 3 * size;
    const std::string file = safetensors_bytes(
        fmt::format(R"({{"t":{{"dtype":"{}","shape":[{}],"data_offsets":[0,{}]}}}})", name, count,
                    bytes),
        std::string(bytes, '\0'));
    const auto opened = SafetensorsFile::from_bytes(bytes_of(file), "m");
    const TensorView& tensor = opened.at("t");
    EXPECT_EQ(name_of(tensor.kind), name);
    const bool computable = name == "F32" || name == "BF16" || name == "F16" || name == "I32";
    EXPECT_EQ(dtype_of(tensor.kind).has_value(), computable) << name;
    if (computable) {
      EXPECT_EQ(kind_of(tensor.dtype()), tensor.kind);
    } else {
      EXPECT_EQ(error_of([&] { tensor.dtype(); }),
                "safetensors: tensor 't' has dtype " + name +
                    ", which cannot be computed with; F32, BF16, F16 and I32 can");
    }
    std::vector<float> values(count, 1.0f);
    const std::string read = error_of([&] { read_f32(tensor, values); });
    if ((computable && name != "I32") || name == "F64") {
      EXPECT_EQ(values, std::vector<float>(count, 0.0f)) << name;
    } else {
      EXPECT_EQ(read, "tensor 't' has dtype " + name +
                          ", cannot be read as f32; F64, F32, BF16, F16 and the quantised types of "
                          "GGUF can");
    }
  }
}

TEST(Safetensors, ReadsMisalignedData) {
  // One byte of U8 first puts every later tensor at an odd offset.
  std::string data(1, 'x');
  const float f32 = -1.5f;
  const std::array<std::uint16_t, 4> halves = {0x3FC0, 0xC000, 0x3E00,
                                               0xC000};  // bf16 x 2, f16 x 2
  const std::int32_t i32 = -7;
  data.append(reinterpret_cast<const char*>(&f32), 4);
  data.append(reinterpret_cast<const char*>(halves.data()), 8);
  data.append(reinterpret_cast<const char*>(&i32), 4);
  std::string header = R"({"u":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                       R"("f":{"dtype":"F32","shape":[1],"data_offsets":[1,5]},)"
                       R"("b":{"dtype":"BF16","shape":[2],"data_offsets":[5,9]},)"
                       R"("h":{"dtype":"F16","shape":[2],"data_offsets":[9,13]},)"
                       R"("i":{"dtype":"I32","shape":[1],"data_offsets":[13,17]}})";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  // A file buffer whose data begins at an address that is a multiple of 8, as in a mapping.
  const std::string file = safetensors_bytes(header, data);
  std::vector<std::uint64_t> storage(file.size() / 8 + 1);
  std::memcpy(storage.data(), file.data(), file.size());
  const auto opened =
      SafetensorsFile::from_bytes(std::as_bytes(std::span(storage)).first(file.size()), "m");

  EXPECT_TRUE(opened.at("u").aligned());
  for (const char* name : {"f", "b", "h", "i"}) EXPECT_FALSE(opened.at(name).aligned()) << name;
  std::array<float, 1> one = {};
  read_f32(opened.at("f"), one);
  EXPECT_EQ(one[0], -1.5f);
  std::array<float, 2> two = {};
  read_f32(opened.at("b"), two);
  EXPECT_EQ(two, (std::array<float, 2>{1.5f, -2.0f}));
  read_f32(opened.at("h"), two);
  EXPECT_EQ(two, (std::array<float, 2>{1.5f, -2.0f}));
  std::array<std::int32_t, 1> integer = {};
  read_i32(opened.at("i"), integer);
  EXPECT_EQ(integer[0], -7);
  EXPECT_EQ(error_of([&] { read_i32(opened.at("f"), integer); }),
            "safetensors: tensor 'f' has dtype F32, cannot be read as i32");
  EXPECT_EQ(error_of([&] { read_f32(opened.at("b"), one); }),
            "safetensors: tensor 'b' has 2 elements (shape [2]), cannot be read into 1");
}

TEST(Safetensors, ConvertsMoreThanOneBlock) {
  std::string data;
  for (int i = 0; i < 10000; ++i) data += std::string("\x80\x3f", 2);  // 1.0 in bf16
  data[2 * 9999 + 1] = '\x40';                                         // 4.0
  const std::string file = safetensors_bytes(
      R"({"t":{"dtype":"BF16","shape":[100,100],"data_offsets":[0,20000]}})", data);
  std::vector<float> values(10000);
  read_f32(SafetensorsFile::from_bytes(bytes_of(file), "m").at("t"), values);
  EXPECT_EQ(values.front(), 1.0f);
  EXPECT_EQ(values[4096], 1.0f);
  EXPECT_EQ(values[9998], 1.0f);
  EXPECT_EQ(values.back(), 4.0f);
}

TEST(Safetensors, ViewsKeepTheFileMapped) {
  TensorView view;
  {
    const auto file = SafetensorsFile::open(golden_folder() / "gpt2-tiny" / "model.safetensors");
    view = file.at("transformer.ln_f.weight");
  }
  ASSERT_NE(view.owner, nullptr);
  std::vector<float> values(48);
  read_f32(view, values);
  EXPECT_NE(values[0], 0.0f);
}

TEST(Safetensors, UnknownNameListsTheNearest) {
  const auto file = SafetensorsFile::open(golden_folder() / "gpt2-tiny" / "model.safetensors");
  EXPECT_EQ(error_of([&] { file.at("transformer.ln_f.wieght"); }),
            "safetensors: '" + file.source() +
                "': no tensor 'transformer.ln_f.wieght'; nearest: 'transformer.ln_f.weight', "
                "'transformer.ln_f.bias', 'transformer.wpe.weight'");
}

TEST(SafetensorsErrors, HeaderLength) {
  EXPECT_EQ(open_message(""),
            "safetensors: 'm': 0 bytes long, too short for the 8 bytes of the header length");
  EXPECT_EQ(open_message("1234567"),
            "safetensors: 'm': 7 bytes long, too short for the 8 bytes of the header length");
  EXPECT_EQ(open_message(std::string("\x03\0\0\0\0\0\0\0{}", 10)),
            "safetensors: 'm': header of 3 bytes is longer than the rest of the file (2 bytes)");
  EXPECT_EQ(open_message(std::string("\x01\xe1\xf5\x05\0\0\0\0{}", 10)),
            "safetensors: 'm': header of 100000001 bytes is longer than the format's limit of "
            "100000000");
  EXPECT_EQ(open_message("\xff\xff\xff\xff\xff\xff\xff\xff{}"),
            "safetensors: 'm': header of 18446744073709551615 bytes is longer than the format's "
            "limit of 100000000");
}

TEST(SafetensorsErrors, GitLfsPointer) {
  EXPECT_EQ(open_message("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 5\n"),
            "safetensors: 'm': a Git LFS pointer, not the file itself; fetch it with 'git lfs "
            "pull'");
}

TEST(SafetensorsErrors, HeaderText) {
  EXPECT_EQ(header_message("", 0),
            "safetensors: 'm': header begins with '', should begin with '{'");
  EXPECT_EQ(header_message(" {}", 0),
            "safetensors: 'm': header begins with ' ', should begin with '{'");
  EXPECT_EQ(header_message("[]", 0),
            "safetensors: 'm': header begins with '[', should begin with '{'");
  EXPECT_TRUE(header_message("{]", 0).starts_with("safetensors: 'm': header: byte 1: parse error"));
  EXPECT_TRUE(header_message("{} {}", 0).starts_with("safetensors: 'm': header: byte 3: parse "));
  EXPECT_EQ(header_message(std::string_view("{}\0\0", 4), 0),
            "safetensors: 'm': header: byte 2: a NUL byte, which no JSON text holds");
  EXPECT_EQ(header_message(R"({"a":)" + std::string(1000000, '['), 0),
            "safetensors: 'm': tensor 'a' is an array, should be an object with dtype, shape and "
            "data_offsets");
}

TEST(SafetensorsErrors, Metadata) {
  EXPECT_EQ(header_message(R"({"__metadata__":["x"]})", 0),
            "safetensors: 'm': __metadata__ is an array, should be an object of strings");
  EXPECT_EQ(header_message(R"({"__metadata__":{"step":5}})", 0),
            "safetensors: 'm': __metadata__ 'step' is 5, should be a string");
  EXPECT_EQ(header_message(R"({"__metadata__":{"x":{}}})", 0),
            "safetensors: 'm': __metadata__ 'x' is an object, should be a string");
  EXPECT_EQ(header_message(R"({"__metadata__":{"x":"1","x":"2"}})", 0),
            "safetensors: 'm': the metadata key 'x' appears twice");
  EXPECT_EQ(header_message(R"({"__metadata__":{},"__metadata__":{}})", 0),
            "safetensors: 'm': __metadata__ appears twice");
  const auto with_keys = [](int count) {
    std::string keys;
    for (int i = 0; i < count; ++i) keys += fmt::format(R"({}"{}":"")", i == 0 ? "" : ",", i);
    return R"({"__metadata__":{)" + keys + "}}";
  };
  EXPECT_EQ(header_message(with_keys(100000), 0), "no error");
  EXPECT_EQ(header_message(with_keys(100001), 0),
            "safetensors: 'm': more than 100000 metadata keys, the limit");
}

TEST(SafetensorsErrors, EntryFields) {
  const auto message = [](std::string_view fields) {
    return header_message(fmt::format(R"({{"w":{{{}}}}})", fields), 8);
  };
  const std::string prefix = "safetensors: 'm': tensor 'w'";
  EXPECT_EQ(message(""), prefix + " has no dtype");
  EXPECT_EQ(message(R"("dtype":"F32","data_offsets":[0,8])"), prefix + " has no shape");
  EXPECT_EQ(message(R"("dtype":"F32","shape":[2])"), prefix + " has no data_offsets");
  EXPECT_EQ(message(R"("dtype":"F32","dtype":"F32")"), prefix + " has the field 'dtype' twice");
  EXPECT_EQ(
      message(R"("stride":[1])"),
      prefix + " has the unknown field 'stride'; the format has dtype, shape and data_offsets");
  EXPECT_EQ(message(R"("dtype":"F33")"), prefix + " has the unknown dtype 'F33'");
  EXPECT_EQ(message(R"("dtype":"f32")"), prefix + " has the unknown dtype 'f32'");
  EXPECT_EQ(message(R"("dtype":32)"), prefix + " has 32 as its dtype, should be a string");
  EXPECT_EQ(message(R"("dtype":[32])"), prefix + " has an array as its dtype, should be a string");
  EXPECT_EQ(message(R"("shape":{"a":1})"),
            prefix + " has an object as its shape, should be an array");
  EXPECT_EQ(message(R"("shape":"2")"),
            prefix + " has the string \"2\" as its shape, should be an array");
  EXPECT_EQ(message(R"("shape":null)"), prefix + " has null as its shape, should be an array");
  EXPECT_EQ(message(R"("data_offsets":true)"),
            prefix + " has true as its data_offsets, should be an array");
}

TEST(SafetensorsErrors, EntryNumbers) {
  const auto shape_message = [](std::string_view shape) {
    return header_message(
        fmt::format(R"({{"w":{{"dtype":"F32","shape":[{}],"data_offsets":[0,8]}}}})", shape), 8);
  };
  const auto offsets_message = [](std::string_view offsets) {
    return header_message(
        fmt::format(R"({{"w":{{"dtype":"F32","shape":[2],"data_offsets":[{}]}}}})", offsets), 8);
  };
  const std::string prefix = "safetensors: 'm': tensor 'w'";
  const std::string shape_right = " in its shape, should be integers from 0 to 2^63 - 1";
  EXPECT_EQ(shape_message("-2"), prefix + " has -2" + shape_right);
  EXPECT_EQ(shape_message("2.0"), prefix + " has 2.0" + shape_right);
  EXPECT_EQ(shape_message("9223372036854775808"),
            prefix + " has 9223372036854775808" + shape_right);
  EXPECT_EQ(shape_message("99999999999999999999"),
            prefix + " has 99999999999999999999" + shape_right);
  EXPECT_EQ(shape_message("[2]"), prefix + " has an array" + shape_right);
  EXPECT_EQ(shape_message("4294967296,4294967296"),
            prefix + ": shape [4294967296, 4294967296] of F32 is too large to be addressed");
  EXPECT_EQ(shape_message("4611686018427387904,0,4"),
            prefix + ": shape [4611686018427387904, 0, 4] of F32 is too large to be addressed");
  std::string ones = "1";
  for (int i = 1; i < 65; ++i) ones += ",1";
  EXPECT_EQ(shape_message(ones), prefix + " has more than 64 dimensions, the limit");

  const std::string offsets_right = " in its data_offsets, should be two integers from 0";
  EXPECT_EQ(offsets_message(""), prefix + " has 0 data_offsets, should have 2: begin and end");
  EXPECT_EQ(offsets_message("0"), prefix + " has 1 data_offsets, should have 2: begin and end");
  EXPECT_EQ(offsets_message("0,8,8"), prefix + " has 8" + offsets_right);
  EXPECT_EQ(offsets_message("-1,7"), prefix + " has -1" + offsets_right);
  EXPECT_EQ(offsets_message("8,0"), prefix + ": data_offsets [8, 0] run backwards");
  EXPECT_EQ(offsets_message("0,7"),
            prefix + ": shape [2] of F32 takes 8 bytes, but data_offsets [0, 7] hold 7");
  EXPECT_EQ(header_message(R"({"w":{"dtype":"F4","shape":[3],"data_offsets":[0,2]}})", 2),
            prefix + ": shape [3] of F4 does not fill whole bytes");
}

TEST(SafetensorsErrors, PlacesInTheData) {
  const auto file_message = [](std::string_view a, std::string_view b, std::size_t data_size) {
    return header_message(fmt::format(R"({{"a":{{"dtype":"F32","shape":[2],"data_offsets":[{}]}},)"
                                      R"("b":{{"dtype":"F32","shape":[2],"data_offsets":[{}]}}}})",
                                      a, b),
                          data_size);
  };
  EXPECT_EQ(file_message("0,8", "8,16", 16), "no error");
  EXPECT_EQ(file_message("0,8", "8,16", 15),
            "safetensors: 'm': tensor 'b' ends at byte 16, past the end of the data (15 bytes)");
  EXPECT_EQ(file_message("0,8", "18446744073709551600,18446744073709551608", 16),
            "safetensors: 'm': tensor 'b' ends at byte 18446744073709551608, past the end of the "
            "data (16 bytes)");
  EXPECT_EQ(file_message("0,8", "4,12", 12),
            "safetensors: 'm': tensor 'b' begins at byte 4, inside tensor 'a', which ends at byte "
            "8");
  EXPECT_EQ(file_message("0,8", "12,20", 20),
            "safetensors: 'm': bytes 8 to 12 of the data, before tensor 'b', belong to no tensor");
  EXPECT_EQ(file_message("4,12", "12,20", 20),
            "safetensors: 'm': bytes 0 to 4 of the data, before tensor 'a', belong to no tensor");
  EXPECT_EQ(file_message("0,8", "8,16", 20),
            "safetensors: 'm': the tensors end at byte 16, but 4 more bytes of data follow");
  EXPECT_EQ(header_message("{}", 1),
            "safetensors: 'm': the tensors end at byte 0, but 1 more bytes of data follow");
}

TEST(SafetensorsErrors, DoubledName) {
  EXPECT_EQ(header_message(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                           R"("a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
                           2),
            "safetensors: 'm': tensor 'a' appears twice");
}

TEST(SafetensorsErrors, NamesOfUntrustedFilesAreMadePrintable) {
  EXPECT_EQ(header_message(R"({"a\u001b[31m":5})", 0),
            "safetensors: 'm': tensor 'a\\x1b[31m' is 5, should be an object with dtype, shape and "
            "data_offsets");
}

TEST(SafetensorsErrors, EveryTruncationOfAGoodFileIsRefused) {
  const std::string whole = safetensors_bytes(
      R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})",
      "01234567");
  ASSERT_EQ(open_message(whole), "no error");
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_NE(open_message(std::string_view(whole).substr(0, size)), "no error") << size;
}

}  // namespace
}  // namespace filigree
