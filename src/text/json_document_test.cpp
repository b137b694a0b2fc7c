#include "filigree/text/json_document.h"

#include "filigree/text/test_support.h"

namespace filigree {
namespace {

using nlohmann::json;

TEST(JsonDocument, BuildsWhatTheLibraryBuilds) {
  const std::string text =
      R"( {"a": [1, -2, 3.5, "x", null, true, {}, [[]]], "b": {"c": {"d": []}, "e": "\u00e9"}} )";
  EXPECT_EQ(parse_json_document(text, "t"), json::parse(text));
  EXPECT_EQ(parse_json_document("7", "t"), json(7));
}

TEST(JsonDocument, NamesFileAndPositionOfAMistake) {
  EXPECT_ERROR(parse_json_document("{\"a\": 1,\n \"b\": }", "vocab.json"),
               "vocab.json: parse error at line 2, column 7");
  for (const char* text :
       {"", "{", "[1,]", "{} x", "{\"a\" 1}", "nul", "\"\xFF\"", "1e999", "{1:2}"})
    EXPECT_ERROR(parse_json_document(text, "vocab.json"), "vocab.json: ");
}

TEST(JsonDocument, RefusesAKeyGivenTwice) {
  EXPECT_ERROR(parse_json_document(R"({"a": {"b": 1, "b": 2}})", "t"),
               "t: the key 'b' occurs twice");
  EXPECT_NO_THROW(parse_json_document(R"({"a": {"b": 1}, "b": 2})", "t"));
}

TEST(JsonDocument, BoundsNestingAndNumberOfValues) {
  const auto nested = [](std::size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  EXPECT_NO_THROW(parse_json_document(nested(kMaxJsonDepth), "t"));
  EXPECT_ERROR(parse_json_document(nested(kMaxJsonDepth + 1), "t"), "nested deeper than 64");
  EXPECT_ERROR(parse_json_document(std::string(5'000'000, '['), "t"), "nested deeper than 64");
  std::string many = "[0";
  for (std::size_t i = 0; i < kMaxJsonValues; ++i) many += ",0";
  EXPECT_ERROR(parse_json_document(many + "]", "t"), "JSON values");
}

}  // namespace
}  // namespace filigree
