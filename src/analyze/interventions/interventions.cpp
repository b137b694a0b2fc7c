#include "filigree/interventions.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "filigree/error.h"
#include "filigree/names.h"

namespace filigree {
namespace {

constexpr std::size_t kChoicesNamed = 40;  // tokens in a message

[[noreturn]] void wrong_place(std::string_view text) {
  fail(
      "'{}' is no place in a model; write L6H11, L6H*, L7MLP, L3E5, L6H11.q, L6.resid, embedding "
      "or a tap, and @3, @END or @' John' behind it for one position",
      printable(text));
}

std::string_view without_spaces(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

bool take(std::string_view& rest, std::string_view beginning) {
  if (!rest.starts_with(beginning)) return false;
  rest.remove_prefix(beginning.size());
  return true;
}

// All of `text` as a whole number.
std::optional<std::int64_t> whole(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// The number at the start of `rest`, or nothing for a '*' there. Numbers too large for any model
// stay numbers that no model has.
std::optional<std::int64_t> number_or_all(std::string_view& rest, std::string_view place) {
  if (take(rest, "*")) return std::nullopt;
  const auto digits = std::min(rest.find_first_not_of("0123456789"), rest.size());
  if (digits == 0) wrong_place(place);
  const std::optional<std::int64_t> number = whole(rest.substr(0, digits));
  rest.remove_prefix(digits);
  return number.value_or(std::numeric_limits<std::int64_t>::max());
}

// "L6H11", "L6H*", "L6", "L7MLP", "L7 MLP", "L3E5", each with ".site" behind it or not.
void read_part(std::string_view rest, TapPlace& place) {
  rest.remove_prefix(1);
  place.layer = number_or_all(rest, place.text);
  place.site = Site::kZ;
  if (take(rest, "MLP") || take(rest, " MLP")) {
    place.site = Site::kMlpOut;
  } else if (take(rest, "H")) {
    place.head = number_or_all(rest, place.text);
  } else if (take(rest, "E")) {
    place.site = Site::kExpertOut;
    place.expert = number_or_all(rest, place.text);
  }
  if (take(rest, ".")) {
    const std::optional<Site> site = find_name<Site>(rest);
    if (!site || site == Site::kEmbedding || place.site != Site::kZ)
      fail(
          "'{}' is no part of '{}'; there are resid, resid-mid, attn-out, mlp-out and expert-out "
          "of a "
          "layer, and z, q, k, v and pattern of a layer or head",
          printable(rest), printable(place.text));
    if (place.head && !has_heads(*site))
      fail("'{}': {} is of a whole layer, L{}.{}", printable(place.text), name_of(*site),
           *place.layer, name_of(*site));
    place.site = site;
    rest = {};
  }
  if (!rest.empty()) wrong_place(place.text);
  PatchTarget target;
  target.site = *place.site;
  place.tap = tap_name(target);
  if (!place.layer)
    place.tap.replace(place.tap.find('0'), 1, "*");
  else
    place.tap.replace(place.tap.find('0'), 1, std::to_string(*place.layer));
}

// Where a token in quotes that begins at `open` ends: at a quote with nothing of it behind. Tokens
// may hold quotes.
std::size_t closing_quote(std::string_view text, std::size_t open) {
  std::size_t close = text.find('\'', open + 2);
  while (close != std::string_view::npos && close + 1 < text.size() &&
         std::string_view(",=< ").find(text[close + 1]) == std::string_view::npos)
    close = text.find('\'', close + 1);
  return close;
}

// The first `wanted` that is in no token in quotes; those follow '@' or "<-" or begin the text.
std::size_t find_outside(std::string_view text, std::string_view wanted) {
  char before = '@';
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text.substr(i).starts_with(wanted)) return i;
    if (text[i] == '\'' && (before == '@' || before == '-'))
      i = std::min(closing_quote(text, i), text.size() - 1);
    if (text[i] != ' ') before = text[i];
  }
  return std::string_view::npos;
}

// "5", "-1", "START", "END", or a token.
void read_one_position(std::string_view text, std::optional<std::int64_t>& position,
                       std::string& token) {
  position = text == "START" ? std::optional<std::int64_t>(0)
             : text == "END" ? std::optional<std::int64_t>(-1)
                             : whole(text);
  if (!position) token = text;
}

// One or, of a pattern, two: "5<-2".
void read_position(std::string_view text, TapPlace& place) {
  const std::size_t arrow = find_outside(text, "<-");
  const bool two = arrow != std::string_view::npos;
  read_one_position(without_spaces(text.substr(0, arrow)), place.position, place.position_token);
  if (two) read_one_position(without_spaces(text.substr(arrow + 2)), place.key, place.key_token);
  if (!place.at_position() || (two && !place.key && place.key_token.empty()))
    fail(
        "'{}' in '{}' is no position; write a whole number, from 0 on or, from the end, -1, START, "
        "END or a token, or of a pattern two: 5<-2",
        printable(text), printable(place.text));
}

// The position of a token, as it was written: in quotes as it is, else with or without the space
// before it.
std::int64_t position_of(const std::string& name, std::span<const std::string> tokens,
                         const TapPlace& place) {
  const bool quoted = name.size() > 2 && name.front() == '\'' && name.back() == '\'';
  const std::string text = quoted ? name.substr(1, name.size() - 2) : name;
  const auto places_of = [&](const std::string& wanted) {
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < tokens.size(); ++i)
      if (tokens[i] == wanted) places.push_back(i);
    return places;
  };
  std::vector<std::size_t> found = places_of(text);
  if (found.empty() && !quoted) found = places_of(" " + text);
  if (found.size() == 1) return static_cast<std::int64_t>(found[0]);
  if (!found.empty())
    fail("'{}': the token '{}' is at {}; write one of these numbers", printable(place.text),
         printable(tokens[found[0]]), fmt::join(found, " and "));
  std::vector<std::string> choices;
  for (const std::string& token : tokens)
    if (choices.size() < kChoicesNamed) choices.push_back("'" + printable(token) + "'");
  fail("'{}': the text has no token '{}'; its positions are 0 to {}, START, END or one of {}{}",
       printable(place.text), printable(text), tokens.size() - 1, join(choices, ", "),
       tokens.size() > choices.size() ? ", ..." : "");
}

template <typename Take>
void for_parts(std::string_view text, const Take& body) {
  while (true) {
    const std::size_t comma = find_outside(text, ",");
    body(without_spaces(text.substr(0, comma)));
    if (comma == std::string_view::npos) return;
    text.remove_prefix(comma + 1);
  }
}

}  // namespace

