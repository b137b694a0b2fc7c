// Limits and messages of the JSON reader, and the typed reader of configuration objects.
#include "filigree/io/json.h"

#include <gtest/gtest.h>

#include "filigree/io/test_support.h"
#include "support/temporary_folder.h"

namespace filigree {
namespace {

namespace fs = std::filesystem;
using io_test::message_of;
using io_test::write_text;

std::string parse_message(std::string_view text, const JsonLimits& limits = {}) {
  return message_of([&] { parse_json(text, "a.json", limits); });
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
  EXPECT_TRUE(parse_message("\"\xff\"").starts_with("json: 'a.json': byte 1: parse error"));
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

TEST(Json, DuplicateKeysAreAnErrorUnlessAllowed) {
  EXPECT_EQ(parse_message(R"({"a": 1, "b": {"a": 2}, "a": 3})"),
            "json: 'a.json': byte 26: the key 'a' appears twice in one object");
  const auto value = parse_json(R"({"a": [1], "a": 3})", "a.json", {.allow_duplicate_keys = true});
  EXPECT_EQ(value, nlohmann::json({{"a", 3}}));
}

TEST(Json, ReadsAndReplacesFiles) {
  const TemporaryFolder folder;
  const nlohmann::json value = {{"b", {1, 2}}, {"a", "x"}};
  write_text(folder / "c.json", "old");
  write_json(folder / "c.json", value);
  EXPECT_EQ(io_test::read_text(folder / "c.json"),
            "{\n  \"a\": \"x\",\n  \"b\": [\n    1,\n    2\n  ]\n}\n");
  EXPECT_EQ(read_json(folder / "c.json"), value);
  EXPECT_EQ(folder.file_count(), 1u);
}

TEST(Json, MissingFileIsNamed) {
  const TemporaryFolder folder;
  const std::string path = (folder / "none.json").string();
  EXPECT_EQ(message_of([&] { read_json(path); }),
            "cannot open '" + path + "': No such file or directory");
}

TEST(Json, WritingInvalidUtf8IsAnErrorThatKeepsTheFile) {
  const TemporaryFolder folder;
  const fs::path path = folder / "c.json";
  write_text(path, "old");
  EXPECT_EQ(message_of([&] {
              write_json(path, {{"a", "\xff"}});
            }),
            "json: cannot write '" + path.string() + "': a string in it is not UTF-8");
  EXPECT_EQ(io_test::read_text(path), "old");
}

class JsonObjectTest : public testing::Test {
 protected:
  const JsonObject config_{parse_json(R"({"n_layer": 12, "n_head": "12", "eps": 1e-5, "half": 2.0,
                                          "tied": true, "n_inner": null, "model_type": "gpt2",
                                          "big": 18446744073709551615, "negative": -3,
                                          "rope": {"factor": 8, "kind": []}})",
                                      "config.json"),
                           "config.json"};
};

TEST_F(JsonObjectTest, ReadsTypedValues) {
  EXPECT_EQ(config_.integer("n_layer", 1, 12), 12);
  EXPECT_EQ(config_.integer("n_layer", 12, 100), 12);
  EXPECT_EQ(config_.integer("negative"), -3);
  EXPECT_EQ(config_.number("eps", 0, 1), 1e-5);
  EXPECT_EQ(config_.number("n_layer"), 12.0);
  EXPECT_TRUE(config_.boolean("tied"));
  EXPECT_EQ(config_.string("model_type"), "gpt2");
  EXPECT_EQ(config_.object("rope").integer("factor"), 8);
}

TEST_F(JsonObjectTest, FallsBackOnAbsentAndNullOnly) {
  EXPECT_EQ(config_.integer_or("n_inner", 3072), 3072);
  EXPECT_EQ(config_.integer_or("absent", 7), 7);
  EXPECT_EQ(config_.integer_or("n_layer", 7), 12);
  EXPECT_EQ(config_.number_or("absent", 0.5), 0.5);
  EXPECT_EQ(config_.number_or("eps", 0.5), 1e-5);
  EXPECT_FALSE(config_.boolean_or("absent", false));
  EXPECT_TRUE(config_.boolean_or("tied", false));
  EXPECT_EQ(config_.string_or("absent", "x"), "x");
  EXPECT_EQ(config_.string_or("model_type", "x"), "gpt2");
  EXPECT_FALSE(config_.has("n_inner"));
  EXPECT_FALSE(config_.has("absent"));
  EXPECT_TRUE(config_.has("tied"));
  EXPECT_EQ(message_of([&] { config_.integer_or("n_head", 1, 1, 64); }),
            "json: 'config.json': key 'n_head' is the string \"12\", should be an integer from 1 "
            "to 64");
}

TEST_F(JsonObjectTest, MissingKeyListsTheNearest) {
  EXPECT_EQ(message_of([&] { config_.integer("n_layers"); }),
            "json: 'config.json': key 'n_layers' is missing; nearest keys there: 'n_layer', "
            "'n_inner', 'n_head'");
  EXPECT_EQ(message_of([&] { config_.object("rope").number("factors"); }),
            "json: 'config.json': key 'rope.factors' is missing; nearest keys there: "
            "'rope.factor', 'rope.kind'");
  const JsonObject empty(nlohmann::json::object(), "e.json");
  EXPECT_EQ(message_of([&] { empty.integer("a"); }),
            "json: 'e.json': key 'a' is missing; the object is empty");
}

TEST_F(JsonObjectTest, WrongTypeAndRangeSayWhatWouldBeRight) {
  const auto message = [&](auto read) { return message_of([&] { read(config_); }); };
  EXPECT_EQ(message([](auto& c) { c.integer("n_layer", 1, 11); }),
            "json: 'config.json': key 'n_layer' is 12, should be an integer from 1 to 11");
  EXPECT_EQ(message([](auto& c) { c.integer("negative", 1); }),
            "json: 'config.json': key 'negative' is -3, should be an integer of at least 1");
  EXPECT_EQ(message([](auto& c) { c.integer("half"); }),
            "json: 'config.json': key 'half' is 2.0, should be an integer");
  EXPECT_EQ(message([](auto& c) { c.integer("big"); }),
            "json: 'config.json': key 'big' is 18446744073709551615, should be an integer");
  EXPECT_EQ(message([](auto& c) { c.integer("n_inner"); }),
            "json: 'config.json': key 'n_inner' is null, should be an integer");
  EXPECT_EQ(message([](auto& c) { c.number("eps", 0.5, 1); }),
            "json: 'config.json': key 'eps' is 1e-05, should be a number from 0.5 to 1");
  EXPECT_EQ(message([](auto& c) { c.number("tied"); }),
            "json: 'config.json': key 'tied' is true, should be a number");
  EXPECT_EQ(message([](auto& c) { c.boolean("n_layer"); }),
            "json: 'config.json': key 'n_layer' is 12, should be true or false");
  EXPECT_EQ(message([](auto& c) { c.string("rope"); }),
            "json: 'config.json': key 'rope' is an object, should be a string");
  EXPECT_EQ(message([](auto& c) { c.object("rope").object("kind"); }),
            "json: 'config.json': key 'rope.kind' is an array, should be an object");
}

// A reader that walks over the keys of a file names keys it does not know.
TEST_F(JsonObjectTest, KeysInMessagesArePrintable) {
  const JsonObject config(parse_json(R"({"a\u0000\u001b": {"b": 1}})", "c.json"), "c.json");
  const std::string key = config.keys()[0];
  EXPECT_EQ(message_of([&] { config.integer(key); }),
            "json: 'c.json': key 'a\\x00\\x1b' is an object, should be an integer");
  EXPECT_EQ(message_of([&] { config.object(key).string("b"); }),
            "json: 'c.json': key 'a\\x00\\x1b.b' is 1, should be a string");
}

TEST_F(JsonObjectTest, RootMustBeAnObject) {
  EXPECT_EQ(message_of([] { JsonObject(parse_json("[]", "c.json"), "c.json"); }),
            "json: 'c.json': holds an array, should hold an object");
}

TEST(JsonObject, OpensAConfiguration) {
  const auto config = JsonObject::open(io_test::golden("gpt2-tiny") / "config.json");
  EXPECT_EQ(config.string("model_type"), "gpt2");
  EXPECT_EQ(config.integer("n_embd", 1, 1 << 20), 48);
  EXPECT_EQ(config.integer_or("n_inner", 192), 192);
  EXPECT_TRUE(config.boolean_or("tie_word_embeddings", false));
}

}  // namespace
}  // namespace filigree
