// A GGUF file in the place of a model folder, written and read by commands; --chat.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "apps/cli/tests/run_program.h"
#include "apps/cli/tests/test_model.h"

namespace filigree::cli {
namespace {

using ::testing::HasSubstr;

using Arguments = std::vector<std::string>;

class GgufCommandsTest : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const { return (scratch_.path() / name).string(); }

  static nlohmann::json json_of(Arguments arguments) {
    arguments.insert(arguments.end(), {"--json", "--quiet"});
    const ProgramRun run = run_program(arguments);
    EXPECT_EQ(run.code, 0) << run.err;
    return nlohmann::json::parse(run.out, nullptr, false);
  }

  static std::string error_of(const Arguments& arguments, int code = 1) {
    const ProgramRun run = run_program(arguments);
    EXPECT_EQ(run.code, code) << run.err;
    return run.err;
  }

  const ModelFolder model_;
  const ScratchFolder scratch_;
};

TEST_F(GgufCommandsTest, AFileIsTheModelThatItWasMadeOf) {
  const auto written = json_of({"convert", model_.name(), "--out", path("model.gguf")});
  EXPECT_TRUE(written["tokenizer"].get<bool>());
  EXPECT_EQ(written["bytes"], std::filesystem::file_size(path("model.gguf")));
  const auto info = json_of({"info", path("model.gguf")});
  EXPECT_EQ(info["architecture"]["family"], "gpt2");
  EXPECT_EQ(info["tokenizer"]["vocabulary"], 8192);
  for (const Arguments& command :
       {Arguments{"run", "", "--prompt", "The cat sat on the 12"},
        Arguments{"lens", "", "--prompt", "The cat sat"},
        Arguments{"generate", "", "--prompt", "The", "--max-tokens", "3"},
        Arguments{"attention", "", "--prompt", "The cat sat on the mat", "--show", "roles"}}) {
    Arguments of_folder = command, of_file = command;
    of_folder[1] = model_.name(), of_file[1] = path("model.gguf");
    auto folder = json_of(of_folder), file = json_of(of_file);
    for (auto* json : {&folder, &file}) {
      const std::string label = json == &folder ? model_.name() : path("model.gguf");
      std::string text = json->dump();
      for (const std::string& name : {label, std::filesystem::path(label).filename().string()})
        for (std::size_t at = text.find(name); at != std::string::npos; at = text.find(name))
          text.replace(at, name.size(), "M");
      *json = nlohmann::json::parse(text);
      json->erase("seconds");
    }
    if (command[0] == "generate")
      EXPECT_EQ(folder["continuations"][0]["text"], file["continuations"][0]["text"]);
    else
      EXPECT_EQ(folder, file) << command[0];
  }
  // And back: the folder has the same tokenizer and weights.
  json_of({"convert", path("model.gguf"), "--out", path("folder")});
  const Arguments asked = {"run", path("folder"), "--prompt", "The cat sat on the 12"};
  Arguments first = asked;
  first[1] = model_.name();
  EXPECT_EQ(json_of(asked)["plain"], json_of(first)["plain"]);
  EXPECT_THAT(error_of({"convert", model_.name(), "--out", path("model.gguf")}),
              HasSubstr("is there already"));
  EXPECT_THAT(error_of({"convert", model_.name(), "--out", path("x.gguf"), "--dtype", "i8"}),
              HasSubstr("f32, bf16 or f16"));
}

TEST_F(GgufCommandsTest, DamagedFilesAreRefusedInWords) {
  write_file(path("bad.gguf"), "GGUF");
  EXPECT_THAT(error_of({"info", path("bad.gguf")}), HasSubstr("ends inside a version"));
  write_file(path("other.bin.txt"), "x");
  EXPECT_THAT(error_of({"info", path("other.bin.txt")}), HasSubstr("a GGUF file (.gguf)"));
}

TEST_F(GgufCommandsTest, ChatPutsThePromptIntoTheTemplateEverywhere) {
  EXPECT_THAT(error_of({"run", model_.name(), "--chat", "--prompt", "Hello"}),
              HasSubstr("no chat template came with the tokenizer"));
  write_file(model_.path() / "tokenizer_config.json",
             R"({"chat_template":"{% for m in messages %}<|endoftext|>{{ m.role }}: )"
             R"({{ m.content }}{% endfor %}{% if add_generation_prompt %} model:{% endif %}"})");
  const std::string written = "<|endoftext|>user: Hello model:";
  const auto plain = json_of({"run", model_.name(), "--prompt", written});
  const auto chat = json_of({"run", model_.name(), "--chat", "--prompt", "Hello"});
  EXPECT_EQ(chat["ids"], plain["ids"]);
  EXPECT_EQ(chat["ids"][0], 0);  // the special token, as one
  EXPECT_EQ(chat["tokens"][0], "<|endoftext|>");
  EXPECT_EQ(chat["plain"], plain["plain"]);
  const auto lens = json_of({"lens", model_.name(), "--chat", "--prompt", "Hello"});
  EXPECT_EQ(lens["models"][0]["points"],
            json_of({"lens", model_.name(), "--prompt", written})["models"][0]["points"]);
  EXPECT_EQ(json_of({"generate", model_.name(), "--chat", "--prompt", "Hello", "--max-tokens",
                     "1"})["prompt_tokens"],
            plain["ids"].size());
  const auto maps = json_of({"attention", model_.name(), "--chat", "--prompt", "Hello"});
  EXPECT_THAT(maps.dump(), HasSubstr("<|endoftext|>"));
  EXPECT_THAT(error_of({"lens", model_.name(), "--chat", "--task", "ioi"}, 2),
              HasSubstr("--chat goes with --prompt"));
  EXPECT_THAT(error_of({"run", model_.name(), "--chat", "--ids", "1,2"}, 2),
              HasSubstr("a chat template takes a text"));
  // What a GGUF file keeps.
  json_of({"convert", model_.name(), "--out", path("chat.gguf")});
  EXPECT_EQ(json_of({"run", path("chat.gguf"), "--chat", "--prompt", "Hello"})["ids"],
            plain["ids"]);
  json_of({"convert", path("chat.gguf"), "--out", path("folder")});
  EXPECT_EQ(json_of({"run", path("folder"), "--chat", "--prompt", "Hello"})["ids"], plain["ids"]);
}

}  // namespace
}  // namespace filigree::cli
