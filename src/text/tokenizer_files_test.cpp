#include "text/tokenizer_files.h"

#include <nlohmann/json.hpp>

#include "filigree/error.h"
#include "filigree/tokenizer.h"
#include "text/text_test_support.h"

namespace filigree {
namespace {

using nlohmann::json;

json small_tokenizer() {
  return json::parse(R"({
    "version": "1.0",
    "added_tokens": [{"id": 3, "content": "<end>", "special": true}],
    "normalizer": null,
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false},
    "post_processor": {"type": "ByteLevel"},
    "decoder": {"type": "ByteLevel"},
    "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": [["a", "b"]]}
  })");
}

TokenizerSpec parse(const json& document) {
  return parse_tokenizer_json(document.dump(), "tokenizer.json");
}

Tokenizer load(const json& document) {
  return Tokenizer::from_tokenizer_json_text(document.dump());
}

// The small tokenizer with the value at `pointer` replaced.
json with(const char* pointer, json value) {
  json document = small_tokenizer();
  document[json::json_pointer(pointer)] = std::move(value);
  return document;
}

json without(const char* pointer, const char* key) {
  json document = small_tokenizer();
  document[json::json_pointer(pointer)].erase(key);
  return document;
}

TEST(VocabAndMerges, RulesThatAreMissingAreNoticed) {
  const auto missing = [](const char* merges) {
    const TokenizerSpec spec = parse_vocab_and_merges(
        R"({"a": 0, "b": 1, "\u0120": 2, "ab": 3, "aba": 4, "<|endoftext|>": 5, "<pad>": 6})",
        "vocab.json", merges, "merges.txt");
    require_all_rules(spec, "merges.txt");
  };
  EXPECT_NO_THROW(missing("#version: 0.2\na b\nab a\n"));
  EXPECT_ERROR(missing("#version: 0.2\na b\n"),
               "merges.txt: no rule makes 1 of the vocabulary's tokens, such as 'aba'");
  EXPECT_ERROR(missing(""), "no rule makes 2 of the vocabulary's tokens");
}

TEST(TokenizerJson, ReadsTheParts) {
  const TokenizerSpec spec = parse(small_tokenizer());
  EXPECT_EQ(spec.vocabulary.size(), 3u);
  ASSERT_EQ(spec.rules.size(), 1u);
  EXPECT_EQ(spec.rules[0].left, "a");
  EXPECT_EQ(spec.rules[0].right, "b");
  ASSERT_EQ(spec.added_tokens.size(), 1u);
  EXPECT_EQ(spec.added_tokens[0].content, "<end>");
  EXPECT_EQ(spec.added_tokens[0].id, 3);
  EXPECT_TRUE(spec.added_tokens[0].special);
  EXPECT_FALSE(spec.added_tokens[0].normalized);
  EXPECT_FALSE(spec.add_prefix_space);
  EXPECT_TRUE(spec.use_pattern);
}

TEST(TokenizerJson, AcceptsBothFormsOfMerges) {
  const TokenizerSpec spec = parse(with("/model/merges", {"a b", json::array({"a b", "c"})}));
  ASSERT_EQ(spec.rules.size(), 2u);
  EXPECT_EQ(spec.rules[0].left, "a");
  EXPECT_EQ(spec.rules[0].right, "b");
  EXPECT_EQ(spec.rules[1].left, "a b");
  EXPECT_EQ(spec.rules[1].right, "c");
}

TEST(TokenizerJson, HonoursSettings) {
  EXPECT_TRUE(parse(with("/pre_tokenizer/add_prefix_space", true)).add_prefix_space);
  EXPECT_FALSE(parse(with("/pre_tokenizer/use_regex", false)).use_pattern);
  EXPECT_TRUE(parse(with("/model/ignore_merges", true)).bpe.ignore_merges);
  EXPECT_TRUE(parse(with("/model/fuse_unk", true)).bpe.fuse_unknown);
  EXPECT_EQ(parse(with("/model/unk_token", "b")).bpe.unknown_token, "b");
  EXPECT_TRUE(parse(with("/added_tokens/0/lstrip", true)).added_tokens[0].strip_left);
  EXPECT_TRUE(parse(with("/added_tokens/0/rstrip", true)).added_tokens[0].strip_right);
  EXPECT_TRUE(parse(with("/added_tokens/0/normalized", true)).added_tokens[0].normalized);
}

