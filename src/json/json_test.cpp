// What the JSON reader accepts, its limits and its messages.
#include "json/json.h"

#include <gtest/gtest.h>

#include "support/errors.h"
#include "support/files.h"
#include "support/temporary_folder.h"

namespace filigree {
namespace {

namespace fs = std::filesystem;

std::string parse_message(std::string_view text, const JsonLimits& limits = {}) {
  return error_of([&] { parse_json(text, "a.json", limits); });
}

TEST(Json, ReadsEveryTypeOfValue) {
  const auto value =
      parse_json(R"( {"a": [1, -2, 2.5, true, null, "t\u00e9"], "b": {"c": {}}} )", "a.json");
  EXPECT_EQ(value,
            nlohmann::json::parse(R"({"a": [1, -2, 2.5, true, null, "t\u00e9"], "b": {"c": {}}})"));
  EXPECT_EQ(parse_json("18446744073709551615", "a.json"), 18446744073709551615u);
}

TEST(Json, SyntaxErrorNamesFileAndByte) {
  EXPECT_EQ(parse_message("{\"a\": 1,\n \"b\" 2}"),
            "json: 'a.json': byte 14: parse error at line 2, column 6: syntax error while parsing "
            "object separator - unexpected number literal; expected ':'");
  EXPECT_TRUE(parse_message("").starts_with("json: 'a.json': byte 0: parse error"));
  EXPECT_TRUE(parse_message("[1, 2").starts_with("json: 'a.json': byte 5: parse error"));
  EXPECT_TRUE(parse_message("{} x").starts_with("json: 'a.json': byte 3: parse error"));
  for (const char* text : {"[1,]", "{\"a\" 1}", "nul", "{1:2}", "[01]", "'a'", "// a"})
    EXPECT_TRUE(parse_message(text).starts_with("json: 'a.json': byte ")) << text;
}

TEST(Json, InvalidUtf8IsAnErrorWhereverItIs) {
  const std::string why = ": invalid UTF-8, which no JSON text holds";
  EXPECT_EQ(parse_message("\"\xff\""), "json: 'a.json': byte 1" + why);
  EXPECT_EQ(parse_message("{}\xff"), "json: 'a.json': byte 2" + why);
  EXPECT_EQ(parse_message("{}\xe2\x82"), "json: 'a.json': byte 2" + why);
  EXPECT_EQ(parse_message("{\"\xed\xa0\x80\": 1}"), "json: 'a.json': byte 2" + why);
  EXPECT_TRUE(parse_message("\"\\ud800\"").starts_with("json: 'a.json': byte 7: parse error"));
  EXPECT_EQ(parse_json("\"\xe2\x82\xac\"", "a.json"), "\xe2\x82\xac");
}

TEST(Json, NumberBeyondDoubleIsAnError) {
  EXPECT_EQ(parse_message("[1e999]"), "json: 'a.json': byte 5: number overflow parsing '1e999'");
}

TEST(Json, MessagesDoNotRepeatTheWholeFile) {
  EXPECT_LT(parse_message("\"" + std::string(1000000, 'a')).size(), 500u);
}

// The parser behind takes a NUL for the end of its input and would ignore the rest.
TEST(Json, NulByteIsAnError) {
  EXPECT_EQ(parse_message(std::string_view("{}\0{", 4)),
            "json: 'a.json': byte 2: a NUL byte, which no JSON text holds");
  EXPECT_EQ(parse_message(std::string_view("{}\0", 3)),
            "json: 'a.json': byte 2: a NUL byte, which no JSON text holds");
}

TEST(Json, DepthIsLimited) {
  const JsonLimits limits = {.max_depth = 3};
  EXPECT_NO_THROW(parse_json("[{\"a\": []}, [[]]]", "a.json", limits));
  EXPECT_EQ(parse_message("[{\"a\": [[]]}]", limits),
            "json: 'a.json': byte 8: nested more than 3 levels deep, the limit");
  EXPECT_EQ(parse_message(std::string(5000000, '[')),
            "json: 'a.json': byte 64: nested more than 64 levels deep, the limit");
  EXPECT_EQ(parse_message(std::string(60000, '[') + std::string(60000, ']')),
            "json: 'a.json': byte 64: nested more than 64 levels deep, the limit");
}

TEST(Json, NumberOfValuesIsLimited) {
  const JsonLimits limits = {.max_values = 4};
  EXPECT_NO_THROW(parse_json("[1, 2, 3]", "a.json", limits));
  EXPECT_EQ(parse_message("[1,2,3,4]", limits),
            "json: 'a.json': byte 8: more than 4 values, the limit");
}

TEST(Json, SizeIsLimited) {
  const JsonLimits limits = {.max_bytes = 4};
  EXPECT_NO_THROW(parse_json("[10]", "a.json", limits));
  EXPECT_EQ(parse_message("[100]", limits), "json: 'a.json': 5 bytes long, the limit is 4");
}

TEST(Json, LengthOfStringsIsLimited) {
  const JsonLimits limits = {.max_string_bytes = 3};
  EXPECT_NO_THROW(parse_json(R"({"abc": "def"})", "a.json", limits));
  EXPECT_EQ(parse_message(R"(["abcd"])", limits),
            "json: 'a.json': byte 6: a string of 4 bytes, the limit is 3");
  EXPECT_EQ(parse_message(R"({"abcd": 1})", limits),
            "json: 'a.json': byte 6: a string of 4 bytes, the limit is 3");
}

TEST(Json, DuplicateKeysAreAnError) {
  EXPECT_EQ(parse_message(R"({"a": 1, "b": {"a": 2}, "a": 3})"),
            "json: 'a.json': byte 26: the key 'a' appears twice in one object");
}

TEST(Json, ReadsAndReplacesFiles) {
  const TemporaryFolder folder;
  const nlohmann::json value = {{"b", {1, 2}}, {"a", "x"}};
  write_file(folder / "c.json", "old");
  write_json(folder / "c.json", value);
  EXPECT_EQ(read_file(folder / "c.json"),
            "{\n  \"a\": \"x\",\n  \"b\": [\n    1,\n    2\n  ]\n}\n");
  EXPECT_EQ(read_json(folder / "c.json"), value);
  EXPECT_EQ(folder.file_count(), 1u);
}

TEST(Json, MissingFileIsNamed) {
  const TemporaryFolder folder;
  const std::string path = (folder / "none.json").string();
  EXPECT_EQ(error_of([&] { read_json(path); }),
            "cannot open '" + path + "': No such file or directory");
}

TEST(Json, WritingInvalidUtf8IsAnErrorThatKeepsTheFile) {
  const TemporaryFolder folder;
  const fs::path path = folder / "c.json";
  write_file(path, "old");
  EXPECT_EQ(error_of([&] {
              write_json(path, {{"a", "\xff"}});
            }),
            "json: cannot write '" + path.string() + "': a string in it is not UTF-8");
  EXPECT_EQ(read_file(path), "old");
}

}  // namespace
}  // namespace filigree
