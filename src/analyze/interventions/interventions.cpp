#include "filigree/analyze/interventions/interventions.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "filigree/base/error.h"
#include "filigree/base/strings.h"

namespace filigree {
namespace {

[[noreturn]] void wrong_place(std::string_view text) {
  fail(
      "'{}' is no place in a model; write L6H11, L6H*, L7MLP, L6H11.q, L6.resid, embedding or a "
      "tap, and @3 or @-1 behind it for one position",
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

// "L6H11", "L6H*", "L6", "L7MLP", "L7 MLP", each with ".site" behind it or not.
void read_part(std::string_view rest, TapPlace& place) {
  rest.remove_prefix(1);
  place.layer = number_or_all(rest, place.text);
  place.site = Site::kZ;
  if (take(rest, "MLP") || take(rest, " MLP")) {
    place.site = Site::kMlpOut;
  } else if (take(rest, "H")) {
    place.head = number_or_all(rest, place.text);
  }
  if (take(rest, ".")) {
    const std::optional<Site> site = find_name<Site>(rest);
    if (!site || site == Site::kEmbedding || place.site == Site::kMlpOut)
      fail(
          "'{}' is no part of '{}'; there are resid, resid-mid, attn-out and mlp-out of a layer, "
          "and z, q, k, v and pattern of a layer or head",
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

// "5" or, of a pattern, "5<-2".
void read_position(std::string_view text, TapPlace& place) {
  const std::size_t arrow = text.find("<-");
  place.position = whole(without_spaces(text.substr(0, arrow)));
  if (arrow != std::string_view::npos) place.key = whole(without_spaces(text.substr(arrow + 2)));
  if (!place.position || (arrow != std::string_view::npos && !place.key))
    fail(
        "'{}' in '{}' is no position; write a whole number, from 0 on or, from the end, -1, or of "
        "a pattern two: 5<-2",
        printable(text), printable(place.text));
}

bool over_keys(const TapPlace& place) {
  return place.tap.ends_with("hook_pattern") || place.tap.ends_with("hook_attn_scores") ||
         place.tap.ends_with("hook_gate");
}

template <typename Take>
void for_parts(std::string_view text, const Take& body) {
  while (true) {
    const std::size_t comma = text.find(',');
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
  require(!place.key || over_keys(place), "'{}': only patterns, scores and gates have keys",
          printable(place.text));
  return place;
}

Interventions Interventions::for_any_text() const {
  Interventions kept;
  for (const Change& change : changes)
    if (change.kind != ChangeKind::kPatch && !change.place.position) kept.changes.push_back(change);
  return kept;
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
  const std::size_t sign = text.find('=');
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
    check_target(target, model.config(), 1);
  } else if (std::none_of(names.begin(), names.end(),
                          [&](const std::string& name) { return tap_matches(place.tap, name); })) {
    fail("the model has no tap '{}'; the nearest are {}", printable(place.tap),
         join(nearest_names(place.tap, names, 3), ", "));
  }
}

}  // namespace filigree