TEST(TokenizerJson, AcceptsWhatMeansTheSame) {
  for (const json& document : {
           with("/normalizer", json::parse(R"({"type": "Sequence", "normalizers": []})")),
           with("/pre_tokenizer", json::parse(R"({"type": "Sequence", "pretokenizers":
                [{"type": "ByteLevel", "add_prefix_space": false}]})")),
           with("/decoder", nullptr),
           with("/post_processor", nullptr),
           with("/model/continuing_subword_prefix", ""),
           with("/model/end_of_word_suffix", ""),
           with("/model/dropout", 0),
           with("/model/dropout", nullptr),
           without("/model", "type"),
           without("", "added_tokens"),
           without("", "normalizer"),
           with("/truncation", json::parse(R"({"max_length": 1})")),
       })
    EXPECT_EQ(load(document).encode("abab"), (std::vector<TokenId>{2, 2})) << document.dump();
}

TEST(TokenizerJson, NamesWhatIsNotSupported) {
  EXPECT_ERROR(parse(with("/normalizer", json::parse(R"({"type": "NFKC"})"))),
               "tokenizer.json: the normalizer is NFKC; NFC, Prepend and Replace are supported");
  EXPECT_ERROR(parse(with("/normalizer", json::parse(R"({"type": "Replace", "content": "x",
                   "pattern": {"Regex": "a+"}})"))),
               "a Replace by a regular expression");
  EXPECT_ERROR(parse(with("/pre_tokenizer", json::parse(R"({"type": "Sequence", "pretokenizers":
                   [{"type": "Split", "pattern": {"Regex": "[a-z]+"}, "behavior": "Isolated"},
                    {"type": "ByteLevel", "add_prefix_space": false, "use_regex": false}]})"))),
               "the pattern '[a-z]+', which is not one of");
  EXPECT_ERROR(parse(with("/pre_tokenizer", json::parse(R"({"type": "Sequence", "pretokenizers":
                   [{"type": "Split"}, {"type": "Digits"}, {"type": "ByteLevel"}]})"))),
               "the pre_tokenizer is Split, Digits, ByteLevel; ByteLevel, alone");
  EXPECT_ERROR(parse(with("/pre_tokenizer", json::parse(R"({"type": "Whitespace"})"))),
               "the pre_tokenizer is Whitespace; ByteLevel, alone");
  EXPECT_ERROR(parse(with("/pre_tokenizer", nullptr)), "the decoder is ByteLevel");
  EXPECT_ERROR(parse(with("/pre_tokenizer", json::object())), "the pre_tokenizer is (no type)");
  EXPECT_ERROR(parse(with("/decoder", json::parse(R"({"type": "WordPiece"})"))),
               "the decoder is WordPiece");
  EXPECT_ERROR(parse(with("/model/type", "WordPiece")), "type 'WordPiece'; only BPE");
  EXPECT_ERROR(parse(with("/model/continuing_subword_prefix", "##")), "continuing_subword_prefix");
  EXPECT_ERROR(parse(with("/model/end_of_word_suffix", "</w>")), "end_of_word_suffix");
  EXPECT_ERROR(parse(with("/model/byte_fallback", true)), "byte_fallback");
  EXPECT_ERROR(parse(with("/post_processor", json::parse(R"({"type": "RobertaProcessing"})"))),
               "the post_processor is RobertaProcessing");
  EXPECT_ERROR(parse(with("/model/dropout", 0.1)), "dropout 0.1");
  EXPECT_ERROR(parse(with("/added_tokens/0/single_word", true)), "'<end>' has \"single_word\"");
}

TEST(TokenizerJson, NamesWrongTypesAndMissingParts) {
  EXPECT_ERROR(parse(json::array()), "holds an array, should hold an object");
  EXPECT_ERROR(parse(without("", "model")), "key 'model' is missing");
  EXPECT_ERROR(parse(with("/model", 1)), "key 'model' is 1, should be an object");
  EXPECT_ERROR(parse(without("/model", "vocab")), "key 'model.vocab' is missing");
  EXPECT_ERROR(parse(with("/model/vocab", json::array())), "key 'model.vocab' is an array");
  EXPECT_ERROR(parse(without("/model", "merges")), "key 'model.merges' is missing");
  EXPECT_ERROR(parse(with("/model/merges", "a b")), "key 'model.merges' is the string \"a b\"");
  EXPECT_ERROR(parse(with("/model/type", 5)), "key 'model.type' is 5, should be a string");
  EXPECT_ERROR(parse(with("/model/fuse_unk", 1)), "'model.fuse_unk' is 1, should be true or false");
  EXPECT_ERROR(parse(with("/normalizer", "NFC")),
               "key 'normalizer' is the string \"NFC\", should be an object");
  EXPECT_ERROR(parse(with("/normalizer", json::parse(R"({"type": "Sequence"})"))),
               "key 'normalizer.normalizers' is missing");
  EXPECT_ERROR(parse(with("/normalizer/x", json::array({1}))), "the normalizer is (no type)");
  EXPECT_ERROR(parse(with("/pre_tokenizer", json::parse(R"({"type": "Sequence",
                   "pretokenizers": [7]})"))),
               "key 'pre_tokenizer.pretokenizers[0]' is 7, should be an object");
  EXPECT_ERROR(parse(without("/pre_tokenizer", "add_prefix_space")),
               "key 'pre_tokenizer.add_prefix_space' is missing");
  EXPECT_ERROR(parse(with("/post_processor", 1)), "key 'post_processor' is 1, should be an object");
  EXPECT_ERROR(parse(with("/added_tokens", 1)), "key 'added_tokens' is 1, should be an array");
  EXPECT_ERROR(parse(with("/added_tokens/0", 1)),
               "key 'added_tokens[0]' is 1, should be an object");
  EXPECT_ERROR(parse(without("/added_tokens/0", "id")), "key 'added_tokens[0].id' is missing");
  EXPECT_ERROR(parse(without("/added_tokens/0", "content")),
               "key 'added_tokens[0].content' is missing");
  EXPECT_ERROR(parse_tokenizer_json("{\"model\": ", "dir/tokenizer.json"),
               "'dir/tokenizer.json': byte 10: parse error at line 1, column 11");
  EXPECT_ERROR(parse_tokenizer_json("", "tokenizer.json"), "'tokenizer.json': byte 0: parse error");
}

// The parser behind takes a NUL for the end of its input and would ignore the rest.
TEST(TokenizerJson, RefusesWhatStandsBehindTheDocument) {
  const std::string whole = small_tokenizer().dump();
  EXPECT_NO_THROW(parse_tokenizer_json(whole + " \n", "t.json"));
  const std::string at = fmt::format("'t.json': byte {}: ", whole.size());
  EXPECT_ERROR(parse_tokenizer_json(whole + '\0', "t.json"), at + "a NUL byte");
  EXPECT_ERROR(parse_tokenizer_json(whole + '\0' + "junk", "t.json"), at + "a NUL byte");
  EXPECT_ERROR(parse_tokenizer_json(whole + "junk", "t.json"), at + "parse error");
  EXPECT_ERROR(parse_tokenizer_json(whole + "\xFF", "t.json"), at + "invalid UTF-8");
}

TEST(TokenizerJson, NamesBadIdsAndRules) {
  for (const json& id : {json(-1), json(1.5), json("1"), json(nullptr), json(4294967296)})
    EXPECT_ERROR(parse(with("/model/vocab/b", id)), "the id of token 'b' is " + id.dump());
  EXPECT_ERROR(parse(with("/added_tokens/0/id", -5)),
               "key 'added_tokens[0].id' is -5, should be an integer");
  EXPECT_ERROR(load(with("/model/vocab/b", 0)), "have the same id 0");
  EXPECT_ERROR(load(with("/model/vocab/b", 100000)), "token 'b' has id 100000");
  EXPECT_ERROR(load(with("/added_tokens/0/id", 2)),
               "'<end>' has id 2, which is that of token 'ab'");
  EXPECT_ERROR(load(with("/added_tokens/0/id", 100000)), "added token '<end>' has id 100000");
  EXPECT_ERROR(load(with("/added_tokens/0/content", "a")), "'a' has id 3, but 0 in the vocabulary");
  EXPECT_ERROR(load(with("/model/merges/0", json::array({"a", "q"}))),
               "tokenizer.json: model.merges entry 0: the merge of 'a' and 'q' names 'q'");
  for (const json& rule :
       {json("ab"), json("a  b"), json("a b c"), json(" b"), json("a "), json("")})
    EXPECT_ERROR(parse(with("/model/merges/0", rule)), "is not two tokens with one space");
  for (const json& rule :
       {json(1), json::array({"a"}), json::array({"a", 1}), json::array({"a", "b", "c"})})
    EXPECT_ERROR(parse(with("/model/merges/0", rule)), "is neither \"left right\" nor");
}

TEST(TokenizerJson, PutsAroundATextWhatThePostProcessorSaysWhereAsked) {
  const json alone = json::parse(
      R"({"type": "TemplateProcessing", "single": [{"Sequence": {"id": "A", "type_id": 0}}]})");
  EXPECT_TRUE(load(with("/post_processor", alone)).begin_ids().empty());
  const json with_token = json::parse(
      R"({"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<end>", "type_id": 0}},
                                                  {"Sequence": {"id": "A", "type_id": 0}},
                                                  {"SpecialToken": {"id": "b", "type_id": 0}}],
          "special_tokens": {"b": {"id": "b", "ids": [2], "tokens": ["ab"]}}})");
  const Tokenizer tokenizer = load(with("/post_processor", with_token));
  const TokenId end = *tokenizer.id_of("<end>");
  EXPECT_EQ(tokenizer.encode("ab"), (std::vector<TokenId>{2}));
  EXPECT_EQ(tokenizer.encode("ab", {.add_template = true}), (std::vector<TokenId>{end, 2, 2}));
  EXPECT_EQ(tokenizer.begin_ids(), (std::vector<TokenId>{end}));
  // It is still there after saving.
  const auto folder = fresh_folder();
  tokenizer.save(folder);
  EXPECT_EQ(json::parse(read_file(folder / "tokenizer.json"))["post_processor"], with_token);
  const json absent = json::parse(
      R"({"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<no>", "type_id": 0}}]})");
  EXPECT_ERROR(load(with("/post_processor", absent)), "adds '<no>', which is no token");
}

// Spaces as another character, with one in front of the text alone or of every part of it.
TEST(TokenizerJson, MetaspacesAndByteFallback) {
  const auto tokenizer = [](const char* pre_tokenizer) {
    json document = json::parse(R"({"normalizer": null, "post_processor": null, "decoder":
        {"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": "_"},
          "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"},
          {"type": "Strip", "content": " ", "start": 1, "stop": 0}]},
        "added_tokens": [{"id": 0, "content": "<x>"}],
        "model": {"type": "BPE", "byte_fallback": true, "unk_token": "<u>", "fuse_unk": true,
          "vocab": {"<x>": 0, "<u>": 1, "a": 2, "b": 3, "_": 4, "_a": 5, "a_": 6, "<0xC3>": 7,
                    "<0xA9>": 8}, "merges": [["a", "_"], ["_", "a"]]}})");
    document["pre_tokenizer"] = json::parse(pre_tokenizer);
    return load(document);
  };
  using Ids = std::vector<TokenId>;
  const Tokenizer first =
      tokenizer(R"({"type": "Metaspace", "replacement": "_", "prepend_scheme": "first",
                    "split": false})");
  EXPECT_EQ(first.encode("a b"), (Ids{4, 6, 3}));  // "a_" is the earlier rule
  EXPECT_EQ(first.encode("<x>a"), (Ids{0, 2}));
  EXPECT_EQ(first.encode("b\u00e9"), (Ids{4, 3, 7, 8}));
  EXPECT_EQ(first.encode("b\u00e8zz"), (Ids{4, 3, 1}));
  EXPECT_EQ(first.decode(Ids{4, 6, 3, 7, 8}), "a b\u00e9");
  EXPECT_EQ(first.require_id(" a"), 5);
  const Tokenizer always =
      tokenizer(R"({"type": "Metaspace", "replacement": "_", "prepend_scheme": "always",
                    "split": true})");
  EXPECT_EQ(always.encode("a a"), (Ids{5, 5}));
  EXPECT_EQ(always.encode("<x>a"), (Ids{0, 5}));
  EXPECT_ERROR(tokenizer(R"({"type": "Metaspace", "prepend_scheme": "last"})"), "'last'");
}