TapPlace parse_tap_place(std::string_view text) {
  TapPlace place;
  place.text = std::string(without_spaces(text));
  std::string_view rest = place.text;
  const std::size_t at = rest.find('@');
  const std::string_view part = rest.substr(0, at);
  if (part == name_of(Site::kEmbedding)) {
    place.site = Site::kEmbedding;
    place.tap = tap_name(PatchTarget{Site::kEmbedding});
  } else if (part.find("hook_") != std::string_view::npos) {
    place.tap = std::string(part);
  } else if (part.starts_with('L')) {
    read_part(part, place);
  } else {
    wrong_place(text);
  }
  if (at != std::string_view::npos) read_position(rest.substr(at + 1), place);
  require((!place.key && place.key_token.empty()) || is_over_keys(place.tap),
          "'{}': only patterns, scores and gates have keys", printable(place.text));
  return place;
}

Interventions Interventions::for_any_text() const {
  Interventions kept;
  for (const Change& change : changes)
    if (change.kind != ChangeKind::kPatch && !change.place.at_position())
      kept.changes.push_back(change);
  return kept;
}

void Interventions::resolve_positions(std::span<const std::string> tokens) {
  for (Change& change : changes) {
    TapPlace& place = change.place;
    for (auto& [name, position] : {std::pair<std::string&, std::optional<std::int64_t>&>(
                                       place.position_token, place.position),
                                   {place.key_token, place.key}}) {
      if (name.empty()) continue;
      position = position_of(name, tokens, place);
      name.clear();
    }
  }
}

void Interventions::add(Change change) {
  const auto after = std::find_if(changes.begin(), changes.end(),
                                  [&](const Change& other) { return other.kind > change.kind; });
  changes.insert(after, std::move(change));
}

void Interventions::add_ablations(std::string_view text) {
  for_parts(text, [&](std::string_view part) {
    add({ChangeKind::kAblate, parse_tap_place(part)});
  });
}

void Interventions::add_scales(std::string_view text) {
  for_parts(text, [&](std::string_view part) {
    const std::size_t sign = part.rfind('=');
    const std::string_view number = sign == std::string_view::npos ? "" : part.substr(sign + 1);
    double factor = 0;
    const auto [end, failure] =
        std::from_chars(number.data(), number.data() + number.size(), factor);
    require(!number.empty() && failure == std::errc() && end == number.data() + number.size() &&
                std::isfinite(static_cast<float>(factor)),
            "'{}' is no factor of a place; write L6H11=0.5", printable(part));
    add({ChangeKind::kScale, parse_tap_place(part.substr(0, sign)), factor});
  });
}

void Interventions::add_patch(std::string_view text) {
  const std::size_t sign = find_outside(text, "=");
  require(sign != std::string_view::npos && sign + 1 < text.size(),
          "'{}' names no text to take the value from; write L6H11@-1=Another text",
          printable(text));
  Change change = {ChangeKind::kPatch, parse_tap_place(text.substr(0, sign))};
  change.prompt = std::string(text.substr(sign + 1));
  add(std::move(change));
}

std::string text_of(const Change& change) {
  switch (change.kind) {
    case ChangeKind::kPatch:
      return fmt::format("{} from '{}'", change.place.text, printable(change.prompt));
    case ChangeKind::kScale: return fmt::format("{} x {}", change.place.text, change.factor);
    case ChangeKind::kAblate: break;
  }
  return change.place.text + " ablated";
}

std::string text_of(const Interventions& interventions) {
  std::string text;
  for (const Change& change : interventions.changes)
    text += (text.empty() ? "" : ", ") + text_of(change);
  return text;
}

void check_tap_place(const TapPlace& place, const Model& model) {
  const std::vector<std::string>& names = model.tap_names();
  if (place.site) {
    PatchTarget target;
    target.site = *place.site;
    target.layer = place.layer.value_or(0);
    target.head = place.head.value_or(-1);
    target.expert = place.expert.value_or(-1);
    // As the user named it: an ablation is no patch.
    check_target(target, model.config(), 1, text_of(target));
  } else if (std::none_of(names.begin(), names.end(),
                          [&](const std::string& name) { return tap_matches(place.tap, name); })) {
    fail_no_tap(place.tap, model);
  }
}

void fail_no_tap(std::string_view name, const Model& model) {
  fail("the model has no tap '{}'; the nearest are {}", printable(name),
       join(nearest_names(name, model.tap_names(), 3), ", "));
}

bool is_over_keys(std::string_view tap) {
  return tap.ends_with("hook_pattern") || tap.ends_with("hook_attn_scores") ||
         tap.ends_with("hook_gate");
}

}  // namespace filigree
