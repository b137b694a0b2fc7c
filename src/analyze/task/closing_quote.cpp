// A quotation to be closed. In the corrupt passage there is no opening quote: a word of as many
// tokens begins the sentence instead, and the text goes on without a quotation.
//
// Where the tokenizer has the punctuation and the quote in one token (,") the passage ends before
// both, and the punctuation alone is wrong; where it cuts them apart the passage ends between them,
// and what would begin the next sentence or clause is wrong.
#include <algorithm>
#include <array>
#include <memory>
#include <optional>

#include "analyze/task/text_passages.h"
#include "analyze/task/text_tasks.h"

namespace filigree {
namespace {

constexpr std::size_t kLeastQuotedWords = 3, kMostQuotedWords = 40;
constexpr std::size_t kLeastWordsBefore = 2;
constexpr std::size_t kMostTokensChanged = 6;  // the quote and the first word

struct QuoteMarks {
  std::string_view opening, closing;
};
constexpr QuoteMarks kQuoteMarks[] = {{"\"", "\""}, {"\u201c", "\u201d"}};

// Of several words too: a curly quote may be three tokens.
constexpr std::string_view kConnectors[] = {"So",          "And",         "But",         "Now",
                                            "Then",        "Yet",         "And now",     "But now",
                                            "So then",     "And then",    "And yet",     "But then",
                                            "And even so", "But even so", "And just now"};

struct QuoteSite {
  const TextDocument* document = nullptr;
  const QuoteMarks* marks = nullptr;
  std::size_t begin = 0, opening = 0, punctuation = 0;  // bytes
  bool within = false;                                  // of a sentence: he said, "..."
};

bool has_quote(std::string_view text) {
  return text.find('"') != std::string_view::npos ||
         text.find("\u201c") != std::string_view::npos ||
         text.find("\u201d") != std::string_view::npos;
}

// The quotation that opens before word `first`, if there is a whole one with enough before it.
void add_quote_site(const TextDocument& document, std::size_t first,
                    std::vector<QuoteSite>& sites) {
  const std::string_view text = document.text, before = document.before(first);
  for (const QuoteMarks& marks : kQuoteMarks) {
    if (!before.ends_with(marks.opening)) continue;
    const std::size_t opening = document.words[first].begin - marks.opening.size();
    if (opening == 0 || (text[opening - 1] != ' ' && text[opening - 1] != '\n')) continue;
    // The end: one mark of punctuation and the quote after a word.
    std::size_t last = first;
    while (last + 1 < document.words.size() && last - first < kMostQuotedWords &&
           !has_quote(document.before(last + 1)))
      ++last;
    if (last - first + 1 < kLeastQuotedWords) return;
    const std::size_t punctuation = document.words[last].end;
    if (punctuation >= text.size() ||
        std::string_view(",.!?").find(text[punctuation]) == std::string_view::npos ||
        !text.substr(punctuation + 1).starts_with(marks.closing))
      return;
    const std::size_t end = punctuation + 1 + marks.closing.size();
    if (end < text.size() && text[end] != ' ' && text[end] != '\n') return;
    if (text.substr(opening, punctuation - opening).find("\n\n") != std::string_view::npos) return;
    // The sentence before, as far as there is no other quotation in it.
    std::size_t begin = first;
    while (begin > 0 &&
           document.words[first].begin - document.words[begin].begin <= kMostPassageBytes &&
           (begin == first ||
            (!document.words[begin].begins_sentence && !has_quote(document.before(begin)))))
      --begin;
    // A sentence goes on after a quotation: with its space, as the words of a line are cut.
    std::size_t start = document.words[begin].begin;
    if (!document.words[begin].begins_sentence && document.before(begin).ends_with(" ")) --start;
    if (first - begin < kLeastWordsBefore || punctuation - start > kMostPassageBytes ||
        has_quote(text.substr(start, opening - start)))
      return;
    sites.push_back(
        {&document, &marks, start, opening, punctuation, !document.words[first].begins_sentence});
    return;
  }
}

std::vector<QuoteSite> quote_sites(const TaskText& text) {
  std::vector<QuoteSite> sites;
  for (const TextDocument& document : text.documents)
    for (std::size_t i = 1; i < document.words.size(); ++i) add_quote_site(document, i, sites);
  return sites;
}

// The quotation without its opening quote, behind a word that a sentence may begin with; nothing
// where that word is already there. The first word loses its capital unless it is a name.
std::optional<std::string> without_quote(const std::string& prompt, const QuoteSite& site,
                                         std::string_view connector,
                                         const WordFrequencies& counts) {
  const std::size_t opening = site.opening - site.begin;
  std::string rest = prompt.substr(opening + site.marks->opening.size());
  const std::size_t end = std::min(rest.find_first_of(" \n.,;:!?"), rest.size());
  const std::string first = rest.substr(0, end), small = in_small_letters(first);
  if (small == in_small_letters(connector)) return std::nullopt;
  if (counts.contains(small) && first != "I") rest.replace(0, end, small);
  return prompt.substr(0, opening) +
         (site.within ? in_small_letters(connector) : std::string(connector)) + " " + rest;
}

TaskPair quote_pair(const QuoteSite& site, const WordFrequencies& counts,
                    const Tokenizer& tokenizer, Random& random) {
  const std::string& text = site.document->text;
  const std::string punctuation(1, text[site.punctuation]), closing(site.marks->closing);
  const std::size_t opening = site.opening - site.begin;
  TaskPair pair;
  pair.clean.prompt = text.substr(site.begin, site.punctuation - site.begin);
  if (tokenizer.encode(punctuation + closing).size() == 1) {
    pair.clean.answer = punctuation + closing;
    pair.clean.wrong = {punctuation};
  } else {
    pair.clean.prompt += punctuation;
    pair.clean.answer = closing;
    if (punctuation == ",")
      pair.clean.wrong = {" and", " but", " the", " or", " which"};
    else
      pair.clean.wrong = {" The", " He", " It", " She", " They", " In"};
  }
  pair.clean.text = pair.clean.prompt + pair.clean.answer;
  pair.clean.roles = {{"QUOTE", opening, opening + site.marks->opening.size()}};
  std::array<std::string_view, std::size(kConnectors)> connectors;
  std::copy(std::begin(kConnectors), std::end(kConnectors), connectors.begin());
  for (std::size_t left = connectors.size(); left > 0; --left) {
    std::swap(connectors[static_cast<std::size_t>(random.below(left))], connectors[left - 1]);
    const std::optional<std::string> corrupt =
        without_quote(pair.clean.prompt, site, connectors[left - 1], counts);
    if (!corrupt || !stand_side_by_side(tokenizer, pair.clean.prompt, *corrupt, kMostTokensChanged))
      continue;
    pair.corrupt = *corrupt;
    return pair;
  }
  // A tokenizer of single bytes has no such word; a dash opens no quotation either.
  pair.corrupt = pair.clean.prompt;
  pair.corrupt.replace(opening, site.marks->opening.size(), "-");
  return pair;
}

}  // namespace

DrawPair closing_quote_draw(const TaskMaterial& material) {
  const auto counts = std::make_shared<WordFrequencies>(count_words(*material.text));
  return draw_each<QuoteSite>(quote_sites(*material.text),
                              [counts, material](const QuoteSite& site, Random& random) {
                                return quote_pair(site, *counts, material.tokenizer, random);
                              });
}

}  // namespace filigree
