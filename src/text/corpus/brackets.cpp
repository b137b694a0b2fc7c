// Bracket matching: nested brackets of three kinds; the answer is a closing one.
//
//   ( [ { } ] ( ) )
//
// Held out: whole strings.
#include <vector>

#include "text/corpus/compose.h"
#include "text/corpus/corpus_tasks.h"
#include "text/corpus/words.h"

namespace filigree::corpus {
namespace {

constexpr std::string_view kOpen = "([{";
constexpr std::string_view kClose = ")]}";
constexpr std::size_t kMaxDepth = 5;

constexpr std::string_view kLeads[] = {"",
                                       "",
                                       "",
                                       "Balanced: ",
                                       "Brackets: ",
                                       "Check: ",
                                       "A balanced line: ",
                                       "Close every bracket: "};

// How the symbols are written.
enum class Spacing { kNone, kSpaces, kWords };

}  // namespace

TaskExample draw_brackets(Random& random) {
  const auto spacing = static_cast<Spacing>(random.below(3));
  const int pairs = pick_number(random, 4, 10);
  std::string text(pick(random, kLeads));
  std::vector<std::size_t> open;         // kinds, innermost last
  std::vector<std::size_t> close_place;  // in `text`, of every closing bracket
  int opened = 0;
  bool first = true;
  while (opened < pairs || !open.empty()) {
    // Words stand between the symbols, so the bracket has to be remembered across them.
    if (!first && spacing != Spacing::kNone) text += ' ';
    if (spacing == Spacing::kWords && random.below(3) == 0) {
      text += pick(random, plain_words());
      text += ' ';
    }
    first = false;
    const bool may_open = opened < pairs && open.size() < kMaxDepth;
    if (may_open && (open.empty() || coin(random))) {
      open.push_back(static_cast<std::size_t>(random.below(kOpen.size())));
      text += kOpen[open.back()];
      ++opened;
    } else {
      close_place.push_back(text.size());
      text += kClose[open.back()];
      open.pop_back();
    }
  }
  TaskExample example;
  const std::size_t place = pick(random, std::span<const std::size_t>(close_place));
  const bool space = place > 0 && text[place - 1] == ' ';
  example.prompt = text.substr(0, place - (space ? 1 : 0));
  example.answer = text.substr(example.prompt.size(), place + 1 - example.prompt.size());
  example.text = text;
  for (const char close : kClose)
    if (close != text[place]) example.wrong.push_back((space ? " " : "") + std::string(1, close));
  example.combination = text;
  return example;
}

}  // namespace filigree::corpus
