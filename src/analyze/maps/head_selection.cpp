#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <set>
#include <tuple>

#include "filigree/error.h"
#include "filigree/maps.h"
#include "filigree/names.h"

namespace filigree {
namespace {

// One side of a range; nothing stands for '*' or for a head that was left out.
struct NamedHeads {
  std::optional<std::int64_t> layer;
  std::optional<std::int64_t> head;
};

// One part of the list, as it is written: a place, or a range of two.
struct ListedPart {
  std::string_view text;
  NamedHeads first = {};
  std::optional<NamedHeads> last = {};
};

[[noreturn]] void wrong(std::string_view part) {
  fail("heads: '{}' is not a choice of heads; write L5H1, L6H*, 3.0-3.5, L2H1-L2H4 or *",
       printable(part));
}

// A number or '*' at the start of `rest`. A number too large for any model is one that no model
// has.
std::optional<std::int64_t> read_number(std::string_view& rest, std::string_view part) {
  if (!rest.empty() && rest[0] == '*') {
    rest.remove_prefix(1);
    return std::nullopt;
  }
  std::int64_t value = 0;
  const auto [end, failure] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
  if (failure == std::errc::result_out_of_range)
    value = std::numeric_limits<std::int64_t>::max();
  else if (failure != std::errc() || value < 0)
    wrong(part);
  rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
  return value;
}

NamedHeads read_place(std::string_view& rest, std::string_view part) {
  NamedHeads result;
  const bool letters = !rest.empty() && (rest[0] == 'L' || rest[0] == 'l');
  if (letters) rest.remove_prefix(1);
  result.layer = read_number(rest, part);
  const bool has_head =
      !rest.empty() && (letters ? rest[0] == 'H' || rest[0] == 'h' : rest[0] == '.');
  if (!has_head) {
    if (!letters) wrong(part);  // "5" alone might mean either
    return result;
  }
  rest.remove_prefix(1);
  result.head = read_number(rest, part);
  return result;
}

// The range the right way round.
std::string turned(const NamedHeads& first, const NamedHeads& last) {
  if (!first.head) return fmt::format("L{}-L{}", *last.layer, *first.layer);
  return fmt::format("{}-{}", head_name({*last.layer, *last.head}),
                     head_name({*first.layer, *first.head}));
}

ListedPart read_part(std::string_view text) {
  ListedPart part{text};
  if (text == "*" || text == "all" || text == "ALL") return part;
  std::string_view rest = text;
  part.first = read_place(rest, text);
  if (!rest.empty() && rest[0] == '-') {
    rest.remove_prefix(1);
    part.last = read_place(rest, text);
    const NamedHeads &first = part.first, &last = *part.last;
    if (!rest.empty() || !first.layer || !last.layer ||
        first.head.has_value() != last.head.has_value())
      wrong(text);
    require(std::tie(first.layer, first.head) <= std::tie(last.layer, last.head),
            "heads: '{}' runs backwards; write {}", printable(text), turned(first, last));
  }
  if (!rest.empty()) wrong(text);
  return part;
}

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(' ');
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(' ') - begin + 1);
}

std::vector<ListedPart> read_parts(std::string_view text) {
  std::vector<ListedPart> parts;
  std::size_t begin = 0;
  while (begin <= text.size()) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    parts.push_back(read_part(trimmed(text.substr(begin, end - begin))));
    begin = end + 1;
  }
  return parts;
}

}  // namespace

void check_heads(std::string_view text) { read_parts(text); }

std::vector<HeadId> parse_heads(std::string_view text, std::int64_t layers, std::int64_t heads) {
  std::set<HeadId> chosen;
  for (const ListedPart& part : read_parts(text)) {
    const auto check = [&](const NamedHeads& place) {
      if (place.layer.value_or(0) >= layers || place.head.value_or(0) >= heads)
        fail("heads: the model has no '{}'; it has {} layers, L0 to L{}, of {} heads, H0 to H{}",
             printable(part.text), layers, layers - 1, heads, heads - 1);
    };
    const NamedHeads& first = part.first;
    check(first);
    if (!part.last) {
      for (std::int64_t l = first.layer.value_or(0); l <= first.layer.value_or(layers - 1); ++l)
        for (std::int64_t h = first.head.value_or(0); h <= first.head.value_or(heads - 1); ++h)
          chosen.insert({l, h});
      continue;
    }
    check(*part.last);
    const std::int64_t begin = *first.layer * heads + first.head.value_or(0);
    const std::int64_t end = *part.last->layer * heads + part.last->head.value_or(heads - 1);
    for (std::int64_t at = begin; at <= end; ++at) chosen.insert({at / heads, at % heads});
  }
  return {chosen.begin(), chosen.end()};
}

std::vector<HeadId> all_heads(std::int64_t layers, std::int64_t heads) {
  return parse_heads("*", layers, heads);
}

}  // namespace filigree
