// A verb in the number of its subject, with a phrase or a clause between the two. In the corrupt
// passage the subject has the other number, or is another subject of the text in that number.
//
// The rule: a sentence, a clause after a word such as "that", or what follows the phrase that a
// sentence opens with ("In October, ...") begins with an article or possessive and one or two
// words; then a preposition or a relative pronoun, some words, and the first of is, are, was, were,
// has, have. The word before the preposition must have the number of the verb. What would make
// another word the subject (and, a pronoun, a second clause) is refused.
#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>

#include "analyze/task/text_passages.h"
#include "analyze/task/text_tasks.h"

namespace filigree {
namespace {

constexpr std::size_t kMostNounWords = 2;  // "old man"
constexpr std::size_t kLeastBetweenWords = 2, kMostBetweenWords = 12;
constexpr std::size_t kMostOpeningWords = 10;

struct VerbForms {
  std::string_view singular, plural;
};
constexpr VerbForms kAgreeingVerbs[] = {{"is", "are"}, {"was", "were"}, {"has", "have"}};

constexpr std::string_view kDeterminers[] = {"the", "his",  "her", "their",
                                             "its", "your", "our", "my"};
constexpr std::string_view kPrepositions[] = {
    "of",      "in",     "on",    "at",     "with",   "from",    "for",  "between", "near",
    "by",      "behind", "about", "under",  "over",   "against", "to",   "around",  "along",
    "through", "beside", "above", "beyond", "within", "without", "into", "upon",    "across"};
constexpr std::string_view kRelatives[] = {"who", "which", "that"};
// After these a clause begins.
constexpr std::string_view kClauseOpeners[] = {"that",  "because",  "when",   "if",  "while",
                                               "since", "although", "though", "but", "until"};
// Besides prepositions and clause openers, what a sentence may open with before a comma.
constexpr std::string_view kSentenceOpeners[] = {"after",   "before", "during", "despite", "as",
                                                 "besides", "once",   "where",  "unless"};
constexpr std::string_view kDemonstratives[] = {"this", "that", "these", "those"};
// Between subject and verb they may make another word the subject, or the verb one of no number.
constexpr std::string_view kRefusedBetween[] = {
    "and",  "or",    "nor",  "but",   "he",   "she",   "it",      "they",   "we",    "i",     "you",
    "who",  "that",  "what", "when",  "if",   "this",  "these",   "those",  "there", "which", "as",
    "than", "one",   "all",  "some",  "many", "most",  "because", "while",  "where", "both",  "not",
    "can",  "could", "may",  "might", "must", "shall", "will",    "should", "would", "did",   "do"};
constexpr VerbForms kIrregularNouns[] = {
    {"man", "men"},     {"woman", "women"}, {"child", "children"}, {"foot", "feet"},
    {"life", "lives"},  {"wife", "wives"},  {"knife", "knives"},   {"leaf", "leaves"},
    {"half", "halves"}, {"wolf", "wolves"}, {"person", "people"},  {"tooth", "teeth"},
    {"bus", "buses"},   {"hero", "heroes"}};

bool is_one_of(std::span<const std::string_view> list, std::string_view word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

bool ends_with_any(std::string_view word, std::initializer_list<std::string_view> endings) {
  return std::any_of(endings.begin(), endings.end(),
                     [&](std::string_view ending) { return word.ends_with(ending); });
}

bool consonant_y(std::string_view word) {
  return word.size() > 2 && word.back() == 'y' &&
         std::string_view("aeiou").find(word[word.size() - 2]) == std::string_view::npos;
}

// The noun in the other number; nothing where its form is not that of its number, or where the rule
// does not know. `word` in small letters.
std::optional<std::string> other_number(const std::string& word, bool plural) {
  for (const VerbForms& noun : kIrregularNouns) {
    if (word == (plural ? noun.plural : noun.singular))
      return std::string(plural ? noun.singular : noun.plural);
    if (word == (plural ? noun.singular : noun.plural)) return std::nullopt;
  }
  if (word.size() < 3 || word.find_first_of("'-") != std::string::npos) return std::nullopt;
  if (plural) {
    if (word.back() != 's' || ends_with_any(word, {"ss", "us", "is"})) return std::nullopt;
    if (word.size() > 4 && word.ends_with("ies")) return word.substr(0, word.size() - 3) + "y";
    const bool long_ending = ends_with_any(word, {"sses", "xes", "ches", "shes", "zzes"});
    return word.substr(0, word.size() - (long_ending ? 2 : 1));
  }
  if (ends_with_any(word, {"us", "is", "ics"})) return std::nullopt;
  if (ends_with_any(word, {"ss", "x", "ch", "sh", "zz"})) return word + "es";
  if (word.back() == 's') return std::nullopt;
  if (consonant_y(word)) return word.substr(0, word.size() - 1) + "ies";
  return word + "s";
}

struct AgreementSite {
  const TextDocument* document = nullptr;
  std::size_t begin = 0, subject = 0, verb = 0;  // words
  bool plural = false;                           // both of them
  std::string other;                             // the subject in the other number
  std::string_view wrong;                        // the verb in the other number

  std::string noun() const { return std::string(document->word(subject)); }
};

// Whether word i follows what a sentence opens with: "However, the", "In October, the", "For that
// reason the". Another comma would make it a list.
bool follows_opening(const TextDocument& document, std::size_t i) {
  const bool comma = document.before(i) == ", ";
  if (!comma && document.before(i) != " ") return false;
  std::size_t first = i - 1;
  for (; !document.words[first].begins_sentence; --first)
    if (i - first == kMostOpeningWords || document.before(first) != " ") return false;
  const std::string opener = in_small_letters(document.word(first));
  if (!comma)
    return i - first == 3 && is_one_of(kPrepositions, opener) &&
           is_one_of(kDemonstratives, document.word(first + 1));
  return i - first == 1 || is_one_of(kPrepositions, opener) || is_one_of(kClauseOpeners, opener) ||
         is_one_of(kSentenceOpeners, opener);
}

bool follows_and(const TextDocument& document, std::size_t i) {
  return i > 1 && document.before(i) == " " && document.word(i - 1) == "and" &&
         document.before(i - 1) == ", ";
}

bool begins_clause(const TextDocument& document, std::size_t i) {
  return document.words[i].begins_sentence ||
         (document.before(i) == " " && is_one_of(kClauseOpeners, document.word(i - 1))) ||
         follows_and(document, i) || follows_opening(document, i);
}

// The site of a clause that begins with word `start`, its determiner.
std::optional<AgreementSite> agreement_at(const TextDocument& document, std::size_t start) {
  const std::size_t count = document.words.size();
  const auto follows = [&](std::size_t i) { return i < count && document.before(i) == " "; };
  const auto after_comma = [&](std::size_t i) { return i < count && document.before(i) == ", "; };
  std::size_t link = start + 1;  // the word after the noun
  while (follows(link) && link - start <= kMostNounWords &&
         !is_one_of(kPrepositions, document.word(link)) &&
         !is_one_of(kRelatives, document.word(link)))
    ++link;
  if (link - start < 2 || link >= count) return std::nullopt;
  const bool relative = is_one_of(kRelatives, document.word(link));
  // "the report shows that": a verb and what it says.
  if (relative && document.word(link) == "that" && link - start > 2) return std::nullopt;
  const bool set_off = relative && after_comma(link);  // "the house, which ..., was"
  if (!set_off && (!follows(link) || (!relative && !is_one_of(kPrepositions, document.word(link)))))
    return std::nullopt;
  // "who the king met": what comes next would be the subject of the clause's own verb.
  if (relative && (!follows(link + 1) || is_one_of(kDeterminers, document.word(link + 1)) ||
                   is_one_of(kRefusedBetween, in_small_letters(document.word(link + 1)))))
    return std::nullopt;
  for (std::size_t i = link + 1; i < count && i - link <= kMostBetweenWords; ++i) {
    if (!follows(i) && !(set_off && after_comma(i))) return std::nullopt;
    const std::string word = in_small_letters(document.word(i));
    if (is_one_of(kRefusedBetween, word)) return std::nullopt;
    for (const VerbForms& verb : kAgreeingVerbs) {
      if (word != verb.singular && word != verb.plural) continue;
      if (i - link < kLeastBetweenWords || after_comma(i) != set_off ||
          document.word(i - 1) == "to")
        return std::nullopt;
      const bool plural = word == verb.plural;
      const std::string noun(document.word(link - 1));
      if (noun != in_small_letters(noun)) return std::nullopt;  // names are of one number
      std::optional<std::string> other = other_number(noun, plural);
      if (!other) return std::nullopt;
      // ", and the men of the house were" may be the end of a longer subject, which is plural.
      if (plural && follows_and(document, start)) return std::nullopt;
      return AgreementSite{&document,
                           0,
                           link - 1,
                           i,
                           plural,
                           std::move(*other),
                           plural ? verb.singular : verb.plural};
    }
    if (set_off && after_comma(i)) return std::nullopt;  // the clause is over, and no verb
  }
  return std::nullopt;
}

std::size_t token_count(const Tokenizer& tokenizer, const std::string& noun) {
  return tokenizer.encode(" " + noun).size();
}

std::vector<AgreementSite> agreement_sites(const TaskMaterial& material) {
  const WordFrequencies counts = count_words(*material.text);
  std::vector<AgreementSite> sites;
  for (const TextDocument& document : material.text->documents)
    for (std::size_t i = 0; i < document.words.size(); ++i) {
      if (!is_one_of(kDeterminers, in_small_letters(document.word(i))) ||
          !begins_clause(document, i))
        continue;
      std::optional<AgreementSite> site = agreement_at(document, i);
      if (!site) continue;
      // What neither the text nor the vocabulary has in two numbers may be no noun ("controlleds").
      if (!counts.contains(site->other) && token_count(material.tokenizer, site->other) > 1)
        continue;
      const std::optional<std::size_t> begin = document.passage_begin(i, site->verb);
      if (!begin) continue;
      site->begin = *begin;
      sites.push_back(std::move(*site));
    }
  return sites;
}

TaskPair agreement_pair(const AgreementSite& site, const std::string& other) {
  const TextDocument& document = *site.document;
  const std::size_t begin = document.words[site.begin].begin,
                    end = document.words[site.verb].begin - 1;  // before the space
  const std::size_t at = document.words[site.subject].begin - begin,
                    length = document.word(site.subject).size();
  TaskPair pair;
  pair.clean.prompt = document.text.substr(begin, end - begin);
  pair.clean.answer = " " + std::string(document.word(site.verb));
  pair.clean.text = pair.clean.prompt + pair.clean.answer;
  pair.clean.wrong = {" " + std::string(site.wrong)};
  pair.clean.roles = {{"SUBJECT", at, at + length}};
  pair.corrupt = pair.clean.prompt;
  pair.corrupt.replace(at, length, other);
  return pair;
}

// Subjects by whether they are plural, and by how many tokens.
using Nouns = std::map<std::pair<bool, std::size_t>, std::set<std::string>>;

// Without another noun that fits it is its own in the other number, which may not fit either.
TaskPair other_noun_pair(const AgreementSite& site, const Nouns& nouns, const Tokenizer& tokenizer,
                         Random& random) {
  const std::size_t tokens = token_count(tokenizer, site.noun());
  const auto found = nouns.find({!site.plural, tokens});
  if (found == nouns.end()) return agreement_pair(site, site.other);
  std::vector<std::string> others(found->second.begin(), found->second.end());
  for (std::size_t left = others.size(); left > 0; --left) {
    std::swap(others[static_cast<std::size_t>(random.below(left))], others[left - 1]);
    TaskPair pair = agreement_pair(site, others[left - 1]);
    if (stand_side_by_side(tokenizer, pair.clean.prompt, pair.corrupt, tokens)) return pair;
  }
  return agreement_pair(site, site.other);
}

}  // namespace

DrawPair agreement_in_text_draw(const TaskMaterial& material) {
  return draw_each<AgreementSite>(
      agreement_sites(material), [material](const AgreementSite& site, Random&) {
        return asked_where_they_part(agreement_pair(site, site.other), material.tokenizer);
      });
}

DrawPair agreement_other_noun_draw(const TaskMaterial& material) {
  std::vector<AgreementSite> sites = agreement_sites(material);
  const auto nouns = std::make_shared<Nouns>();
  for (const AgreementSite& site : sites)
    (*nouns)[{site.plural, token_count(material.tokenizer, site.noun())}].insert(site.noun());
  return draw_each<AgreementSite>(
      std::move(sites), [nouns, material](const AgreementSite& site, Random& random) {
        return asked_where_they_part(other_noun_pair(site, *nouns, material.tokenizer, random),
                                     material.tokenizer);
      });
}

}  // namespace filigree
