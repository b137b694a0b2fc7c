// Which text a task is drawn from when none is named.
#include "filigree/study/circuits/task_selection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "filigree/base/error.h"
#include "filigree/base/scratch_folder.h"
#include "filigree/study/model_places.h"
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
  const auto bundled = find_named_model(kBundledDense);
  ASSERT_TRUE(bundled);
  EXPECT_EQ(choose_text(selection_of("returning-word"), std::span(folders).first(1)).text,
            *bundled / kHeldOutFile);
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