TEST(TokenizerJson, NormalizesBetweenAddedTokens) {
  const Tokenizer composing = load(with("/normalizer", json::parse(R"({"type": "Sequence",
      "normalizers": [{"type": "NFC"}, {"type": "Replace", "pattern": {"String": "c"},
                       "content": "a"}]})")));
  EXPECT_EQ(composing.encode("cbab"), load(with("/decoder", nullptr)).encode("abab"));
  EXPECT_EQ(normalize({{NormalizerStep::Kind::kNfc}}, "e\u0301 e\u0301"), "\u00e9 \u00e9");
  const std::string zero("e\u0301\0e\u0301", 7);
  EXPECT_EQ(normalize({{NormalizerStep::Kind::kNfc}}, zero), std::string("\u00e9\0\u00e9", 5));
  EXPECT_EQ(normalize({{NormalizerStep::Kind::kPrepend, "", "_"}}, ""), "");
}

TEST(VocabAndMerges, ReadsTheParts) {
  const TokenizerSpec spec =
      parse_vocab_and_merges(R"({"a": 0, "b": 1, "ab": 2, "<|endoftext|>": 3})", "vocab.json",
                             "#version: 0.2\r\na b\r\n\nab a\n", "merges.txt");
  EXPECT_EQ(spec.vocabulary.size(), 4u);
  ASSERT_EQ(spec.rules.size(), 2u);
  EXPECT_EQ(spec.rules[0].right, "b");
  EXPECT_EQ(spec.rules[0].place, 2u);
  EXPECT_EQ(spec.rules[1].left, "ab");
  EXPECT_EQ(spec.rules[1].place, 4u);
  ASSERT_EQ(spec.added_tokens.size(), 1u);
  EXPECT_EQ(spec.added_tokens[0].id, 3);
}

TEST(VocabAndMerges, OnlyTheFirstLineCanBeAHeader) {
  const auto rules = [](std::string_view merges) {
    return parse_vocab_and_merges("{}", "vocab.json", merges, "merges.txt").rules.size();
  };
  EXPECT_EQ(rules(""), 0u);
  EXPECT_EQ(rules("#version: 0.2"), 0u);
  EXPECT_EQ(rules("a b"), 1u);
  EXPECT_EQ(rules("# #\n"), 1u);
  EXPECT_EQ(rules("a b\n#version x\n"), 2u);
}

TEST(VocabAndMerges, NamesWhatIsWrong) {
  const std::string vocab = R"({"a": 0, "b": 1, "ab": 2})";
  const auto load_both = [](std::string_view vocab_json, std::string_view merges_txt) {
    return Tokenizer::from_vocab_and_merges_text(vocab_json, merges_txt);
  };
  EXPECT_ERROR(load_both(vocab, "#version: 0.2\na b\nb zz\n"),
               "merges.txt: line 3: the merge of 'b' and 'zz' names 'zz', which is not in the");
  EXPECT_ERROR(load_both(vocab, "a b\nb a\n"),
               "merges.txt: line 2: the merge of 'b' and 'a' names 'ba'");
  EXPECT_ERROR(load_both(vocab, "a b c\n"), "merges.txt: line 1: 'a b c' is not two tokens");
  EXPECT_ERROR(load_both(vocab, "a  b\n"), "merges.txt: line 1: 'a  b' is not two tokens");
  EXPECT_ERROR(load_both(vocab, "ab\n"), "merges.txt: line 1: 'ab' is not two tokens");
  EXPECT_ERROR(load_both(vocab, "a b\n\xFF b\n"), "merges.txt: not valid UTF-8 at byte 4");
  EXPECT_ERROR(load_both("{}", ""), "vocab.json: the vocabulary is empty");
  EXPECT_ERROR(load_both("[]", ""), "json: 'vocab.json': holds an array");
  EXPECT_ERROR(load_both(R"({"a": 0, "a": 1})", ""),
               "'vocab.json': byte 11: the key 'a' appears twice in one object");
  EXPECT_ERROR(load_both(R"({"a": 0, "b": 0})", ""),
               "vocab.json: tokens 'a' and 'b' have the same id");
  EXPECT_ERROR(load_both(R"({"a": 0, "<|endoftext|>": "x"})", ""),
               "the id of token '<|endoftext|>'");
  EXPECT_ERROR(load_both(R"({"a": 0,)", ""),
               "'vocab.json': byte 8: parse error at line 1, column 9");
}

TEST(TokenizerConfig, GivesTheEndTokenAndThePrefixSpace) {
  TokenizerSpec spec = spec_with_rules({});
  spec.vocabulary.push_back({"<eos>", 256});
  apply_tokenizer_config(R"({"eos_token": "<eos>", "add_prefix_space": true})", "c", false, spec);
  EXPECT_TRUE(spec.add_prefix_space);
  const Tokenizer tokenizer(spec);
  EXPECT_EQ(tokenizer.eos_id(), 256);
  EXPECT_TRUE(tokenizer.is_special(256));

  TokenizerSpec complete = spec_with_rules({});
  apply_tokenizer_config(R"({"eos_token": {"content": "!"}, "add_prefix_space": true})", "c", true,
                         complete);
  EXPECT_FALSE(complete.add_prefix_space);  // tokenizer.json has said so itself
  EXPECT_EQ(Tokenizer(complete).eos_id(), 0);

  EXPECT_ERROR(apply_tokenizer_config("[]", "c.json", true, spec),
               "json: 'c.json': holds an array");
  EXPECT_ERROR(apply_tokenizer_config(R"({"eos_token": 5})", "c.json", true, spec),
               "json: 'c.json': key 'eos_token' is 5, should be a string");
}

}  // namespace
}  // namespace filigree
