// Typed reading of JSON objects and its messages.
#include "json/object.h"

#include <gtest/gtest.h>

#include "json/json.h"
#include "support/errors.h"

namespace filigree {
namespace {

class JsonObjectTest : public testing::Test {
 protected:
  const JsonObject config_ =
      JsonObject::parse(R"({"n_layer": 12, "n_head": "12", "eps": 1e-5, "half": 2.0,
                                                   "tied": true, "n_inner": null,
                                                   "model_type": "gpt2", "negative": -3,
                                                   "big": 18446744073709551615,
                                                   "rope": {"factor": 8, "kind": []},
                                                   "parts": [{"n": 1}, {"n": "x"}]})",
                        "config.json");
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
  EXPECT_EQ(error_of([&] { config_.integer_or("n_head", 1, 1, 64); }),
            "json: 'config.json': key 'n_head' is the string \"12\", should be an integer from 1 "
            "to 64");
}

TEST_F(JsonObjectTest, MissingKeyListsTheNearest) {
  EXPECT_EQ(error_of([&] { config_.integer("n_layers"); }),
            "json: 'config.json': key 'n_layers' is missing; nearest keys there: 'n_layer', "
            "'n_inner', 'n_head'");
  EXPECT_EQ(error_of([&] { config_.object("rope").number("factors"); }),
            "json: 'config.json': key 'rope.factors' is missing; nearest keys there: "
            "'rope.factor', 'rope.kind'");
  const JsonObject empty(nlohmann::json::object(), "e.json");
  EXPECT_EQ(error_of([&] { empty.integer("a"); }),
            "json: 'e.json': key 'a' is missing; the object is empty");
}

TEST_F(JsonObjectTest, WrongTypeAndRangeSayWhatWouldBeRight) {
  const auto message = [&](auto read) { return error_of([&] { read(config_); }); };
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

TEST_F(JsonObjectTest, ReadsListsOfObjects) {
  const std::vector<JsonObject> parts = config_.objects("parts");
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[0].integer("n"), 1);
  EXPECT_EQ(config_.array("parts").size(), 2u);
  EXPECT_EQ(error_of([&] { parts[1].integer("n"); }),
            "json: 'config.json': key 'parts[1].n' is the string \"x\", should be an integer");
  EXPECT_EQ(error_of([&] { config_.objects("rope"); }),
            "json: 'config.json': key 'rope' is an object, should be an array");
  const JsonObject mixed = JsonObject::parse(R"({"a": {"b": [{}, 7]}})", "m.json");
  EXPECT_EQ(error_of([&] { mixed.object("a").objects("b"); }),
            "json: 'm.json': key 'a.b[1]' is 7, should be an object");
}

// Nested objects share the document and outlive the object they came from.
TEST_F(JsonObjectTest, NestedObjectsKeepTheDocument) {
  const JsonObject inner = [] {
    return JsonObject::parse(R"({"a": {"b": {"c": 5}}})", "t.json").object("a").object("b");
  }();
  EXPECT_EQ(inner.integer("c"), 5);
  EXPECT_EQ(inner.source(), "t.json");
}

// A reader that walks over the keys of a file names keys it does not know.
TEST_F(JsonObjectTest, KeysInMessagesArePrintable) {
  const JsonObject config = JsonObject::parse(R"({"a\u0000\u001b": {"b": 1}})", "c.json");
  const std::string key = config.keys()[0];
  EXPECT_EQ(error_of([&] { config.integer(key); }),
            "json: 'c.json': key 'a\\x00\\x1b' is an object, should be an integer");
  EXPECT_EQ(error_of([&] { config.object(key).string("b"); }),
            "json: 'c.json': key 'a\\x00\\x1b.b' is 1, should be a string");
}

TEST_F(JsonObjectTest, RootMustBeAnObject) {
  EXPECT_EQ(error_of([] { JsonObject::parse("[]", "c.json"); }),
            "json: 'c.json': holds an array, should hold an object");
}

TEST(JsonObject, OpensAConfiguration) {
  const auto config = JsonObject::open(std::filesystem::path(FILIGREE_SOURCE_DIR) / "tests" /
                                       "golden" / "gpt2-tiny" / "config.json");
  EXPECT_EQ(config.string("model_type"), "gpt2");
  EXPECT_EQ(config.integer("n_embd", 1, 1 << 20), 48);
  EXPECT_EQ(config.integer_or("n_inner", 192), 192);
  EXPECT_TRUE(config.boolean_or("tie_word_embeddings", false));
}

}  // namespace
}  // namespace filigree
