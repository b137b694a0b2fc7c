// Options that messages of the sources name: each must be one that a command has, with the value
// that the message shows behind it.
#include <CLI/CLI.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "apps/cli/commands.h"
#include "apps/cli/program/program.h"
#include "support/files.h"

namespace filigree::cli {
namespace {

namespace fs = std::filesystem;

// Of other programs, which messages name too.
const std::set<std::string> kOfOthers = {"bind-to"};  // mpirun

// The texts between quotes, those that follow each other as one; comments are left out.
std::vector<std::string> texts_of(const std::string& source) {
  std::vector<std::string> texts;
  bool adjacent = false;
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source.compare(i, 2, "//") == 0) {
      i = std::min(source.find('\n', i), source.size());
    } else if (source[i] == '\'') {  // a character, or the mark in a long number
      if (source.compare(i + 1, 1, "\\") == 0)
        i += 3;
      else if (source.compare(i + 2, 1, "'") == 0)
        i += 2;
    } else if (source[i] == '"') {
      std::string text;
      for (++i; i < source.size() && source[i] != '"'; ++i) {
        if (source[i] == '\\') text += source[i++];
        text += source[i];
      }
      if (adjacent)
        texts.back() += text;
      else
        texts.push_back(text);
      adjacent = true;
    } else if (std::isspace(static_cast<unsigned char>(source[i])) == 0) {
      adjacent = false;
    }
  }
  return texts;
}

class OptionNamesTest : public ::testing::Test {
 protected:
  OptionNamesTest() {
    add_all_commands(program_);
    for (const CLI::App* command : program_.commands())
      for (const CLI::Option* option : command->get_options())
        for (const std::string& name : option->get_lnames())
          labels_[name].insert(option->get_type_name());
    for (const CLI::Option* option : program_.app().get_options())
      for (const std::string& name : option->get_lnames()) labels_[name].insert("");
  }

  // What is wrong with the options that a text names.
  std::vector<std::string> problems(const std::string& text) const {
    static const std::regex named(R"((^|[^\w-])--([a-z][a-z0-9]*(?:-[a-z0-9]+)*)( [A-Z]{2,})?)");
    std::vector<std::string> found;
    for (auto at = std::sregex_iterator(text.begin(), text.end(), named);
         at != std::sregex_iterator(); ++at) {
      const std::string name = (*at)[2], label = (*at)[3];
      if (kOfOthers.contains(name)) continue;
      const auto known = labels_.find(name);
      if (known == labels_.end())
        found.push_back("no command has --" + name);
      else if (!label.empty() && !takes(known->second, label.substr(1)))
        found.push_back("no command's --" + name + " takes " + label.substr(1));
    }
    return found;
  }

  Program program_;
  std::map<std::string, std::set<std::string>> labels_;  // of each option, what its values are

 private:
  static bool takes(const std::set<std::string>& labels, const std::string& label) {
    return std::any_of(labels.begin(), labels.end(), [&](const std::string& one) {
      return one.find(label) != std::string::npos;
    });
  }
};

TEST_F(OptionNamesTest, ThisTestFindsWhatIsWrong) {
  EXPECT_THAT(texts_of("f(\"a\" // \"no\"\n  \"b\", '\"', \"c\\\"d\", 1'000)"),
              ::testing::ElementsAre("ab", "c\\\"d"));
  EXPECT_THAT(problems("give --prompts FILE or --text FILE"),
              ::testing::ElementsAre("no command's --prompts takes FILE"));
  EXPECT_THAT(problems("leave out --no-such-option"),
              ::testing::ElementsAre("no command has --no-such-option"));
  EXPECT_THAT(problems("a -- b, --out DIR, mpirun --bind-to none"), ::testing::IsEmpty());
}

TEST_F(OptionNamesTest, MessagesNameOptionsThatThereAre) {
  std::size_t files = 0;
  for (const char* folder : {"src", "apps"})
    for (const fs::directory_entry& item :
         fs::recursive_directory_iterator(fs::path(FILIGREE_SOURCE_DIR) / folder)) {
      const std::string name = item.path().string();
      // Pages are full of CSS, whose variables look like options.
      const bool page = name.find("/src/report/") != std::string::npos;
      const std::string ending = item.path().extension().string();
      if (page || (ending != ".cpp" && ending != ".h") ||
          name.find("_test.") != std::string::npos || name.find("/tests/") != std::string::npos)
        continue;
      ++files;
      for (const std::string& text : texts_of(read_file(item.path())))
        for (const std::string& problem : problems(text))
          ADD_FAILURE() << name << ": " << problem << ", in \"" << text << "\"";
    }
  EXPECT_GT(files, 500u);
}

}  // namespace
}  // namespace filigree::cli
