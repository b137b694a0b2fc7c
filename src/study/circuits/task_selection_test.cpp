// Which text a task is drawn from when none is named.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <utility>

#include "base/scratch_folder.h"
#include "filigree/circuit_study.h"
#include "filigree/error.h"
#include "filigree/study.h"
#include "support/errors.h"
#include "support/files.h"

namespace filigree::study {
namespace {

using ::testing::HasSubstr;

TaskSelection selection_of(const std::string& name) {
  TaskSelection selection;
  selection.name = name;
  return selection;
}

TEST(ChooseText, TakesTheFirstFolderThatBringsOne) {
  const ScratchFolder bare, own, other;
  for (const ScratchFolder* folder : {&own, &other})
    std::ofstream(folder->path() / kHeldOutFile) << "The books on the table were old.";
  const std::vector<std::filesystem::path> folders = {bare.path(), own.path(), other.path()};
  EXPECT_EQ(choose_text(selection_of("returning-word"), folders).text, own.path() / kHeldOutFile);
  TaskSelection named = selection_of("returning-word");
  named.text = "book.txt";
  EXPECT_EQ(choose_text(named, folders).text, "book.txt");
  EXPECT_EQ(choose_text(selection_of("ioi"), folders).text, "");
  // Without any, that of the bundled model.
  const auto bundled = find_named_model(kReferenceDense);
  ASSERT_TRUE(bundled);
  EXPECT_EQ(choose_text(selection_of("returning-word"), std::span(folders).first(1)).text,
            *bundled / kHeldOutFile);
}

TEST(ChooseText, SaysWhatToDoWithoutOne) {
  const ScratchFolder places;
  std::filesystem::create_directory(places.path() / kReferenceDense);
  std::ofstream(places.path() / kReferenceDense / "config.json") << "{}";
  ::setenv("FILIGREE_MODELS", places.path().c_str(), 1);
  const std::string error = error_of(
      [] { choose_text(selection_of("closing-quote"), std::span<const std::filesystem::path>()); });
  ::unsetenv("FILIGREE_MODELS");
  EXPECT_THAT(error, ::testing::AllOf(HasSubstr("'closing-quote' is drawn from a text"),
                                      HasSubstr(kHeldOutFile), HasSubstr("--task-text FILE")));
}

TEST(LoadTask, FindsPassagesOfEveryKindInTheBundledText) {
  const auto bundled = find_named_model(kReferenceDense);
  ASSERT_TRUE(bundled);
  const Tokenizer tokenizer = open_tokenizer(kReferenceDense);
  for (const auto& [name, least] :
       {std::pair{"returning-word", 10u}, {"agreement-in-text", 1u}, {"closing-quote", 6u}}) {
    const LoadedTask task =
        load_task(choose_text(selection_of(name), {&*bundled, 1}), tokenizer, nullptr, 0);
    EXPECT_EQ(task.text, (*bundled / kHeldOutFile).string());
    EXPECT_GE(task.prompts.prompts.size(), least) << name;
    EXPECT_EQ(fit_json(task.prompts)["text_used_up"], true);
  }
}

TEST(LoadTask, DrawsFromTheTextAndRefusesOneThatHasNoPart) {
  const ScratchFolder folder;
  TaskSelection selection = selection_of("agreement-in-text");
  selection.text = folder.path() / "text.txt";
  std::ofstream(selection.text) << "The books on the table were old.";
  const Tokenizer tokenizer = Tokenizer::from_folder(golden_folder() / "bpe-8k");
  const LoadedTask task = load_task(selection, tokenizer, nullptr, 0);
  ASSERT_EQ(task.prompts.prompts.size(), 1u);
  EXPECT_EQ(task.prompts.prompts[0].text.answers[0], " were");
  EXPECT_EQ(task.text, selection.text.string());
  EXPECT_EQ(text_json(task), task.text);
  selection.name = "ioi";
  EXPECT_THROW(load_task(selection, tokenizer, nullptr, 0), RequestError);
  selection.text.clear();
  EXPECT_TRUE(text_json(load_task(selection, tokenizer, nullptr, 0)).is_null());
}

}  // namespace
}  // namespace filigree::study
