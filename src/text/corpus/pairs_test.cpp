// Pairs: the corrupt prompt differs from the clean one in exactly what decides the answer.
#include <algorithm>
#include <functional>
#include <map>
#include <regex>
#include <set>

#include "filigree/data.h"
#include "text/corpus/words.h"
#include "text/text_test_support.h"

namespace filigree::corpus {
namespace {

using Draw = std::function<TaskPair(Random&)>;

constexpr int kPairs = 500;

void for_pairs(const Draw& draw, const std::function<void(const TaskPair&)>& check) {
  Random random(5);
  for (int i = 0; i < kPairs; ++i) {
    const TaskPair pair = draw(random);
    SCOPED_TRACE(pair.clean.prompt + " | " + pair.corrupt);
    EXPECT_NE(pair.clean.prompt, pair.corrupt);
    EXPECT_FALSE(pair.clean.wrong.empty());
    EXPECT_EQ(std::count(pair.clean.wrong.begin(), pair.clean.wrong.end(), pair.clean.answer), 0);
    EXPECT_TRUE(pair.clean.text.starts_with(pair.clean.prompt + pair.clean.answer));
    EXPECT_FALSE(pair.clean.combination.empty());
    check(pair);
  }
}

// Words of the one that the other has not, each where they stand.
std::vector<std::pair<std::string, std::string>> changes(const std::string& a,
                                                         const std::string& b) {
  const std::regex word("[A-Za-z0-9']+");
  std::vector<std::pair<std::string, std::string>> list;
  auto i = std::sregex_iterator(a.begin(), a.end(), word);
  auto j = std::sregex_iterator(b.begin(), b.end(), word);
  for (; i != std::sregex_iterator() && j != std::sregex_iterator(); ++i, ++j)
    if (i->str() != j->str()) list.emplace_back(i->str(), j->str());
  EXPECT_TRUE(i == std::sregex_iterator() && j == std::sregex_iterator());
  return list;
}

TEST(IndirectObjectPairs, AThirdPersonGives) {
  for_pairs(
      [](Random& r) {
        return pair_indirect_object(r, NameOrder::kEither, GiverChange::kThirdPerson);
      },
      [](const TaskPair& pair) {
        const auto changed = changes(pair.clean.prompt, pair.corrupt);
        ASSERT_EQ(changed.size(), 1u);
        EXPECT_EQ(" " + changed[0].first, pair.clean.wrong[0]);
        EXPECT_EQ(pair.clean.prompt.find(changed[0].second + " "), std::string::npos);
      });
}

TEST(IndirectObjectPairs, TheOtherOneGivesAndTheOrderIsTheOneAskedFor) {
  for (const NameOrder order : {NameOrder::kAbba, NameOrder::kBaba})
    for_pairs([&](Random& r) { return pair_indirect_object(r, order, GiverChange::kExchanged); },
              [&](const TaskPair& pair) {
                const auto changed = changes(pair.clean.prompt, pair.corrupt);
                ASSERT_EQ(changed.size(), 1u);
                EXPECT_EQ(" " + changed[0].first, pair.clean.wrong[0]);
                EXPECT_EQ(" " + changed[0].second, pair.clean.answer);
                const bool receiver_first =
                    pair.clean.prompt.find(pair.clean.answer.substr(1) + " ") <
                    pair.clean.prompt.find(pair.clean.wrong[0].substr(1) + " ");
                EXPECT_EQ(receiver_first, order == NameOrder::kAbba);
              });
}

TEST(IndirectObjectPairs, AllNamesAreOthers) {
  for_pairs(
      [](Random& r) {
        return pair_indirect_object(r, NameOrder::kEither, GiverChange::kOtherNames);
      },
      [](const TaskPair& pair) {
        const auto changed = changes(pair.clean.prompt, pair.corrupt);
        ASSERT_EQ(changed.size(), 3u);
        std::set<std::string> before, after;
        for (const auto& [from, to] : changed) before.insert(from), after.insert(to);
        EXPECT_EQ(before.size(), 2u);
        EXPECT_EQ(after.size(), 3u);
        for (const std::string& name : after) EXPECT_FALSE(before.contains(name));
      });
}

TEST(GreaterThanPairs, AllYearsAreSortedByTheCleanOne) {
  for (const YearChange change : {YearChange::kFirstYear, YearChange::kOtherYear})
    for_pairs([&](Random& r) { return pair_greater_than(r, change); },
              [&](const TaskPair& pair) {
                const auto changed = changes(pair.clean.prompt, pair.corrupt);
                ASSERT_EQ(changed.size(), 1u);
                const std::string begin = changed[0].first.substr(2);
                EXPECT_EQ(changed[0].second.substr(2) == "01", change == YearChange::kFirstYear);
                EXPECT_EQ(changed[0].second.substr(0, 2), changed[0].first.substr(0, 2));
                EXPECT_EQ(pair.clean.wrong.size() + pair.clean.also_right.size() + 1, 100u);
                for (const std::string& year : pair.clean.wrong) EXPECT_LE(year, begin);
                for (const std::string& year : pair.clean.also_right) EXPECT_GT(year, begin);
                EXPECT_GT(pair.clean.answer, begin);
              });
}

TEST(PronounPairs, TheNameHasTheOtherGender) {
  for_pairs(pair_pronoun, [](const TaskPair& pair) {
    const auto changed = changes(pair.clean.prompt, pair.corrupt);
    ASSERT_EQ(changed.size(), 1u);
    const auto male = [](const std::string& name) {
      return std::ranges::count(male_names(), name) > 0;
    };
    EXPECT_NE(male(changed[0].first), male(changed[0].second));
    EXPECT_EQ(pair.clean.answer.starts_with(" h") && pair.clean.answer != " her" &&
                  pair.clean.answer != " herself",
              male(changed[0].first));
  });
}

TEST(AgreementPairs, TheSubjectHasTheOtherNumber) {
  for_pairs(pair_agreement, [](const TaskPair& pair) {
    const auto changed = changes(pair.clean.prompt, pair.corrupt);
    ASSERT_EQ(changed.size(), 1u);
    EXPECT_EQ(changed[0].first[0], changed[0].second[0]);  // key, keys; man, men; knife, knives
    ASSERT_EQ(pair.clean.wrong.size(), 1u);
  });
}

TEST(AdditionPairs, TheWrongAnswerIsTheSumOfTheCorruptPrompt) {
  for_pairs(pair_addition, [](const TaskPair& pair) {
    const auto changed = changes(pair.clean.prompt, pair.corrupt);
    ASSERT_EQ(changed.size(), 1u);
    EXPECT_EQ(std::stoi(pair.clean.answer) - std::stoi(pair.clean.wrong[0]),
              std::stoi(changed[0].first) - std::stoi(changed[0].second));
  });
}

TEST(AntonymAndCapitalPairs, TheWrongAnswerIsThatOfTheCorruptPrompt) {
  for (const auto& [draw, name] : {std::pair<Draw, const char*>{pair_antonym, "antonym"},
                                   std::pair<Draw, const char*>{pair_capital, "capital"}}) {
    const char* const task = name;
    // The corrupt prompt with its answer is an example of the task like any other: collected from
    // clean prompts, they agree.
    std::map<std::string, std::string> answers;
    for_pairs(draw, [&](const TaskPair& pair) { answers[pair.clean.prompt] = pair.clean.answer; });
    int known = 0;
    for_pairs(draw, [&](const TaskPair& pair) {
      const auto found = answers.find(pair.corrupt);
      if (found == answers.end()) return;
      ++known;
      EXPECT_EQ(found->second, pair.clean.wrong[0]) << task;
    });
    EXPECT_GT(known, 0) << task;
  }
}

TEST(CopyPairs, OneWordOrAllOfTheFirstListAreOthers) {
  for_pairs([](Random& r) { return pair_copy(r, CopyChange::kOneWord); },
            [](const TaskPair& pair) {
              const auto changed = changes(pair.clean.prompt, pair.corrupt);
              ASSERT_EQ(changed.size(), 1u);
              EXPECT_TRUE(pair.clean.answer.ends_with(changed[0].first));
              EXPECT_TRUE(pair.clean.wrong[0].ends_with(changed[0].second));
            });
  for_pairs([](Random& r) { return pair_copy(r, CopyChange::kAllWords); },
            [](const TaskPair& pair) {
              const auto changed = changes(pair.clean.prompt, pair.corrupt);
              EXPECT_EQ(changed.size(), pair.clean.wrong.size() + 1);
            });
}

TEST(DocstringPairs, OneArgumentOrAllOfTheSignatureAreOthers) {
  for_pairs([](Random& r) { return pair_docstring(r, ArgumentChange::kOneArgument); },
            [](const TaskPair& pair) {
              const auto changed = changes(pair.clean.prompt, pair.corrupt);
              ASSERT_EQ(changed.size(), 1u);
              EXPECT_TRUE(pair.clean.answer.ends_with(changed[0].first));
              EXPECT_TRUE(pair.clean.wrong[0].ends_with(changed[0].second));
            });
  for_pairs([](Random& r) { return pair_docstring(r, ArgumentChange::kAllArguments); },
            [](const TaskPair& pair) {
              EXPECT_EQ(changes(pair.clean.prompt, pair.corrupt).size(),
                        pair.clean.wrong.size() + 1);
            });
}

// The stretches of the clean prompt under each role.
std::multimap<std::string, std::string> roles_of(const TaskPair& pair) {
  std::multimap<std::string, std::string> roles;
  std::size_t last = 0;
  for (const RoleSpan& span : pair.clean.roles) {
    EXPECT_LT(span.begin, span.end);
    EXPECT_LE(last, span.begin) << "in the order of the prompt";
    EXPECT_LE(span.end, pair.clean.prompt.size());
    last = span.end;
    roles.emplace(span.role, pair.clean.prompt.substr(span.begin, span.end - span.begin));
  }
  return roles;
}

std::string without_space(const std::string& text) {
  return text.starts_with(' ') ? text.substr(1) : text;
}

TEST(Roles, OfTheIndirectObjectAreThePeople) {
  for (const NameOrder order : {NameOrder::kAbba, NameOrder::kBaba})
    for_pairs([&](Random& r) { return pair_indirect_object(r, order, GiverChange::kOtherNames); },
              [&](const TaskPair& pair) {
                const auto roles = roles_of(pair);
                ASSERT_EQ(roles.size(), 3u);
                EXPECT_EQ(roles.find("IO")->second, without_space(pair.clean.answer));
                EXPECT_EQ(roles.find("S1")->second, without_space(pair.clean.wrong[0]));
                EXPECT_EQ(roles.find("S2")->second, roles.find("S1")->second);
                const bool receiver_first = pair.clean.roles[0].role == "IO";
                EXPECT_EQ(receiver_first, order == NameOrder::kAbba);
                EXPECT_EQ(pair.clean.roles[2].role, "S2");
              });
}

TEST(Roles, OfYearsAreTheCenturyAndTheYear) {
  for_pairs([](Random& r) { return pair_greater_than(r, YearChange::kFirstYear); },
            [](const TaskPair& pair) {
              const auto roles = roles_of(pair);
              ASSERT_EQ(roles.count("XX"), 2u);  // the second ends the prompt
              ASSERT_EQ(roles.count("YY"), 1u);
              EXPECT_EQ(roles.find("XX")->second + roles.find("YY")->second,
                        pair.clean.combination);
              EXPECT_EQ(pair.clean.roles[2].end, pair.clean.prompt.size());
            });
}

TEST(Roles, OfCopiesAreTheAnswerAndTheWordBeforeIt) {
  for_pairs([](Random& r) { return pair_copy(r, CopyChange::kOneWord); },
            [](const TaskPair& pair) {
              const auto roles = roles_of(pair);
              ASSERT_EQ(roles.size(), 2u);
              EXPECT_EQ(roles.find("B1")->second, without_space(pair.clean.answer));
              // The same word stands where the answer is asked for, up to the separator.
              const std::string& before = roles.find("A1")->second;
              const std::size_t again = pair.clean.prompt.rfind(before);
              ASSERT_NE(again, std::string::npos);
              EXPECT_GT(again, pair.clean.roles[1].end);
              EXPECT_LE(pair.clean.prompt.size() - again, before.size() + 2);
            });
}

TEST(Roles, OfDocumentationAreTheArgumentAndTheOneBefore) {
  int with_one_before = 0;
  for_pairs([](Random& r) { return pair_docstring(r, ArgumentChange::kOneArgument); },
            [&](const TaskPair& pair) {
              const auto roles = roles_of(pair);
              ASSERT_EQ(roles.count("C_def"), 1u);
              EXPECT_EQ(roles.find("C_def")->second, without_space(pair.clean.answer));
              ASSERT_EQ(roles.count("B_def"), roles.count("B_doc"));
              if (roles.count("B_def") == 0) return;
              ++with_one_before;
              EXPECT_EQ(roles.find("B_def")->second, roles.find("B_doc")->second);
              EXPECT_EQ(
                  roles.find("B_def")->second + ", " + roles.find("C_def")->second,
                  pair.clean.prompt.substr(pair.clean.roles[0].begin,
                                           pair.clean.roles[1].end - pair.clean.roles[0].begin));
            });
  EXPECT_GT(with_one_before, kPairs / 2);
}

TEST(Roles, OfTheOthersAreWhatTheCorruptPromptChanges) {
  const std::map<std::string, Draw> tasks = {{"NAME", pair_pronoun},
                                             {"SUBJECT", pair_agreement},
                                             {"WORD", pair_antonym},
                                             {"COUNTRY", pair_capital},
                                             {"B", pair_addition}};
  for (const auto& task : tasks) {
    const std::string& role = task.first;
    for_pairs(task.second, [&](const TaskPair& pair) {
      const auto roles = roles_of(pair);
      ASSERT_GE(roles.count(role), 1u) << role;
      // Up to the first of that role both prompts are the same, but for a capital or an article
      // that follows it.
      const auto span = std::find_if(pair.clean.roles.begin(), pair.clean.roles.end(),
                                     [&](const RoleSpan& one) { return one.role == role; });
      EXPECT_EQ(pair.clean.prompt.substr(0, span->begin), pair.corrupt.substr(0, span->begin));
      EXPECT_NE(pair.clean.prompt.substr(span->begin), pair.corrupt.substr(span->begin));
    });
  }
}

}  // namespace
}  // namespace filigree::corpus
