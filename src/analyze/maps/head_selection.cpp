#include "filigree/analyze/maps/head_selection.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>

#include "filigree/base/error.h"
#include "filigree/base/strings.h"

namespace filigree {
namespace {

// One side of a range; nothing stands for '*' or for a head that was left out.
struct Place {
  std::optional<std::int64_t> layer;
  std::optional<std::int64_t> head;
};

class Parser {
 public:
  Parser(std::int64_t layers, std::int64_t heads) : layers_(layers), heads_(heads) {}

  // Adds the heads of one part of the list.
  void add(std::string_view part, std::set<HeadId>& chosen) const {
    std::string_view rest = part;
    if (part == "*" || part == "all" || part == "ALL") {
      add_range({0, 0}, {layers_ - 1, heads_ - 1}, chosen);
      return;
    }
    const Place first = place(rest, part);
    if (!rest.empty() && rest[0] == '-') {
      rest.remove_prefix(1);
      const Place last = place(rest, part);
      if (!rest.empty()) wrong(part);
      if (!first.layer || !last.layer || first.head.has_value() != last.head.has_value())
        wrong(part);
      const HeadId begin{*first.layer, first.head.value_or(0)};
      const HeadId end{*last.layer, last.head.value_or(heads_ - 1)};
      require(begin <= end, "heads: '{}' runs backwards; write {}-{}", printable(part),
              head_name(end), head_name(begin));
      add_range(begin, end, chosen);
      return;
    }
    if (!rest.empty()) wrong(part);
    for (std::int64_t l = first.layer.value_or(0); l <= first.layer.value_or(layers_ - 1); ++l)
      for (std::int64_t h = first.head.value_or(0); h <= first.head.value_or(heads_ - 1); ++h)
        chosen.insert({l, h});
  }

 private:
  [[noreturn]] void wrong(std::string_view part) const {
    fail("heads: '{}' is not a choice of heads; write L5H1, L6H*, 3.0-3.5, L2H1-L2H4 or *",
         printable(part));
  }

  // A number or '*' at the start of `rest`.
  std::optional<std::int64_t> number(std::string_view& rest, std::string_view part) const {
    if (!rest.empty() && rest[0] == '*') {
      rest.remove_prefix(1);
      return std::nullopt;
    }
    std::int64_t value = 0;
    const auto [end, failure] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
    if (failure == std::errc::result_out_of_range) missing(part);
    if (failure != std::errc() || value < 0) wrong(part);
    rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
    return value;
  }

  Place place(std::string_view& rest, std::string_view part) const {
    Place result;
    const bool letters = !rest.empty() && (rest[0] == 'L' || rest[0] == 'l');
    if (letters) rest.remove_prefix(1);
    result.layer = number(rest, part);
    if (result.layer && *result.layer >= layers_) missing(part);
    const bool has_head =
        !rest.empty() && (letters ? rest[0] == 'H' || rest[0] == 'h' : rest[0] == '.');
    if (!has_head) {
      if (!letters) wrong(part);  // "5" alone might mean either
      return result;
    }
    rest.remove_prefix(1);
    result.head = number(rest, part);
    if (result.head && *result.head >= heads_) missing(part);
    return result;
  }

  [[noreturn]] void missing(std::string_view part) const {
    fail("heads: the model has no '{}'; it has {} layers, L0 to L{}, of {} heads, H0 to H{}",
         printable(part), layers_, layers_ - 1, heads_, heads_ - 1);
  }

  void add_range(HeadId begin, HeadId end, std::set<HeadId>& chosen) const {
    for (std::int64_t at = begin.layer * heads_ + begin.head; at <= end.layer * heads_ + end.head;
         ++at)
      chosen.insert({at / heads_, at % heads_});
  }

  std::int64_t layers_, heads_;
};

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(' ');
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(' ') - begin + 1);
}

}  // namespace

std::string head_name(const HeadId& head) { return fmt::format("L{}H{}", head.layer, head.head); }

std::vector<HeadId> parse_heads(std::string_view text, std::int64_t layers, std::int64_t heads) {
  const Parser parser(layers, heads);
  std::set<HeadId> chosen;
  std::size_t begin = 0;
  while (begin <= text.size()) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    parser.add(trimmed(text.substr(begin, end - begin)), chosen);
    begin = end + 1;
  }
  return {chosen.begin(), chosen.end()};
}

std::vector<HeadId> all_heads(std::int64_t layers, std::int64_t heads) {
  return parse_heads("*", layers, heads);
}

}  // namespace filigree
